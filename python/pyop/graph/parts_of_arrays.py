"""Compose functions that arrange, repeat and choose elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .parts import Checked, along, axis_in, in_any_layout, is_double, is_float, is_number, is_value, part_of

_MISSING = np._NoValue


# --- differences


@part_of(np.diff)
def _diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = _MISSING, append: Any = _MISSING) -> Any:
    at = axis_in(axis, a.ndim) if is_value(a) else None
    if at is None or type(n) is not int or n < 1 or a.dtype.kind not in "fiu":
        return NotImplemented
    pieces = [_end(prepend, a, at), a, _end(append, a, at)]
    if any(piece is NotImplemented for piece in pieces):
        return NotImplemented
    result = np.concatenate([piece for piece in pieces if piece is not None], at)
    for _ in range(n):
        result = np.subtract(along(result, at, slice(1, None)), along(result, at, slice(None, -1)))
    return result


def _end(end: Any, a: Any, axis: int) -> Any:
    """Return the array to put before or behind the elements; None for none, NotImplemented for another dtype."""
    if end is _MISSING:
        return None
    if not is_number(end) or np.result_type(a.dtype, np.asarray(end).dtype) != a.dtype:
        return NotImplemented
    shape = list(a.shape)
    shape[axis] = 1
    return np.full(shape, end, a.dtype)


@part_of(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    if to_end is not None or to_begin is not None or ary.dtype.kind not in "fiu":
        return NotImplemented
    flat = np.ravel(ary)
    return flat[1:] - flat[:-1]


@part_of(np.gradient)
def _gradient(f: Any, *spacing: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    if not is_float(f) or edge_order != 1 or type(edge_order) is not int:
        return NotImplemented
    axes = tuple(range(f.ndim)) if axis is None else (axis,) if type(axis) is int else axis
    axes = tuple(axis_in(k, f.ndim) for k in axes)
    if None in axes or len(set(axes)) != len(axes) or any(f.shape[k] < 2 for k in axes):
        return NotImplemented
    steps = spacing * len(axes) if len(spacing) == 1 and is_number(spacing[0]) else spacing or (1.0,) * len(axes)
    if len(steps) != len(axes):
        return NotImplemented
    made, checks = [], []
    for k, step in zip(axes, steps, strict=True):
        if is_number(step):
            made.append(_even_gradient(f, k, step))
        elif is_double(f, step) and step.ndim == 1 and step.shape[0] == f.shape[k]:
            apart = np.diff(step)
            # Where they are all the same NumPy takes the one.
            checks.append(np.any(apart != apart[:1]))
            made.append(_uneven_gradient(f, k, apart))
        else:
            return NotImplemented
    return Checked(made[0] if len(axes) == 1 else tuple(made), *checks)


def _ends(f: Any, axis: int) -> tuple[Any, Any]:
    first = along(f, axis, slice(1, 2)) - along(f, axis, slice(0, 1))
    last = along(f, axis, slice(-1, None)) - along(f, axis, slice(-2, -1))
    return first, last


def _even_gradient(f: Any, axis: int, step: Any) -> Any:
    first, last = _ends(f, axis)
    inner = (along(f, axis, slice(2, None)) - along(f, axis, slice(None, -2))) / (2.0 * step)
    return np.concatenate([first / step, inner, last / step], axis)


def _uneven_gradient(f: Any, axis: int, apart: Any) -> Any:
    before, behind = apart[:-1], apart[1:]
    factors = (
        -behind / (before * (before + behind)),
        (behind - before) / (before * behind),
        before / (behind * (before + behind)),
    )
    shape = [1] * f.ndim
    shape[axis] = f.shape[axis] - 2
    a, b, c = (factor.reshape(shape) for factor in factors)
    inner = a * along(f, axis, slice(None, -2)) + b * along(f, axis, slice(1, -1)) + c * along(f, axis, slice(2, None))
    first, last = _ends(f, axis)
    return np.concatenate([first / apart[0], inner, last / apart[-1]], axis)


# --- more of the same elements


@part_of(np.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if not is_value(array) or not 0 < array.ndim <= 4 or 0 in array.shape:
        return NotImplemented
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    if widths.dtype.kind != "i" or widths.min() < 0 or type(mode) is not str or not widths.any():
        return NotImplemented
    if mode == "constant":
        value = options.pop("constant_values", 0)
        if options or not is_number(value) or not np.can_cast(np.min_scalar_type(value), array.dtype):
            return NotImplemented
    elif mode not in ("edge", "reflect", "symmetric", "wrap") or options:
        return NotImplemented
    for axis, (before, behind) in enumerate(widths.tolist()):
        if not before and not behind:
            continue
        if mode == "constant":
            array = np.concatenate(
                [*_filled(array, axis, before, value), array, *_filled(array, axis, behind, value)], axis
            )
        else:
            array = np.take(array, np.pad(np.arange(array.shape[axis]), (before, behind), mode=mode), axis)  # type: ignore[call-overload]
    return array


def _filled(array: Any, axis: int, n: int, value: Any) -> list[Any]:
    shape = list(array.shape)
    shape[axis] = n
    return [np.full(shape, value, array.dtype)] if n else []


@part_of(np.tile)
def _tile(A: Any, reps: Any) -> Any:
    times = (reps,) if type(reps) is int else tuple(reps)
    if not all(type(n) is int and n > 0 for n in times) or not is_value(A) or 0 in A.shape:
        return NotImplemented
    times = (1,) * (A.ndim - len(times)) + times
    result = A.reshape((1,) * (len(times) - A.ndim) + tuple(A.shape))
    if set(times) == {1} or len(times) > 8:
        return NotImplemented
    for axis, n in enumerate(times):
        if n > 1:
            result = np.take(result, np.tile(np.arange(result.shape[axis]), n), axis)
    return result


@part_of(np.kron)
def _kron(a: Any, b: Any) -> Any:
    if a.ndim != b.ndim or not is_float(a, b) or 0 in (*a.shape, *b.shape):
        return NotImplemented
    n = a.ndim
    wide = a.reshape([k for size in a.shape for k in (size, 1)])
    inner = b.reshape([k for size in b.shape for k in (1, size)])
    return np.multiply(wide, inner).reshape([a.shape[k] * b.shape[k] for k in range(n)])


@part_of(np.meshgrid)
def _meshgrid(*xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> Any:
    if len(xi) != 2 or copy is not True or sparse is not False or indexing not in ("xy", "ij"):
        return NotImplemented
    x, y = xi
    if not all(is_value(v) and v.ndim == 1 and v.shape[0] > 0 for v in xi):
        return NotImplemented
    (n,), (m,) = x.shape, y.shape
    if indexing == "xy":
        return [np.repeat(x.reshape(1, n), m, 0), np.repeat(y.reshape(m, 1), n, 1)]
    return [np.repeat(x.reshape(n, 1), m, 1), np.repeat(y.reshape(1, m), n, 0)]


@part_of(np.fft.fftshift)
def _fftshift(x: Any, axes: Any = None) -> Any:
    return _shift(x, axes, 1)


@part_of(np.fft.ifftshift)
def _ifftshift(x: Any, axes: Any = None) -> Any:
    return _shift(x, axes, -1)


def _shift(x: Any, axes: Any, sign: int) -> Any:
    chosen = range(x.ndim) if axes is None else (axes,) if type(axes) is int else axes
    for axis in chosen:
        at = axis_in(axis, x.ndim)
        if at is None:
            return NotImplemented
        n = x.shape[at]
        x = np.roll(x, n // 2 if sign > 0 else -(n // 2), at)
    return x


@part_of(np.column_stack)
def _column_stack(tup: Any) -> Any:
    if not all(is_value(x) and x.ndim in (1, 2) for x in tup):
        return NotImplemented
    return np.concatenate([x.reshape(x.shape[0], 1) if x.ndim == 1 else x for x in tup], 1)


@part_of(np.vander)
def _vander(x: Any, N: Any = None, increasing: Any = False) -> Any:
    n = x.shape[0] if N is None else N
    if not is_float(x) or x.ndim != 1 or type(n) is not int or not 1 <= n <= 16 or type(increasing) is not bool:
        return NotImplemented
    columns = [np.ones((x.shape[0],), x.dtype), x]
    while len(columns) < n:
        columns.append(columns[-1] * x)
    columns = columns[:n]
    return np.stack(columns if increasing else columns[::-1], 1)


@part_of(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    at = _place(arr, obj, axis, True)
    if at is None or not is_number(values) or not np.can_cast(np.min_scalar_type(values), arr.dtype):
        return NotImplemented
    flat = np.ravel(arr)
    return np.concatenate([flat[:at], np.full(1, values, arr.dtype), flat[at:]])


@part_of(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    at = _place(arr, obj, axis, False)
    if at is None:
        return NotImplemented
    flat = np.ravel(arr)
    return np.concatenate([flat[:at], flat[at + 1 :]])


def _place(arr: Any, obj: Any, axis: Any, end: bool) -> int | None:
    if not is_value(arr) or type(obj) is not int or not (axis is None or (arr.ndim == 1 and axis in (0, -1))):
        return None
    n = int(np.prod(arr.shape))
    if not -n <= obj < n + end:
        return None
    return obj + n if obj < 0 else obj


# --- choosing elements


@part_of(np.flatnonzero)
def _flatnonzero(a: Any) -> Any:
    return np.nonzero(np.ravel(a))[0]


@part_of(np.argwhere)
def _argwhere(a: Any) -> Any:
    return np.transpose(np.stack(np.nonzero(a)))


@part_of(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    at = axis_in(axis, arr.ndim) if is_value(arr) and is_value(indices) else None
    if at is None or indices.ndim != arr.ndim or indices.dtype != np.intp:
        return NotImplemented
    key = []
    for k, n in enumerate(arr.shape):
        shape = [1] * arr.ndim
        shape[k] = n
        key.append(indices if k == at else np.arange(n).reshape(shape))
    return arr[tuple(key)]


@part_of(np.tril)
def _tril(m: Any, k: Any = 0) -> Any:
    if m.ndim < 2 or type(k) is not int:
        return NotImplemented
    return np.where(_below(m, k), m, np.zeros(1, m.dtype))


def _below(m: Any, k: int) -> Any:
    rows, columns = m.shape[-2:]
    return np.tri(rows, columns, k, dtype=np.bool_)


@part_of(np.triu)
def _triu(m: Any, k: Any = 0) -> Any:
    if m.ndim < 2 or type(k) is not int:
        return NotImplemented
    return np.where(_below(m, k - 1), np.zeros(1, m.dtype), m)


@part_of(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if not is_number(default) or not is_float(*choicelist) or not condlist or len(condlist) != len(choicelist):
        return NotImplemented
    shape, dtype = choicelist[0].shape, choicelist[0].dtype
    if not all(is_value(c) and c.dtype == np.bool_ and c.shape == shape for c in condlist):
        return NotImplemented
    if any(c.shape != shape for c in choicelist):
        return NotImplemented
    result = np.full(shape, default, dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = np.where(condition, choice, result)
    return result


@part_of(np.nan_to_num)
def _nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if copy is not True or not is_float(x):
        return NotImplemented
    limits = np.finfo(x.dtype)
    numbers = (nan, limits.max if posinf is None else posinf, limits.min if neginf is None else neginf)
    if not all(is_number(n) or isinstance(n, np.floating) for n in numbers):
        return NotImplemented
    for_nan, high, low = (np.array([n]).astype(x.dtype) for n in numbers)
    finite = np.where(x == np.inf, high, np.where(x == -np.inf, low, x))
    return np.where(np.isnan(x), for_nan, finite)


in_any_layout(np.ediff1d, np.flatnonzero, np.meshgrid, np.vander)
