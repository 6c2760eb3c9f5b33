"""Arrays whose memory comes from the pool and goes back to it, and results that are handed out again."""

import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import pyop.debug

c = pytest.importorskip(
    "pyop._ctests",
    reason="the C++ tests are not built: install with -Ccmake.define.PYOP_TESTS=ON",
    exc_type=ModuleNotFoundError,
)

# From NumPy 2.5 on, setting shape, strides or dtype warns; callers do it all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")

F8 = np.dtype("f8")


def address(a):
    return a.__array_interface__["data"][0]


def handler(a):
    return np._core.multiarray.get_handler_name(a)


def kept():
    return c.pool_kept()[0]


@pytest.fixture(autouse=True)
def _empty_pool():
    gc.collect()
    c.pool_trim()
    yield
    gc.collect()
    c.pool_trim()


# --- arrays


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5,), (2048,), (40, 50), (7, 11, 13), (700_000,)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i2", "?", "M8[s]", ">f8", "S5", "f4,i8", "V9"])
def test_an_array_is_like_any_other(shape, dtype):
    dtype = np.dtype(dtype)
    a = c.pooled_empty(dtype, shape)
    plain = np.empty(shape, dtype)
    assert type(a) is np.ndarray
    assert a.base is None
    assert (a.shape, a.strides, a.dtype) == (plain.shape, plain.strides, plain.dtype)
    assert str(a.flags) == str(plain.flags)
    assert handler(a) == ("pyop" if a.nbytes >= 1024 else "default_allocator")
    assert a.nbytes < 1024 or address(a) % 64 == 0
    raw = np.frombuffer(os.urandom(max(a.nbytes, 1))[: a.nbytes], "u1")
    if a.nbytes:
        a.reshape(-1).view("u1")[:] = raw
    copy = a.copy()
    assert handler(copy) == "default_allocator"
    assert a.tobytes() == raw.tobytes() == copy.tobytes()
    assert pickle.dumps(a) == pickle.dumps(copy)


def test_what_numpy_must_make_is_made_by_numpy():
    for dtype in (np.dtype(object), np.dtype([("a", "f8"), ("b", "O")]), np.dtypes.StringDType()):
        a = c.pooled_empty(dtype, (500,))
        assert handler(a) == "default_allocator"
        np.testing.assert_array_equal(a, np.empty(500, dtype))  # initialised
    a = c.pooled_empty(np.dtype("(3,)f8"), (500,))
    assert a.shape == (500, 3)
    assert c.pooled_empty(np.dtype("U"), (5,)).dtype.char == "U"
    with pytest.raises(ValueError, match="negative dimensions"):
        c.pooled_empty(F8, (-1,))
    with pytest.raises(ValueError, match="too big"):
        c.pooled_empty(F8, (2**40, 2**40))
    with pytest.raises(MemoryError):
        c.pooled_empty(F8, (2**52,))
    with pytest.raises(MemoryError):
        c.pooled_empty(F8, (2**41,))


def test_strides():
    a = c.pooled_empty(F8, (40, 50), (8, 320))
    assert a.flags.f_contiguous
    assert not a.flags.c_contiguous
    a[...] = np.arange(2000.0).reshape(40, 50)
    np.testing.assert_array_equal(a.T.reshape(-1), np.arange(2000.0).reshape(40, 50).T.reshape(-1))


def test_memory_comes_back_and_is_used_again():
    a = c.pooled_empty(F8, (10_000,))
    where = address(a)
    view = a[5:]
    del a
    assert kept() == 0
    del view
    assert kept() >= 80_000
    again = c.pooled_empty(np.dtype("f4"), (100, 200))
    assert address(again) == where
    assert kept() == 0
    both = [again, c.pooled_empty(F8, (10_000,))]
    assert len({address(x) for x in both}) == 2


def test_sizes_fit():
    """Every byte of blocks of many sizes is there and nobody else's."""
    rng = np.random.default_rng(1)
    sizes = sorted(
        {
            1024,
            1025,
            262_079,
            262_080,
            262_081,
            4_194_240,
            4_194_241,
            *(1024 + 64 * k + d for k in range(40) for d in (-1, 0, 1)),
        }
    )
    for _ in range(2):
        rng.shuffle(sizes)
        arrays = [c.pooled_empty(np.dtype("u1"), (int(n),)) for n in sizes if n >= 1024]
        for i, a in enumerate(arrays):
            a.fill(i % 251)
        for i, a in enumerate(arrays):
            assert (a == i % 251).all()
        del a, arrays


