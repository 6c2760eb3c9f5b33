"""Differentiate functions that join arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._tree import flatten
from ...declare.dims import add
from ...gradients import table
from ...gradients.adjoints import along, part_of, reshape_like
from ...gradients.table import NoRule, Place, Pullback, Rule, name_of
from ...gradients.unbroadcast import fit_dtype, shape_of
from ...transforms.composite import composite, pullback_of, push_forward


class Join(Rule):
    """Differentiate a function of a sequence of arrays, by the part of the cotangent that belongs to each.

    ``part(ct, k, arrays, **kwargs)`` returns that of array `k`, which is then brought to its shape.
    """

    def __init__(self, func: Any, part: Callable[..., Any], names: tuple[str, ...]) -> None:
        super().__init__(func)
        self.part = part
        self.names = names

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return "arrays" if parameter in (0, self.names[0]) else ""

    def _of_one(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether the arrays to join are the rows of one array."""
        return not isinstance(self._bound(args, kwargs)[self.names[0]], (tuple, list))

    def _joined(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._bound(args, kwargs)
        return self.func(_rows(bound.pop(self.names[0]), self.func), **bound)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return {**dict(zip(self.names, args, strict=False)), **kwargs}

    def _offsets(self, argnums: tuple[int, ...], args: Any, kwargs: Any) -> list[int]:
        where = table.places(args, kwargs)
        offsets: list[int] = []
        for k in argnums:
            place: Place = where[k]
            if place.argument not in (0, self.names[0]):
                raise NoRule(f"{name_of(self.func)} has no gradient rule for its argument {place.argument!r}")
            offsets.append(place.offset)
        return offsets

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        if self._of_one(args, kwargs):
            return pullback_of(self._joined, argnums, args, kwargs)
        bound = self._bound(args, kwargs)
        arrays = list(bound.pop(self.names[0]))
        offsets = self._offsets(argnums, args, kwargs)

        def pullback(ct: Any) -> tuple[Any, ...]:
            return tuple(
                [fit_dtype(reshape_like(self.part(ct, k, arrays, **bound), arrays[k]), arrays[k]) for k in offsets]
            )

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._of_one(args, kwargs):
            return push_forward(self._joined, argnums, tangents, args, kwargs)
        bound = self._bound(args, kwargs)
        given = dict(zip(self._offsets(argnums, args, kwargs), tangents, strict=True))
        arrays = [given[k] if k in given else np.zeros_like(a) for k, a in enumerate(bound.pop(self.names[0]))]
        return self.func(arrays, **bound)


def _rows(a: Any, func: Any) -> list[Any]:
    size = (shape_of(a) or (None,))[0]
    if not isinstance(size, int):
        raise NoRule(
            f"{name_of(func)} of the rows of one array needs their number when the graph is built: declare it in the "
            "spec of the input, or use np.reshape"
        )
    return [a[k] for k in range(size)]


def rank_of(a: Any) -> int:
    shape = shape_of(a)
    if shape is None:
        raise NoRule("joining arrays of unknown rank has no gradient rule: declare the rank in the spec of the input")
    return len(shape)


def _concatenated(ct: Any, k: int, arrays: list[Any], axis: Any = 0, **kw: Any) -> Any:
    if axis is None:
        arrays, axis = [np.ravel(a) for a in arrays], 0
    sizes = [(shape_of(a) or (None,))[axis] for a in arrays[: k + 1]]
    start: Any = 0
    bounds = list(itertools.accumulate(sizes, add, initial=start))
    if bounds[-1] is not None:
        return ct[along(axis, slice(*bounds[k:]))]
    return part_of(ct, arrays, axis, k)


def _stacked(ct: Any, k: int, arrays: list[Any], axis: Any = 0, **kw: Any) -> Any:
    return ct[along(axis, k)]


def _with_at_least(ndim: int, axis: int) -> Callable[..., Any]:
    grow = np.atleast_2d if ndim == 2 else np.atleast_3d

    def part(ct: Any, k: int, arrays: list[Any], **kw: Any) -> Any:
        return _concatenated(ct, k, [grow(a) for a in arrays], axis)

    return part


def _side_by_side(ct: Any, k: int, arrays: list[Any], **kw: Any) -> Any:
    grown = [np.atleast_1d(a) for a in arrays]
    return _concatenated(ct, k, grown, 0 if rank_of(grown[0]) == 1 else 1)


def _as_columns(ct: Any, k: int, arrays: list[Any], **kw: Any) -> Any:
    return _concatenated(ct, k, [np.transpose(np.atleast_2d(a)) if rank_of(a) < 2 else a for a in arrays], 1)


# fmt: off
table.add(Join(np.concatenate, _concatenated, ("arrays", "axis", "out")))
table.add(Join(np.stack, _stacked, ("arrays", "axis", "out")))
table.add(Join(np.vstack, _with_at_least(2, 0), ("tup",)))
table.add(Join(np.hstack, _side_by_side, ("tup",)))
table.add(Join(np.dstack, _with_at_least(3, 2), ("tup",)))
table.add(Join(np.column_stack, _as_columns, ("tup",)))


# fmt: on
@composite(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return np.concatenate([arr, values] if axis is not None else [np.ravel(arr), np.ravel(values)], axis=axis or 0)


@composite(np.block)
def _block(blocks: Any) -> Any:
    depth, inner = 0, blocks
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    ndim = max([depth, *(rank_of(leaf) for leaf in flatten(blocks)[0])])

    def build(item: Any, level: int) -> Any:
        if not isinstance(item, list):
            missing = ndim - rank_of(item)
            return np.expand_dims(item, tuple(range(missing))) if missing else item
        return np.concatenate([build(x, level + 1) for x in item], axis=ndim - depth + level)

    return build(blocks, 0)
