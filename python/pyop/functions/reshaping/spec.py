"""The same elements in another shape or order: reshape, transpose, broadcast, flip, roll."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..operand import Operand, Shape, operand
from ..shape import axes_of, axis_of, broadcast, floordiv, ints, one_d, prod, same, shape_argument, sub, three_d, two_d


def reshaped(shape: Shape, new: Shape) -> Shape:
    """Return the shape after ``reshape(new)``, with the one -1 worked out; ValueError if the sizes cannot agree."""
    if new is None:
        return None
    holes = [i for i, size in enumerate(new) if isinstance(size, int) and size < 0]
    if len(holes) > 1:
        raise ValueError("can only specify one unknown dimension")
    total = None if shape is None else prod(shape)
    known = prod(size for i, size in enumerate(new) if i not in holes)
    wrong = f"cannot reshape array of size {total} into shape {_text(new)}"
    if not holes:
        if same(total, known) is False:
            raise ValueError(wrong)
        return new
    size: Extent = None
    if isinstance(known, int) and isinstance(total, int):
        if known == 0 or total % known:
            raise ValueError(wrong)
        size = total // known
    elif same(total, known):
        size = 1  # nothing divided by nothing is an error of the reshape, not a size
    elif known != 0:
        size = floordiv(total, known)  # exact whenever the reshape works at all
    return tuple(size if i in holes else extent for i, extent in enumerate(new))


def _text(shape: tuple[Extent, ...]) -> str:
    return "(" + ",".join("?" if size is None else str(size) for size in shape) + ("," if len(shape) == 1 else "") + ")"


@rule(np.reshape)
def _reshape(a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None) -> Spec:
    part = operand(a)
    wanted = shape if shape is not None else newshape
    if wanted is None:
        raise TypeError("reshape() missing 1 required positional argument: 'shape'")
    return Spec(part.dtype, reshaped(part.shape, shape_argument(wanted)))


@rule(np.ravel)
def _ravel(a: Any, order: Any = "C") -> Spec:
    part = operand(a)
    return Spec(part.dtype, (None if part.shape is None else prod(part.shape),))


@rule(np.resize)
def _resize(a: Any, new_shape: Any) -> Spec:
    part = operand(a)
    shape = shape_argument(new_shape)
    if shape is not None and any(isinstance(size, int) and size < 0 for size in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    return Spec(part.dtype, shape)


@rule(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: Any = False) -> Spec:
    part = operand(array)
    target = shape_argument(shape)
    if part.shape is None or target is None:
        return Spec(part.dtype, target)
    if len(part.shape) > len(target):
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    for have, want in zip(part.shape[::-1], target[::-1], strict=False):
        if same(have, 1) is False and same(have, want) is False:
            raise ValueError(
                "operands could not be broadcast together with remapped shapes [original->remapped]: "
                f"{_text(part.shape)} and requested shape {_text(target)}"
            )
    return Spec(part.dtype, target)


@rule(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: Any = False) -> tuple[Spec, ...]:
    parts = [operand(arg) for arg in args]
    shape = broadcast(*parts)
    return tuple(Spec(part.dtype, shape) for part in parts)


def _atleast(func: Any, grow: Any) -> None:
    @rule(func)
    def rule_(*arys: Any) -> Any:
        specs = tuple(Spec(part.dtype, grow(part.shape)) for part in map(operand, arys))
        return specs[0] if len(specs) == 1 else specs


_atleast(np.atleast_1d, one_d)
_atleast(np.atleast_2d, two_d)
_atleast(np.atleast_3d, three_d)


def _same_shape(part: Operand, least: int) -> Spec:
    if part.ndim is not None and part.ndim < least:
        raise ValueError(f"Input must be >= {least}-d.")
    return Spec(part.dtype, part.shape)


@rule(np.flip)
def _flip(m: Any, axis: Any = None) -> Spec:
    part = operand(m)
    if part.shape is not None:
        axes_of(axis, len(part.shape))
    return Spec(part.dtype, part.shape)


@rule(np.fliplr)
def _fliplr(m: Any) -> Spec:
    return _same_shape(operand(m), 2)


@rule(np.flipud)
def _flipud(m: Any) -> Spec:
    return _same_shape(operand(m), 1)


@rule(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Spec:
    part = operand(a)
    if part.shape is not None and axis is not None:
        for k in axis if isinstance(axis, (tuple, list)) else (axis,):
            axis_of(k, len(part.shape))
    return Spec(part.dtype, part.shape)


@rule(np.rot90)
def _rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Spec:
    part = operand(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    turns = ints(k)
    if part.shape is None:
        return Spec(part.dtype, None)
    if len(part.shape) < 2:
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={len(part.shape)}.")
    first, second = (axis_of(axis, len(part.shape)) for axis in axes)
    if first == second:
        raise ValueError("Axes must be different.")
    sizes = list(part.shape)
    if turns is None:
        sizes[first] = sizes[second] = None
    elif turns[0] % 2:
        sizes[first], sizes[second] = sizes[second], sizes[first]
    return Spec(part.dtype, tuple(sizes))


@rule("lib.stride_tricks.sliding_window_view")
def _sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: Any = False, writeable: Any = False
) -> Spec:
    part = operand(x)
    window = ints(window_shape)
    if part.shape is None or window is None:
        return Spec(part.dtype, None)
    if any(size < 0 for size in window):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = (
        tuple(range(len(part.shape))) if axis is None else tuple(axis_of(k, len(part.shape)) for k in ints(axis) or ())
    )
    if len(axes) != len(window):
        raise ValueError(
            "Since axis is None, must provide window_shape for all dimensions of `x`; "
            if axis is None
            else f"Must provide matching length window_shape and axis; got {len(window)} and {len(axes)} elements."
        )
    sizes = list(part.shape)
    for k, size in zip(axes, window, strict=True):
        extent = sizes[k]
        if isinstance(extent, int) and extent < size:
            raise ValueError("window shape cannot be larger than input array shape")
        # A window that does not fit is an error, so the difference holds whatever the size.
        sizes[k] = sub(extent, size - 1)
    return Spec(part.dtype, tuple(sizes) + window)
