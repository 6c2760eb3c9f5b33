"""Infer functions that return the same elements in another shape or order: reshape, transpose, flip, roll."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..forms import each, shaped
from ..operand import Shape, Sizes, operand
from ..shape import (
    axes_of,
    axis_of,
    broadcast,
    floordiv,
    ints,
    one_d,
    prod,
    same,
    shape_argument,
    sub,
    text,
    three_d,
    two_d,
)


def reshaped(shape: Shape, new: Shape) -> Shape:
    """Return the shape after ``reshape(new)``, with the one -1 worked out; ValueError if the sizes cannot agree."""
    if new is None:
        return None
    holes = [i for i, size in enumerate(new) if isinstance(size, int) and size < 0]
    if len(holes) > 1:
        raise ValueError("can only specify one unknown dimension")
    total = None if shape is None else prod(shape)
    known = prod(size for i, size in enumerate(new) if i not in holes)
    wrong = f"cannot reshape array of size {total} into shape {text(new)}"
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
                f"{text(part.shape)} and requested shape {text(target)}"
            )
    return Spec(part.dtype, target)


@rule(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: Any = False) -> tuple[Spec, ...]:
    parts = [operand(arg) for arg in args]
    shape = broadcast(*parts)
    return tuple(Spec(part.dtype, shape) for part in parts)


_LEAST = {np.atleast_1d: one_d, np.atleast_2d: two_d, np.atleast_3d: three_d}


@each(*_LEAST)
def _atleast(func: Any, *arys: Any) -> Any:
    specs = tuple(Spec(part.dtype, _LEAST[func](part.shape)) for part in map(operand, arys))
    return specs[0] if len(specs) == 1 else specs


@shaped(np.flip)
def _flip(m: Sizes, axis: Any = None) -> Sizes:
    axes_of(axis, len(m))
    return m


@shaped(np.fliplr)
def _fliplr(m: Sizes, least: int = 2) -> Sizes:
    if len(m) < least:
        raise ValueError(f"Input must be >= {least}-d.")
    return m


@shaped(np.flipud)
def _flipud(m: Sizes) -> Sizes:
    return _fliplr(m, least=1)


@shaped(np.roll)
def _roll(a: Sizes, shift: Any, axis: Any = None) -> Sizes:
    if axis is not None:
        for k in axis if isinstance(axis, (tuple, list)) else (axis,):
            axis_of(k, len(a))
    return a


@shaped(np.rot90)
def _rot90(m: Sizes, k: Any = 1, axes: Any = (0, 1)) -> Sizes:
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    if len(m) < 2:
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={len(m)}.")
    first, second = (axis_of(axis, len(m)) for axis in axes)
    if first == second:
        raise ValueError("Axes must be different.")
    turns, sizes = ints(k), list(m)
    if turns is None:
        sizes[first] = sizes[second] = None
    elif turns[0] % 2:
        sizes[first], sizes[second] = sizes[second], sizes[first]
    return tuple(sizes)


@shaped("lib.stride_tricks.sliding_window_view")
def _sliding_window_view(x: Sizes, window_shape: Any, axis: Any = None, **options: Any) -> Shape:
    window = ints(window_shape)
    if window is None:
        return None
    if any(size < 0 for size in window):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = tuple(range(len(x))) if axis is None else tuple(axis_of(k, len(x)) for k in ints(axis) or ())
    if len(axes) != len(window):
        raise ValueError(
            "Since axis is None, must provide window_shape for all dimensions of `x`; "
            if axis is None
            else f"Must provide matching length window_shape and axis; got {len(window)} and {len(axes)} elements."
        )
    sizes = list(x)
    for k, size in zip(axes, window, strict=True):
        extent = sizes[k]
        if isinstance(extent, int) and extent < size:
            raise ValueError("window shape cannot be larger than input array shape")
        # A window that does not fit is an error, so the difference holds whatever the size.
        sizes[k] = sub(extent, size - 1)
    return tuple(sizes) + window
