"""Attacks on lent views: what a function keeps stays valid, what it twists never comes back."""

import ctypes
import gc
import sys

import numpy as np
import pytest

import pyop

# From NumPy 2.5 on, setting shape, strides or dtype warns; functions do it all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")


def address(a):
    return a.__array_interface__["data"][0]


# Each keeps something of its argument beyond the call.
KEEPERS = {
    "itself": lambda x: x,
    "slice": lambda x: x[1:3],
    "view of view": lambda x: x[::-1][1:].view(),
    "subclass view": lambda x: x.view(np.matrix),
    "recarray": lambda x: x.view([("f", "f8")]).view(np.recarray),
    "real": lambda x: x.real,
    "transpose": lambda x: x.T,
    "memoryview": memoryview,
    "flat": lambda x: x.flat,
    "ctypes": lambda x: x.ctypes,
    "nditer": lambda x: np.nditer(x),
    "generator": lambda x: (v for v in x),
    "iterator": iter,
    "closure": lambda x: lambda: x,
    "list": lambda x: [x, [x]],
    "cycle": lambda x: (lambda c: (c.append(c), c)[1])([x]),
    "as_strided": lambda x: np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)),
    "frombuffer": lambda x: np.frombuffer(x),
    "dlpack": lambda x: np.from_dlpack(x) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else x,
    "frame": lambda x: sys._getframe(),
    "struct": lambda x: x.__array_struct__,
    "void scalar": lambda x: x.view([("f", "f8")])[1],
}


def numbers_in(kept):
    """Whatever can be read from what was kept, as bytes."""
    if callable(kept) and not isinstance(kept, np.ndarray):
        kept = kept()
    if isinstance(kept, list):
        kept = kept[0]
    if hasattr(kept, "f_locals"):
        kept = kept.f_locals["x"]
    if isinstance(kept, type(np.arange(1).ctypes)):
        return ctypes.string_at(kept.data, 40)
    if type(kept).__name__ == "PyCapsule":
        return b""
    if isinstance(kept, np.nditer):
        return np.array([float(v) for v in kept]).tobytes()
    if hasattr(kept, "__next__") and not isinstance(kept, np.flatiter):
        return np.array(list(kept)).tobytes()
    return np.array(kept).tobytes()


@pytest.mark.parametrize("keeper", KEEPERS)
def test_what_is_kept_stays_as_it_was(keeper):
    kept = []

    @pyop.op("float64[n], float64[n] -> float64[]")
    def keep(x, y):
        kept.append(KEEPERS[keeper](x))
        return x.sum()

    other = pyop.op("float64[n], float64[n] -> float64[]")(lambda x, y: x.sum() + y.sum())
    expected = []
    for i in range(40):  # more than there are spare views
        a = np.arange(5.0) + 100 * i
        keep(a, a)
        expected.append(a.copy())
        del a  # what was kept owns the memory now
        other(np.full(5, -1.0), np.full(5, -2.0))
        np.full(5, -3.0)
    for k, a in zip(kept, expected, strict=True):
        reference = numbers_in(KEEPERS[keeper](a)) if keeper != "frame" else a.tobytes()
        assert numbers_in(k) == reference
    kept.clear()
    gc.collect()


@pytest.mark.parametrize("keeper", KEEPERS)
def test_what_is_kept_in_a_gufunc_loop_stays_as_it_was(keeper):
    kept = []

    @pyop.op("(n)->()")
    def keep(x):
        kept.append(KEEPERS[keeper](x))
        return x.sum()

    a = np.arange(100.0).reshape(20, 5)
    keep(a)
    rows = a.copy()
    del a
    for k, row in zip(kept, rows, strict=True):
        reference = numbers_in(KEEPERS[keeper](row)) if keeper != "frame" else row.tobytes()
        assert numbers_in(k) == reference


# Each leaves its argument, which is the function's own ndarray object, in another state.
TWISTERS = {
    "shape": lambda x: setattr(x, "shape", (3, 2)),
    "higher rank": lambda x: setattr(x, "shape", (1, 1, 6, 1, 1, 1)),
    "dtype": lambda x: setattr(x, "dtype", np.int32),
    "subarray dtype": lambda x: setattr(x, "dtype", "(2,)f4"),
    "struct dtype": lambda x: setattr(x, "dtype", [("a", "f4"), ("b", "f4")]),
    "resize": lambda x: x.resize((2, 3), refcheck=False),
    "writeable": lambda x: setattr(x.flags, "writeable", True),
    "setflags": lambda x: x.setflags(write=True, align=False),
    "aligned": lambda x: x.setflags(align=False),
    "setstate": lambda x: x.__setstate__((1, (2,), np.dtype("f8"), False, b"\1" * 16)),
    "setstate owner, then read-only": lambda x: (
        x.__setstate__((1, (2,), np.dtype("f8"), False, b"\1" * 16)),
        x.setflags(write=False),
    ),
    "setstate long": lambda x: (
        x.__setstate__((1, (500,), np.dtype("f8"), False, b"\1" * 4000)),
        x.setflags(write=False),
    ),
    "setstate objects": lambda x: (
        x.__setstate__((1, (2,), np.dtype(object), False, [1, "a"])),
        x.setflags(write=False),
    ),
}


@pytest.mark.parametrize("twister", TWISTERS)
def test_a_twisted_view_never_comes_back(twister):
    """The caller's array keeps shape and dtype; so do the views of later calls."""

    @pyop.op("float64[n] -> float64[]")
    def twist(x):
        total = x.sum()
        TWISTERS[twister](x)
        return total

    seen = pyop.op("float64[n] -> float64[n]")(
        lambda x: (x.shape, x.dtype, x.flags.writeable, x.flags.aligned) and x + 0
    )
    for i in range(40):
        a = np.arange(6.0) + i
        assert twist(a) == a.sum()
        assert (a.shape, a.dtype, a.flags.writeable) == ((6,), np.float64, True)
        np.testing.assert_array_equal(a, np.arange(6.0) + i)
        np.testing.assert_array_equal(seen(a), a)

        @pyop.op("float64[n] -> float64[]")
        def properties(x):
            assert (x.shape, x.strides, x.dtype) == ((6,), (8,), np.float64)
            assert not x.flags.writeable
            assert not x.flags.owndata
            assert x.flags.aligned
            return x[0]

        properties(a)


@pytest.mark.parametrize("twister", TWISTERS)
def test_a_twisted_view_in_a_gufunc_loop(twister):
    @pyop.op("(n)->()")
    def twist(x):
        assert (x.shape, x.dtype, x.flags.writeable) == ((6,), np.float64, False)
        total = x.sum()
        TWISTERS[twister](x)
        return total

    a = np.arange(60.0).reshape(10, 6)
    np.testing.assert_array_equal(twist(a), np.arange(60.0).reshape(10, 6).sum(1))


def test_a_twisted_view_that_is_returned_is_what_the_function_returned():
    @pyop.op("float64[n] -> float64[m!,k!]")
    def fold(x):
        x.shape = (2, 3)
        return x

    a = np.arange(6.0)
    for _ in range(3):
        got = fold(a)
        assert got.shape == (2, 3)
        assert a.shape == (6,)
        assert address(got) == address(a)

    @pyop.op("float64[n] -> int64[n]", name="cast")
    def bits(x):
        x.dtype = np.int64
        return x

    np.testing.assert_array_equal(bits(a), a.view(np.int64))
    np.testing.assert_array_equal(a, np.arange(6.0))
