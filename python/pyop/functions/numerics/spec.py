"""Infer functions of neighbours along an axis: differences, integrals, convolutions, interpolation."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from ...refusals import refusal
from .. import rule
from ..forms import each
from ..operand import Sample, Shape, one, operand, probe
from ..shape import add, axes_of, axis_of, broadcast, dropped, ints, minus, prod, replaced, sub


@rule(np.diff)
def _diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Spec:
    part = operand(a)
    order = operator.index(n)
    if order < 0:
        raise ValueError(f"order must be non-negative but got {order}")
    if order == 0:
        return Spec(part.dtype, part.shape)
    ends = [operand(item) for item in (prepend, append) if item is not np._NoValue]
    dtype = probe(np.concatenate, (one(part), *(Sample(end.dtype, (1,)) for end in ends))) if ends else part.dtype
    for _ in range(min(order, 2)):  # times become durations at the first
        dtype = probe(np.diff, Sample(dtype, (1,)))
    if part.shape is None:
        return Spec(dtype, None)
    if not part.shape:
        raise ValueError("diff requires input that is at least one dimensional")
    k = axis_of(axis, len(part.shape))
    size = part.shape[k]
    for end in ends:
        size = add(size, 1 if end.shape == () else _along(end.shape, k))
    return Spec(dtype, replaced(part.shape, k, minus(size, order) if size is not None else None))


def _along(shape: Shape, k: int) -> Extent:
    return None if shape is None else shape[axis_of(k, len(shape))]


@rule(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Spec:
    part = operand(ary)
    size: Extent = None if part.shape is None else _less(prod(part.shape))
    for end in (to_end, to_begin):
        if end is not None:
            shape = operand(end).shape
            size = add(size, None if shape is None else prod(shape))
    return Spec(probe(np.ediff1d, one(part)), (size,))


@rule(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    part = operand(f)
    if part.ndim is None:
        if isinstance(axis, int):
            return Spec()
        raise refusal(
            "np.gradient returns one array for each axis, and the rank of the Value is not known when the graph is "
            "built; declare it, or pass axis= as an int"
        )
    axes = axes_of(axis, part.ndim)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    if len(varargs) == 1 and (operand(varargs[0]).ndim != 0 and len(axes) > 1):
        raise TypeError("invalid number of arguments")
    for k in axes:
        size = part.shape[k] if part.shape is not None else None
        if isinstance(size, int) and size < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, "
                "at least (edge_order + 1) elements are required."
            )
    spacing = varargs * len(axes) if len(varargs) == 1 else varargs
    specs = []
    for i in range(len(axes)):
        step = [operand(spacing[i])] if spacing else []
        # Coordinates instead of a step are differenced first, as their values say.
        known = part.dtype is not None and all(x.shape == () and x.dtype is not None for x in step)
        dtype = probe(np.gradient, Sample(part.dtype, (2,)), *(one(x, 0) for x in step)) if known else None
        specs.append(Spec(dtype, part.shape))
    # A vector, or one axis asked for, comes back bare.
    return specs[0] if len(specs) == 1 else tuple(specs)


@rule("trapezoid", "trapz")
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Spec:
    part = operand(y)
    if part.shape == ():
        axis_of(axis, 0)
    if x is None:
        dtype = probe(np.trapezoid, one(part), dx=one(dx, 0))
        return Spec(dtype, None if part.shape is None else dropped(part.shape, axis_of(axis, len(part.shape))))
    at = operand(x)
    dtype = probe(np.trapezoid, one(part), one(at))
    if part.shape is None or at.shape is None:
        return Spec(dtype, None)
    if not at.shape:
        raise ValueError("diff requires input that is at least one dimensional")
    k = axis_of(axis, len(part.shape))
    if len(at.shape) == 1:
        steps = replaced((1,) * len(part.shape), k, _less(at.shape[0]))
    else:
        steps = _between(at.shape, axis_of(axis, len(at.shape)))
    shape = broadcast(steps, _between(part.shape, k))
    return Spec(dtype, None if shape is None else dropped(shape, axis_of(axis, len(shape))))


def _between(shape: tuple[Extent, ...], k: int) -> tuple[Extent, ...]:
    """Return the shape of the differences, or means, of neighbours along an axis."""
    return replaced(shape, k, _less(shape[k]))


def _less(size: Extent) -> Extent:
    return None if size is None else minus(size, 1)


@each(np.convolve, np.correlate)
def _slid(func: Any, a: Any, v: Any, mode: Any = None) -> Spec:
    left, right = operand(a), operand(v)
    dtype = probe(func, one(left), one(right))
    sizes: list[Extent] = []
    for part in (left, right):
        if part.ndim is not None and part.ndim > 1:
            raise ValueError("object too deep for desired array")
        if part.ndim == 0 and func is np.correlate:
            raise ValueError("object of too small depth for desired array")
        size: Extent = None if part.shape is None else (part.shape[0] if part.shape else 1)
        if size == 0:
            raise ValueError(
                "the arrays must not be empty: 'a' cannot be empty" if part is left else "v cannot be empty"
            )
        sizes.append(size)
    if mode is None:
        mode = "full" if func is np.convolve else "valid"
    return Spec(dtype, (_slid_size(sizes[0], sizes[1], mode),))


def _slid_size(m: Extent, n: Extent, mode: Any) -> Extent:
    if mode in ("full", 2):
        return sub(add(m, n), 1)
    if not isinstance(m, int) or not isinstance(n, int):
        # Neither is empty, so a size of one is never the longer.
        return {1: m}.get(n) if isinstance(n, int) else {1: n}.get(m) if isinstance(m, int) else None
    if mode in ("same", 1):
        return max(m, n)
    if mode in ("valid", 0):
        return max(m, n) - min(m, n) + 1
    raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got '{mode}')")


@rule(np.apply_over_axes)
def _apply_over_axes(func: Any, a: Any, axes: Any) -> Spec:
    part = operand(a)
    return Spec(None, None if part.ndim is None or ints(axes) is None else (None,) * part.ndim)


@rule(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Spec:
    at, grid, values = operand(x), operand(xp), operand(fp)
    for part in (grid, values):
        if part.ndim is not None and part.ndim != 1:
            raise ValueError(
                "Data points must be 1-D sequences" if period is not None else "object too deep for desired array"
            )
    broadcast(grid.shape, grid.shape)
    return Spec(probe(np.interp, one(at), one(grid), one(values)), at.shape)
