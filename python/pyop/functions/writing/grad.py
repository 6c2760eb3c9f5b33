"""Differentiate functions that write into parts of memories (`pyop.gradients.performed`).

The result of each part is computed by functions that write nothing, and stored; derivatives pass through these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import Value
from ...gradients.adjoints import put
from ...gradients.performed import Places, argument_at, arguments_with, fill_flat, performed, set_flat
from ...gradients.store import store
from ...gradients.table import NoRule, name_of
from ...gradients.unbroadcast import shape_of
from ...transforms.composite import composite


@composite(performed)
def made_of(function: Any, roots: Any, args: Any, kwargs: Any, places: Places) -> Any:
    """Return what the memories hold, by functions that have rules."""
    roots = list(roots)
    given, options = arguments_with(args, kwargs, places, roots)
    written = [place for place in places if place[3]]
    old = [argument_at(given, options, where) for where, *_ in written]
    for (_, memory, views, _), before, now in zip(written, old, _parts(function, given, options, old), strict=True):
        now = now if _dtype(now) in (None, before.dtype) else _converted(now, before.dtype)
        roots[memory] = store(roots[memory], now, ..., views, False)
    return roots[0] if len(roots) == 1 else tuple(roots)


def _dtype(x: Any) -> Any:
    return getattr(x, "dtype", None)


def _converted(x: Any, dtype: Any) -> Any:
    return (np.real(x) if x.dtype.kind == "c" and dtype.kind != "c" else x).astype(dtype)


def _parts(function: Any, args: list[Any], kwargs: dict[str, Any], old: list[Any]) -> tuple[Any, ...]:
    """Return what is written, for each part."""
    equivalent = _EQUIVALENTS.get(function)
    if equivalent is not None:
        return (equivalent(*args, **kwargs),)
    of = getattr(function, "__self__", None)
    if isinstance(of, np.ufunc) and function.__name__ == "at":
        return (_at(of, *args, **kwargs),)
    if "out" not in kwargs:  # by position
        args = [None if any(x is part for part in old) and k == _last(args, old) else x for k, x in enumerate(args)]
    kwargs = {key: item for key, item in kwargs.items() if key != "out"}
    where = kwargs.pop("where", True) if isinstance(function, np.ufunc) else True
    if where is not True:
        args = [_only(where, x) for x in args]
    made = function(*args, **kwargs)
    parts = made if isinstance(made, tuple) else (made,)
    return parts if where is True else tuple([np.where(where, p, b) for p, b in zip(parts, old, strict=True)])


def _only(where: Any, x: Any) -> Any:
    """Return `x` there, and ones elsewhere: a derivative may be infinite at what is not computed; times zero a NaN."""
    return np.where(where, x, np.ones((), x.dtype)) if type(x) is Value and x.dtype is not None else x


def _last(args: list[Any], old: list[Any]) -> int:
    """Return the position of ``out`` among the arguments."""
    return max(k for k, x in enumerate(args) if any(x is part for part in old))


# --- functions that write into their first argument


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    return np.broadcast_to(src, dst.shape) if where is True else np.where(where, src, dst)


def _array(x: Any) -> Any:
    """Return an array for a list, in which Values may stand."""
    if not isinstance(x, (list, tuple)):
        return x
    return np.stack([_array(item) for item in x]) if any(hasattr(item, "_is_scalar") for item in x) else np.asarray(x)


def _fill(a: Any, value: Any) -> Any:
    return np.reshape(value, ())


def _count(x: Any) -> Any:
    total: Any = 1
    for n in shape_of(x) or ():
        total *= n
    return total


def _repeated(values: Any, count: int) -> Any:
    """Return as many of the values as are wanted, from the start again where there are too few."""
    values = np.reshape(_array(values), -1)
    return np.take(values, np.arange(count) % max(_count(values), 1), axis=0)


def _flat(x: Any) -> Any:
    return np.reshape(x, -1)


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    count, v = _count(a), _array(v)
    ind = _flat(_array(ind))
    ind = ind % count if mode == "wrap" else np.clip(ind, 0, count - 1) if mode == "clip" else ind
    if not _count(ind) or not _count(v):
        return a
    return np.reshape(store(_flat(a), _repeated(v, _count(ind)), ind), a.shape)


def _putmask(a: Any, mask: Any, values: Any) -> Any:
    values = _array(values)
    if not _count(values):
        return a
    return np.where(np.reshape(mask, a.shape), np.reshape(_repeated(values, _count(a)), a.shape), a)


def _place(arr: Any, mask: Any, vals: Any) -> Any:
    mask = _flat(np.reshape(mask, arr.shape)).astype(bool)
    vals = _flat(_array(vals))
    which = np.clip(np.cumsum(mask) - 1, 0, None) % max(_count(vals), 1)
    return np.reshape(np.where(mask, np.take(vals, which), _flat(arr)), arr.shape) if _count(vals) else arr


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Any:
    places = np.zeros(a.shape, bool)
    np.fill_diagonal(places, True, wrap=wrap)
    return _place(a, places, val)


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> Any:
    if axis is None:
        return np.reshape(store(_flat(arr), values, _flat(indices)), arr.shape)
    axis %= len(arr.shape)
    key = []
    for k, n in enumerate(arr.shape):
        other = [1] * len(arr.shape)
        other[k] = -1
        key.append(indices if k == axis else np.arange(n).reshape(other))
    return store(arr, values, tuple(key))


def _sort(a: Any, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    return np.sort(a, axis, kind="stable" if stable else kind)


def _partition(a: Any, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> Any:
    return np.partition(a, kth, axis, kind)  # type: ignore[call-overload]


def _set_flat(x: Any, key: Any, value: Any) -> Any:
    places = np.arange(_count(x))[key] if not hasattr(key, "_is_scalar") else key
    return _put(x, places, value)


def _fill_flat(x: Any, values: Any) -> Any:
    return np.reshape(_repeated(values, _count(x)), x.shape)


def _nan_to_num(x: Any, copy: bool = True, **options: Any) -> Any:
    return np.nan_to_num(x, **options)


def _at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None) -> Any:
    if ufunc in (np.add, np.subtract):
        part = a[indices] if _has_value(indices) else np.empty(a.shape, bool)[indices]
        more = put(np.broadcast_to(b, part.shape), a, indices)
        return a + more if ufunc is np.add else a - more
    places = None if _has_value(indices) else np.arange(_count(a)).reshape(a.shape)[indices]
    turns = _MOST_TURNS + 1 if places is None else int(np.max(np.unique(places, return_counts=True)[1], initial=0))
    if places is None or turns > _MOST_TURNS:
        raise NoRule(
            f"{name_of((ufunc, 'at'))} has no gradient rule, as asked for at {Value._here()}, where it is not known "
            f"which index comes twice: where none does write x[indices] = np.{ufunc.__name__}(x[indices], b)"
        )
    flat = _flat(a)
    others = () if b is None else (_flat(np.broadcast_to(b, places.shape)),)
    places = places.ravel()
    turn = np.array([np.count_nonzero(places[:k] == place) for k, place in enumerate(places)], int)
    for k in range(turns):  # no place twice in one
        of = np.flatnonzero(turn == k)
        flat = store(flat, ufunc(flat[places[of]], *[other[of] for other in others]), places[of])
    return np.reshape(flat, a.shape)


_MOST_TURNS = 64


def _has_value(x: Any) -> bool:
    return any(hasattr(item, "_is_scalar") for item in (x if isinstance(x, tuple) else (x,)))


_OPERATORS = ("matmul", "mul", "pow", "truediv")
_EQUIVALENTS: dict[Any, Callable[..., Any]] = {
    np.copyto: _copyto,
    np.ndarray.fill: _fill,
    np.put: _put,
    np.ndarray.put: _put,
    np.putmask: _putmask,
    np.place: _place,
    np.fill_diagonal: _fill_diagonal,
    np.put_along_axis: _put_along_axis,
    np.ndarray.sort: _sort,
    np.ndarray.partition: _partition,
    np.nan_to_num: _nan_to_num,
    set_flat: _set_flat,
    fill_flat: _fill_flat,
    **{getattr(operator, f"i{name}"): getattr(operator, name) for name in _OPERATORS},
}
