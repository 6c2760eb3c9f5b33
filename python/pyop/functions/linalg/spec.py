"""Infer ``numpy.linalg``: stacks of matrices, with the errors that do not depend on values."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy import linalg

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..forms import each
from ..operand import INTP, DType, Operand, Sample, Shape, one, operand, probe, probe_all
from ..products.spec import contracted
from ..shape import axes_of, axis_of, broadcast, dropped, full, merge, prod, reduced, same


def _matrix(x: Any) -> Operand:
    part = operand(x)
    if part.ndim is not None and part.ndim < 2:
        raise linalg.LinAlgError(f"{part.ndim}-dimensional array given. Array must be at least two-dimensional")
    return part


def _square(x: Any) -> Operand:
    part = _matrix(x)
    if part.shape is not None and same(part.shape[-1], part.shape[-2]) is False:
        raise linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return part


def _result(func: Any, part: Operand, *args: Any) -> DType | None:
    return probe(func, one(part, 2), *args)


@each(linalg.inv, linalg.cholesky)
def _like_matrix(func: Any, a: Any, /, **options: Any) -> Spec:
    part = _square(a)
    return Spec(_result(func, part), part.shape)


@rule(linalg.matrix_power)
def _matrix_power(a: Any, n: Any) -> Spec:
    part = _square(a)
    if isinstance(n, Spec):
        return Spec(None, part.shape)
    power = operator.index(n)
    return Spec(_result(linalg.matrix_power, part, max(-1, min(power, 4))), part.shape)


@rule(linalg.det)
def _det(a: Any) -> Spec:
    part = _square(a)
    return Spec(_result(linalg.det, part), _front(part, 2))


def _front(part: Operand, drop: int) -> Shape:
    return None if part.shape is None else part.shape[:-drop]


def _outputs(func: Any, part: Operand, count: int, *args: Any, **kwargs: Any) -> tuple[DType | None, ...]:
    return probe_all(func, one(part, 2), *args, count=count, **kwargs)


def _named(func: Any, specs: tuple[Spec, ...]) -> Any:
    """Return the specs in the named tuple of the function's results."""
    return type(func(np.eye(1)))(*specs)


@rule(linalg.slogdet)
def _slogdet(a: Any) -> Any:
    part = _square(a)
    shape = _front(part, 2)
    return _named(linalg.slogdet, tuple(Spec(dtype, shape) for dtype in _outputs(linalg.slogdet, part, 2)))


def _real_eigen(dtype: DType | None) -> DType | None:
    # Real matrices may have complex eigenvalues: the dtype depends on the values, unless it is complex already.
    return dtype if dtype is not None and dtype.kind == "c" else None


@each(linalg.eig, linalg.eigh)
def _eig(func: Any, a: Any, UPLO: Any = "L") -> Any:
    part = _square(a)
    dtypes: Any = _outputs(func, part, 2)
    values, vectors = dtypes if func is linalg.eigh else map(_real_eigen, dtypes)
    return _named(func, (Spec(values, _front(part, 1)), Spec(vectors, part.shape)))


@each(linalg.eigvals, linalg.eigvalsh)
def _eigvals(func: Any, a: Any, UPLO: Any = "L") -> Spec:
    part = _square(a)
    dtype = _result(func, part)
    return Spec(dtype if func is linalg.eigvalsh else _real_eigen(dtype), _front(part, 1))


def _smaller(m: Extent, n: Extent) -> Extent:
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    return m if same(m, n) else None


@rule(linalg.qr)
def _qr(a: Any, mode: Any = "reduced") -> Any:
    part = _matrix(a)
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    if mode == "r":
        dtypes: tuple[DType | None, ...] = (_result(linalg.qr, part, "r"),)
    else:
        dtypes = _outputs(linalg.qr, part, 2, mode)
    if part.shape is None:
        specs = [Spec(dtype, None) for dtype in dtypes]
    else:
        *front, m, n = part.shape
        k = _smaller(m, n)
        shapes: dict[str, tuple[tuple[Extent, ...], ...]] = {
            "reduced": ((m, k), (k, n)),
            "complete": ((m, m), (m, n)),
            "r": ((k, n),),
            "raw": ((n, m), (k,)),
        }
        specs = [Spec(dtype, (*front, *shape)) for dtype, shape in zip(dtypes, shapes[mode], strict=True)]
    if mode == "r":
        return specs[0]
    return tuple(specs) if mode == "raw" else _named(linalg.qr, tuple(specs))


@rule(linalg.svd)
def _svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    part = _square(a) if hermitian else _matrix(a)
    u_dtype, s_dtype, v_dtype = _outputs(linalg.svd, part, 3)
    if part.shape is None:
        s = Spec(s_dtype, None)
        return _named(linalg.svd, (Spec(u_dtype, None), s, Spec(v_dtype, None))) if compute_uv else s
    *front, m, n = part.shape
    k = _smaller(m, n)
    s = Spec(s_dtype, (*front, k))
    if not compute_uv:
        return s
    left, right = (m, n) if full_matrices else (k, k)
    return _named(linalg.svd, (Spec(u_dtype, (*front, m, left)), s, Spec(v_dtype, (*front, right, n))))


@rule("linalg.svdvals")
def _svdvals(x: Any, /) -> Spec:
    spec: Spec = _svd(x, compute_uv=False)
    return spec


