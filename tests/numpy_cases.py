"""Calls of NumPy functions, used to compare what the rules say and what a graph computes with NumPy itself.

Sizes are 5 and 7 where a name may stand for them (`n`, `m`), so that a test can make an array symbolic by its sizes.
What has to stay concrete in a graph (axes, sections, indices) is a Python object; what a graph may compute is an array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

rng = np.random.default_rng(7)


@dataclass(frozen=True)
class Case:
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    known: bool = True  # whether the rule has to know dtype and shape when it knows those of the arguments

    @property
    def id(self) -> str:
        def show(x: Any) -> str:
            if isinstance(x, np.ndarray):
                return f"{x.dtype.str[1:]}{list(x.shape)}".replace(" ", "")
            if isinstance(x, (list, tuple)):
                return "(" + ",".join(map(show, x)) + ")"
            return getattr(x, "__name__", None) or repr(x)

        name = getattr(self.func, "__name__", None) or repr(self.func)
        texts = [show(arg) for arg in self.args] + [f"{key}={show(arg)}" for key, arg in self.kwargs.items()]
        return f"{name}({','.join(texts)})"


cases: list[Case] = []


def case(func: Any, *args: Any, **kwargs: Any) -> None:
    cases.append(Case(func, args, kwargs))


def loose(func: Any, *args: Any, **kwargs: Any) -> None:
    """A call whose result depends on values, so that the rule leaves parts open."""
    cases.append(Case(func, args, kwargs, known=False))


def f(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return (rng.random(shape) * 4 + 0.5).astype(dtype)


def i(*shape: int, dtype: Any = np.int64, high: int = 5) -> np.ndarray:
    return rng.integers(0, high, shape).astype(dtype)


def c(*shape: int) -> np.ndarray:
    return f(*shape) + 1j * f(*shape)


def b(*shape: int) -> np.ndarray:
    return rng.random(shape) < 0.5


def spd(n: int, *front: int) -> np.ndarray:
    a = f(*front, n, n)
    return a @ a.swapaxes(-1, -2) + n * np.eye(n)


A, V, I5, B = f(5, 7), f(5), i(5, 7), b(5, 7)
F4, I2 = f(5, 7, dtype=np.float32), i(5, 7, dtype=np.int16)

# --- ufuncs
for u in (np.sin, np.exp, np.negative, np.abs, np.sqrt, np.isfinite, np.sign, np.floor, np.square, np.conj, np.rint):
    for x in (A, F4, I2, c(5, 7)):
        if not (x.dtype.kind == "c" and u is np.floor):
            case(u, x)
for u in (
    np.add,
    np.subtract,
    np.multiply,
    np.divide,
    np.power,
    np.maximum,
    np.less,
    np.equal,
    np.logical_and,
    np.hypot,
):
    case(u, A, F4)
    case(u, F4, I2 + np.int16(1))
    case(u, A, f(7))
    case(u, f(5, 1), 2)
    case(u, F4, 2.5)
    case(u, np.float32(2), A)
case(np.add, i(5, dtype=np.int8), 3)
case(np.add, i(5, dtype=np.uint8), i(5, dtype=np.int8))
case(np.left_shift, I5, 2)
case(np.bitwise_and, B, B)
case(np.add, A, f(5, 1), dtype=np.float32, casting="same_kind")
case(np.add, I2, I2, dtype=np.float64)
case(np.multiply, A, A, where=True)
case(np.frexp, A)
case(np.modf, A)
case(np.divmod, A, 2.0)
case(np.divmod, I5, 3)
case(np.matmul, f(5, 7), f(7, 3))
case(np.matmul, f(7), f(7, 3))
case(np.matmul, f(5, 7), f(7))
case(np.matmul, f(7), f(7))
case(np.matmul, f(2, 5, 7), f(1, 7, 3))
case(np.matmul, I2, i(7, 2, dtype=np.int8))
case(np.vecdot, f(5, 7), f(7))
case(np.vecdot, f(7, 5), f(7, 5), axis=0)
case(np.add.reduce, A)
case(np.add.reduce, I2, axis=(0, 1))
case(np.multiply.reduce, A, axis=1, keepdims=True)
case(np.maximum.reduce, I2, axis=None)
case(np.logical_or.reduce, A)
case(np.add.accumulate, I2, axis=1)
case(np.add.reduceat, A, [0, 2, 3], axis=0)
case(np.multiply.outer, V, f(7, 2))
case(np.subtract.outer, V, 3)

# --- reductions
for r in (
    np.sum,
    np.prod,
    np.mean,
    np.std,
    np.var,
    np.max,
    np.min,
    np.ptp,
    np.nansum,
    np.nanmean,
    np.nanmax,
    np.nanstd,
):
    for x in (A, F4, I2):
        case(r, x)
        case(r, x, axis=0)
        case(r, x, axis=-1, keepdims=True)
for r in (np.sum, np.prod, np.mean, np.any, np.all, np.max, np.median):
    case(r, f(2, 5, 7), axis=(0, 2))
    case(r, f(2, 5, 7), axis=(0, -1), keepdims=True)
for r in (np.sum, np.mean, np.std):
    case(r, F4, dtype=np.float64)
    case(r, A, axis=1, where=B)
case(np.sum, B)
case(np.mean, B)
case(np.mean, f(5, dtype=np.float16))
case(np.sum, A, initial=3)
case(np.max, A, axis=0, initial=0.0, where=B)
case(np.amax, A, 0)
for r in (np.any, np.all, np.count_nonzero, np.argmax, np.argmin):
    case(r, A)
    case(r, A, axis=1)
case(np.argmax, A, axis=0, keepdims=True)
case(np.nanargmin, A, axis=0)
for r in (np.median, np.nanmedian):
    case(r, A)
    case(r, I2, axis=0)
    case(r, F4, axis=1, keepdims=True)
for r in (np.quantile, np.nanquantile):
    case(r, A, 0.3)
    case(r, A, [0.1, 0.5], axis=0)
    case(r, F4, 0.5, axis=1, keepdims=True)
    case(r, F4, f(3) / 8, axis=1)
    case(r, I2, 0.5, method="lower")
case(np.percentile, A, 30)
case(np.percentile, F4, [30, 40.0], axis=1)
case(np.average, A)
case(np.average, I2, axis=0, weights=i(5) + 1)
case(np.average, A, axis=1, returned=True)
for r in (np.cumsum, np.cumprod, np.nancumsum):
    case(r, A)
    case(r, I2, axis=1)
    case(r, F4, axis=0, dtype=np.float64)
if hasattr(np, "cumulative_sum"):
    case(np.cumulative_sum, A, axis=1)
    case(np.cumulative_sum, I2, axis=0, include_initial=True)
loose(np.cov, A)
case(np.cov, V)
case(np.corrcoef, f(2, 5))
case(np.cov, f(2, 5), rowvar=False)
loose(np.cov, V, V)

# --- shape
case(np.reshape, A, (7, 5))
case(np.reshape, A, -1)
case(np.reshape, A, (-1, 7))
case(np.reshape, f(5, 4), (-1, 2))
case(np.reshape, f(5, 7, 2), (5, -1))
for s in (np.ravel, np.transpose, np.squeeze, np.flip, np.fliplr, np.flipud, np.rot90, np.copy):
    case(s, A)
case(np.transpose, f(5, 7, 2), (2, 0, 1))
case(np.permute_dims, f(5, 7, 2), (-1, 0, 1))
case(np.matrix_transpose, f(2, 5, 7))
case(np.moveaxis, f(2, 5, 7), 0, -1)
case(np.moveaxis, f(2, 5, 7), (0, 1), (-1, 0))
case(np.rollaxis, f(2, 5, 7), 2)
case(np.rollaxis, f(2, 5, 7), 0, 3)
case(np.swapaxes, f(2, 5, 7), 0, -1)
case(np.expand_dims, A, 1)
case(np.expand_dims, A, (0, -1))
case(np.squeeze, f(1, 5, 1))
case(np.squeeze, f(1, 5, 1), axis=0)
case(np.broadcast_to, V, (7, 5))
case(np.broadcast_arrays, V, f(7, 1))
for s in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    for x in (np.float64(3), V, A, f(2, 5, 7)):
        case(s, np.asarray(x))
case(np.atleast_2d, V, A)
case(np.flip, A, axis=(0, 1))
case(np.roll, A, 2)
case(np.roll, A, (1, 2), axis=(0, 1))
case(np.rot90, f(5, 7, 2), 2, (0, 2))
case(np.rot90, f(5, 7, 2), axes=(1, 2))
case(np.resize, V, (3, 4))
case(np.lib.stride_tricks.sliding_window_view, A, (2, 3))
case(np.lib.stride_tricks.sliding_window_view, A, 3, axis=1)

# --- joining and splitting
case(np.concatenate, [A, F4])
case(np.concatenate, (A, f(5, 2)), axis=1)
case(np.concatenate, (A, V), axis=None)
case(np.concatenate, [I2, I2], dtype=np.float32)
case(np.concatenate, f(3, 5))
case(np.stack, [A, A, F4], axis=1)
case(np.stack, (V, V), -1)
for j in (np.vstack, np.hstack, np.dstack, np.column_stack):
    case(j, (V, V))
    case(j, [A, F4])
case(np.column_stack, (V, A))
case(np.block, [[A, A], [A, A]])
case(np.block, [V, f(2)])
case(np.append, A, V)
case(np.append, A, f(1, 7), axis=0)
case(np.tile, A, 2)
case(np.tile, V, (2, 3))
case(np.repeat, A, 2)
case(np.repeat, A, 3, axis=0)
case(np.repeat, V, [1, 2, 0, 1, 3])
loose(np.repeat, V, i(5))
case(np.pad, A, 2)
case(np.pad, A, ((1, 2), (0, 3)), mode="edge")
case(np.insert, V, 1, 3.5)
case(np.insert, A, 1, f(7), axis=0)
case(np.insert, A, [1, 2], 0, axis=1)
case(np.insert, V, 2, f(3))
case(np.delete, A, 1, axis=0)
case(np.delete, V, [0, 1])
case(np.delete, V, slice(0, 2))
case(np.split, f(6), 3)
case(np.split, A, [1, 3], axis=1)
case(np.split, A, [-2])
case(np.array_split, A, 3)
case(np.hsplit, f(5, 4), 2)
case(np.vsplit, f(4, 5), 2)
case(np.dsplit, f(5, 7, 2), 2)
if hasattr(np, "unstack"):
    case(np.unstack, f(3, 5), axis=0)

# --- selection
case(np.where, B, A, 0)
case(np.where, B, F4, 1.5)
case(np.where, b(7), I2, np.int8(1))
loose(np.where, B)
loose(np.nonzero, A)
loose(np.argwhere, A)
loose(np.flatnonzero, A)
case(np.take, A, [0, 2], axis=1)
case(np.take, A, i(2, 3))
case(np.take, V, 3)
case(np.take_along_axis, A, i(5, 2), axis=1)
case(np.take_along_axis, A, i(1, 7), 0)
case(np.choose, i(5, high=2), (V, f(5, dtype=np.float32)))
case(np.select, [B, b(5, 7)], [A, F4], default=1)
case(np.piecewise, A, [B, np.ones((5, 7), bool)], [1, 2])
case(np.compress, [True, False, True], A, axis=0)
loose(np.compress, b(5), A, axis=0)
loose(np.extract, B, A)
loose(np.trim_zeros, i(7))
case(np.searchsorted, np.sort(V), f(2, 3))
case(np.searchsorted, np.sort(V), 0.5)
case(np.diagonal, A)
case(np.diagonal, f(2, 5, 7), 1, 1, 2)
case(np.diag, V, 1)
case(np.diag, A, -1)
case(np.diagflat, f(2, 3))
case(np.tril, A)
case(np.triu, V)
case(np.ix_, i(5), i(7))
case(np.unravel_index, i(5), (3, 4))
case(np.ravel_multi_index, (i(5, high=3), i(5, high=3)), (3, 4))
case(np.packbits, b(5, 7), axis=1)
case(np.packbits, b(5, 7))
case(np.unpackbits, i(5, dtype=np.uint8))
case(np.unpackbits, i(5, 2, dtype=np.uint8), axis=0, count=-1)
case(np.clip, A, 0.5, 1.5)
case(np.clip, I2, 0, None)
case(np.clip, F4, A, 9)

# --- products
for x, y in (
    (A, f(7, 3)),
    (V, V),
    (A, f(7)),
    (f(2, 5, 7), f(3, 7, 2)),
    (A, 3.0),
    (F4, f(7, dtype=np.float32)),
    (I2, i(7, 2)),
):
    case(np.dot, x, y)
case(np.inner, A, f(3, 7))
case(np.inner, A, f(7))
case(np.outer, A, V)
case(np.vdot, c(5), V)
case(np.tensordot, f(2, 5, 7), f(5, 7, 3))
case(np.tensordot, f(2, 5), f(5, 2), axes=([0, 1], [1, 0]))
case(np.tensordot, V, V, axes=0)
case(np.kron, A, f(2, 2))
case(np.kron, V, f(2, 2))
case(np.cross, f(5, 3), f(3))
case(np.cross, f(3, 5), f(3, 5), axis=0)
case(np.trace, A)
case(np.trace, f(2, 5, 7, dtype=np.int16), 1, 1, 2)
case(np.einsum, "ij,jk->ik", A, f(7, 3))
case(np.einsum, "ij,jk", A, f(7, 3, dtype=np.float32))
case(np.einsum, "ii", f(5, 5))
case(np.einsum, "...j,j->...", f(2, 5, 7), f(7))
case(np.einsum, "i...->...i", A)
case(np.einsum, A, [0, 1], f(7), [1], [0])

# --- linear algebra
S = spd(5)
for g in (np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.slogdet, np.linalg.eigvalsh, np.linalg.eigh):
    case(g, S)
    case(g, spd(3, 2).astype(np.float32))
loose(np.linalg.eig, S)
loose(np.linalg.eigvals, S)
case(np.linalg.eig, S + 0j)
case(np.linalg.qr, A)
case(np.linalg.qr, f(7, 5), mode="complete")
case(np.linalg.qr, A, mode="r")
case(np.linalg.qr, A, mode="raw")
case(np.linalg.svd, A)
case(np.linalg.svd, f(2, 7, 5), full_matrices=False)
case(np.linalg.svd, A, compute_uv=False)
case(np.linalg.svdvals, A)
case(np.linalg.pinv, A)
case(np.linalg.matrix_rank, A)
case(np.linalg.matrix_power, S, 3)
case(np.linalg.cond, S)
case(np.linalg.solve, S, V)
case(np.linalg.solve, S, f(5, 2))
case(np.linalg.solve, spd(5, 2), f(5, 3))
loose(np.linalg.lstsq, f(7, 5), f(7))
case(np.linalg.tensorinv, f(2, 3, 6).reshape(2, 3, 2, 3))
case(np.linalg.tensorsolve, f(2, 3, 6), f(2, 3))
case(np.linalg.multi_dot, [A, f(7, 3), f(3)])
case(np.linalg.multi_dot, [V, f(5, 7), f(7, 2)])
case(np.linalg.norm, A)
case(np.linalg.norm, V, 1)
case(np.linalg.norm, F4, axis=1)
case(np.linalg.norm, f(2, 5, 7), "nuc", axis=(1, 2))
case(np.linalg.matrix_norm, f(2, 5, 7))
case(np.linalg.vector_norm, F4, axis=0, keepdims=True)
case(np.linalg.matmul, A, f(7, 3))
case(np.linalg.vecdot, A, f(7))
case(np.linalg.outer, V, f(7))
case(np.linalg.cross, f(5, 3), f(5, 3))
case(np.linalg.trace, f(2, 5, 5))
case(np.linalg.diagonal, f(2, 5, 7), offset=1)
case(np.linalg.tensordot, A, f(7, 2), axes=1)
case(np.linalg.matrix_transpose, A)

# --- transforms
for t in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft):
    x = A if t not in (np.fft.irfft, np.fft.hfft) else c(5, 7)
    case(t, x)
    case(t, x.astype(np.complex64 if x.dtype.kind == "c" else np.float32), 8, axis=0)
for t in (np.fft.fft2, np.fft.ifftn, np.fft.rfft2, np.fft.rfftn, np.fft.irfftn):
    case(t, f(2, 5, 7))
    case(t, f(2, 5, 7), (4, 6), axes=(0, 1))
case(np.fft.fftshift, A)
case(np.fft.ifftshift, V, axes=0)

# --- order and sets
for o in (np.sort, np.argsort):
    case(o, A)
    case(o, I2, axis=0)
    case(o, A, axis=None)
case(np.partition, A, 3)
case(np.argpartition, A, 2, axis=0)
case(np.lexsort, (V, V))
case(np.sort_complex, V)
loose(np.unique, I5)
loose(np.unique, I5, return_index=True, return_counts=True)
loose(np.unique, I5, return_inverse=True)
loose(np.unique, I5, axis=0)
loose(np.unique_all, I5)
loose(np.unique_counts, I5)
loose(np.unique_inverse, I5)
loose(np.unique_values, I5)
loose(np.intersect1d, i(5), i(7))
loose(np.intersect1d, i(5), i(7), return_indices=True)
loose(np.setdiff1d, i(5), i(7))
loose(np.setxor1d, i(5), f(7))
loose(np.union1d, i(5), f(7))
case(np.isin, I5, [1, 2])

# --- creation
for like in (np.zeros_like, np.ones_like):
    case(like, A)
    case(like, I2, dtype=np.float32)
    case(like, A, shape=(2, 3))
case(np.full_like, A, 3)
case(np.full_like, I2, 2.5, dtype=float)
case(np.linspace, V, f(5), 4)
case(np.linspace, V, 3, num=4, axis=-1)
case(np.linspace, np.float32(1), V, 4, retstep=True)
case(np.logspace, V, 2, 4)
case(np.geomspace, V, 9.0, 4)
case(np.meshgrid, V, f(7))
case(np.meshgrid, V, f(7), f(2), indexing="ij", sparse=True)
case(np.vander, V)
case(np.vander, i(5), 3)
if hasattr(np, "astype"):
    case(np.astype, A, np.int32)

# --- elementwise
for e in (np.real, np.imag, np.iscomplex, np.isreal, np.angle):
    case(e, A)
    case(e, c(5, 7))
for e in (np.fix, np.isposinf, np.isneginf, np.sinc, np.i0, np.nan_to_num, np.unwrap):
    case(e, A)
    if e is not np.i0:
        case(e, F4)
case(np.sinc, I2)
case(np.nan_to_num, I2)
case(np.round, A, 1)
case(np.round, I2)
case(np.real_if_close, A)
loose(np.real_if_close, c(5))
case(np.isclose, A, f(7))
case(np.allclose, A, A)
case(np.array_equal, A, A)
case(np.array_equiv, A, V)

# --- neighbours
loose(np.diff, A)
loose(np.diff, I2, 2, axis=0)
loose(np.diff, A, prepend=0.0)
loose(np.diff, B)
case(np.diff, A, axis=0, append=f(2, 7))
loose(np.ediff1d, A)
case(np.ediff1d, A, to_end=[1.0, 2.0])
case(np.gradient, A)
case(np.gradient, V)
case(np.gradient, F4, 0.5)
case(np.gradient, I2, axis=0)
loose(np.gradient, V, np.cumsum(V))
case(np.trapezoid, A)
case(np.trapezoid, A, f(7))
case(np.trapezoid, F4, dx=0.5, axis=0)
case(np.convolve, V, f(3))
case(np.convolve, V, f(7), "same")
case(np.correlate, f(7), V)
case(np.correlate, V, f(7), "full")
case(np.interp, f(2, 3), np.sort(V), V)
case(np.interp, 0.3, np.sort(V), c(5))
case(np.histogram, A)
case(np.histogram, A, [0.0, 1.0, 3.0], density=True)
loose(np.histogram, A, "auto")
case(np.histogram, I2, 4, range=(0, 3))
case(np.histogram_bin_edges, A, 5)
case(np.histogram2d, V, f(5), 4)
loose(np.histogramdd, f(7, 3), 4)
loose(np.bincount, i(7))
loose(np.bincount, i(5), weights=V)
case(np.digitize, A, [1.0, 2.0])

# --- polynomials
case(np.polyval, f(3), A)
case(np.polyval, i(3), 2)
case(np.polyadd, f(3), f(4))
loose(np.polymul, f(3), f(4))
loose(np.polydiv, f(4), f(2))
loose(np.polyder, f(4))
loose(np.polyint, f(4))
loose(np.roots, f(4))
loose(np.poly, f(4))
case(np.polyfit, V, f(5), 2)
loose(np.polyfit, V, f(5, 2), 1, full=True)
