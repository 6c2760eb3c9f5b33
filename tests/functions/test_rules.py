"""The rules against NumPy: what a rule promises is what the function returns."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_cases import Case, cases

from pyop import functions as rules
from pyop.declare.dims import Dim
from pyop.declare.spec import Spec
from pyop.functions import ufuncs
from pyop.functions.indexing.spec import getitem

NAMES = {5: Dim("n"), 7: Dim("m")}
SIZES = {"n": 5, "m": 7}


def infer(case: Case, to_spec: Any) -> Any:
    def convert(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return to_spec(x)
        if type(x) in (list, tuple):
            return type(x)(convert(item) for item in x)
        return x

    args = convert(case.args)
    kwargs = {key: convert(value) for key, value in case.kwargs.items()}
    if isinstance(case.func, np.ufunc):
        return ufuncs.infer(case.func, "__call__", args, kwargs)
    owner = getattr(case.func, "__self__", None)
    if isinstance(owner, np.ufunc):
        return ufuncs.infer(owner, case.func.__name__, args, kwargs)
    assert rules.lookup(case.func) is not None, f"no rule for {case.func}"
    return rules.infer(case.func, *args, **kwargs)


def call(case: Case) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return case.func(*case.args, **case.kwargs)


def compare(spec: Any, result: Any, exact: bool, sizes: dict[str, int] = SIZES) -> None:
    if not isinstance(spec, Spec):
        assert type(spec) is type(result)
        assert len(spec) == len(result)
        for part, value in zip(spec, result, strict=True):
            compare(part, value, exact, sizes)
        return
    assert not isinstance(result, (tuple, list))
    array = np.asarray(result)
    if exact:
        assert spec.dtype is not None
        assert spec.shape is not None
        assert None not in spec.shape
    if spec.dtype is not None:
        same_text = spec.dtype.kind in "US" and spec.dtype.kind == array.dtype.kind
        assert same_text or spec.dtype == array.dtype
    if spec.shape is not None:
        assert len(spec.shape) == array.ndim
        for size, real in zip(spec.shape, array.shape, strict=True):
            if isinstance(size, Dim):
                size = size.evaluate(sizes)
            assert size is None or size == real


@pytest.mark.parametrize("case", cases, ids=lambda case: case.id)
def test_concrete(case: Case) -> None:
    compare(infer(case, Spec.of), call(case), exact=case.known)


def named(x: np.ndarray) -> Spec:
    return Spec(x.dtype, tuple(NAMES.get(size, size) for size in x.shape))


def unknown_sizes(x: np.ndarray) -> Spec:
    return Spec(x.dtype, (None,) * x.ndim)


def unknown_rank(x: np.ndarray) -> Spec:
    return Spec(x.dtype, None)


def unknown_dtype(x: np.ndarray) -> Spec:
    return Spec(None, x.shape)


@pytest.mark.parametrize("to_spec", [named, unknown_sizes, unknown_rank, unknown_dtype])
def test_never_wrong(to_spec: Any) -> None:
    """With less known of the arguments a rule says less, but nothing false."""
    wrong = []
    for case in cases:
        try:
            spec = infer(case, to_spec)
        except TypeError as error:
            # How many arrays there are has to be known.
            if "known when the graph is built" not in str(error):
                wrong.append(f"{case.id}: {error!r}")
            continue
        except Exception as error:
            wrong.append(f"{case.id}: {error!r}")
            continue
        try:
            compare(spec, call(case), exact=False)
        except AssertionError as error:
            wrong.append(f"{case.id}: {spec} {str(error).splitlines()[0]}")
    assert not wrong, "\n".join(wrong)


DTYPES = "?bhilqBHILQefdgFDG"
BY_DTYPE = [
    *(
        np.sum,
        np.prod,
        np.mean,
        np.std,
        np.var,
        np.max,
        np.ptp,
        np.median,
        np.any,
        np.argmax,
        np.cumsum,
        np.nansum,
        np.nanmean,
    ),
    *(np.sort, np.argsort, np.round, np.real, np.imag, np.angle, np.nan_to_num, np.fix, np.sinc, np.diff, np.gradient),
    *(
        np.linalg.det,
        np.linalg.norm,
        np.linalg.eigvals,
        np.linalg.svd,
        np.fft.fft,
        np.fft.rfft,
        np.cov,
        np.average,
        np.trace,
    ),
    *(np.unwrap, np.sort_complex, np.vander, np.ediff1d, np.isneginf, np.i0, np.count_nonzero, np.cumprod, np.isreal),
]
SQUARE = {np.linalg.det, np.linalg.eigvals, np.linalg.svd, np.trace}


def example(func: Any, dtype: Any) -> np.ndarray:
    values = np.array([[3, 1], [1, 2]]) if func in SQUARE else np.array([1, 0, 2])
    return values.astype(dtype)


@pytest.mark.parametrize("func", BY_DTYPE, ids=lambda func: func.__name__)
def test_every_dtype(func: Any) -> None:
    for code in [*DTYPES, "m8[s]", "M8[s]", "U3", "S2", "O"]:
        case = Case(func, (example(func, code),))
        try:
            result = call(case)
        except Exception:
            # A probe sees the same error, or the rule leaves it to the run.
            continue
        compare(infer(case, Spec.of), result, exact=False)


@pytest.mark.parametrize(
    "ufunc", [u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None], ids=lambda u: u.__name__
)
def test_every_ufunc_and_dtype(ufunc: np.ufunc) -> None:
    other: list[Any] = [np.ones(2, code) for code in [*"?blBLefdFD", "m8[s]"]] + [1, 1.5, 1j, True]
    for code in [*DTYPES, "m8[s]", "M8[s]"]:
        x = np.ones(2, code) if code[0] not in "mM" else np.zeros(2, code)
        for args in [(x,)] if ufunc.nin == 1 else [(x, y) for y in other]:
            case = Case(ufunc, args)
            try:
                result = call(case)
            except TypeError:
                with pytest.raises(TypeError):
                    infer(case, Spec.of)
                continue
            except ValueError:
                continue  # an integer to a negative power
            compare(infer(case, Spec.of), result, exact=True)


def test_object_results_are_left_open() -> None:
    """NumPy hands out the object itself, of which nothing is known."""
    assert rules.infer(np.sum, Spec(object, (3,))) == Spec()
    assert rules.infer(np.sum, Spec(object, (3, 2)), axis=0) == Spec(object, (2,))
    assert rules.infer(np.std, Spec(object, (3, 2)), axis=0).shape == (2,)
    assert ufuncs.infer(np.add, "__call__", (Spec(object, ()), 1), {}) == Spec()


def test_text_has_no_length() -> None:
    assert str(ufuncs.infer(np.add, "__call__", (Spec("U3", (2,)), Spec("U4", (2,))), {})) == "str[2]"
    assert str(rules.infer(np.concatenate, [Spec("U3", (2,)), Spec("U4", (5,))])) == "str[7]"


WRONG = [
    (np.sum, (np.ones((2, 3)),), {"axis": 2}),
    (np.mean, (np.ones((2, 3)),), {"axis": (0, 0)}),
    (np.add, (np.ones(2), np.ones(3)), {}),
    (np.matmul, (np.ones((2, 3)), np.ones((2, 3))), {}),
    (np.matmul, (np.ones((2, 3)), 1.0), {}),
    (np.reshape, (np.ones(6), (4, -1)), {}),
    (np.reshape, (np.ones(6), (4, 2)), {}),
    (np.reshape, (np.ones(6), (-1, -1)), {}),
    (np.transpose, (np.ones((2, 3)), (0, 0)), {}),
    (np.moveaxis, (np.ones((2, 3)), 0, 2), {}),
    (np.expand_dims, (np.ones((2, 3)), 5), {}),
    (np.squeeze, (np.ones((2, 3)), 0), {}),
    (np.broadcast_to, (np.ones(3), (2,)), {}),
    (np.concatenate, ([np.ones(2), np.ones((2, 2))],), {}),
    (np.concatenate, ([np.ones((2, 3)), np.ones((2, 2))],), {}),
    (np.concatenate, ([],), {}),
    (np.stack, ([np.ones(2), np.ones(3)],), {}),
    (np.split, (np.ones(5), 2), {}),
    (np.hsplit, (np.float64(1), 2), {}),
    (np.dot, (np.ones((2, 3)), np.ones((2, 3))), {}),
    (np.inner, (np.ones(2), np.ones(3)), {}),
    (np.vdot, (np.ones(2), np.ones(3)), {}),
    (np.tensordot, (np.ones((2, 3)), np.ones((2, 3))), {"axes": 1}),
    (np.einsum, ("ij,jk", np.ones((2, 3)), np.ones((2, 3))), {}),
    (np.einsum, ("ij->k", np.ones((2, 3))), {}),
    (np.cross, (np.ones(4), np.ones(4)), {}),
    (np.linalg.inv, (np.ones((2, 3)),), {}),
    (np.linalg.inv, (np.ones(3),), {}),
    (np.linalg.inv, (np.ones((2, 2), np.float16),), {}),
    (np.linalg.solve, (np.eye(2), np.ones(3)), {}),
    (np.linalg.multi_dot, ([np.ones((2, 3)), np.ones((2, 3))],), {}),
    (np.linalg.norm, (np.ones((2, 2, 2)), 1), {}),
    (np.fft.fft, (np.ones(3),), {"n": 0}),
    (np.fft.fft, (np.ones(3),), {"axis": 1}),
    (np.sort, (np.ones(3),), {"axis": 1}),
    (np.partition, (np.ones(3), 5), {}),
    (np.searchsorted, (np.ones((2, 2)), 1.0), {}),
    (np.take, (np.ones(3), [0]), {"axis": 1}),
    (np.take_along_axis, (np.ones((2, 2)), np.ones(2, int), 0), {}),
    (np.where, (np.ones(3), np.ones(2), 1), {}),
    (np.max, (np.ones((0, 0)),), {}),
    (np.argmax, (np.ones(0),), {}),
    (np.max, (np.ones((0, 3)),), {"axis": 0}),
    (np.quantile, (np.ones(3), 1.5), {}),
    (np.diff, (np.float64(1),), {}),
    (np.gradient, (np.ones(1),), {}),
    (np.convolve, (np.ones((2, 2)), np.ones(2)), {}),
    (np.repeat, (np.ones(3), [1, 2]), {}),
    (np.pad, (np.ones(3), -1), {}),
    (np.diag, (np.ones((2, 2, 2)),), {}),
    (np.digitize, (np.ones(3), np.ones((2, 2))), {}),
    (np.meshgrid, (np.ones(2),), {"indexing": "zz"}),
    (np.subtract, (np.ones(2, bool), np.ones(2, bool)), {}),
    (np.sum, (np.ones(2, "M8[s]"),), {}),
    (np.add, (np.ones(2), np.ones(2), np.ones(2), np.ones(2)), {}),
    (np.lib.stride_tricks.sliding_window_view, (np.ones(3), 4), {}),
]


@pytest.mark.parametrize(("func", "args", "kwargs"), WRONG, ids=lambda x: getattr(x, "__name__", ""))
def test_wrong_calls_fail_as_numpy_does(func: Any, args: Any, kwargs: Any) -> None:
    with pytest.raises(Exception) as expected:
        func(*args, **kwargs)
    with pytest.raises(Exception) as got:
        infer(Case(func, args, kwargs), Spec.of)
    assert issubclass(got.type, expected.type) or issubclass(expected.type, got.type)
    assert got.type in (ValueError, TypeError, IndexError) or issubclass(got.type, (ValueError, TypeError, IndexError))


def test_out_is_refused() -> None:
    x, y = Spec("float64", (3,)), np.zeros(3)
    for call_ in (
        lambda: rules.infer(np.sum, x, out=y),
        lambda: rules.infer(np.clip, x, 0, 1, y),
        lambda: ufuncs.infer(np.add, "__call__", (x, x), {"out": (y,)}),
        lambda: ufuncs.infer(np.add, "__call__", (x, x, y), {}),
    ):
        with pytest.raises(TypeError, match="out= cannot be used with a Value"):
            call_()
    assert rules.infer(np.sum, x, out=None) == Spec("float64", ())


# --- names of sizes


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "expected"),
    [
        (np.sum, ("float32[n,m]",), {"axis": 1}, "float32[n]"),
        (np.reshape, ("float64[n,6]", (-1, 3)), {}, "float64[2*n,3]"),
        (np.reshape, ("float64[n,m]", (-1,)), {}, "float64[m*n]"),
        (np.reshape, ("float64[n,4,m]", (Dim("n"), -1)), {}, "float64[n,4*m]"),
        (np.concatenate, (["float64[n]", "int8[m]", "float64[2]"],), {}, "float64[m+n+2]"),
        (np.stack, (["float64[n]", "float64[n]"],), {"axis": -1}, "float64[n,2]"),
        (np.tile, ("int64[n]", (2, 3)), {}, "int64[2,3*n]"),
        (np.kron, ("float64[n,n]", "float64[m,2]"), {}, "float64[m*n,2*n]"),
        (np.dot, ("float64[n,k]", "float64[k,m]"), {}, "float64[n,m]"),
        (np.einsum, ("bij,bjk->bik", "float64[b,n,k]", "float64[b,k,m]"), {}, "float64[b,n,m]"),
        (np.fft.rfft, ("float64[n]",), {}, "complex128[n//2+1]"),
        (np.fft.irfft, ("complex64[n]",), {}, "float32[2*n-2]"),
        (np.linalg.svd, ("float64[n,n]",), {"compute_uv": False}, "float64[n]"),
        (np.linalg.solve, ("float64[n,n]", "float64[n,k]"), {}, "float64[n,k]"),
        (np.convolve, ("float64[n]", "float64[m]"), {}, "float64[m+n-1]"),
        (np.pad, ("float64[n]", 2), {}, "float64[n+4]"),
        (np.diff, ("float64[n+1]",), {}, "float64[n]"),
        (np.diff, ("float64[n]",), {}, "float64[_]"),
        (np.outer, ("float64[n]", "float64[m,2]"), {}, "float64[n,2*m]"),
        (np.squeeze, ("float64[n,1]",), {"axis": 1}, "float64[n]"),
        (np.squeeze, ("float64[n,1]",), {}, "float64"),
        (np.broadcast_to, ("float64[n]", (3, Dim("n"))), {}, "float64[3,n]"),
        (np.cov, ("float64[n,7]",), {}, "float64"),
    ],
)
def test_names_of_sizes(func: Any, args: Any, kwargs: Any, expected: str) -> None:
    def spec(x: Any) -> Any:
        if isinstance(x, list):
            return [spec(item) for item in x]
        return Spec.parse(x) if isinstance(x, str) and "[" in x else x

    assert str(rules.infer(func, *map(spec, args), **kwargs)) == expected


# --- indexing

PARTS = st.one_of(
    st.integers(-3, 3),
    st.slices(6),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-8, 8))] * 2, st.sampled_from([None, 1, 2, -1, -3])),
    st.none(),
    st.just(...),
    st.booleans(),
    st.lists(st.integers(-3, 2), max_size=3),
    st.sampled_from([np.array([0, 1]), np.array([[0], [1]]), np.array(1), np.array([True, False, True])]),
    st.just(np.ones((3, 4), bool)),
)


def array_spec(item: Any) -> Any:
    return Spec.of(item) if isinstance(item, np.ndarray) else item


@settings(max_examples=600, deadline=None)
@given(
    shape=st.lists(st.sampled_from([0, 1, 3, 4, 6]), max_size=4).map(tuple),
    key=st.one_of(PARTS, st.lists(PARTS, max_size=5).map(tuple)),
)
def test_indexing(shape: tuple[int, ...], key: Any) -> None:
    x = np.zeros(shape, np.float32)
    try:
        result = x[key]
    except (IndexError, DeprecationWarning):  # older releases of NumPy let some pass where the result is empty
        # Only what the shapes alone forbid is an error already; the rest is left to the run.
        with contextlib.suppress(IndexError):
            getitem(Spec.of(x), key)
        return
    compare(getitem(Spec.of(x), key), result, exact=True)
    computed = tuple(map(array_spec, key)) if isinstance(key, tuple) else array_spec(key)
    compare(getitem(Spec.of(x), computed), result, exact=False)
    compare(getitem(Spec("float32", (None,) * len(shape)), computed), result, exact=False)
    names = {3: Dim("three") + 0, 4: Dim("n") - 1, 6: Dim("n") + 1}
    spec = getitem(Spec("float32", tuple(names.get(size, size) for size in shape)), key)
    shape_ = (
        None
        if spec.shape is None
        else tuple(size.evaluate({"three": 3, "n": 5}) if isinstance(size, Dim) else size for size in spec.shape)
    )
    compare(Spec(spec.dtype, shape_), result, exact=False)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (0, "float64[4]"),
        (slice(None), "float64[n+2,4]"),
        (slice(2, None), "float64[n,4]"),
        (slice(3, None), "float64[_,4]"),
        (slice(None, -1), "float64[n+1,4]"),
        (slice(None, 2), "float64[2,4]"),
        (slice(None, None, -1), "float64[n+2,4]"),
        (slice(None, None, 2), "float64[(n+3)//2,4]"),
        ((slice(None), None, [0, 1]), "float64[n+2,1,2]"),
        (Spec("bool", (None,)), "float64[_,4]"),
        (Spec("int64", ("k",)), "float64[k,4]"),
        (Spec("int64", ()), "float64[4]"),
        (Spec(None, (2,)), "float64"),
        ((slice(Spec("int64", ()), None), 1), "float64[_]"),
    ],
)
def test_indexing_names(key: Any, expected: str) -> None:
    spec = getitem(Spec.parse("float64[n+2,4]"), key)
    assert str(spec).replace("n//2+1", "n//2+1") == expected or (
        spec.shape is not None and "//" in expected and spec.shape[0] == (Dim("n") + 3) // 2
    )


@pytest.mark.parametrize(
    "key", [5, -6, (0, 0, 0), "name", 1.5, np.ones(4, bool), (..., ...), [1.5], ([0, 1], [0, 1, 2])]
)
def test_indexing_errors(key: Any) -> None:
    with pytest.raises(IndexError):
        np.zeros((5, 7))[key]
    with pytest.raises(IndexError):
        getitem(Spec("float64", (5, 7)), key)


def test_an_empty_mask_fits_every_size() -> None:
    assert np.zeros((5, 7))[np.zeros(0, bool)].shape == (0, 7)
    assert getitem(Spec("float64", (5, 7)), np.zeros(0, bool)).shape == (0, 7)


def test_fields() -> None:
    dtype = np.dtype([("a", np.int16), ("b", np.float32, (2,))])
    assert str(getitem(Spec(dtype, (3,)), "b")) == "float32[3,2]"
    assert getitem(Spec(dtype, (3,)), ["a"]).dtype == np.zeros(3, dtype)[["a"]].dtype
    with pytest.raises(KeyError):
        getitem(Spec(dtype, (3,)), "c")
