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


@settings(max_examples=160, deadline=None)
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


@settings(max_examples=80, deadline=None)
@given(arrays(), st.sampled_from(["sum", "prod", "max", "any", "all", "add", "fmin"]), st.booleans(), st.data())
def test_random_elements_are_left_out(x, name, like, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    mask = np.random.default_rng(0).random(x.shape) < data.draw(st.sampled_from([0.0, 0.5, 0.9, 1.0]))
    if like:  # in memory as the elements are
        mask = np.asfortranarray(mask) if x.flags.f_contiguous else mask
    options = {"initial": 3} if name in ("max", "fmin") and data.draw(st.booleans()) else {}
    check(lambda v, w: REDUCTIONS[name](v, axis=axis, where=w, **options), x, mask, named=False)


def test_reductions_of_chosen_elements_run_without_python():
    for dtype in ("float64", "int32", "int64"):
        x = numbers(np.random.default_rng(0), dtype, (4, 5))
        for f in (np.sum, np.prod, np.add.reduce):
            assert python_calls(check(lambda v, w, f=f: f(v, axis=1, where=w), x, x > 1), x, x > 1) == []


COMPOSED = [np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.ptp, np.average]


def with_nans(x, each):
    if x.dtype.kind in "fc" and each and x.flags.writeable:
        x[np.random.default_rng(0).random(x.shape) < each] = np.nan
    return x


@settings(max_examples=110, deadline=None)
@given(arrays(), st.sampled_from(COMPOSED), st.sampled_from([0, 0.1, 0.6]), st.data())
def test_random_functions_around_a_reduction(x, f, nans, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    options = {"keepdims": True} if data.draw(st.booleans()) else {}
    check(lambda v: f(v, axis=axis, **options), with_nans(x, nans))


@settings(max_examples=60, deadline=None)
@given(arrays(), st.sampled_from([None, 1, 2, np.inf, 2.0, -1, 3]), st.booleans(), st.data())
def test_random_norms_along_an_axis(x, order, keepdims, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    check(lambda v: np.linalg.norm(v, order, axis, keepdims), with_nans(x, data.draw(st.sampled_from([0, 0.1]))))


@settings(max_examples=60, deadline=None)
@given(arrays(), st.integers(-3, 3), st.data())
def test_random_traces(x, offset, data):
    axes = data.draw(st.permutations(range(max(x.ndim, 2))))
    check(lambda v: np.trace(v, offset, axes[0], axes[1]), x)


def test_functions_around_a_reduction_run_without_python():
    x = np.random.default_rng(0).normal(size=(4, 5))
    gaps = x.copy()
    gaps[1, 2] = np.nan
    for f in COMPOSED:
        for a in (x, gaps, x.astype("float32")):
            for options in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
                assert python_calls(check(lambda v, f=f, o=options: f(v, **o), a), a) == [], (f, options)
    for order in (None, 1, 2, np.inf):
        assert python_calls(check(lambda v, o=order: np.linalg.norm(v, o, axis=1), x), x) == []
    assert python_calls(check(np.trace, x), x) == []
    assert python_calls(check(np.ptp, x.astype("int16")), x.astype("int16")) == []


def test_what_such_functions_warn_of_is_numpys():
    empty = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    for f in (np.nanmean, np.nanmax, np.nanmin, np.nansum):
        check(lambda v, f=f: f(v, axis=0), empty)
    big = np.array([[1e200, 1.0], [-1e308, 1e308]])
    for f in (np.ptp, np.nansum, np.nanprod, np.nanmean):
        check(f, big)
    check(lambda v: np.linalg.norm(v, axis=0), big)
    for f in (np.ptp, np.average, np.nanmax):
        check(lambda v, f=f: f(v, axis=1), np.ones((2, 0)))
        check(lambda v, f=f: f(v, axis=1), np.ones((0, 2)))
    check(np.ptp, np.array([True, False]))


def test_equal_numbers_of_which_a_loop_takes_either():
    """Which zero the smaller of two is depends, in NumPy's fmin, on how many numbers it compares in one call."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = numbers(rng, "float64", (3, 4, 5))
        x.flat[::3] = np.nan
        check(lambda v: np.fmin.reduce(v, axis=0), x[:, ::2], threads=1)


@st.composite
def running(draw):
    x = draw(arrays())
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    f = draw(st.sampled_from([np.cumsum, np.cumprod, *(u.accumulate for u in (np.add, np.maximum, np.logaddexp))]))
    options = {} if axis is None else {"axis": axis}
    if draw(st.integers(0, 3)) == 0:
        options["dtype"] = draw(st.sampled_from(["float64", "int64"]))
    return x, f, options


@settings(max_examples=80, deadline=None)
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


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(300, 900)), rng.normal(size=(300, 900))

    def f(x, y):
        z = np.exp(np.sin(x) * y) - x / 3
        return z, z.sum(), (z * y).mean(axis=1), (z + x).max(axis=0), (x * y).sum(), np.std(z), np.cumsum(z), z @ y.T

    graph = pyop.trace(f, "float64[n,m]", "float64[n,m]")
    want = observed(f, a, b)
    for threads in (1, 2, 3, 5, 16):
        plan = graph.compile(threads=threads)
        for x, y in ((a, b), (np.asfortranarray(a), np.asfortranarray(b)), (a[::2, 1::3], b[::2, 1::3])):
            assert_same(observed(plan, x, y), want if x is a else observed(f, x, y))


@pytest.mark.parametrize("axis", [2**32, -(2**40), 2**70])
def test_an_axis_that_no_array_has_is_left_to_numpy(axis):
    for f in (np.argmax, np.sum, np.cumsum):
        with pytest.raises((OverflowError, ValueError)):
            f(np.ones((2, 3)), axis=axis)
        with pytest.raises((OverflowError, ValueError)):
            pyop.trace(lambda x, f=f: f(x, axis=axis), "float64").compile()(np.ones((2, 3)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("function", [np.sum, np.mean], ids=["sum", "mean"])
def test_short_rows_and_columns(dtype, function):
    """Many at once, as far as NumPy adds their elements one after the other; of a group, and of an array."""
    rng = np.random.default_rng(3)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 3e38], dtype)
    for length in (1, 2, 3, 4, 5, 7, 8, 9, 16, 17):
        for x in (numbers(rng, dtype, (40, length)), numbers(rng, dtype, (3, 5, length)), np.zeros((6, length), dtype)):
            if length % 2:
                x.flat[rng.integers(x.size, size=x.size // 4)] = rng.choice(special)
            for part in (x, x[..., ::-1], x[::2], np.asfortranarray(x), -np.abs(x)):
                for axis in (-1, 0):
                    for name, of in {
                        "group": lambda y, axis=axis: function(y * y, axis=axis),
                        "array": lambda y, axis=axis: function(y, axis=axis, keepdims=True),
                        "initial": lambda y, axis=axis: np.sum(y, axis=axis, initial=0.5),
                    }.items():
                        with np.errstate(all="ignore"):
                            assert observed(pyop.compile(of), part)[0].tobytes() == of(part).tobytes(), name
