"""The same elements in another shape or order, joined or split."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.dims import Dim
from ...onnx.standard import standard
from ...onnx.standard.emitter import Emitter, NotStandard, Operand
from ..elementwise.onnx import same_dtype

__all__ = ["axis_of", "reshape_to"]


def axis_of(axis: Any, ndim: int) -> int:
    try:
        return int(axis) + ndim if int(axis) < 0 else int(axis)
    except TypeError:
        raise NotStandard(f"axis={axis!r:.80}") from None


def reshape_to(e: Emitter, x: Operand, shape: Any) -> Operand:
    """Reshape, zeros among the sizes meaning zero."""
    return e.add("Reshape", x, e.ints(shape), allowzero=1 if not all(isinstance(s, int) and s for s in shape) else None)


@standard(np.reshape)
def _reshape(
    e: Emitter, a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None
) -> Operand:
    if order != "C":
        raise NotStandard(f"order={order!r}")
    wanted = shape if shape is not None else newshape
    sizes = tuple(wanted) if isinstance(wanted, tuple | list) else (wanted,)
    if -1 in [size for size in sizes if isinstance(size, int)] and any(not isinstance(s, int) or s == 0 for s in sizes):
        sizes = tuple(sizes)
        if any(isinstance(s, int) and s == 0 for s in sizes):
            raise NotStandard("a size of zero beside -1")
        return e.add("Reshape", e.operand(a), e.ints(sizes))
    return reshape_to(e, e.operand(a), sizes)


@standard(np.ravel)
def _ravel(e: Emitter, a: Any, order: Any = "C") -> Operand:
    if order != "C":
        raise NotStandard(f"order={order!r}")
    return e.add("Reshape", e.operand(a), e.ints([-1]))


@standard(np.transpose)
def _transpose(e: Emitter, a: Any, axes: Any = None) -> Operand:
    x = e.operand(a)
    if axes is not None:
        axes = [axis_of(k, x.ndim) for k in axes]
    return e.add("Transpose", x, perm=axes if axes is not None else list(range(x.ndim))[::-1])


@standard(getattr(np, "matrix_transpose", None))
def _matrix_transpose(e: Emitter, x: Any, /) -> Operand:
    x = e.operand(x)
    return _permuted(e, x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def _permuted(e: Emitter, x: Operand, order: list[int]) -> Operand:
    return e.add("Transpose", x, perm=order).with_rank(len(order))


@standard(np.swapaxes)
def _swapaxes(e: Emitter, a: Any, axis1: Any, axis2: Any) -> Operand:
    x = e.operand(a)
    order = list(range(x.ndim))
    one, two = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[one], order[two] = order[two], order[one]
    return _permuted(e, x, order)


@standard(np.moveaxis)
def _moveaxis(e: Emitter, a: Any, source: Any, destination: Any) -> Operand:
    x = e.operand(a)
    sources = [axis_of(k, x.ndim) for k in (source if isinstance(source, tuple | list) else (source,))]
    targets = [axis_of(k, x.ndim) for k in (destination if isinstance(destination, tuple | list) else (destination,))]
    order = [k for k in range(x.ndim) if k not in sources]
    for target, k in sorted(zip(targets, sources, strict=True)):
        order.insert(target, k)
    return _permuted(e, x, order)


@standard(np.expand_dims)
def _expand_dims(e: Emitter, a: Any, axis: Any) -> Operand:
    axes = list(axis) if isinstance(axis, tuple | list) else [axis]
    return e.add("Unsqueeze", e.operand(a), e.ints(axes))


@standard(np.squeeze)
def _squeeze(e: Emitter, a: Any, axis: Any = None) -> Operand:
    x = e.operand(a)
    if axis is None:
        if x.shape is None or not all(isinstance(size, int) for size in x.shape):
            raise NotStandard("squeeze where a size is not known")
        axis = tuple(k for k, size in enumerate(x.shape) if size == 1)
        if not axis:
            return x
    return e.add("Squeeze", x, e.ints(list(axis) if isinstance(axis, tuple) else [axis]))


@standard(np.broadcast_to)
def _broadcast_to(e: Emitter, array: Any, shape: Any, subok: Any = False) -> Operand:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    return e.add("Expand", e.operand(array), e.ints(sizes))


@standard(np.concatenate)
def _concatenate(e: Emitter, arrays: Any, /, axis: Any = 0, out: None = None) -> Operand:
    if not isinstance(arrays, tuple | list):
        raise NotStandard("concatenate of one array")
    if axis is None:
        xs = [e.add("Reshape", x, e.ints([-1])) for x in same_dtype(e, arrays)]
        return e.add("Concat", *xs, axis=0)
    return e.add("Concat", *same_dtype(e, arrays), axis=int(axis))


@standard(np.stack)
def _stack(e: Emitter, arrays: Any, axis: Any = 0, out: None = None) -> Operand:
    if not isinstance(arrays, tuple | list):
        raise NotStandard("stack of one array")
    axes = e.ints([axis])
    return e.add("Concat", *(e.add("Unsqueeze", x, axes) for x in same_dtype(e, arrays)), axis=int(axis))


@standard(np.vstack)
def _vstack(e: Emitter, tup: Any) -> Operand:
    if not isinstance(tup, tuple | list):
        raise NotStandard("vstack of one array")
    return e.add("Concat", *(_at_least_2d(e, x) for x in same_dtype(e, tup)), axis=0)


def _at_least_2d(e: Emitter, x: Operand) -> Operand:
    return x if x.ndim >= 2 else e.add("Reshape", x, e.ints([1, -1]))


@standard(np.hstack)
def _hstack(e: Emitter, tup: Any) -> Operand:
    if not isinstance(tup, tuple | list):
        raise NotStandard("hstack of one array")
    xs = [x if x.ndim else e.add("Reshape", x, e.ints([1])) for x in same_dtype(e, tup)]
    return e.add("Concat", *xs, axis=0 if xs and (xs[0].shape is None or len(xs[0].shape) == 1) else 1)


@standard(np.array_split)
def _array_split(e: Emitter, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Operand]:
    return _pieces(e, ary, None, axis)


@standard(np.hsplit)
def _hsplit(e: Emitter, ary: Any, indices_or_sections: Any) -> list[Operand]:
    return _pieces(e, ary, indices_or_sections, int(e.operand(ary).ndim > 1))


@standard(np.vsplit)
def _vsplit(e: Emitter, ary: Any, indices_or_sections: Any) -> list[Operand]:
    return _pieces(e, ary, indices_or_sections, 0)


@standard(np.split)
def _split(e: Emitter, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Operand]:
    return _pieces(e, ary, indices_or_sections, axis)


def _pieces(e: Emitter, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Operand]:
    x = e.operand(ary)
    axis = axis_of(axis, x.ndim)
    count = len(e.outputs)
    size = None if x.shape is None else x.shape[axis]
    sizes = [None if out.shape is None else out.shape[axis] for out in e.outputs]
    if all(isinstance(s, int) for s in sizes) and isinstance(size, int) and count:
        return e.add_many("Split", count, x, e.ints(sizes), axis=axis)
    if isinstance(indices_or_sections, int) and count == indices_or_sections:
        whole = e.add("Shape", x, dtype=np.int64, start=axis, end=axis + 1)
        part = e.add("Div", whole, e.ints([count]))
        return e.add_many("Split", count, x, e.add("Concat", *[part] * count, axis=0), axis=axis)
    raise NotStandard("a split at places that are not known")


@standard(np.flip)
def _flip(e: Emitter, m: Any, axis: Any = None) -> Operand:
    x = e.operand(m)
    axes = (
        list(range(x.ndim))
        if axis is None
        else [axis_of(k, x.ndim) for k in (axis if isinstance(axis, tuple) else (axis,))]
    )
    if not axes:
        return x
    n = len(axes)
    return e.add("Slice", x, e.ints([-1] * n), e.ints([-(2**62)] * n), e.ints(axes), e.ints([-1] * n)).like(x)


@standard(np.fliplr)
def _fliplr(e: Emitter, m: Any) -> Operand:
    return _flip(e, m, 1)


@standard(np.flipud)
def _flipud(e: Emitter, m: Any) -> Operand:
    return _flip(e, m, 0)


@standard(np.rot90)
def _rot90(e: Emitter, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Operand:
    x = e.operand(m)
    if axes != (0, 1) or not isinstance(k, int) or x.ndim < 2:
        raise NotStandard("a rotation in another plane")
    turned = {0: lambda: x, 2: lambda: _flip(e, x, (0, 1))}
    if k % 2 == 0:
        return turned[k % 4]()
    other = _swapaxes(e, _flip(e, x, 1) if k % 4 == 1 else x, 0, 1)
    return other if k % 4 == 1 else _flip(e, other.like(x).with_rank(x.ndim), 1)


@standard(np.rollaxis)
def _rollaxis(e: Emitter, a: Any, axis: Any, start: Any = 0) -> Operand:
    x = e.operand(a)
    axis, start = axis_of(axis, x.ndim), start + x.ndim if start < 0 else start
    order = [k for k in range(x.ndim) if k != axis]
    order.insert(start - 1 if axis < start else start, axis)
    return _permuted(e, x, order)


@standard(np.tile)
def _tile(e: Emitter, A: Any, reps: Any) -> Operand:
    x = e.operand(A)
    counts = list(reps) if isinstance(reps, tuple | list) else [reps]
    if len(counts) > x.ndim:
        x = e.add("Unsqueeze", x, e.ints(list(range(len(counts) - x.ndim))))
    else:
        counts = [1] * (x.ndim - len(counts)) + counts
    return e.add("Tile", x, e.ints(counts))


def _filled(e: Emitter, a: Any, value: Any, dtype: Any, shape: Any) -> Operand:
    from onnx import helper

    from ...onnx.elements import code_of

    x = e.operand(a)
    kind = np.dtype(dtype) if dtype is not None else x.dtype
    if kind is None or kind.kind not in "biuf":
        raise NotStandard(f"an array of {kind}")
    if shape is not None:
        raise NotStandard("shape=")
    tensor = helper.make_tensor("value", code_of(kind), [1], np.full(1, value, kind))
    return e.add("ConstantOfShape", e.add("Shape", x, dtype=np.int64), dtype=kind, value=tensor)


@standard(np.zeros_like)
def _zeros_like(
    e: Emitter, a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None
) -> Operand:
    return _filled(e, a, 0, dtype, shape)


@standard(np.ones_like)
def _ones_like(
    e: Emitter, a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None
) -> Operand:
    return _filled(e, a, 1, dtype, shape)


@standard(np.full_like)
def _full_like(
    e: Emitter, a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None
) -> Operand:
    if isinstance(fill_value, Operand | Dim) or np.ndim(fill_value):
        raise NotStandard("a fill value that is an array")
    return _filled(e, a, fill_value, dtype, shape)
