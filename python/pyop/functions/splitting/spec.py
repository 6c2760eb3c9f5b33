"""Infer functions that split an array: split and its relatives, unstack."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from ...refusals import refusal
from .. import rule
from ..forms import each
from ..indexing.spec import sliced
from ..operand import Operand, operand
from ..shape import axis_of, dropped, floordiv, replaced


def _pieces(part: Operand, sections: Any, axis: Any, even: bool) -> list[Spec]:
    if isinstance(sections, Spec):
        raise refusal(
            "where to split has to be concrete when the graph is built, got a Value: it decides how many arrays "
            "there are; pass an int or a list of ints"
        )
    cuts: list[int] | None
    try:
        count, cuts = operator.index(sections), None
    except TypeError:
        cuts = [operator.index(item) for item in sections]
        count = len(cuts) + 1
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    if part.shape is None:
        return [Spec(part.dtype, None)] * count
    k = axis_of(axis, len(part.shape))
    size = part.shape[k]
    if cuts is not None:
        sizes = _between(size, cuts)
    elif isinstance(size, int):
        if even and size % count:
            raise ValueError("array split does not result in an equal division")
        sizes = [size // count + (i < size % count) for i in range(count)]
    elif even:
        sizes = [floordiv(size, count)] * count
    else:
        sizes = [size] if count == 1 else [None] * count
    return [Spec(part.dtype, replaced(part.shape, k, extent)) for extent in sizes]


def _between(size: Extent, cuts: list[int]) -> list[Extent]:
    stops: list[int | None] = [*cuts, None]
    if isinstance(size, int):
        return [len(range(*slice(start, stop).indices(size))) for start, stop in zip([0, *cuts], stops, strict=True)]
    return [sliced(size, slice(start, stop)) for start, stop in zip([0, *cuts], stops, strict=True)]


@each(np.split, np.array_split)
def _split(func: Any, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Spec]:
    return _pieces(operand(ary), indices_or_sections, axis, even=func is np.split)


_ALONG = {np.hsplit: (1, 1), np.vsplit: (0, 2), np.dsplit: (2, 3)}  # which axis, and the least rank


@each(*_ALONG)
def _along(func: Any, ary: Any, indices_or_sections: Any) -> list[Spec]:
    part = operand(ary)
    axis, least = _ALONG[func]
    if part.ndim is not None and part.ndim < least:
        raise ValueError(f"{func.__name__} only works on arrays of {least} or more dimensions")
    # hsplit cuts the only axis of a vector, the second of anything else.
    return _pieces(part, indices_or_sections, 0 if func is np.hsplit and part.ndim == 1 else axis, even=True)


@rule("unstack")
def _unstack(x: Any, /, *, axis: Any = 0) -> tuple[Spec, ...]:
    part = operand(x)
    if part.shape == ():
        raise ValueError("Input array must be at least 1-d.")
    count = None if part.shape is None else part.shape[axis_of(axis, len(part.shape))]
    if part.shape is None or not isinstance(count, int):
        raise refusal(
            f"np.unstack on a size not known when the graph is built ({'unknown' if count is None else count}): "
            "the number of results has to be; declare the size of the axis"
        )
    return (Spec(part.dtype, dropped(part.shape, axis_of(axis, len(part.shape)))),) * count
