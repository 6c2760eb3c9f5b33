"""Functions that NumPy has in Python, in plans: one C function of NumPy, a few native ones, or a transform. All against
NumPy itself, bit for bit, with its warnings and errors.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_checks import assert_same, check, observed, python_calls

import pyop

DTYPES = ["float64"] * 6 + ["float32", "int64", "int64", "int8", "uint8", "bool", "complex128", "complex64"]
DTYPES += ["float16", "longdouble", "object"]
SHAPES = [(7,), (8,), (1,), (2,), (0,), (5, 4), (4, 4), (6, 3), (1, 5), (3, 0), (2, 3, 4), (4, 4, 3), (130,), (20, 9)]
LAYOUTS = ["C", "C", "C", "F", "transposed", "strided", "reversed", "unaligned", "read-only"]
KINDS = ["plain", "plain", "ties", "holes", "infinite", "zeros", "tiny", "huge", "constant", "sorted"]

# LAPACK's iteration does not end for some matrices with infinities in them, called by NumPy itself.
BY_SINGULAR_VALUES = [
    lambda x: np.linalg.cond(x),
    np.linalg.svd,
    lambda x: np.linalg.svd(x, full_matrices=False),
    lambda x: np.linalg.svd(x, compute_uv=False),
]
OF_ONE = [
    *[lambda x, kind=kind: np.sort(x, kind=kind) for kind in ("quicksort", "stable", "heapsort")],
    *[lambda x, axis=axis: np.sort(x, axis=axis) for axis in (0, -1, 1, None)],
    *[lambda x, axis=axis: np.argsort(x, axis=axis) for axis in (0, -1, None)],
    lambda x: np.argsort(x, kind="stable"),
    lambda x: np.argsort(x, axis=0, stable=True),
    lambda x: np.partition(x, 1),
    lambda x: np.partition(x, [0, -1], axis=0),
    lambda x: np.argpartition(x, 0),
    lambda x: np.lexsort((x, x)),
    np.nonzero,
    np.flatnonzero,
    np.argwhere,
    lambda x: np.where(x > 0),
    lambda x: x[x > 0],
    lambda x: x[x[..., 0] > 0],
    lambda x: x[[0, -1, 0]],
    lambda x: x[[0, 1], ..., [1, 0]],
    lambda x: np.repeat(x, 2),
    lambda x: np.repeat(x, 3, axis=0),
    lambda x: np.repeat(x, [2, 1, 0, 3], axis=-1),
    lambda x: np.round(x, 1),
    lambda x: np.round(x, -1),
    lambda x: np.bincount(x),
    lambda x: np.bincount(x, minlength=9),
    lambda x: np.searchsorted(x, 0.5),
    lambda x: np.searchsorted(x, [0, 1], side="right"),
    lambda x: np.interp(x, [-1.0, 0.0, 2.0], [3.0, 1.0, 2.0]),
    lambda x: np.interp(x, [-1.0, 0.0, 2.0], [3.0, 1.0, 2.0], left=7.0, period=5.0),
    lambda x: np.interp(x, [-1.0, 0.0], [3.0, 1j]),
    lambda x: np.einsum("ij->ji", x),
    lambda x: np.einsum("ii->i", x),
    lambda x: np.einsum("ii", x),
    lambda x: np.einsum("ij->j", x),
    lambda x: np.einsum("i,i", x, x),
    lambda x: np.einsum("...i,...i->...", x, x),
    lambda x: np.einsum("ij,jk->ik", x, x, optimize=True),
    lambda x: np.add.reduceat(x, [0, 2, 1]),
    lambda x: np.maximum.reduceat(x, [0, 1]),
    lambda x: np.take(x, [0, 9, -4], mode="wrap"),
    lambda x: np.choose([0, 1, 1], [x, x]),
    lambda x: np.vdot(x, x),
    lambda x: np.packbits(x),
    # a few native ones
    lambda x: np.average(x),
    lambda x: np.average(x, axis=0),
    lambda x: np.average(x, weights=x),
    lambda x: np.average(x, 0, x),
    lambda x: np.cov(x),
    lambda x: np.cov(x, rowvar=False),
    lambda x: np.cov(x, ddof=0),
    lambda x: np.cov(x, x),
    lambda x: np.corrcoef(x),
    lambda x: np.corrcoef(x, x),
    lambda x: np.corrcoef(x, rowvar=False),
    np.median,
    *[lambda x, axis=axis: np.median(x, axis) for axis in (0, 1, -1, (0, 1))],
    lambda x: np.median(x, keepdims=True),
    *[lambda x, q=q: np.percentile(x, q) for q in (0, 10, 50.0, 100, [25, 50, 75], [3.5, 99.9], 101)],
    *[lambda x, axis=axis: np.percentile(x, [10, 90], axis=axis) for axis in (0, 1, -1)],
    *[lambda x, axis=axis: np.quantile(x, 0.3, axis=axis) for axis in (0, 1, -1)],
    lambda x: np.quantile(x, [0.0, 0.5, 1.0]),
    lambda x: np.quantile(x, 0.3, method="lower"),
    lambda x: np.quantile(x, [[0.1, 0.2]]),
    np.nanvar,
    lambda x: np.nanstd(x, axis=0),
    lambda x: np.nanstd(x, ddof=1),
    lambda x: np.nanstd(x, axis=-1, ddof=2),
    np.nan_to_num,
    lambda x: np.nan_to_num(x, nan=1.5, posinf=3, neginf=-0.0),
    lambda x: np.diff(x, prepend=0),
    lambda x: np.diff(x, axis=0, append=1, n=2),
    lambda x: np.diff(x, append=0.5),
    np.ediff1d,
    np.gradient,
    lambda x: np.gradient(x, 0.1),
    lambda x: np.gradient(x, 2, axis=0),
    lambda x: np.gradient(x, 2.0, axis=-1, edge_order=2),
    *[lambda x, mode=mode: np.pad(x, 2, mode=mode) for mode in ("constant", "edge", "reflect", "symmetric", "wrap")],
    lambda x: np.pad(x, (0, 3), constant_values=7),
    lambda x: np.pad(x, ((1, 2), (0, 1))),
    lambda x: np.pad(x, 1, constant_values=-1.5),
    lambda x: np.pad(x, 1, mode="linear_ramp"),
    lambda x: np.tile(x, 3),
    lambda x: np.tile(x, (2, 1)),
    lambda x: np.tile(x, (2, 1, 2)),
    lambda x: np.tile(x, 0),
    lambda x: np.kron(x, x),
    lambda x: np.cross(x, x),
    lambda x: np.cross(x, x[..., ::-1]),
    lambda x: np.tensordot(x, x, 0),
    lambda x: np.tensordot(x, x, 1),
    lambda x: np.tensordot(x, x, (0, 0)),
    lambda x: np.tensordot(x, x, ([0, 1], [0, 1])),
    np.fft.fftshift,
    lambda x: np.fft.ifftshift(x, axes=0),
    lambda x: np.meshgrid(x, x),
    lambda x: np.meshgrid(x, x, indexing="ij"),
    lambda x: np.column_stack([x, x]),
    lambda x: np.vander(x, 4),
    lambda x: np.vander(x, 2, increasing=True),
    lambda x: np.tril(x),
    lambda x: np.triu(x, 1),
    lambda x: np.select([x < 0, x > 1], [x, x * 2], 0),
    lambda x: np.select([x < 0], [x], -0.5),
    lambda x: np.isclose(x, x[::-1]),
    lambda x: np.isclose(x, x, rtol=0, atol=0),
    lambda x: np.allclose(x, x),
    np.angle,
    lambda x: np.angle(x, deg=True),
    lambda x: np.insert(x, 1, 7),
    lambda x: np.insert(x, -1, 0.5),
    lambda x: np.delete(x, 0),
    lambda x: np.delete(x, -1),
    lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0),
    lambda x: np.take_along_axis(x, np.argmax(x, axis=-1)[..., None], axis=-1),
    lambda x: np.digitize(x, x),
    np.unique,
    lambda x: np.unique(x, return_counts=True),
    lambda x: np.unique(x, return_index=True, return_inverse=True),
    lambda x: np.union1d(x, x),
    lambda x: np.intersect1d(x, x[::2]),
    lambda x: np.isin(x, [0, 1, 3]),
    np.histogram,
    lambda x: np.histogram(x, bins=3, density=True),
    lambda x: np.histogram(x, bins=7, range=(-1, 2)),
    lambda x: np.histogram(x, bins=4, range=(0, 1), density=True),
    lambda x: np.convolve(x, x),
    lambda x: np.convolve(x, x[:2], "same"),
    lambda x: np.convolve(x[:3], x, "valid"),
    lambda x: np.correlate(x, x, "full"),
    lambda x: np.correlate(x, x[:3]),
    lambda x: np.polyval([1.0, -2.0, 0.5], x),
    lambda x: np.polyval([2, 1], x),
    lambda x: np.polyval(x, x),
    lambda x: np.linalg.matrix_power(x, 2),
    lambda x: np.linalg.matrix_power(x, 7),
    *BY_SINGULAR_VALUES,
    # transforms
    np.fft.fft,
    np.fft.ifft,
    np.fft.rfft,
    np.fft.irfft,
    np.fft.fft2,
    np.fft.ifftn,
    np.fft.rfft2,
    lambda x: np.fft.fft(x, axis=0),
    lambda x: np.fft.fft(x, 5, norm="ortho"),
    lambda x: np.fft.ifft(x, 9, axis=0, norm="forward"),
    lambda x: np.fft.rfft(x, norm="forward"),
    lambda x: np.fft.rfft(x, 4, norm="ortho"),
    lambda x: np.fft.irfft(x, 7, norm="ortho"),
    lambda x: np.fft.fft(x, norm="nothing"),
    lambda x: np.fft.rfftn(x, axes=(0,)),
]


def made(seed, dtype, shape, layout, kind):
    """An array of such contents that lies so."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 3, shape)
    if kind == "ties":
        x = np.round(x)
    elif kind == "constant":
        x = np.full(shape, 2.5)
    elif kind == "sorted":
        x = np.sort(x)
    elif kind in ("holes", "infinite", "zeros", "tiny", "huge"):
        special = {
            "holes": [np.nan],
            "infinite": [np.inf, -np.inf, np.nan],
            "zeros": [0.0, -0.0],
            "tiny": [5e-324, -1e-310],
            "huge": [1.7e308, -1e308],
        }
        x = np.where(rng.random(shape) < 0.3, rng.choice(special[kind], shape), x)
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind == "c":
            x = (x + 1j * rng.normal(size=shape)).astype(dtype)
        elif np.dtype(dtype).kind in "iu":
            x = np.abs(np.nan_to_num(x, posinf=3, neginf=-3) % 9).astype(dtype)
        else:
            x = x.astype(dtype)
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "transposed":
        return np.ascontiguousarray(x.T).T
    if layout == "strided":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if layout == "reversed":
        return x[..., ::-1]
    if layout == "unaligned" and x.dtype.kind != "O":
        return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    if layout == "read-only":
        x.flags.writeable = False
    return x


