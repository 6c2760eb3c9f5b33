"""Arrays whose memory comes from the pool and goes back to it."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc

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


@pytest.fixture(autouse=True, scope="module")
def _older_objects_apart():
    """What other tests left behind is not searched by the two collections of each test here."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _empty_pool(_older_objects_apart):
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