def test_an_end_that_lies_about_its_size():
    """The shape and dtype of an array can be assigned; the block comes back as it was taken."""
    a = c.pooled_empty(F8, (10_000,))
    where = address(a)
    a.shape = (100, 100)
    a.dtype = "i2"
    a.__setstate__((1, (2,), F8, False, b"\1" * 16))  # the array drops its memory
    assert kept() >= 80_000
    assert handler(a) in (None, "default_allocator", "pyop")
    del a
    b = c.pooled_empty(F8, (10_000,))
    assert address(b) == where
    np.lib.stride_tricks.as_strided(b, (2, 2), (8, 8))
    b.strides = (0,)
    del b
    assert kept() >= 80_000


@pytest.mark.parametrize("size", [0, 1, 100, 500, 9_000, 10_000, 10_100, 11_000, 100_000, 1_000_000])
def test_resize(size):
    a = c.pooled_empty(F8, (10_000,))
    a[:] = np.arange(10_000.0)
    a.resize((size,), refcheck=False)
    expected = np.arange(10_000.0)
    expected.resize((size,), refcheck=False)
    np.testing.assert_array_equal(a, expected)
    a.resize((10_000,), refcheck=False)
    expected.resize((10_000,), refcheck=False)
    np.testing.assert_array_equal(a, expected)


def test_a_shrunken_array_does_not_keep_a_large_block():
    a = c.pooled_empty(F8, (10_000,))
    a.resize((10,), refcheck=False)
    assert kept() >= 80_000


def test_limit_and_trim():
    old = c.pool_limit(1_000_000)
    try:
        arrays = [c.pooled_empty(F8, (20_000,)) for _ in range(10)]
        newest = address(arrays[-1])
        while arrays:
            arrays.pop(0)
        assert 0 < kept() <= 1_000_000
        assert address(c.pooled_empty(F8, (20_000,))) == newest  # the oldest were given up
        before = kept()
        c.pooled_empty(F8, (1_000_000,))  # more than may be kept: nothing else is given up for it
        assert kept() == before
        # Blocks of other sizes are given up, too: a pool full of one size does not starve another.
        c.pooled_empty(F8, (110_000,))
        assert 880_000 <= kept() <= 1_000_000
        where = address(c.pooled_empty(F8, (110_000,)))
        assert address(c.pooled_empty(F8, (110_000,))) == where
        assert c.pool_trim() == before or c.pool_trim() == 0
        assert kept() == 0
    finally:
        assert c.pool_limit(old) == 1_000_000
    c.pooled_empty(F8, (20_000,))
    assert c.pool_limit(0) == old
    assert kept() == 0
    c.pooled_empty(F8, (20_000,))
    assert kept() == 0
    c.pool_limit(old)


def test_the_pool_is_public():
    stats = pyop.debug.pool_stats()
    assert stats["kept"] <= stats["limit"] <= 512 << 20
    assert list(stats) == list(pyop.debug.PoolStats.__annotations__)
    with pytest.raises(TypeError):
        pyop.debug.pool_limit(-1)
    pyop.debug.pool_trim()
    assert pyop.debug.pool_stats()["blocks"] == 0


def test_tracemalloc_sees_the_arrays_as_numpys():
    tracemalloc.start()
    try:
        a = c.pooled_empty(F8, (100_000,))
        arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)

        def traced():
            return sum(t.size for t in tracemalloc.take_snapshot().filter_traces([arrays]).traces)

        assert traced() == 800_000
        a.resize((50,), refcheck=False)
        assert traced() == 400
        del a
        assert traced() == 0
    finally:
        tracemalloc.stop()


def test_threads():
    """Blocks taken and given on many threads at once are nobody else's meanwhile."""
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        held = []
        for _ in range(300):
            a = c.pooled_empty(np.dtype("i8"), (int(rng.integers(130, 3000)),))
            a.fill(seed)
            held.append(a)
            if len(held) > 5:
                old = held.pop(int(rng.integers(5)))
                if not (old == seed).all():
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_pool_of_its_own():
    code = """
import os, threading, numpy as np
from pyop import _ctests as c
a = c.pooled_empty(np.dtype("f8"), (10_000,)); a.fill(1.0)
stop = False
def churn():
    while not stop:
        c.pooled_empty(np.dtype("f8"), (5_000,))
threads = [threading.Thread(target=churn) for _ in range(2)]
for t in threads: t.start()
for i in range(20):
    pid = os.fork()
    if pid == 0:
        b = a.copy(); del a
        x = c.pooled_empty(np.dtype("f8"), (10_000,)); x.fill(2.0)
        os._exit(0 if (b == 1.0).all() and (x == 2.0).all() else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
for t in threads: t.join()
assert (a == 1.0).all()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def test_arrays_that_outlive_the_interpreter():
    code = """