def flat(result):
    """The arrays of a result, whatever they come in."""
    if isinstance(result, (tuple, list)):
        return tuple(leaf for item in result for leaf in flat(item))
    return (result,)


def hold(function, x, state):
    """A plan, an unoptimised one and one of another call of it, against NumPy."""
    with np.errstate(**state):
        want = observed(lambda x: flat(function(x)), x)
    if not x.size and "irfft" in getattr(getattr(function, "__code__", None), "co_names", ()):
        return  # NumPy's result is memory that nobody has written
    try:
        graph = pyop.trace(lambda x: flat(function(x)), pyop.Spec(x.dtype, x.shape))
    except (TypeError, ValueError, IndexError, np.linalg.LinAlgError, np.exceptions.AxisError, RecursionError):
        return
    before = x.copy()
    plan = graph.compile()
    with np.errstate(**state):
        for _ in range(2):
            got = observed(plan, x)
            if isinstance(want[0], Exception):
                assert type(got[0]) is type(want[0]), (got, want)
                assert str(got[0]).split("\n")[0] == str(want[0]).split("\n")[0]
                continue
            got = (flat(got[0]), got[1]) if not isinstance(got[0], Exception) else got
            if x.dtype.kind == "O":
                continue
            if x.dtype.char == "g":  # it has bytes that are no part of the number
                for a, b in zip(got[0], want[0], strict=True):
                    assert (a.dtype, a.shape) == (np.asarray(b).dtype, np.shape(b))
                    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
                continue
            assert_same(got, want)
    assert x.dtype.char in "Og" or x.tobytes() == before.tobytes()


