"""Reductions in plans against NumPy itself: bit for bit, with its dtypes, layouts, warnings and errors."""

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def observed(function, *arguments):
    """What a call gives and says: the result, or the kind of error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*arguments)
        except Exception as error:
            result = error
    return result, [str(w.message) for w in caught]


def assert_same(got, want):
    (a, said), (b, should_say) = got, want
    if isinstance(b, Exception):
        assert type(a) is type(b)
        assert str(a).split("\n")[0] == str(b)
        return
    if isinstance(a, Exception):
        raise a
    b = np.asarray(b)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tobytes() == b.tobytes()
    # What comes after sums in the order of memory.
    assert [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1] == [
        s for s, n in zip(b.strides, b.shape, strict=True) if n > 1
    ] or b.size < 2
    assert said == should_say


def check(function, x, threads=(1, 2)):
    """Plans for all sizes, called twice, against the function. None where the graph cannot be built."""
    want = observed(function, x)
    spec = pyop.Spec(x.dtype, [f"n{d}" for d in range(x.ndim)])
    try:
        graph = pyop.trace(function, spec)
    except (TypeError, ValueError):
        assert isinstance(want[0], Exception)
        return None
    plan = graph.compile()
    for _ in range(2):
        assert_same(observed(plan, x), want)
    for n in threads[1:]:
        assert_same(observed(graph.compile(threads=n), x), want)
    assert_same(observed(graph.compile(optimize=False), x), want)
    return plan


def python_calls(plan, *arguments):
    """How many Python functions a call of a plan enters: NumPy's reductions are some."""
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        plan(*arguments)
    finally:
        sys.setprofile(None)
    return seen


def numbers(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 255, shape).astype(dtype)
    x = (
        rng.normal(0, 3, shape) * (rng.random(shape) < 0.9) * np.where(rng.random(shape) < 0.5, 1, -1)
    )  # zeros of both signs
    return (x + 1j * rng.normal(0, 3, shape) if dtype.kind == "c" else x).astype(dtype)


@st.composite
def arrays(draw):
    """Arrays of every layout, whose elements, sizes and strides do not fit anything."""
    ndim = draw(st.sampled_from([1, 1, 1, 2, 2, 3, 4]))
    sizes = [0, 1, 2, 7, 8, 9, 100, 129, 1000, 9000, 30_000] if ndim == 1 else [0, 1, 2, 3, 5, 8, 17, 60]
    shape = [draw(st.sampled_from(sizes)) for _ in range(ndim)]
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
    if x.dtype.itemsize * 200_000 < x.nbytes:
        return
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
            plan = check(lambda v, f=function, a=axis: f(v, axis=a), x, threads=(1,))
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
