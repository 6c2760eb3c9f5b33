"""Infer ``numpy.fft``: transforms keep the precision of their input and change sizes only on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import fft

from ...declare.dims import Extent
from ...declare.spec import Spec
from ..forms import each, shaped
from ..operand import DType, Operand, Sizes, one, operand, probe
from ..shape import add, axis_of, floordiv, ints, mul, replaced, sub, unknown


def _half(size: Extent) -> Extent:
    return add(floordiv(size, 2), 1)


def _double(size: Extent) -> Extent:
    return mul(2, sub(size, 1))


def _same(size: Extent) -> Extent:
    return size


# What a transform makes of the size of its (last) axis: of one that is asked for, and of the one that it has.
_RESIZES: dict[Any, tuple[Callable[[Extent], Extent], Callable[[Extent], Extent]]] = {
    **dict.fromkeys((fft.fft, fft.ifft, fft.fftn, fft.ifftn, fft.fft2, fft.ifft2), (_same, _same)),
    **dict.fromkeys((fft.rfft, fft.ihfft, fft.rfftn, fft.rfft2), (_half, _half)),
    **dict.fromkeys((fft.irfft, fft.hfft, fft.irfftn, fft.irfft2), (_same, _double)),
}


@each(fft.fft, fft.ifft, fft.rfft, fft.ihfft, fft.irfft, fft.hfft)
def _line(func: Any, a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Spec:
    given, default = _RESIZES[func]
    part = operand(a)
    dtype = probe(func, one(part), 1)
    if part.shape is None:
        return Spec(dtype, None)
    k = axis_of(axis, len(part.shape))
    if n is not None:
        size = ints(n)
        _positive(size)
        return Spec(dtype, replaced(part.shape, k, given(size[0]) if size else None))
    if part.shape[k] == 0 or default(part.shape[k]) == 0:
        raise ValueError(f"Invalid number of FFT data points ({default(part.shape[k])}) specified.")
    return Spec(dtype, replaced(part.shape, k, default(part.shape[k])))


def _positive(sizes: tuple[Extent, ...] | None) -> None:
    for size in sizes or ():
        if isinstance(size, int) and size < 1:
            raise ValueError(f"Invalid number of FFT data points ({size}) specified.")


@each(fft.fftn, fft.ifftn, fft.rfftn, fft.irfftn)
def _grid(func: Any, a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Spec:
    """Infer a transform over several axes, of which real transforms halve or double the last."""
    given, default = _RESIZES[func]
    part = operand(a)
    if part.shape is None:
        # Of no axes nothing is transformed, and the dtype stays.
        return Spec(_dtype(func, part, 1) if part.kind == "c" else None, None)
    sizes = None if s is None else ints(tuple(-1 if size is None else size for size in s))
    if s is not None and sizes is None:
        return Spec(None, unknown(len(part.shape)))
    chosen = _axes(part, sizes, axes)
    if sizes is not None and len(sizes) != len(chosen):
        raise ValueError("Shape and axes have different lengths.")
    if not chosen:
        if given is not _same or default is not _same:
            raise IndexError("list index out of range: at least 1 axis must be transformed")
        return Spec(part.dtype if part.kind == "c" else None, part.shape)
    dtype = _dtype(func, part, len(chosen))
    if len(set(chosen)) != len(chosen):
        return Spec(dtype, unknown(len(part.shape)))
    shape = part.shape
    for i, k in enumerate(chosen):
        last = i == len(chosen) - 1
        if sizes is None:
            points, new = shape[k], default(shape[k]) if last else shape[k]
        else:
            points = shape[k] if sizes[i] == -1 else sizes[i]
            new = given(points) if last else points
        _positive((points if default is not _double else new,))
        shape = replaced(shape, k, new)
    return Spec(dtype, shape)


@each(fft.fft2, fft.ifft2, fft.rfft2, fft.irfft2)
def _plane(func: Any, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Spec:
    return _grid(func, a, s, axes)


def _dtype(func: Any, part: Operand, count: int) -> DType | None:
    """Return the dtype after transforms over so many axes: half precision is kept by some of them only."""
    return probe(func, one(part, count), (1,) * count, axes=tuple(range(count)))


def _axes(part: Operand, sizes: tuple[int, ...] | None, axes: Any) -> tuple[int, ...]:
    ndim = part.ndim or 0
    if axes is None:
        axes = range(ndim) if sizes is None else range(-len(sizes), 0)
    return tuple(axis_of(axis, ndim) for axis in axes)


@shaped(fft.fftshift, fft.ifftshift)
def _shift(x: Sizes, axes: Any = None) -> Sizes:
    if axes is not None:
        for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
            axis_of(axis, len(x))
    return x
