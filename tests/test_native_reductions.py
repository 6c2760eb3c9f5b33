"""Reductions in plans against NumPy itself: bit for bit, with its dtypes, layouts, warnings and errors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_checks import assert_same, check, numbers, observed, python_calls

import pyop

DTYPES = [
    *("float64", "float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "bool"),
    *("complex64", "complex128"),
]
REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "amin": np.amin,
    "any": np.any,
    "all": np.all,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "add": np.add.reduce,
    "maximum": np.maximum.reduce,
    "fmin": np.fmin.reduce,
    "subtract": np.subtract.reduce,
    "logical_xor": np.logical_xor.reduce,
    "bitwise_and": np.bitwise_and.reduce,
    "hypot": np.hypot.reduce,
    "logaddexp": np.logaddexp.reduce,
    "method": lambda x, **options: x.sum(**options),
}


@st.composite
def arrays(draw):
    """Arrays of every layout, whose elements, sizes and strides do not fit anything."""
    ndim = draw(st.sampled_from([1, 1, 1, 2, 2, 3, 4]))
    sizes = [0, 1, 2, 7, 8, 9, 100, 129, 1000, 9000, 30_000] if ndim == 1 else [0, 1, 2, 3, 5, 8, 17, 60]
    shape = []
    for _ in range(ndim):
        shape.append(draw(st.sampled_from([n for n in sizes if n * math.prod(shape) <= 30_000])))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    x = numbers(rng, draw(st.sampled_from(DTYPES)), [2 * n for n in shape])
    half = [slice(0, n) for n in shape]
    layout = draw(st.sampled_from(["C", "F", "strided", "transposed", "repeated", "unaligned"]))
    if layout == "strided":
        step = st.sampled_from([slice(None, None, 2), slice(None, None, -2)])
        return x[tuple(draw(step) if draw(st.booleans()) else s for s in half)]
    x = np.array(x[tuple(half)], order="F" if layout == "F" else "C")
    if layout == "transposed":
        return x.transpose(draw(st.permutations(range(ndim))))
    if layout == "repeated" and x.size:
        return np.broadcast_to(x[:1], x.shape)
    if layout == "unaligned":
        return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    return x


@st.composite
def calls(draw, ndim):
    """A reduction and its options."""
    name = draw(st.sampled_from(sorted(REDUCTIONS)))
    options = {}
    axis = draw(
        st.none()
        | st.integers(-ndim, ndim - 1)
        | st.lists(st.integers(0, ndim - 1), min_size=1, unique=True).map(tuple)
    )
    if axis is not None or draw(st.booleans()):
        options["axis"] = axis
    if draw(st.integers(0, 3)) == 0:
        options["keepdims"] = draw(st.booleans())
    if name in ("sum", "prod", "add", "mean", "method") and draw(st.integers(0, 4)) == 0:
        options["dtype"] = draw(st.sampled_from(["float64", np.float32, np.int64]))
    if name in ("sum", "max", "amin", "add") and draw(st.integers(0, 4)) == 0:
        options["initial"] = draw(st.sampled_from([0, 3, -1, 2.5, None]))
    if name in ("var", "std"):
        options["ddof"] = draw(st.sampled_from([0, 1, 2]))
    return name, options


def differs(x, call):
    name, options = call
    check(lambda v: REDUCTIONS[name](v, **options), x)


cases = arrays().flatmap(lambda x: st.tuples(st.just(x), calls(max(x.ndim, 1))))


@settings(max_examples=250, deadline=None)
@given(cases)
def test_random_reductions(case):
    differs(*case)


@pytest.mark.campaign
@settings(max_examples=30_000, deadline=None)
@given(cases)
def test_random_reductions_campaign(case):
    differs(*case)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "bool", "uint8"])
def test_common_reductions_run_without_python(dtype):
    rng = np.random.default_rng(0)
    for function in (np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean, np.var, np.std):
        if dtype.startswith("float") and function in (np.any, np.all):
            continue  # what counts as true is looked at by NumPy's own conversion
        for shape, axis in [((10,), None), ((4, 5), 0), ((4, 5), -1), ((3, 4, 5), (0, 2)), ((3, 4, 5), None)]:
            x = numbers(rng, dtype, shape)
            plan = check(lambda v, f=function, a=axis: f(v, axis=a), x, threads=1)
            assert python_calls(plan, x) == [], (function, shape, axis)


def test_without_the_pass_the_function_is_called():
    x = np.arange(5.0)
    plan = pyop.trace(lambda v: np.sum(v), "float64[n]").compile(optimize=False)
    assert "sum" in python_calls(plan, x)
    assert plan(x) == 10


@pytest.mark.parametrize("n", [1, 7, 8, 127, 128, 129, 136, 1000, 8191, 8192, 8193, 20_001, 100_003])
def test_sums_add_in_numpys_order(n):
    rng = np.random.default_rng(n)
    for dtype in ("float64", "float32", "complex64", "float16"):
        x = numbers(rng, dtype, n)
        check(np.sum, x)
        check(np.std, x)
        check(np.sum, x[::-2])
    check(np.mean, rng.integers(-1000, 1000, n))


def test_zeros_and_nans_keep_their_signs():
    for x in ([-0.0], [-0.0, -0.0], [0.0, -0.0], [-0.0, 0.0], [np.nan, 1.0], [1.0, -np.nan]):
        for function in (np.sum, np.prod, np.max, np.min, np.mean, np.add.reduce, np.maximum.reduce):
            check(function, np.array(x))
            check(lambda v, f=function: f(v, axis=0), np.array([x, x]))


def test_floating_point_errors_are_numpys():
    big = np.full(20, 1e308)
    check(np.sum, big)
    check(np.prod, big)
    check(np.sum, np.array([np.inf, -np.inf]))
    check(np.var, np.array([np.inf, 1.0]))
    check(np.mean, np.array([]))
    check(lambda v: np.var(v, ddof=3), np.arange(3.0))
    plan = pyop.trace(np.sum, "float64[n]").compile()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow"):
        plan(big)
    with np.errstate(all="ignore"):
        assert plan(big) == np.inf


def test_errors_are_numpys():
    check(np.max, np.array([]))
    check(lambda v: np.max(v, axis=1), np.ones((3, 0)))
    unknown = pyop.trace(lambda v: np.sum(v, axis=2), pyop.Spec("float64")).compile()
    assert_same(observed(unknown, np.ones(3)), observed(lambda v: np.sum(v, axis=2), np.ones(3)))
    assert unknown(np.ones((1, 2, 3))).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("bufsize", [16, 1024])
def test_buffer_size_of_numpy_is_respected(bufsize):
    rng = np.random.default_rng(3)
    before = np.getbufsize()
    with np.errstate():
        np.setbufsize(bufsize)
        try:
            for x in (rng.normal(size=5000), rng.integers(0, 1000, 5000), rng.normal(size=(40, 90))[:, ::2]):
                check(np.mean, x)
                check(np.sum, x)
        finally:
            np.setbufsize(before)


def test_large_arrays_release_the_gil_and_agree():
    x = np.random.default_rng(1).normal(size=(300, 700))
    for axis in (None, 0, 1):
        for function in (np.sum, np.max, np.std):
            check(lambda v, f=function, a=axis: f(v, axis=a), x)


def test_reductions_follow_reductions_in_memory_order():
    x = np.asfortranarray(np.random.default_rng(2).normal(size=(5, 60, 7)))
    check(lambda v: np.sum(np.sum(v, axis=2)), x)
    check(lambda v: np.sum(np.sum(v, axis=0, keepdims=True), axis=(0, 1)), x)


def test_a_plan_takes_every_shape():
    plan = pyop.trace(lambda v: np.sum(v, axis=-1), pyop.Spec("float64")).compile()
    for shape in [(3,), (2, 3), (2, 0), (0, 3), (2, 3, 4)]:
        x = np.ones(shape)
        assert plan(x).tolist() == np.sum(x, axis=-1).tolist()
    assert plan(np.float64(3.0)).shape == ()


@st.composite
def running(draw):
    x = draw(arrays())
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    f = draw(st.sampled_from([np.cumsum, np.cumprod, *(u.accumulate for u in (np.add, np.maximum, np.logaddexp))]))
    options = {} if axis is None else {"axis": axis}
    if draw(st.integers(0, 3)) == 0:
        options["dtype"] = draw(st.sampled_from(["float64", "int64"]))
    return x, f, options


@settings(max_examples=120, deadline=None)
@given(running())
def test_random_accumulations(case):
    x, f, options = case
    check(lambda v: f(v, **options), x)


def test_accumulations_run_without_python():
    for dtype in ("float64", "int32", "bool"):
        x = numbers(np.random.default_rng(0), dtype, (4, 5))
        for options in ({}, {"axis": 0}, {"axis": -1}):
            assert python_calls(check(lambda v, o=options: np.cumsum(v, **o), x), x) == []


@settings(max_examples=80, deadline=None)
@given(arrays(), st.sampled_from([np.argmax, np.argmin, np.count_nonzero, np.linalg.norm]), st.data())
def test_random_searches(x, f, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    check(lambda v: f(v, axis=axis), x)
    check(f, x)


@pytest.mark.parametrize("dtype", ["float64", "int16", "bool", "complex64", "float16"])
def test_outer(dtype):
    rng = np.random.default_rng(0)
    for m, n in [((3,), (4,)), ((0,), (2,)), ((2, 3), (4,)), ((), (3,)), ((3, 2), (2, 2))]:
        a, b = numbers(rng, dtype, m), numbers(rng, dtype, n)
        a, b = (np.asarray(x, dtype) for x in (a, b))
        for f in (np.outer, np.add.outer, np.less.outer, np.maximum.outer):
            check(f, a, b)
            check(f, a.T, b)
