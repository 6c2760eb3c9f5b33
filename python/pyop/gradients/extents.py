"""Prove sizes equal that are unknown: sizes of slices, and of functions element by element.

Such a size gets a description in place of its number. Equal descriptions are equal sizes in every run; others may be
equal, too. So ``x[1:]`` and ``x[:-1]`` are known to have as many elements, and cotangents need not check that when
they run.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dims import Extent, same

__all__ = ["Described", "alike", "extents_of", "same_shape"]

# A size that is known, or the description of one that is not: a tuple, or a frozenset of what is broadcast.
Described = Extent | tuple[Any, ...] | frozenset[Any]

_LIKE_FIRST = {np.ndarray.astype, np.copy, np.real, np.imag, np.nan_to_num, np.zeros_like, np.ones_like}
_BROADCAST = {np.where, np.clip}
# Functions of gradient rules whose results have the shape of one argument; those that define them say so.
_LIKE: dict[Any, int] = {}


def has_shape_of(function: Any, argument: int) -> None:
    """Register that the result of a function has the shape of this argument, an array."""
    _LIKE[function] = argument


def extents_of(x: Any) -> tuple[Described, ...] | None:
    """Return the shape of something, with descriptions where sizes are unknown; None if the rank is."""
    shape: tuple[Extent, ...] | None = x.shape if hasattr(x, "shape") else np.shape(x)
    return _described(x) if shape is not None and None in shape and type(x) is Value else shape


def alike(a: Described, b: Described) -> bool:
    """Return whether two sizes are known to be equal."""
    known = (int, tuple, frozenset)
    if isinstance(a, known) or isinstance(b, known):
        return type(a) is type(b) and a == b
    return same(a, b) is True


def same_shape(a: tuple[Described, ...] | None, b: tuple[Described, ...] | None) -> bool:
    """Return whether two shapes are known to be the same."""
    return a is not None and b is not None and len(a) == len(b) and all(map(alike, a, b))


def _described(value: Value) -> tuple[Described, ...]:
    known = value.graph._extents
    waiting = [value]
    while waiting:  # no recursion: graphs may be deeper than the stack
        v = waiting[-1]
        needed = [] if v._key in known else [u for u in _sources(v) if None in (u.shape or ()) and u._key not in known]
        if needed:
            waiting += needed
            continue
        waiting.pop()
        if v._key not in known:
            known[v._key] = _of_sources(v, _sources(v))
    return known[value._key]  # type: ignore[no-any-return]


def _sources(value: Value) -> tuple[Value, ...]:
    """Return the Values whose shapes decide that of this one, if that is understood."""
    node = value.node
    if node.kind != "py" or (node._form is not None and node._form[2]):
        return ()
    function, inputs = node.function, node.inputs
    if not isinstance(function, Hashable):
        return ()
    if function in _BROADCAST or (isinstance(function, np.ufunc) and function.signature is None):
        statics = node._form[1] if node._form else ()
        if any(np.ndim(static) for static in statics) or any(v.shape is None for v in inputs):
            return ()
        return tuple(inputs) if function is not np.where or len(inputs) + len(statics) == 3 else ()
    if function is operator.getitem or function in _LIKE_FIRST:
        return _argument(node, 0)
    return _argument(node, _LIKE[function]) if function in _LIKE else ()


def _argument(node: Any, place: int) -> tuple[Value, ...]:
    code = place if node._form is None else node._form[0][place]
    source = node.inputs[code] if 0 <= code < len(node.inputs) else None
    return () if source is None or source.shape is None else (source,)


def _of_sources(value: Value, sources: tuple[Value, ...]) -> tuple[Described, ...]:
    shape: Any = value.shape
    own = tuple((value._key, axis) if size is None else size for axis, size in enumerate(shape))
    sizes: Any = None
    if sources:
        shapes: list[Any] = [_known(v) for v in sources]
        if value.node.function is operator.getitem:
            form = value.node._form
            sizes = _sliced(shapes[0], form[1][0] if form and len(form[1]) == 1 else np)
        else:
            sizes = _broadcast(shapes, len(shape))
    if sizes is None or len(sizes) != len(shape):
        return own
    return tuple(d if size is None and d is not None else o for size, d, o in zip(shape, sizes, own, strict=True))


def _known(value: Value) -> tuple[Described, ...]:
    shape: Any = value.shape
    return value.graph._extents[value._key] if None in shape else shape  # type: ignore[no-any-return]


def _broadcast(shapes: list[tuple[Described, ...]], ndim: int) -> tuple[Described, ...]:
    result: list[Described] = []
    for axis in range(-ndim, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis}
        parts = {part for size in sizes for part in (size if isinstance(size, frozenset) else (size,))} - {1}
        result.append(next(iter(parts)) if len(parts) == 1 else frozenset(parts))
    return tuple(result)


def _sliced(shape: tuple[Described, ...], key: Any) -> tuple[Described, ...] | None:
    """Return the sizes of a part by slices, integers and new axes; None for any other index."""
    items = list(key) if isinstance(key, tuple) else [key]
    if any(not (x is None or x is Ellipsis or isinstance(x, slice) or _is_integer(x)) for x in items):
        return None
    rest = len(shape) - sum(x is not None and x is not Ellipsis for x in items)
    at = next((k for k, x in enumerate(items) if x is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * rest
    result: list[Described] = []
    axis = 0
    for item in items:
        if item is None:
            result.append(1)
            continue
        if isinstance(item, slice):
            result.append(_part(shape[axis], item))
        axis += 1
    return tuple(result)


def _is_integer(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def _part(size: Any, item: slice) -> Described:
    bounds = (item.start, item.stop, item.step)
    if not all(bound is None or _is_integer(bound) for bound in bounds):
        return None
    start, stop, step = (None if bound is None else int(bound) for bound in bounds)
    if step in (None, 1) and (start or 0) >= 0 and (stop is None or stop < 0):
        less = (start or 0) - (stop or 0)
        if less and isinstance(size, tuple) and size[0] == "less":
            size, less = size[1], less + size[2]
        return ("less", size, less) if less else size  # max(size - less, 0)
    if step == -1 and start in (None, -1) and stop is None:
        return size  # type: ignore[no-any-return]
    return "part", size, start, stop, 1 if step is None else step
