"""Infer medians, quantiles, weighted means, covariances and histograms."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from ...refusals import refusal
from .. import rule
from ..forms import each
from ..operand import FLOAT, INTP, DType, Operand, Sample, Shape, one, operand, probe
from ..shape import add, axis_of, concrete, full, least, one_dimension, reduced


@each(np.median, np.nanmedian)
def _median(
    func: Any, a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Spec:
    part = operand(a)
    dtype = None if part.kind == "O" else probe(func, one(part))
    return Spec(dtype, reduced(part.shape, axis, keepdims))


def _plain(part: Operand, q: Operand, axis: Any) -> bool:
    """Return whether a nanquantile has its plain meaning.

    Of no elements NumPy returns nanmean, which ignores q, and it moves the axes of a q of several dimensions one by
    one.
    """
    if part.kind not in ("f", "i", "u") or axis == ():
        return False
    return q.ndim == 0 or (q.ndim == 1 and full(part.shape))


@each(np.quantile, np.nanquantile, np.percentile, np.nanpercentile)
def _quantile(
    func: Any, a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
    keepdims: Any = False, *, weights: Any = None, interpolation: Any = None,
) -> Spec:  # fmt: skip
    part, at = operand(a), operand(q)
    without_nans = func in (np.nanquantile, np.nanpercentile)
    if without_nans and not _plain(part, at, axis):
        return Spec()
    if not isinstance(q, Spec):
        top, kind = (1, "Quantiles") if func in (np.quantile, np.nanquantile) else (100, "Percentiles")
        values = np.asarray(q)
        if values.dtype.kind in "biuf" and not np.all((values >= 0) & (values <= top)):
            raise ValueError(f"{kind} must be in the range [0, {top}]")
    options: dict[str, Any] = {} if weights is None else {"weights": one(weights), "axis": 0}
    dtype = None
    if at.shape is not None and part.kind != "O":
        # The number of dimensions of q decides whether its dtype counts.
        dtype = probe(func, one(part), one(at, len(at.shape)), method=method, **options)
    if without_nans and not full(part.shape) and dtype != probe(np.nanmean, one(part)):
        dtype = None
    rest = reduced(part.shape, axis, keepdims)
    return Spec(dtype, None if at.shape is None or rest is None else at.shape + rest)


@rule(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    part = operand(a)
    options = {} if weights is None else {"weights": one(weights)}
    dtype = probe(np.average, one(part), **options)
    if weights is not None:
        _weights(part.shape, operand(weights).shape, axis)
    result = Spec(dtype, reduced(part.shape, axis, keepdims))
    return (result, result) if returned else result


def _weights(shape: Shape, weights: Shape, axis: Any) -> None:
    known, given = concrete(shape), concrete(weights)
    if known is None or given is None or known == given:
        return
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if given != tuple(known[axis_of(k, len(known))] for k in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")


def _rows(part: Operand, rowvar: Any) -> Extent:
    """Return how many variables ``cov`` sees in an argument."""
    if part.shape is None:
        return None
    if len(part.shape) < 2:
        return 1
    rows, columns = part.shape
    if rowvar:
        return rows
    # Whether a matrix of one row is turned, too, depends on the release of NumPy.
    return columns if isinstance(rows, int) and rows != 1 else None


def _covariance(func: Any, m: Any, y: Any, rowvar: Any, dtype: Any) -> Spec:
    parts = [operand(m)] + ([] if y is None else [operand(y)])
    for part in parts:
        if part.ndim is not None and part.ndim > 2:
            raise ValueError("m has more than 2 dimensions" if part is parts[0] else "y has more than 2 dimensions")
    options = {} if dtype is None else {"dtype": np.dtype(dtype)}
    samples = [Sample(part.dtype, (2,)) for part in parts]
    result = probe(func, *samples, **options)
    if _rows(parts[0], rowvar) == 0:
        return Spec(FLOAT, (0, 0))  # of no variables there is no matrix, whatever y is
    if result != FLOAT and not least(_rows(parts[0], rowvar)):
        result = None
    count = reduce(add, [_rows(part, rowvar) for part in parts])
    if len(parts) == 1 and parts[0].ndim is None:
        return Spec(result, None)
    if count == 1:
        return Spec(result, ())
    return Spec(result, (count, count) if isinstance(count, int) else None)


@rule(np.cov)
def _cov(m: Any, y: Any = None, rowvar: Any = True, *args: Any, dtype: Any = None, **options: Any) -> Spec:
    return _covariance(np.cov, m, y, rowvar, dtype)


@rule(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: Any = True, *args: Any, dtype: Any = None, **options: Any) -> Spec:
    return _covariance(np.corrcoef, x, y, rowvar, dtype)


def _bin_count(bins: Any) -> Extent:
    """Return how many bins a ``bins`` argument asks for, or None where the data decide."""
    if isinstance(bins, str):
        return None
    part = operand(bins)
    if isinstance(bins, Spec):
        return None if not part.shape or not isinstance(part.shape[0], int) else part.shape[0] - 1
    return operator.index(bins) if part.shape == () else len(bins) - 1


def _edges_dtype(a: Operand, bins: Any, range: Any) -> DType | None:
    given = operand(bins) if not isinstance(bins, str) else None
    if given is not None and given.shape != ():
        return given.dtype if given.shape else None
    if range is not None:
        return probe(np.histogram_bin_edges, one(a), bins=2, range=(0, 1)) if a.dtype is not None else None
    return probe(np.histogram_bin_edges, one(a), bins=2)


@rule(np.histogram)
def _histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Spec, Spec]:
    part = operand(a)
    count = _bin_count(bins)
    counts = INTP if weights is None else operand(weights).dtype
    if density:
        counts = None if part.dtype is None else FLOAT
    return Spec(counts, (count,)), _histogram_edges(a, bins, range)


@rule(np.histogram_bin_edges)
def _histogram_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Spec:
    count = _bin_count(bins)
    return Spec(_edges_dtype(operand(a), bins, range), (None if count is None else count + 1,))


@rule(np.histogram2d)
def _histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Spec, Spec, Spec]:
    both = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else (bins, bins)
    counts = [_bin_count(item) for item in both]
    edges = [None if count is None else count + 1 for count in counts]
    return (
        Spec(FLOAT, tuple(counts)),
        Spec(_grid_dtype(both[0], x, range), (edges[0],)),
        Spec(_grid_dtype(both[1], y, range), (edges[1],)),
    )


@rule(np.histogramdd)
def _histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Spec, Any]:
    axes: Extent
    if isinstance(sample, (list, tuple)):
        axes = len(sample)
    else:
        part = operand(sample)
        axes = part.shape[1] if part.ndim == 2 and part.shape else 1 if part.ndim == 1 else None
    if not isinstance(axes, int):
        raise refusal(
            "np.histogramdd returns edges for each column of its sample, and their number is not known when the "
            "graph is built; declare the number of columns"
        )
    each = list(bins) if isinstance(bins, (list, tuple)) else [bins] * axes
    if len(each) != axes:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    counts = [_bin_count(item) for item in each]
    edges = [Spec(None, (add(count, 1),)) for count in counts]
    container: Any = type(np.histogramdd(np.ones((1, 1)), 1)[1])
    return Spec(FLOAT, tuple(counts)), container(edges)


def _grid_dtype(bins: Any, x: Any, range: Any) -> DType | None:
    given = operand(bins)
    if given.shape:
        return given.dtype
    if given.shape is None or range is not None:
        return None
    return probe(np.histogram_bin_edges, one(x), bins=2)


@rule(np.bincount)
def _bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Spec:
    part = operand(x)
    one_dimension(part)
    if part.kind not in ("", "b", "i", "u", "O"):
        raise TypeError(f"Cannot cast array data from {part.dtype!r} to dtype('int64') according to the rule 'safe'")
    return Spec(INTP if weights is None else FLOAT, (None,))


@rule(np.digitize)
def _digitize(x: Any, bins: Any, right: Any = False) -> Spec:
    one_dimension(operand(bins))
    return Spec(INTP, operand(x).shape)