def may_not_end(case):
    function, *_, kind, _state = case
    return kind in ("infinite", "huge") and any(function is each for each in BY_SINGULAR_VALUES)


CASES = st.tuples(
    st.sampled_from(OF_ONE),
    st.integers(0, 1000),
    st.sampled_from(DTYPES),
    st.sampled_from(SHAPES),
    st.sampled_from(LAYOUTS),
    st.sampled_from(KINDS),
    st.sampled_from([{}, {}, {}, {"all": "raise"}, {"all": "ignore"}]),
).filter(lambda case: not may_not_end(case))


@settings(max_examples=600, deadline=None)
@given(CASES)
def test_random_calls(case):
    function, seed, dtype, shape, layout, kind, state = case
    hold(function, made(seed, dtype, shape, layout, kind), state)


@pytest.mark.campaign
@settings(max_examples=50_000, deadline=None)
@given(CASES)
def test_many_random_calls(case):
    function, seed, dtype, shape, layout, kind, state = case
    hold(function, made(seed, dtype, shape, layout, kind), state)


@pytest.mark.parametrize("number", range(len(OF_ONE)))
def test_every_function_on_common_arrays(number):
    for dtype, kind in (("float64", "plain"), ("float64", "infinite"), ("int64", "plain"), ("complex128", "plain")):
        for shape in ((9,), (4, 4), (3, 4, 3)):
            hold(OF_ONE[number], made(1, dtype, shape, "C", kind), {})


