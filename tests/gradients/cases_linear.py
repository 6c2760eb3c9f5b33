"""Products, linear algebra, Fourier transforms, order and numerics."""

from typing import Any

import numpy as np

from .case import A, Case, c, case, cases, f, fixed, group, named, only, s, spd, well

# --- products
group("products")
for x, y in (
    (s(5), s(5)),
    (s(5, 7), s(7)),
    (s(5), s(5, 7)),
    (s(5, 7), s(7, 3)),
    (s(2, 5, 7), s(7)),
    (s(5), s(2, 5, 7)),
    (s(2, 5, 7), s(7, 3)),
):
    case(np.matmul, x, y)
    if y.ndim < 3:
        case(np.dot, x, y)
for x, y in ((c(5), c(5)), (c(5, 7), c(7, 3)), (s(5, 7), c(7)), (s(2, 5, 7), c(2, 7, 3)), (s(1, 5, 7), s(4, 7, 3))):
    only(np.matmul, x, y)
case(np.dot, s(2, 5, 7), s(3, 7, 2))
case(np.dot, s(), s(5))
only(np.dot, s(7), s(3, 7, 2))
only(np.matmul, s(0, 7), s(7, 3))
case(np.inner, s(5, 7), s(3, 7))
case(np.inner, s(5), s(5))
only(np.inner, c(5), c(5))
case(np.outer, s(5), s(7))
only(np.outer, c(5), c(7))
only(np.outer, s(5, 2), s(7))
only(np.vdot, s(5), s(5))
only(np.vdot, c(5), c(5))
only(np.vecdot, c(5, 7), c(7))
only(np.vecdot, s(7, 5), s(7, 5), axis=0)
if hasattr(np, "matvec"):
    only(np.matvec, c(5, 7), c(7))
    only(np.vecmat, c(5), c(5, 7))
case(np.tensordot, s(5, 7), s(7, 5), axes=1)
case(np.tensordot, s(5, 7, 2), s(7, 5, 3), axes=([1, 0], [0, 1]))
only(np.tensordot, c(2, 5, 7), c(7, 3, 5), axes=((2, 1), (0, 2)))
only(np.tensordot, s(3), s(4), axes=0)
case(np.kron, s(2, 3), s(3, 2))
only(np.kron, s(3), s(2, 2))
only(np.cross, s(5, 3), s(5, 3))
only(np.cross, s(3), s(5, 3))
for text, *operands in (
    ("ij,jk->ik", s(5, 7), s(7, 3)),
    ("ij,jk", s(5, 7), s(7, 3)),
    ("ij->ji", s(5, 7)),
    ("ij->i", s(5, 7)),
    ("ij->", s(5, 7)),
    ("i,i->", s(5), s(5)),
    ("ii->i", s(5, 5)),
    ("ii->", s(5, 5)),
    ("iij,j->i", s(3, 3, 7), s(7)),
    ("bij,bjk,bk->bi", s(2, 5, 7), s(2, 7, 3), s(2, 3)),
    ("...ij,...jk->...ik", s(2, 5, 7), s(2, 7, 3)),
    ("i,j->ij", s(5), s(7)),
    ("ij,kj->", s(5, 7), s(3, 7)),
):
    cases.append(Case(np.einsum, (text, *operands), {}, "products", fixed="ii" in text, oracle="ii" not in text))
only(np.einsum, "ij,j->i", c(5, 7), c(7))
only(np.einsum, "...i,i->...", s(2, 5, 7), s(7))

# --- linear algebra
group("linalg")
for kind in (s, c):
    same = case if kind is s else only
    same(np.linalg.inv, well(4, 4, kind=kind))
    same(np.linalg.inv, well(2, 3, 3, kind=kind))
    same(np.linalg.det, well(4, 4, kind=kind))
    only(np.linalg.det, well(2, 3, 3, kind=kind))
    only(np.linalg.slogdet, well(3, 3, kind=kind))
    only(np.linalg.slogdet, well(2, 3, 3, kind=kind))
    same(np.linalg.solve, well(4, 4, kind=kind), kind(4))
    same(np.linalg.solve, well(4, 4, kind=kind), kind(4, 2))
    only(np.linalg.solve, well(2, 3, 3, kind=kind), kind(2, 3, 2))
    only(np.linalg.solve, well(2, 3, 3, kind=kind), kind(3))
    only(np.linalg.solve, well(3, 3, kind=kind), kind(2, 3, 2))
    only(np.linalg.pinv, kind(4, 3))
    only(np.linalg.pinv, kind(3, 4))
    only(np.linalg.matrix_power, well(3, 3, kind=kind), 3)
    only(np.linalg.matrix_power, well(3, 3, kind=kind), -2)
    only(np.linalg.norm, kind(5))
    only(np.linalg.norm, kind(5, 7))
    only(np.linalg.norm, kind(5, 7), axis=1)
    fixed(np.linalg.svd, kind(4, 3), compute_uv=False)
    fixed(np.linalg.svd, kind(3, 4), compute_uv=False)
    herm = lambda x: x + x.conj().swapaxes(-1, -2)
    named(f"cholesky {kind.__name__}", lambda x: np.linalg.cholesky((x + np.conj(x.mT)) / 2), spd(3, kind=kind))
    named(f"cholesky many {kind.__name__}", lambda x: np.linalg.cholesky((x + np.conj(x.mT)) / 2), spd(3, 2, kind=kind))
    named(f"eigvalsh {kind.__name__}", lambda x: np.linalg.eigvalsh(x + np.conj(x.mT)), kind(4, 4))

    def _projector(x: Any) -> Any:
        w, v = np.linalg.eigh(x + np.conj(x.mT))
        return w, np.abs(v), np.matmul(v[..., :, :2], np.conj(v[..., :, :2].mT))

    named(f"eigh {kind.__name__}", _projector, kind(4, 4))
    named(f"eigh many {kind.__name__}", _projector, kind(2, 3, 3))

    def _svd(x: Any) -> Any:
        r, d, lh = np.linalg.svd(x, full_matrices=False)
        return d, np.abs(r), np.abs(lh), np.matmul(r * d[..., None, :] ** 2, lh)

    for shape in ((3, 3), (4, 3), (3, 4), (2, 3, 2)):
        named(f"svd {kind.__name__} {shape}", _svd, kind(*shape), fixed=True)
    named(f"qr {kind.__name__}", lambda x: tuple(np.linalg.qr(x)), kind(4, 3), fixed=True)
    named(f"qr square {kind.__name__}", lambda x: tuple(np.linalg.qr(x)), kind(3, 3), fixed=True)
    named(f"lstsq {kind.__name__}", lambda a, b: np.linalg.lstsq(a, b)[0], kind(5, 3), kind(5))
    named(
        f"eig {kind.__name__}",
        lambda x: (np.sum(np.linalg.eig(x)[0] ** 2), np.abs(np.linalg.eig(x)[1])),
        kind(3, 3) + np.diag([1.0, 3.0, 7.0]) * 3,
    )
    named(f"eigvals {kind.__name__}", lambda x: np.linalg.eigvals(x) ** 2, kind(3, 3) + np.diag([1.0, 3.0, 7.0]) * 3)
