"""Results that are handed out again: never while anybody can see them."""

import ctypes
import gc
import sys
import sysconfig
import threading
import weakref

import numpy as np
import pytest

c = pytest.importorskip(
    "pyop._ctests",
    reason="the C++ tests are not built: install with -Ccmake.define.PYOP_TESTS=ON",
    exc_type=ModuleNotFoundError,
)

# From NumPy 2.5 on, setting shape, strides or dtype warns; callers do it all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")

F8 = np.dtype("f8")

# Several threads would share a recycler, and a free-threaded build has no lock around it (csrc/array/memory/recycle.h).
recycling = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="a free-threaded build recycles no results"
)


def address(a):
    return a.__array_interface__["data"][0]


def kept():
    return c.pool_kept()[0]


@pytest.fixture(autouse=True)
def _empty_pool():
    gc.collect()
    c.pool_trim()
    yield
    gc.collect()
    c.pool_trim()


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


@recycling
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


@recycling
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
