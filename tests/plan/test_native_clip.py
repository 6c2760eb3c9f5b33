"""Clipping, rounding to whole numbers, and scalars of NumPy among the operands run as native loops."""

import numpy as np
import pytest
from native_checks import check

import pyop

DTYPES = ["f2", "f4", "f8", "i1", "u1", "i4", "u8", "c16", "?"]


def array_of(dtype, shape=(3, 5)):
    r = np.random.default_rng(1)
    values = r.normal(size=shape) * 4
    if dtype[0] in "fc":
        values.flat[:4] = [np.nan, np.inf, -0.0, 2.5]
        return values.astype(dtype)
    return np.abs(values).astype(dtype) if dtype[0] in "u?" else values.astype(dtype)


def fates(f, *arrays):
    specs = [pyop.Spec(a.dtype, a.shape) for a in arrays]
    return [node.fate for node in pyop.trace(f, *specs).compile().explain().nodes if node.fate != "input"]


CLIPS = {
    "both": lambda x: np.clip(x, 1, 2),
    "method": lambda x: x.clip(1, 2),
    "by name": lambda x: np.clip(x, a_min=1, a_max=2),
    "by new name": lambda x: np.clip(x, min=1, max=2),
    "one by new name": lambda x: np.clip(x, max=2),
    "below": lambda x: np.clip(x, 1, None),
    "above": lambda x: x.clip(max=1),
    "neither": lambda x: np.clip(x, None, None),
    "crossed": lambda x: np.clip(x, 2, 1),
    "beyond": lambda x: np.clip(x, -1000, 1000),
    "floats": lambda x: np.clip(x, 0.5, 1.5),
    "scalars": lambda x: np.clip(x, np.float32(0.1), np.int8(2)),
    "arrays": lambda x: np.clip(x, np.arange(5.0), x),
    "nan": lambda x: np.clip(x, np.nan, 2.0),
    "shape of a bound": lambda x: np.clip(x[:1], x, 2),
    "in an expression": lambda x: np.clip(x * 2, 1, 3) + x,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_clip(name, dtype):
    f = CLIPS[name]
    x = array_of(dtype)
    for each in (x, x.T.copy().T, x[::2, ::-1] if "arrays" not in name else x):
        check(f, each, named=name != "arrays")
    if dtype in ("f4", "f8", "i4") and name not in ("neither", "shape of a bound"):
        assert "python" not in fates(f, x)


def test_clip_of_arrays_of_several_dtypes():
    check(lambda x, a, b: np.clip(x, a, b), array_of("f4"), array_of("i4"), array_of("f8"))
    check(lambda x, a, b: np.clip(x, a, b), array_of("u1"), array_of("i4", (5,)), array_of("i1", (3, 1)), named=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_round(dtype):
    x = array_of(dtype)
    for f in (np.round, lambda x: x.round(), lambda x: np.around(x, 0) * 2, lambda x: np.round(x, decimals=2)):
        check(f, x)
        check(f, x.T)
    if dtype != "?":
        assert "python" not in fates(lambda x: x.round(), x)
        assert "python" not in fates(lambda x: np.round(x, 1), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [np.float64(0.1), np.float32(0.1), np.int8(3), np.uint64(3), np.bool_(True)])
def test_scalars_of_numpy_are_not_weak(dtype, number):
    x = array_of(dtype)
    for f in (lambda x: x * number, lambda x: number - x.real, lambda x: np.where(x != 0, x, number)):
        check(f, x)
    if dtype in ("f4", "f8", "i4"):
        assert "python" not in fates(lambda x: x * number + number, x)


def test_a_scalar_that_is_no_number_is_left_to_numpy():
    x = np.arange(3)
    check(lambda x: x * np.timedelta64(3, "s"), x)
    assert (pyop.compile(lambda x: x * np.longdouble("0.1"))(x) == x * np.longdouble("0.1")).all()
