"""Define functions that rules need and NumPy lacks: mostly adjoints of functions that move elements.

Each is a `primitive`, so that it can be a node of a graph, and each has a rule, so that derivatives can be taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core import fill_up_call
from ..declare.dims import prod
from ..declare.rebuild import getitem_with_bounds, spelled_index
from ..declare.spec import Spec
from ..functions.shape import axes_of
from . import table
from .extents import has_shape_of
from .rule import PerArgument, structural
from .unbroadcast import conj, dtype_of, primitive, shape_of

__all__ = [
    "MOST_PARTS",
    "count",
    "is_basic",
    "move_back",
    "movement",
    "part_of",
    "put",
    "put_between",
    "recurrence",
    "reshape_like",
    "resize_like",
    "shift",
]


def _like(x: Any, like: Any) -> Spec:
    shape = like.shape if isinstance(like, Spec) else np.shape(like)
    return Spec(x.dtype if isinstance(x, Spec) else np.asarray(x).dtype, shape)


@primitive(lambda x, like, order="C": _like(x, like))
def _reshape_like(x: Any, like: Any, order: Any = "C") -> Any:
    """Return `x` in the shape of `like`."""
    return np.reshape(x, np.shape(like), order=order)


structural(
    _reshape_like, (lambda ct, ans, x, like, order="C": reshape_like(ct, x, order), None), ("same", None), ("x", "like")
)
fill_up_call("reshape_like", _reshape_like)
has_shape_of(_reshape_like, 1)


def reshape_like(x: Any, like: Any, order: Any = "C") -> Any:
    """Return `x` in the shape of `like`; nothing is done where that is known to be its own."""
    have, want = shape_of(x), shape_of(like)
    if have is not None and have == want and None not in have:
        return x
    return _reshape_like(x, like) if order == "C" else _reshape_like(x, like, order)


# --- indexing


def is_basic(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    return all(
        item is None
        or item is Ellipsis
        or (issubclass(type(item), (slice, int, np.integer)) and type(item) is not bool)
        for item in items
    )


@primitive(lambda ct, like, key, *more: _like(ct, like))
def put(ct: Any, like: Any, key: Any, *more: Any) -> Any:
    """Return zeros in the shape of `like`, with `ct` added at ``[key]``: the adjoint of indexing.

    `more` are arrays and keys in turn: what the same gives for each of these is added, one after the other.
    """
    ct = np.asarray(ct)
    out = np.zeros(np.shape(like), ct.dtype)
    if is_basic(key):
        out[key] = ct
    elif issubclass(type(key), np.ndarray) and key.dtype == bool:
        out[key] = ct  # a mask picks no element twice
    else:
        np.add.at(out, key, ct)
    for other, where in zip(more[::2], more[1::2], strict=True):
        out = out + put(other, like, where)
    return out


MOST_PARTS = 8  # arrays that `put` is given


def _put_back(place: int) -> Any:
    """Return the adjoint of `put` in the array at this place of its arguments."""

    def vjp(ct: Any, ans: Any, *args: Any) -> Any:
        return ct[args[place + 1 if place else 2]]

    return vjp


def _put_alone(place: int) -> Any:
    """Return what `put` makes of a tangent of one array."""
    return lambda t, ans, *args: put(t, args[1], args[place + 1 if place else 2])


_PLACES = (0, *range(3, 2 * MOST_PARTS + 1, 2))  # where arrays stand, with keys behind them
_EACH = range(2 * MOST_PARTS + 1)
structural(
    put,
    [_put_back(k) if k in _PLACES else None for k in _EACH],
    [_put_alone(k) if k in _PLACES else None for k in _EACH],
    ("ct", "like", "key"),
)
fill_up_call("put", put)
has_shape_of(put, 1)


@primitive(lambda ct, like, key: _like(ct, like))
def put_between(ct: Any, like: Any, key: Any) -> Any:
    """Return zeros like `like` with `ct` at an index spelled as for `getitem_with_bounds`; else as `put`."""
    return put(ct, like, spelled_index(key))


structural(
    put_between,
    (lambda ct, ans, x, like, key: getitem_with_bounds(ct, key), None, None),
    ("same", None, None),
    ("ct", "like", "key"),
)


# --- anything that only moves elements


@primitive(lambda ct, like, func, before, after, kwargs: _like(ct, like))
def _move_back(ct: Any, like: Any, func: Any, before: Any, after: Any, kwargs: Any) -> Any:
    shape = np.shape(like)
    numbers = np.arange(1, int(np.prod(shape, dtype=np.int64)) + 1).reshape(shape)
    # Where it puts zeros instead of elements, the number is 0.
    where = func(*before, numbers, *after, **kwargs).ravel()
    ct = np.asarray(ct)
    flat = ct.ravel()
    size = numbers.size + 1
    if ct.dtype.kind == "c":
        sums = np.bincount(where, flat.real, size) + 1j * np.bincount(where, flat.imag, size)
    elif ct.dtype.kind == "f" and ct.dtype.itemsize <= 8:
        sums = np.bincount(where, flat, size)
    else:
        sums = np.zeros(size, ct.dtype)
        np.add.at(sums, where, flat)
    return sums[1:].reshape(shape).astype(ct.dtype, copy=False)


structural(
    _move_back,
    (lambda ct, ans, x, like, func, before, after, kwargs: func(*before, ct, *after, **kwargs), *(None,) * 5),
    ("same", *(None,) * 5),
    ("ct", "like", "func", "before", "after", "kwargs"),
)


def move_back(func: Callable[..., Any], position: int, ct: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the adjoint of a function that copies, drops or repeats elements of one argument, by their numbers."""
    return _move_back(ct, args[position], func, args[:position], args[position + 1 :], kwargs)