import sys, numpy as np, builtins
from pyop import _ctests as c
r = c.recycler_new()
builtins.kept = [c.pooled_empty(np.dtype("f8"), (n,)) for n in (10, 1000, 100_000)]
builtins.kept += [r, c.recycler_take(r, np.dtype("f8"), (5,))]
class Late:
    def __init__(self): self.a = c.pooled_empty(np.dtype("f8"), (5000,))
    def __del__(self): self.a.resize((9000,), refcheck=False)
sys.late = Late()
for name in [m for m in sys.modules if m.startswith("pyop")]: del sys.modules[name]
del c, r
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# --- recycled results


class Results:
    """A plan output: `take()` is an array with known content."""

    def __init__(self, shape=(6,), dtype=F8):
        self.recycler, self.shape, self.dtype, self.n = c.recycler_new(), shape, np.dtype(dtype), 0

    def take(self, shape=None, dtype=None):
        a = c.recycler_take(
            self.recycler, self.dtype if dtype is None else np.dtype(dtype), self.shape if shape is None else shape
        )
        self.n += 1
        a[...] = self.n
        return a


def test_two_arrays_take_turns():
    r = Results()
    y = r.take()
    seen = {id(y)}
    for _ in range(20):
        y = r.take()
        seen.add(id(y))
    assert len(seen) == 2
    assert (y == 21).all()


def test_nothing_is_recycled_that_is_large_or_holds_references():
    for shape, dtype in (((3000,), "f8"), ((6,), "O"), ((6,), [("a", "O"), ("b", "f8")])):
        r = c.recycler_new()
        a = c.recycler_take(r, np.dtype(dtype), shape)
        dead = weakref.ref(a)
        del a
        assert dead() is None


KEEPERS = {
    "itself": lambda y: y,
    "slice": lambda y: y[1:3],
    "view of view": lambda y: y[::-1][1:].view(),
    "subclass view": lambda y: y.view(np.matrix),
    "recarray": lambda y: y.view([("f", "f8")]).view(np.recarray),
    "real": lambda y: y.real,
    "transpose": lambda y: y.T,
    "memoryview": memoryview,
    "cast memoryview": lambda y: memoryview(y).cast("B")[8:],
    "flat": lambda y: y.flat,
    "ctypes": lambda y: y.ctypes,
    "nditer": lambda y: np.nditer(y),
    "iterator": iter,
    "closure": lambda y: lambda: y,
    "cycle": lambda y: (lambda k: (k.append(k), k)[1])([y]),
    "as_strided": lambda y: np.lib.stride_tricks.as_strided(y, (2, 2), (8, 8)),
    "frombuffer": lambda y: np.frombuffer(y),
    "frombuffer of ctypes": lambda y: (ctypes.c_double * 6).from_buffer(y),
    "dlpack": lambda y: np.from_dlpack(y),
    "dlpack capsule": lambda y: y.__dlpack__(),
    "struct": lambda y: y.__array_struct__,
    "void scalar": lambda y: y.view([("f", "f8")])[1],
}


def content(k):
    if callable(k) and not isinstance(k, np.ndarray):
        k = k()
    if isinstance(k, list):
        k = k[0]
    if isinstance(k, type(np.arange(1).ctypes)):
        return ctypes.string_at(k.data, 40)
    if type(k).__name__ == "PyCapsule":
        return b""
    if isinstance(k, np.nditer):
        k.reset()
        return np.array([float(v) for v in k]).tobytes()
    return np.array(list(k) if hasattr(k, "__length_hint__") and not isinstance(k, np.flatiter) else k).tobytes()


@pytest.mark.parametrize("keeper", KEEPERS)
def test_what_is_kept_of_a_result_stays_as_it_was(keeper):
    r = Results()
    keep, expected, ids = [], [], set()
    for i in range(40):
        y = r.take()
        ids.add(address(y))
        keep.append(KEEPERS[keeper](y))
        expected.append(content(KEEPERS[keeper](np.full(6, i + 1.0))))
        del y
    assert len(ids) == 40
    if keeper == "iterator":
        assert [np.array(list(k)).tobytes() for k in keep] == expected
    else:
        assert [content(k) for k in keep] == expected