@rule(linalg.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Spec:
    part = _matrix(a)
    shape = None if part.shape is None else (*part.shape[:-2], part.shape[-1], part.shape[-2])
    core = None if part.shape is None else part.shape[-2:]
    if full(core):
        return Spec(_result(linalg.pinv, part), shape)
    # Of nothing it is nothing, of the same dtype.
    same_anyway = core is not None and 0 in core
    return Spec(part.dtype if same_anyway or (part.dtype and part.dtype.char in "fdFD") else None, shape)


@rule(linalg.matrix_rank)
def _matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Spec:
    part = operand(A)
    return Spec(INTP, () if part.ndim is not None and part.ndim < 2 else _front(part, 2))


@rule(linalg.cond)
def _cond(x: Any, p: Any = None) -> Spec:
    part = _matrix(x) if p in (None, 2, -2) else _square(x)
    return Spec(probe(linalg.cond, one(part, 2), p), _front(part, 2))


@rule(linalg.solve)
def _solve(a: Any, b: Any) -> Spec:
    left, right = _square(a), operand(b)
    dtype = probe(linalg.solve, one(left, 2), one(right, 1))
    if left.shape is None or right.shape is None:
        return Spec(dtype, None)
    size = left.shape[-1] if left.shape[-1] is not None else left.shape[-2]
    what = "solve: a mismatch between the size of the matrix and the right-hand side"
    if len(right.shape) == 1:  # NumPy 2: only a vector is a vector
        merge(size, right.shape[0], what)
        return Spec(dtype, (*left.shape[:-2], merge(size, right.shape[0], what)))
    if not right.shape:
        raise ValueError("solve: Input operand 1 does not have enough dimensions (has 0, gufunc core requires 1)")
    rows = merge(size, right.shape[-2], what)
    front = broadcast(left.shape[:-2], right.shape[:-2])
    return Spec(dtype, None if front is None else (*front, rows, right.shape[-1]))


@rule(linalg.lstsq)
def _lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Spec, Spec, Spec, Spec]:
    left, right = operand(a), operand(b)
    for part, what in ((left, (2,)), (right, (1, 2))):
        if part.ndim is not None and part.ndim not in what:
            raise linalg.LinAlgError(f"{part.ndim}-dimensional array given. Array must be two-dimensional")
    # Which dtype the rank has is the routine's affair; the residuals are empty when the rank is not full.
    x, residuals, rank, singular = probe_all(linalg.lstsq, one(left, 2), one(right), count=4)
    if left.shape is None or right.shape is None:
        return Spec(x, None), Spec(residuals, (None,)), Spec(rank, ()), Spec(singular, (None,))
    m, n = left.shape
    if same(m, right.shape[0]) is False:
        raise linalg.LinAlgError("Incompatible dimensions")
    return (
        Spec(x, (n, *right.shape[1:])),
        Spec(residuals, (None,)),
        Spec(rank, ()),
        Spec(singular, (_smaller(m, n),)),
    )


@rule(linalg.tensorinv)
def _tensorinv(a: Any, ind: Any = 2) -> Spec:
    part = operand(a)
    if operator.index(ind) <= 0:
        raise ValueError("Invalid ind argument.")
    shape = None if part.shape is None else part.shape[ind:] + part.shape[:ind]
    if part.shape is not None and same(prod(part.shape[:ind]), prod(part.shape[ind:])) is False:
        raise linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return Spec(_result(linalg.inv, part), shape)


@rule(linalg.tensorsolve)
def _tensorsolve(a: Any, b: Any, axes: Any = None) -> Spec:
    left, right = operand(a), operand(b)
    dtype = probe(linalg.solve, one(left, 2), one(right, 1))
    if left.shape is None or right.shape is None:
        return Spec(dtype, None)
    shape = left.shape
    if axes is not None:
        moved = [axis_of(k, len(shape)) for k in axes]
        shape = dropped(shape, *moved) + tuple(shape[k] for k in moved)
    return Spec(dtype, shape[len(right.shape) :])


@rule(linalg.multi_dot)
def _multi_dot(arrays: Any, *, out: Any = None) -> Spec:
    if isinstance(arrays, Spec):
        return Spec()
    parts = [operand(item) for item in arrays]
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    for i, part in enumerate(parts):
        inner = 0 < i < len(parts) - 1
        if part.ndim is not None and part.ndim not in ((2,) if inner else (1, 2)):
            raise linalg.LinAlgError(f"{part.ndim}-dimensional array given. Array must be two-dimensional")
    dtype = probe(linalg.multi_dot, tuple(Sample(part.dtype, (1, 1)) for part in parts))
    shape = parts[0].shape
    for part in parts[1:]:
        shape = contracted(shape, part.shape, -2, "np.linalg.multi_dot")
    return Spec(dtype, shape)


def _norm_order(ord: Any) -> Any:
    return None if ord is None or isinstance(ord, Spec) else ord


@rule(linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Spec:
    part = operand(x)
    flat = axis is None and ord is None
    if part.ndim is None:
        return Spec(None, () if axis is None and not keepdims else None)
    axes = axes_of(axis, part.ndim)
    if not flat and len(axes) not in (1, 2):
        raise ValueError("Improper number of dimensions to norm.")
    dtype = probe(linalg.norm, one(part, 1 if flat else len(axes)), _norm_order(ord))
    return Spec(dtype, reduced(part.shape, axis, keepdims))


@rule("linalg.matrix_norm")
def _matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Spec:
    part = operand(x)
    return Spec(probe(linalg.norm, one(part, 2), _norm_order(ord)), reduced(part.shape, (-2, -1), keepdims))


@rule("linalg.vector_norm")
def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Spec:
    part = operand(x)
    return Spec(probe(linalg.norm, one(part), _norm_order(ord)), reduced(part.shape, axis, keepdims))