for order in (None, 2, 1, np.inf, -np.inf, 3):
    case(np.linalg.norm, s(5), ord=order) if order in (None, 2, 3) else only(np.linalg.norm, s(5), ord=order)
    only(np.linalg.norm, s(5, 7), ord=order, axis=1, keepdims=True)
for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    fixed(np.linalg.norm, s(3, 4), ord=order)
fixed(np.linalg.cond, well(3, 3))
fixed(np.linalg.cond, well(3, 3), 1)
only(np.linalg.multi_dot, [s(5, 7), s(7, 3), s(3, 2)])
only(np.linalg.tensorinv, s(4, 6, 8, 3))
only(np.linalg.tensorsolve, s(2, 3, 6), s(2, 3))
if hasattr(np.linalg, "vector_norm"):
    only(np.linalg.vector_norm, s(5, 7), axis=1)
    only(np.linalg.matrix_norm, s(2, 5, 7))

# --- Fourier
group("fourier")
for func in (np.fft.fft, np.fft.ifft):
    case(func, c(7))
    case(func, s(6))
    only(func, c(5, 7), axis=0)
    only(func, c(7), n=5)
    only(func, c(5), n=8)
    only(func, s(7), norm="ortho")
    only(func, s(7), norm="forward")
for func in (np.fft.rfft, np.fft.ihfft):
    for n in (None, 5, 9):
        only(func, s(7), n=n)
    only(func, s(6, 5), axis=0, norm="ortho")
for func in (np.fft.irfft, np.fft.hfft):
    for n in (None, 5, 9, 12):
        only(func, c(7), n=n)
    only(func, c(6, 5), axis=0, norm="forward")
for func in (np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn):
    case(func, c(5, 7))
    only(func, c(2, 5, 7), axes=(0, 2))
only(np.fft.fftn, c(5, 7), s=(4, 8), axes=(0, 1))
for func in (np.fft.rfft2, np.fft.rfftn):
    only(func, s(5, 6))
for func in (np.fft.irfft2, np.fft.irfftn):
    only(func, c(5, 4))

# --- order and statistics
group("order")
for axis in (-1, 0, None):
    only(np.sort, A, axis=axis)
only(np.partition, s(7), 3)
only(np.partition, A, 2, axis=0)
for func in (np.median,):
    fixed(func, s(7))
    fixed(func, s(6))
    fixed(func, A, axis=0)
    fixed(func, s(3, 4, 5), axis=(0, 2), keepdims=True)
fixed(np.quantile, A, 0.3, axis=1)
fixed(np.quantile, s(7), [0.1, 0.5, 1.0])
fixed(np.percentile, A, 40, axis=0)
only(np.cov, A)
only(np.corrcoef, A)

# --- numerics
group("numerics")
case(np.diff, A)
case(np.diff, A, n=2, axis=0)
only(np.diff, A, axis=1, prepend=0.0)
only(np.ediff1d, s(7))
case(np.gradient, s(7))
fixed(np.gradient, A)
only(np.gradient, A, 0.5, axis=1)
only(np.trapezoid, s(7))
only(np.trapezoid, A, axis=0, dx=0.5)
only(np.trapezoid, A, np.cumsum(f(7)), axis=1)
named("interp", lambda x, fp: np.interp(x, np.arange(6.0), fp), np.array([0.3, 2.2, 4.9, -0.5, 7.0]), s(6))
named("interp in xp", lambda xp, fp: np.interp(np.array([0.3, 2.2, 4.9]), xp, fp), np.arange(6.0) * 1.01, s(6))
for mode in ("full", "same", "valid"):
    fixed(np.convolve, s(7), s(3), mode=mode)
    fixed(np.convolve, s(3), s(6), mode=mode)
    fixed(np.correlate, s(7), s(3), mode=mode)
    fixed(np.correlate, c(4), c(7), mode=mode)
    fixed(np.correlate, c(3), c(6), mode=mode)
fixed(np.convolve, c(7), c(4), mode="same")
fixed(np.polyval, s(4), s(5))
only(np.vander, s(5), 4)
only(np.linspace, s(), s(), 5)
only(np.linspace, s(3), s(3), 4, axis=1)
only(np.logspace, s(3), s(), 4, base=2.0)