def test_results_are_nobody_elses():
    x = np.arange(6.0)
    for function in (np.sort, np.nonzero, lambda x: np.einsum("i->", x), lambda x: np.pad(x, 1), np.flatnonzero):
        plan = pyop.trace(lambda x, function=function: flat(function(x)), "float64[6]").compile()
        first = [a.copy() for a in flat(plan(x))]
        for result in flat(plan(x)):
            if result.flags.writeable:
                result[...] = 7
        assert all((a == b).all() for a, b in zip(first, flat(plan(x)), strict=True))
        assert (x == np.arange(6.0)).all()


def test_what_is_read_is_not_sorted():
    def function(x):
        y = x * 2
        return np.sort(y), y, np.partition(y, 1), np.median(y)

    check(function, np.array([3.0, 1.0, 2.0]), named=False)


def test_a_part_that_is_left_says_nothing_twice():
    x = np.array([1.0, np.nan, 2.0])
    check(np.median, x, named=False)
    check(lambda x: np.corrcoef(x), np.ones((2, 3)), named=False)
    check(lambda x: np.histogram(x, bins=3), x, named=False)
    check(lambda x: np.average(x, weights=x * 0.0), x, named=False)
    check(lambda x: np.gradient(x, x), np.array([1.0, 2.0, 3.0, 5.0]), named=False)
    check(lambda x: np.gradient(x, x), np.array([1.0, 2.0, 3.0, 4.0]), named=False)


def test_functions_of_two():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 40))
    edges, whole = np.linspace(-2, 2, 9), rng.integers(0, 5, 40)
    for function, arguments in [
        (lambda a, b: np.interp(a, b, b * b), (x, edges)),
        (lambda a, b: np.searchsorted(b, a, side="right"), (x, edges)),
        (lambda a, b: np.digitize(a, b), (x, edges)),
        (lambda a, b: np.digitize(a, b, right=True), (x, edges)),
        (lambda a, b: np.digitize(a, b), (x, edges[::-1].copy())),
        (lambda a, b: np.digitize(a, b), (x, rng.permutation(edges))),
        (lambda a, b: np.bincount(b, weights=a), (x, whole)),
        (lambda a, b: np.lexsort((a, b)), (x, whole)),
        (lambda a, b: np.convolve(a, b), (edges, x)),
        (lambda a, b: np.correlate(a, b, "same"), (edges, x)),
        (lambda a, b: np.cov(a, b), (x, y)),
        (lambda a, b: np.gradient(a, b), (x, np.cumsum(np.abs(y) + 0.1))),
        (lambda a, b: np.average(a, weights=np.abs(b)), (x, y)),
        (lambda a, b: np.isclose(a, b, rtol=0.5), (x, y)),
        (lambda a, b: np.einsum("i,j->ij", a, b), (x, edges)),
        (lambda a, b: np.tensordot(a, b, ([0], [1])), (x.reshape(8, 5), y.reshape(5, 8))),
        (lambda a, b: a[b], (x, whole)),
        (lambda a, b: a[b, b], (x.reshape(8, 5), whole)),
        (lambda a, b: a[b - 9, :], (x.reshape(8, 5), whole)),
        (lambda a, b: np.intersect1d(a, b), (whole, whole + 2)),
    ]:
        plan = check(function, *arguments, named=False)
        assert plan is None or "python" not in [node.fate for node in plan.explain().nodes]


def test_symbolic_sizes():
    x, i = np.random.default_rng(0).normal(size=9), np.array([3, 1, 1, 0])
    for function in (np.sort, np.argsort, np.nonzero, np.fft.rfft, np.median, lambda x: np.repeat(x, 2), np.diff):
        check(function, x)
    for function in (np.bincount, np.unique, np.flatnonzero):
        check(function, i)


def test_no_python():
    x = np.random.default_rng(0).normal(size=30)
    for function in (np.sort, np.median, np.fft.rfft, lambda x: np.percentile(x, [25, 75]), np.gradient, np.histogram):
        plan = pyop.trace(lambda x, function=function: flat(function(x)), pyop.Spec(x.dtype, x.shape)).compile()
        plan(x)
        assert python_calls(plan, x) == []
