"""Calls of functions that have gradient rules, for comparing the rules with differences and with another library.

An array of real or complex numbers that is given as an argument, at top level or in a list, is differentiated by;
everything else stays as it is. `fixed` cases need sizes that are numbers when a graph is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

rng = np.random.default_rng(11)


@dataclass(frozen=True)
class Case:
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    group: str = ""
    fixed: bool = False
    second: bool = True  # whether second derivatives are compared as well
    oracle: bool = True  # whether the other library computes the same
    label: str = ""

    @property
    def id(self) -> str:
        def show(x: Any) -> str:
            if isinstance(x, np.ndarray):
                return f"{x.dtype.str[1:]}{list(x.shape)}".replace(" ", "")
            if isinstance(x, (list, tuple)):
                return "(" + ",".join(map(show, x)) + ")"
            return getattr(x, "__name__", None) or repr(x)

        name = self.label or getattr(self.func, "__name__", None) or repr(self.func)
        texts = [show(arg) for arg in self.args] + [f"{key}={show(arg)}" for key, arg in self.kwargs.items()]
        return f"{name}({','.join(texts)})"


cases: list[Case] = []
_group = ""


def group(name: str) -> None:
    global _group
    _group = name


def case(func: Any, *args: Any, **kwargs: Any) -> None:
    cases.append(Case(func, args, kwargs, _group))


def only(func: Any, *args: Any, **kwargs: Any) -> None:
    """A call that the other library does not know, or sees in another way."""
    cases.append(Case(func, args, kwargs, _group, oracle=False))


def fixed(func: Any, *args: Any, **kwargs: Any) -> None:
    cases.append(Case(func, args, kwargs, _group, fixed=True, oracle=False))


def named(label: str, func: Any, *args: Any, fixed: bool = False, second: bool = True) -> None:
    cases.append(Case(func, args, {}, _group, fixed=fixed, second=second, oracle=False, label=label))


def f(*shape: int, low: float = 0.5, high: float = 2.0, dtype: Any = np.float64) -> np.ndarray:
    return np.asarray(low + (high - low) * rng.random(shape), dtype)


def s(*shape: int) -> np.ndarray:
    """Of both signs, and away from zero."""
    return np.asarray(f(*shape) * np.where(rng.random(shape) < 0.5, -1.0, 1.0))


def u(*shape: int) -> np.ndarray:
    """Between -1 and 1."""
    return s(*shape) * 0.45


def c(*shape: int) -> np.ndarray:
    return s(*shape) + 1j * s(*shape)


def i(*shape: int, high: int = 5) -> np.ndarray:
    return rng.integers(0, high, shape)


def b(*shape: int) -> np.ndarray:
    return rng.random(shape) < 0.5


def spd(n: int, *front: int, kind: Any = s) -> np.ndarray:
    a = kind(*front, n, n)
    return a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)


def well(*shape: int, kind: Any = s) -> np.ndarray:
    """Matrices far from singular."""
    return kind(*shape) + 4 * np.eye(*shape[-2:])


# --- ufuncs
group("ufuncs")
for x in (s(5, 7), c(5)):
    only(np.positive, x)
    for func in (np.negative, np.sin, np.cos, np.exp, np.square, np.sinh, np.cosh, np.tanh, np.tan):
        case(func, x)
    for func in (np.absolute, np.conjugate):
        case(func, x)
for func in (np.reciprocal, np.exp2, np.expm1, np.arctan, np.arcsinh):
    only(func, c(5))
for func in (np.reciprocal, np.exp2, np.expm1, np.arctan, np.arcsinh, np.fabs, np.sinc):
    case(func, s(5))
for func in (np.degrees, np.radians, np.deg2rad, np.rad2deg):
    case(func, s(5))
for func in (np.sqrt, np.log, np.log2, np.log10, np.log1p):
    case(func, f(5))
for func in (np.sqrt, np.log, np.log10, np.cbrt):
    only(func, c(5) if func is not np.cbrt else s(5))
for func in (np.arcsin, np.arccos, np.arctanh):
    case(func, u(5))
    only(func, c(3))
case(np.arccosh, f(5) + 1)
only(np.arccosh, c(4))
for func in (np.add, np.subtract, np.multiply, np.divide):
    for x, y in (
        (s(5, 7), s(5, 7)),
        (s(5, 7), s(7)),
        (s(5, 1), s(1, 7)),
        (s(), s(5, 7)),
        (c(5), c(5)),
        (s(5), c(1)),
        (s(0, 7), s(7)),
    ):
        case(func, x, y)
    case(func, s(5), 2.0)
    case(func, 2.0, s(5))
case(np.power, f(5), s(5))
case(np.power, f(5, 7), s(7))
for exponent in (0, 1, 2, 3, 2.5, -1):
    case(np.power, f(5), exponent)
case(np.power, s(5), 2)
case(np.power, 2.0, s(5))
only(np.power, c(5), 3)
only(np.power, c(5), c(5))
only(np.float_power, f(5), 3.0)
for func in (np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2):
    case(func, s(5), s(5))
    case(func, s(5, 7), s(7))
for func in (np.arctan2, np.fmod, np.remainder, np.hypot):
    only(func, f(5) + 3, f(5))
only(np.copysign, s(5), s(5))
only(np.ldexp, s(5), i(5))
only(np.heaviside, s(5), s(5))
only(np.modf, s(5))
only(np.frexp, s(5))
only(np.divmod, f(5) + 3, f(5))
only(np.add, s(5), s(5), dtype=np.float64)

try:
    import scipy.special as sp
except ImportError:
    sp = None
if sp is not None:
    group("special")
    for name in (
        *("gamma", "gammaln", "loggamma", "rgamma", "psi", "erf", "erfc", "erfi", "erfcx", "dawsn", "ndtr", "log_ndtr"),
        *("expit", "log_expit", "entr", "exp2", "exp10", "expm1", "log1p", "cosm1", "cbrt", "exprel", "spence"),
        *("j0", "j1", "y0", "y1", "i0", "i1", "i0e", "i1e", "k0", "k1", "exp1", "expi"),
    ):
        only(getattr(sp, name), f(5))
    for name in ("erfinv", "ndtri", "logit", "ellipk", "ellipe"):
        only(getattr(sp, name), f(5, low=0.2, high=0.8))
    only(sp.erfcinv, f(5))
    for name in ("beta", "betaln", "poch", "xlogy", "xlog1py", "rel_entr", "kl_div", "boxcox"):
        only(getattr(sp, name), f(5), f(1))
    only(sp.binom, f(5) + 5, f(5))
    named("loggamma", sp.loggamma, c(5) + 3, second=False)  # SciPy has no polygamma of complex numbers
    for name in ("gammainc", "gammaincc", "jv", "yv", "iv", "ive", "kv"):
        named(name, lambda x, name=name: getattr(sp, name)(1.5, x), f(5))
    named("betainc", lambda x: sp.betainc(1.5, 2.5, x), f(5, low=0.2, high=0.8))
    named("zeta", lambda x: sp.zeta(2.5, x), f(5))
    named("expn", lambda x: sp.expn(3, x), f(5))
    named("huber", lambda x: sp.huber(1.0, x), s(5))
    named("pseudo_huber", lambda x: sp.pseudo_huber(1.0, x), s(5))
    named("inv_boxcox", lambda x: sp.inv_boxcox(x, 0.5), f(5))

# --- complex numbers, conversions, clipping
group("elementwise")
case(np.real, c(5))
case(np.imag, c(5))
case(np.real, s(5))
case(np.angle, c(5))
only(np.angle, c(5), deg=True)
only(np.real_if_close, s(5))
case(np.clip, s(5, 7), -0.8, 0.9)
only(np.clip, s(5, 7), s(7), 0.9)
only(np.clip, s(5, 7), None, s(5, 1))
case(np.nan_to_num, s(5))
only(np.unwrap, s(7) * 6)
only(np.copy, s(5))
only(np.full_like, s(5), s())
named("astype", lambda x: x.astype(complex) * 1j, s(5))
named("powers", lambda x: x**2 + x**3.0 + x**-1, f(5))
named("floor of a sum", lambda x: x * np.floor(x * 3) + np.sign(x), s(5))

# --- reductions
group("reductions")
A, C = s(5, 7), c(5, 7)
for func in (np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std):
    for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)}, {"axis": -1}):
        case(func, A, **options)
    only(func, s(3, 5, 7), axis=(0, 2))
for func in (np.sum, np.mean, np.prod, np.var, np.std):
    case(func, C) if func not in (np.var, np.std) else only(func, C)
    only(func, C, axis=1)
for func in (np.sum, np.mean, np.prod, np.var, np.max):
    more = {"initial": -9.0} if func is np.max else {}
    only(func, A, axis=1, where=np.arange(35).reshape(5, 7) % 3 > 0, **more)
only(np.sum, A, initial=3.0)
only(np.prod, A, axis=0, initial=3.0)
only(np.prod, np.array([2.0, 0.0, 3.0]))
only(np.prod, np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]]), axis=1)
case(np.var, A, axis=0, ddof=1)
case(np.std, A, axis=0, ddof=1)
only(np.sum, s(0, 7), axis=0)
only(np.prod, s(0, 7), axis=0)
only(np.sum, s())
case(np.cumsum, A, axis=0)
case(np.cumsum, A)
only(np.cumsum, C, axis=1)
for axis in (None, 0, -1):
    only(np.cumprod, A, axis=axis)
only(np.cumprod, C, axis=1)
only(np.cumprod, np.array([2.0, 0.0, 3.0, 0.0, 4.0]))
if hasattr(np, "cumulative_sum"):
    only(np.cumulative_sum, A, axis=1, include_initial=True)
    only(np.cumulative_prod, A, axis=0)
only(np.ptp, A, axis=1)
N = np.where(rng.random((5, 7)) < 0.2, np.nan, s(5, 7))
N[:2] = s(2, 7)
for func in (np.nansum, np.nanmean, np.nanprod, np.nanvar, np.nanstd, np.nanmax, np.nanmin):
    only(func, A, axis=0)
only(np.nancumsum, A, axis=0)
only(np.nancumprod, A, axis=0)
only(np.average, A, axis=0)
only(np.average, A, axis=1, weights=f(7))
only(np.average, A, weights=f(5, 7))
for method in (
    np.add.reduce,
    np.multiply.reduce,
    np.maximum.reduce,
    np.minimum.reduce,
    np.logaddexp.reduce,
    np.add.accumulate,
    np.multiply.accumulate,
):
    named(f"{method.__self__.__name__}.{method.__name__}", method, A)
    named(f"{method.__self__.__name__}.{method.__name__} axis=1", lambda x, method=method: method(x, axis=1), A)
named("add.reduce axis=None", lambda x: np.add.reduce(x, axis=None, keepdims=True), A)
named("logaddexp.reduce kept", lambda x: np.logaddexp.reduce(x, axis=1, keepdims=True), A)
named("multiply.outer", np.multiply.outer, s(5), s(7))
named("where in sum", lambda x: np.sum(x, where=np.arange(7) > 3), A)

# --- shapes
group("shapes")
for func, rest, options in (
    (np.reshape, ((35,),), {}),
    (np.reshape, ((7, 5),), {"order": "F"}),
    (np.ravel, (), {}),
    (np.transpose, (), {}),
    (np.transpose, ((1, 0),), {}),
    (np.swapaxes, (0, 1), {}),
    (np.moveaxis, (0, -1), {}),
    (np.rollaxis, (1,), {}),
    (np.expand_dims, (1,), {}),
    (np.expand_dims, ((0, -1),), {}),
    (np.flip, (), {}),
    (np.flip, (0,), {}),
    (np.fliplr, (), {}),
    (np.flipud, (), {}),
    (np.rot90, (), {"k": 3}),
    (np.roll, (2,), {}),
    (np.roll, ((1, 2),), {"axis": (0, 1)}),
    (np.tile, ((2, 3),), {}),
    (np.tile, (2,), {}),
    (np.repeat, (3,), {}),
    (np.repeat, (2,), {"axis": 1}),
    (np.tril, (), {}),
    (np.triu, (), {"k": 1}),
    (np.diag, (), {}),
    (np.diagonal, (), {}),
    (np.trace, (), {}),
    (np.atleast_3d, (), {}),
    (np.pad, (((1, 2), (0, 3)),), {"mode": "constant"}),
):
    unknown = func in (np.flip, np.diag, np.diagonal) or (rest in (((1, 2),), (2,)) and func in (np.roll, np.tile))
    (only if unknown else case)(func, A, *rest, **options)
only(np.matrix_transpose, C)
only(np.transpose, C)
only(np.pad, A, 2, mode="reflect")
only(np.pad, A, ((1, 1), (0, 2)), mode="edge")
only(np.pad, A, 1, mode="constant", constant_values=4.0)
only(np.repeat, A, np.arange(5), axis=0)
only(np.resize, s(5), (4, 3))
only(np.diag, s(5), k=1)
only(np.diagflat, s(5))
only(np.diagonal, s(3, 5, 7), 1, 0, 2)
only(np.trace, s(3, 5, 7), 1, 2, 0)
only(np.squeeze, s(5, 1, 7))
only(np.squeeze, s(5, 1, 1), axis=1)
only(np.atleast_1d, s())
only(np.atleast_2d, s(5))
only(np.broadcast_to, s(5, 1), (3, 5, 7))
only(np.fft.fftshift, s(5, 7))
only(np.fft.ifftshift, s(5, 7), axes=1)
only(np.reshape, s(0, 7), (7, 0))

# --- indexing
group("indexing")
for label, key in {
    "int": 2,
    "slice": slice(1, 4),
    "negative step": slice(None, None, -2),
    "ellipsis": (Ellipsis, 1),
    "newaxis": (None, slice(None), 3),
    "list": [0, 2, 2],
    "mask": np.arange(5) % 2 == 0,
    "pairs": (np.array([0, 1, 1]), np.array([2, 3, 3])),
    "mixed": (slice(1, 3), np.array([0, 0, 6])),
    "empty": slice(0, 0),
}.items():
    named(f"x[{label}]", lambda x, key=key: x[key], A)
named("x[int] complex", lambda x: x[1], C)
only(np.take, A, [0, 3, 3])
only(np.take, A, np.array([[0, 1], [3, 3]]), axis=1)
only(np.take, s(5), 2)
only(np.take_along_axis, A, np.argsort(A, axis=1), axis=1)
only(np.compress, np.arange(5) % 2 == 0, A, axis=0)
only(np.extract, np.arange(35).reshape(5, 7) % 3 == 0, A)
only(np.delete, A, 2, axis=0)
only(np.where, b(5, 7), s(5, 7), s(7))
case(np.where, b(5, 7), s(5, 7), s(5, 7))
only(np.where, b(5, 7), s(5, 7), 1.0)
only(np.where, b(5), c(5), s(1))
only(np.select, [b(5), b(5)], [s(5), s(5)], 0.0)
only(np.choose, i(5, high=3), [s(5), s(5), s(1)])

# --- joining
group("joining")
for func in (np.concatenate, np.vstack, np.hstack, np.stack, np.dstack):
    (only if func is np.dstack else case)(func, [s(5, 7), s(5, 7)])
    only(func, [s(5), s(5), s(5)])
case(np.concatenate, [s(5, 7), s(2, 7)], axis=0)
case(np.concatenate, [s(5, 2), s(5, 7), s(5, 2)], axis=-1)
only(np.concatenate, [s(5, 7), s(3)], axis=None)
only(np.concatenate, [s(5), c(3)])
only(np.stack, [s(5), s(5)], axis=-1)
only(np.column_stack, [s(5), s(5, 2)])
case(np.append, s(5), s(2))
only(np.append, s(5, 7), s(1, 7), axis=0)
fixed(np.block, [[s(2, 2), s(2, 3)], [s(1, 2), s(1, 3)]])
named("split", lambda x: np.split(x, [2, 4]), s(6, 7), fixed=True)
named("array_split", lambda x: np.array_split(x, 3, axis=1), s(5, 7), fixed=True)
named("split, one part", lambda x: np.split(x, 3)[1] ** 2, s(6), fixed=True)
named("hsplit", lambda x: np.hsplit(x, [3]), s(5, 7), fixed=True)
named("vsplit", lambda x: np.vsplit(x, [3]), s(5, 7), fixed=True)
named("broadcast_arrays", lambda x, y: np.broadcast_arrays(x, y), s(5, 1), s(7))
named("meshgrid", lambda x, y: np.meshgrid(x, y), s(5), s(7))
named("meshgrid ij", lambda x, y: np.meshgrid(x, y, indexing="ij"), s(5), s(7))
if hasattr(np, "unstack"):
    named("unstack", lambda x: np.unstack(x, axis=1), s(5, 3), fixed=True)

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
    cases.append(Case(np.einsum, (text, *operands), {}, _group, fixed="ii" in text, oracle="ii" not in text))
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