def movement(func: Any, position: int = 0, names: Sequence[str] = ()) -> None:
    """Add the rule of a function that copies, drops, repeats or moves elements, and adds nothing but zeros."""

    def vjp(ct: Any, ans: Any, *args: Any, **kwargs: Any) -> Any:
        return move_back(func, position, ct, args, kwargs)

    none = (None,) * position
    table.add(PerArgument(func, (*none, vjp), (*none, "same"), names))


# --- parts of what was joined


@primitive(lambda ct, arrays, axis, k: _like(ct, arrays[k]))
def part_of(ct: Any, arrays: Any, axis: int, k: int) -> Any:
    """Return the part of `ct` where array `k` of `arrays` came to lie when they were joined along `axis`."""
    start = sum(np.shape(a)[axis] for a in arrays[:k])
    index: list[Any] = [slice(None)] * np.ndim(ct)
    index[axis] = slice(start, start + np.shape(arrays[k])[axis])
    return ct[tuple(index)]


def _part_of_adjoint(ct: Any, ans: Any, x: Any, arrays: Any, axis: int, k: int) -> Any:
    return np.concatenate([ct if i == k else np.zeros_like(a) for i, a in enumerate(arrays)], axis=axis)


structural(part_of, (_part_of_adjoint, None, None, None), ("same", None, None, None), ("ct", "arrays", "axis", "k"))


@primitive(lambda x, like, axes: _like(x, like))
def resize_like(x: Any, like: Any, axes: Any) -> Any:
    """Return `x` cut off, or continued with zeros, at the end of some axes, to the sizes that `like` has there."""
    x = np.asarray(x)
    want = np.shape(like)
    x = x[tuple(slice(want[k] if k in _positive(axes, x.ndim) else None) for k in range(x.ndim))]
    widths = [(0, max(want[k] - x.shape[k], 0) if k in _positive(axes, x.ndim) else 0) for k in range(x.ndim)]
    return np.pad(x, widths) if any(after for _, after in widths) else x


def _positive(axes: Any, ndim: int) -> tuple[int, ...]:
    return tuple(axis % ndim for axis in axes)


structural(
    resize_like, (lambda ct, ans, x, like, axes: resize_like(ct, x, axes), None, None), ("same", None, None), ("x",)
)


# --- numbers of elements


def _count_spec(a: Any, axis: Any) -> Spec:
    dtype = a.dtype if isinstance(a, Spec) else np.asarray(a).dtype
    real = dtype if isinstance(dtype, np.dtype) and dtype.kind == "f" else np.float64
    return Spec(real if isinstance(dtype, np.dtype) and dtype.kind != "c" else None, ())


@primitive(_count_spec)
def _count(a: Any, axis: Any) -> Any:
    shape, dtype = np.shape(a), dtype_of(a)
    real = np.finfo(dtype).dtype if dtype is not None and dtype.kind in "fc" else float
    return np.asarray(np.prod([shape[k] for k in axes_of(axis, len(shape))]), real)


def count(a: Any, axis: Any = None) -> Any:
    """Return the number of elements along axes: an int where that is known, else a number counted at run."""
    shape = shape_of(a)
    if shape is not None:
        size = prod([shape[k] for k in axes_of(axis, len(shape))])
        if isinstance(size, int):
            return size
    return _count(a, axis)


structural(_count, (None, None), (None, None), ("a", "axis"))
fill_up_call("count_along", _count)


# --- along an axis


def along(axis: int, item: Any) -> tuple[Any, ...]:
    """Return an index that applies `item` to one axis."""
    return (slice(None),) * axis + (item,) if axis >= 0 else (Ellipsis, item) + (slice(None),) * (-axis - 1)


def shift(a: Any, axis: int, fill: float) -> Any:
    """Return `a` moved one on along an axis, with `fill` at the beginning."""
    first = np.full_like(a[along(axis, slice(0, 1))], fill)
    return np.concatenate([first, a[along(axis, slice(0, -1))]], axis=axis)


@primitive(lambda c, x, axis: Spec(np.result_type(c.dtype, x.dtype) if _known(c, x) else None, x.shape))
def recurrence(c: Any, x: Any, axis: int) -> Any:
    """Return ``s[k] = c[k] + x[k] * s[k - 1]`` along an axis: what running products and their adjoints are made of."""
    c, x = np.moveaxis(np.asarray(c), axis, 0), np.moveaxis(np.asarray(x), axis, 0)
    out = np.array(np.broadcast_to(c, x.shape), np.result_type(c, x))
    for k in range(1, len(out)):
        out[k] += x[k] * out[k - 1]
    return np.moveaxis(out, 0, axis)


def _known(c: Any, x: Any) -> bool:
    return isinstance(c, Spec) and isinstance(x, Spec) and all(isinstance(s.dtype, np.dtype) for s in (c, x))


def _backwards(ct: Any, x: Any, axis: int) -> Any:
    """Return the adjoint of `recurrence` in `c`: the same from the end, each step with the next one's factor."""
    return np.flip(recurrence(np.flip(ct, axis), shift(np.flip(conj(x), axis), axis, 0.0), axis), axis)


structural(
    recurrence,
    (
        lambda ct, ans, c, x, axis: _backwards(ct, x, axis),
        lambda ct, ans, c, x, axis: _backwards(ct, x, axis) * conj(shift(ans, axis, 0.0)),
        None,
    ),
    (
        lambda t, ans, c, x, axis: recurrence(t, x, axis),
        lambda t, ans, c, x, axis: recurrence(t * shift(ans, axis, 0.0), x, axis),
        None,
    ),
    ("c", "x", "axis"),
)