TWISTERS = {
    "shape": lambda y: setattr(y, "shape", (3, 2)),
    "rank": lambda y: setattr(y, "shape", (1, 6)),
    "strides": lambda y: setattr(y, "strides", (0,)),
    "dtype": lambda y: setattr(y, "dtype", np.int64),
    "equal dtype": lambda y: setattr(y, "dtype", np.dtype("f8", metadata={"a": 1})),
    "byte order": lambda y: setattr(y, "dtype", ">f8"),
    "read-only": lambda y: y.setflags(write=False),
    "aligned": lambda y: y.setflags(align=False),
    "smaller": lambda y: y.resize((2,), refcheck=False),
    "larger": lambda y: y.resize((200,), refcheck=False),
    "setstate": lambda y: y.__setstate__((1, (6,), F8, False, b"\1" * 48)),
    "setstate unaligned": lambda y: y.__setstate__((1, (6,), np.dtype("u1"), False, b"\1" * 6)),
    "setstate objects": lambda y: y.__setstate__((1, (6,), np.dtype(object), False, [1, "a", None, [], {}, ()])),
    "exported": lambda y: memoryview(y).release(),
}


@pytest.mark.parametrize("twister", TWISTERS)
def test_a_twisted_result_is_never_handed_out_as_it_is(twister):
    r = Results()
    for _ in range(40):
        y = r.take()
        assert type(y) is np.ndarray
        assert (y.shape, y.strides, y.dtype.str, y.dtype.metadata) == ((6,), (8,), "<f8", None)
        assert y.flags.writeable
        assert y.flags.aligned
        assert y.flags.owndata
        assert y.base is None
        assert (y == r.n).all()
        TWISTERS[twister](y)


def test_twisted_sizes_of_one():
    """Strides along an axis of one element mean nothing to the flags, yet are not kept."""
    r = Results((1, 6))
    for _ in range(5):
        y = r.take()
        assert y.strides == (48, 8)
        y.strides = (-800, 8)


def test_a_result_with_a_weak_reference_is_let_go():
    r = Results()
    died = []
    watched = [weakref.ref(r.take(), lambda _, i=i: died.append(i)) for i in range(2)]
    assert died == []
    y = r.take()
    assert all(w() is not y for w in watched)
    z = r.take()
    assert died == [0, 1]
    assert y is not z


def test_a_callback_at_the_end_of_a_result_may_ask_for_another():
    r = Results()
    inner = []
    watched = [weakref.ref(r.take(), lambda _: inner.append(r.take())) for _ in range(2)]
    got = [r.take(), r.take(), r.take()]
    assert len(inner) == 2
    assert len({address(a) for a in got + inner}) == 5
    del watched


def test_shapes_and_dtypes_change():
    r = Results()
    rng = np.random.default_rng(0)
    held = []
    for _ in range(500):
        shape = [(6,), (2, 3), (), (0, 3), (3, 0), (6, 1), (20,)][rng.integers(7)]
        dtype = ["f8", "i8", "f4", ">f8", "?"][rng.integers(5)]
        y = r.take(shape, dtype)
        plain = np.empty(shape, dtype)
        assert (y.shape, y.strides, y.dtype, str(y.flags)) == (
            plain.shape,
            plain.strides,
            plain.dtype,
            str(plain.flags),
        )
        held.append((y, y.copy()))
        if len(held) > 4:
            a, copy = held.pop(rng.integers(5))
            np.testing.assert_array_equal(a, copy)
        del y


def test_a_caller_that_keeps_everything_is_given_fresh_arrays():
    r = Results()
    all_kept = [r.take() for _ in range(1000)]
    for i, a in enumerate(all_kept):
        assert (a == i + 1).all()
    assert len({address(a) for a in all_kept}) == 1000
    del a, all_kept
    for _ in range(600):
        r.take()
    ids = set()
    for _ in range(20):
        y = r.take()
        ids.add(address(y))
    assert len(ids) == 2  # it has noticed that results are dropped again


def test_a_recycler_gives_back_what_it_holds():
    r = Results((200,))
    y = r.take()
    del r
    assert (y == 1).all()
    assert kept() == 0
    del y
    assert kept() > 0


def test_results_on_many_threads():
    r = Results((4,))
    wrong = []

    def work(me):
        for _ in range(3000):
            y = c.recycler_take(r.recycler, F8, (4,))
            y[...] = me
            if not (y == me).all():
                wrong.append(me)

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(old)
    assert not wrong
