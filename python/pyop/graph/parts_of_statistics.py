"""Compose statistics, comparisons, searches and sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from .parts import Checked, all_of, axis_in, in_any_layout, is_double, is_float, is_number, is_value, part_of

_MISSING = np._NoValue
_INT64 = np.dtype(np.int64)


@part_of(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = _MISSING) -> Any:
    if returned is not False or keepdims is not _MISSING or not (axis is None or type(axis) is int):
        return NotImplemented
    if weights is None:
        return np.mean(a, axis) if is_float(a) else NotImplemented
    if not is_double(a, weights) or a.shape != weights.shape:
        return NotImplemented
    total = np.sum(weights, axis)
    return Checked(np.sum(np.multiply(a, weights), axis) / total, all_of(total != 0.0))


# --- covariances


@part_of(np.cov)
def _cov(
    m: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    if not is_double(m) or m.ndim > 2 or 0 in m.shape or (y is not None and not is_double(y)):
        return NotImplemented
    if fweights is not None or aweights is not None or dtype is not None or type(rowvar) is not bool:
        return NotImplemented
    columns = not rowvar and m.ndim == 2
    x = m if columns else _rows(m)
    if y is not None:
        if y.ndim > 2 or 0 in y.shape or not rowvar:
            return NotImplemented
        other = _rows(y)
        if other.shape[1] != x.shape[1]:
            return NotImplemented
        x = np.concatenate((x, other), 0)
    less = (0 if bias else 1) if ddof is None else ddof
    free = x.shape[0 if columns else 1] - less if type(less) is int else 0
    if free <= 0:
        return NotImplemented
    x = np.transpose(x - np.mean(x, 0)) if columns else x - np.mean(x, 1)[:, None]
    scaled = np.dot(x, np.transpose(x)) * np.true_divide(1, free)
    return scaled if x.shape[0] > 1 else scaled.reshape(())


def _rows(m: Any) -> Any:
    return m.reshape(1, m.shape[0]) if m.ndim == 1 else m


@part_of(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    c = _cov(x, y, rowvar, dtype=dtype)
    if c is NotImplemented or c.ndim != 2:
        return NotImplemented
    deviation = np.sqrt(np.diagonal(c))
    c = c / deviation[:, None] / deviation[None, :]
    return np.clip(c, -1, 1)


# --- order statistics


@part_of(np.median)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    if not is_float(a) or out is not None or keepdims is not False or overwrite_input is not False:
        return NotImplemented
    lines, at = _lines(a, axis)
    if lines is None or lines.shape[at] < 1:
        return NotImplemented
    n = lines.shape[at]
    middle = [n // 2] if n % 2 else [n // 2 - 1, n // 2]
    part = np.partition(lines, [*middle, -1], axis=at)
    before: Any = (slice(None),) * at
    result = np.mean(part[(*before, slice(middle[0], middle[-1] + 1))], axis=at)
    return Checked(result, _no_nan(part[(*before, -1)]))


def _lines(a: Any, axis: Any) -> tuple[Any, int]:
    """Return the array and the axis of an order statistic; (None, 0) if there is no such axis."""
    if axis is None:
        return np.ravel(a), 0
    at = axis_in(axis, a.ndim)
    return (None, 0) if at is None else (a, at)


def _no_nan(x: Any) -> Any:
    return all_of(np.logical_not(np.isnan(x)))


@part_of(np.percentile)
def _percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, **options: Any) -> Any:
    return NotImplemented if not _is_numbers(q) else _quantiles(a, q, 100.0, axis, out, overwrite_input, options)


@part_of(np.quantile)
def _quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, **options: Any) -> Any:
    return NotImplemented if not _is_numbers(q) else _quantiles(a, q, None, axis, out, overwrite_input, options)


def _is_numbers(q: Any) -> bool:
    return is_number(q) or (type(q) in (list, tuple) and len(q) > 0 and all(is_number(x) for x in q))


def _quantiles(a: Any, q: Any, of: Any, axis: Any, out: Any, overwrite_input: Any, options: dict[str, Any]) -> Any:
    if not is_double(a) or out is not None or overwrite_input is not False or options or 0 in a.shape:
        return NotImplemented
    lines, at = _lines(a, axis)
    if lines is None:
        return NotImplemented
    at_what = np.asarray(q, np.float64) if of is None else np.true_divide(np.asarray(q), of)
    if not ((at_what >= 0) & (at_what <= 1)).all():
        return NotImplemented
    lines = np.moveaxis(lines, at, 0) if at else lines
    n = lines.shape[0]
    # Which elements of the sorted ones are next to each, and how far between them it lies.
    virtual = (n - 1) * at_what
    before = np.floor(virtual).astype(np.intp)
    behind = before + 1
    before, behind = (np.where(virtual >= n - 1, -1, k) for k in (before, behind))
    between = (virtual - before).reshape(at_what.shape + (1,) * (lines.ndim - 1))
    wanted = np.unique(np.concatenate(([0, -1], before.ravel(), behind.ravel())))
    part = np.partition(lines, [int(k) for k in wanted], axis=0)
    if at_what.ndim:
        low, high = np.take(part, before, 0), np.take(part, behind, 0)
    else:
        low, high = part[int(before)], part[int(behind)]
    apart = np.subtract(high, low)
    # From the nearer end.
    from_low, from_high = np.add(low, apart * between), np.subtract(high, apart * (1 - between))
    # NumPy computes both, with what there is to be said of that.
    result = np.where(np.broadcast_to(between >= 0.5, low.shape), from_high, from_low)
    return Checked(result, _no_nan(part[-1]))


@part_of(np.nanvar)
def _nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, **options: Any) -> Any:
    if not is_double(a) or dtype is not None or out is not None or options or type(ddof) is not int:
        return NotImplemented
    if not (axis is None or type(axis) is int):
        return NotImplemented
    missing = np.isnan(a)
    there = np.sum(np.logical_not(missing), axis, dtype=np.intp, keepdims=True)
    zero = np.zeros(1, a.dtype)
    numbers = np.where(missing, zero, a)
    mean = np.divide(np.sum(numbers, axis, keepdims=True), there)
    apart = np.where(missing, zero, numbers - mean)
    free = np.sum(np.logical_not(missing), axis, dtype=np.intp) - ddof
    result = np.divide(np.sum(np.multiply(apart, apart), axis), free)
    return Checked(result, all_of(free > 0))


@part_of(np.nanstd)
def _nanstd(a: Any, *args: Any, **kwargs: Any) -> Any:
    variance = _nanvar(a, *args, **kwargs)
    return variance if variance is NotImplemented else Checked(np.sqrt(variance.result), *variance.checks)


# --- comparisons


@part_of(np.isclose)
def _isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    if not is_double(a, b) or not (is_number(rtol) and is_number(atol)) or equal_nan is not False:
        return NotImplemented
    near = np.less_equal(np.abs(a - b), atol + rtol * np.abs(b))
    return (near & np.isfinite(b)) | (a == b)


@part_of(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    close = _isclose(a, b, rtol, atol, equal_nan)
    return close if close is NotImplemented else np.all(close)


@part_of(np.angle)
def _angle(z: Any, deg: Any = False) -> Any:
    if z.dtype.kind != "c" or type(deg) is not bool:
        return NotImplemented
    angles = np.arctan2(z.imag, z.real)
    return angles * (180 / np.pi) if deg else angles


# --- searches and sets


@part_of(np.digitize)
def _digitize(x: Any, bins: Any, right: Any = False) -> Any:
    if not is_double(x, bins) or bins.ndim != 1 or type(right) is not bool:
        return NotImplemented
    return Checked(np.searchsorted(bins, x, side="left" if right else "right"), np.all(bins[1:] >= bins[:-1]))


def _different(ordered: Any) -> Any:
    """Return, for each element, whether it differs from the one before; True for the first."""
    return np.concatenate([np.ones(1, np.bool_), ordered[1:] != ordered[:-1]])


@part_of(np.unique)
def _unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    **options: Any,
) -> Any:
    wanted = (return_index, return_inverse, return_counts)
    if not _is_integers(ar) or axis is not None or options or not all(type(x) is bool for x in wanted):
        return NotImplemented
    flat = np.ravel(ar)
    order = np.argsort(flat, kind="stable") if return_index else None
    ordered = np.sort(flat)
    new = _different(ordered)
    distinct = ordered[new]
    made = [distinct]
    if order is not None:
        made.append(order[new])
    if return_inverse:
        made.append(np.searchsorted(distinct, ar))
    if return_counts:
        starts = np.nonzero(new)[0]
        made.append(np.diff(np.concatenate([starts, np.full(1, flat.shape[0], np.intp)])))
    return tuple(made) if len(made) > 1 else distinct


def _is_integers(*values: Any) -> bool:
    return all(is_value(x) and x.dtype is not None and x.dtype.kind in "iu" and 0 not in x.shape for x in values)


@part_of(np.union1d)
def _union1d(ar1: Any, ar2: Any) -> Any:
    if not _is_integers(ar1, ar2) or ar1.dtype != ar2.dtype:
        return NotImplemented
    ordered = np.sort(np.concatenate([np.ravel(ar1), np.ravel(ar2)]))
    return ordered[_different(ordered)]


@part_of(np.intersect1d)
def _intersect1d(ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    if not _is_integers(ar1, ar2) or ar1.dtype != ar2.dtype or assume_unique is not False:
        return NotImplemented
    if return_indices is not False:
        return NotImplemented
    one, other = (np.sort(np.ravel(x)) for x in (ar1, ar2))
    ordered = np.sort(np.concatenate([one[_different(one)], other[_different(other)]]))
    return ordered[:-1][ordered[1:] == ordered[:-1]]


@part_of(np.isin)
def _isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None
) -> Any:
    if not _is_integers(element) or element.dtype != _INT64 or type(test_elements) not in (list, tuple):
        return NotImplemented
    if not 0 < len(test_elements) <= 16 or not all(type(k) is int and abs(k) < 2**62 for k in test_elements):
        return NotImplemented
    if invert is not False or kind is not None:
        return NotImplemented
    result = element == test_elements[0]
    for k in test_elements[1:]:
        result = result | (element == k)
    return result


@part_of(np.histogram)
def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if not is_double(a) or type(bins) is not int or not 0 < bins <= 10000 or weights is not None or 0 in a.shape:
        return NotImplemented
    flat = np.ravel(a)
    if flat.shape[0] > 65536 or density not in (None, False, True):  # it goes by blocks
        return NotImplemented
    checks = []
    if range is None:
        first, last = np.min(flat), np.max(flat)
        steps = np.arange(0, bins + 1, dtype=np.float64)
        edges = np.concatenate([(steps * ((last - first) / bins) + first)[:-1], last.reshape(1)])
        checks = [np.isfinite(last - first), last > first]
    else:
        low, high = (float(x) for x in range)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            return NotImplemented
        first, last = np.float64(low), np.float64(high)
        flat = flat[(flat >= first) & (flat <= last)]
        edges = a.graph.constant(np.linspace(low, high, bins + 1))
    # The whole numbers below, without a cast that would warn of NaN.
    places = np.searchsorted(np.arange(1.0, bins + 1), ((flat - first) / (last - first)) * bins, side="right")
    places = places - (places == bins)
    places = places - (flat < np.take(edges, places))
    places = places + ((flat >= np.take(edges, places + 1)) & (places != bins - 1))
    counts = np.bincount(places, minlength=bins)
    if density:
        return Checked((counts / np.diff(edges) / np.sum(counts), edges), *checks)
    return Checked((counts, edges), *checks)


in_any_layout(np.allclose, np.union1d, np.intersect1d)
