"""Differentiate linear algebra on matrices, and on stacks of them.

`h` is the conjugate transpose. The adjoint of ``X -> A X B`` is ``ct -> h(A) ct h(B)``. Most rules follow from that and
from the differential, which is written beside them where it is not obvious.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...gradients import table
from ...gradients.rule import nondifferentiable, structural
from ...gradients.table import NoRule, Pullback, Rule
from ...gradients.unbroadcast import conj, is_complex, primitive, shape_of, unbroadcast
from ...transforms.composite import composite, pullback_of, push_forward

mm = np.matmul


def h(a: Any) -> Any:
    return conj(np.swapaxes(a, -1, -2))


def _diagonal(a: Any) -> Any:
    return np.diagonal(a, 0, -2, -1)


def _trace(a: Any) -> Any:
    return np.sum(_diagonal(a), axis=-1)


def _real(a: Any) -> Any:
    return a if is_complex(a) is False else np.real(a)


def _size(a: Any, axis: int, what: str) -> int:
    size = (shape_of(a) or (None,) * 2)[axis]
    if not isinstance(size, int):
        raise NoRule(f"{what} has a gradient rule for matrices whose size is a number when the graph is built")
    return size


def _hermitian(a: Any) -> Any:
    return (a + h(a)) / 2


def _eye_like(a: Any) -> Any:
    """Return one on the diagonals of square matrices, of whatever size."""
    return np.tril(np.triu(np.ones_like(a)))


def _lower_half(a: Any) -> Any:
    """Return what is below the diagonal, and half of that: `a` is Hermitian, and this and its `h` make it up."""
    return np.tril(a) - _eye_like(a) * a / 2


def _on_diagonal(x: Any) -> Any:
    return x[..., :, None] * _eye_like(x[..., :, None] + x[..., None, :])


def _total(*parts: Any) -> Any:
    """Return the sum of what is there."""
    return functools.reduce(operator.add, [part for part in parts if part is not None])


# --- solve, inv, det


def _is_vector(b: Any) -> bool:
    return len(shape_of(b) or ()) == 1


def _solved(a: Any, x: Any, b: Any) -> Any:
    """Return `solve` for something that stands for as many vectors or matrices as the result for `b` does."""
    return np.linalg.solve(a, x[..., None])[..., 0] if _is_vector(b) else np.linalg.solve(a, x)


def _solve_b(ct: Any, ans: Any, a: Any, b: Any) -> Any:
    return unbroadcast(_solved(h(a), ct, b), b)


def _solve_a(ct: Any, ans: Any, a: Any, b: Any) -> Any:
    back = _solved(h(a), ct, b)
    if _is_vector(b):
        return unbroadcast(-back[..., :, None] * conj(ans)[..., None, :], a)
    return unbroadcast(-mm(back, h(ans)), a)


def _solve_a_tangent(t: Any, ans: Any, a: Any, b: Any) -> Any:
    return -_solved(a, mm(t, ans[..., None])[..., 0] if _is_vector(b) else mm(t, ans), b)


def _slogdet(ct: Any, ans: Any, a: Any) -> Any:
    of_sign, of_log = ct
    turns = of_sign is not None and is_complex(a) is not False
    if not turns and of_log is None:
        return None
    total = _total(of_log, -1j * np.imag(conj(of_sign) * ans[0]) if turns else None)
    return np.expand_dims(total, (-2, -1)) * h(np.linalg.inv(a))


def _slogdet_tangent(t: Any, ans: Any, a: Any) -> Any:
    z = _trace(np.linalg.solve(a, t))
    return (None if is_complex(a) is False else ans[0] * 1j * np.imag(z), _real(z))


def _cholesky(ct: Any, ans: Any, a: Any, *, upper: bool = False) -> Any:
    low, ct = (h(ans), h(ct)) if upper else (ans, ct)
    inverse = np.linalg.inv(low)
    return _hermitian(mm(mm(h(inverse), _lower_half(mm(h(low), ct))), inverse))


def _cholesky_tangent(t: Any, ans: Any, a: Any, *, upper: bool = False) -> Any:
    low = h(ans) if upper else ans
    inverse = np.linalg.inv(low)
    tangent = mm(low, _lower_half(mm(mm(inverse, _hermitian(t)), h(inverse))))
    return h(tangent) if upper else tangent


def _rest(square: Any) -> Any:
    """Return what is missing to the unit matrix."""
    return _eye_like(square) - square


def _pinv(ct: Any, ans: Any, a: Any, *args: Any, **kw: Any) -> Any:
    # The tangent is linear in t and in h(t); the adjoint of the whole is the same of h(ans), h(a), the sides exchanged.
    return _pinv_tangent(ct, h(ans), h(a))


def _pinv_tangent(t: Any, ans: Any, a: Any, *args: Any, **kw: Any) -> Any:
    p, outside, inside = ans, _rest(mm(a, ans)), _rest(mm(ans, a))
    return -mm(mm(p, t), p) + mm(mm(p, h(p)), mm(h(t), outside)) + mm(mm(inside, h(t)), mm(h(p), p))


# fmt: off
structural(np.linalg.solve, (_solve_a, _solve_b), (_solve_a_tangent, "same"), ("a", "b"))
structural(np.linalg.inv, (lambda ct, ans, a: -mm(mm(h(ans), ct), h(ans)),),
           (lambda t, ans, a: -mm(mm(ans, t), ans),), ("a",))
structural(np.linalg.det, (lambda ct, ans, a: (ct * conj(ans))[..., None, None] * h(np.linalg.inv(a)),),
           (lambda t, ans, a: ans * _trace(np.linalg.solve(a, t)),), ("a",))
structural(np.linalg.slogdet, (_slogdet,), (_slogdet_tangent,), ("a",))
structural(np.linalg.cholesky, (_cholesky,), (_cholesky_tangent,), ("a",))
structural(np.linalg.pinv, (_pinv,), (_pinv_tangent,), ("a",))
nondifferentiable(np.linalg.matrix_rank)
# fmt: on


# --- eigenvalues


def _gaps(w: Any) -> Any:
    """Return one over the differences ``w[j] - w[i]``, zero on the diagonal."""
    difference = w[..., None, :] - w[..., :, None]
    one = _eye_like(difference)
    return (1 - one) / (difference + one)


def _eigh(ct: Any, ans: Any, a: Any, UPLO: str = "L") -> Any:
    (w, v), (of_w, of_v) = ans, ct
    turned = None if of_v is None else _gaps(w) * mm(h(v), of_v)
    middle = _total(None if of_w is None else _on_diagonal(of_w), turned)
    return _hermitian(mm(mm(v, middle), h(v)))


def _eigh_tangent(t: Any, ans: Any, a: Any, UPLO: str = "L") -> Any:
    w, v = ans
    inner = mm(mm(h(v), _hermitian(t)), v)
    return _real(_diagonal(inner)), mm(v, _gaps(w) * inner)


def _eig(ct: Any, ans: Any, a: Any) -> Any:
    (w, v), (of_w, of_v) = ans, ct
    inner = None
    if of_v is not None:
        turned = mm(h(v), of_v)
        scaled = mm(h(v), v) * _real(_diagonal(turned))[..., None, :]
        inner = conj(_gaps(w)) * (turned - scaled)
    middle = _total(None if of_w is None else _on_diagonal(of_w), inner)
    return np.linalg.solve(h(v), mm(middle, h(v)))


def _eig_tangent(t: Any, ans: Any, a: Any) -> Any:
    w, v = ans
    inner = np.linalg.solve(v, mm(t, v))
    turned = mm(v, _gaps(w) * inner)
    along = _real(np.sum(conj(v) * turned, axis=-2, keepdims=True))
    return _diagonal(inner), turned - v * along


# fmt: off
structural(np.linalg.eigh, (_eigh, None), (_eigh_tangent, None), ("a", "UPLO"))
structural(np.linalg.eig, (_eig,), (_eig_tangent,), ("a",))
composite(np.linalg.eigvalsh)(lambda a, UPLO="L": np.linalg.eigh(a, UPLO)[0])
composite(np.linalg.eigvals)(lambda a: np.linalg.eig(a)[0])
# fmt: on

# --- singular values


def _svdvals(ct: Any, a: Any) -> Any:
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return mm(u * ct[..., None, :], vh)


def _svd(
    ct: Any, ans: Any, a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if not compute_uv:
        return _svdvals(ct, a)
    of_u, of_s, of_vh = ct
    m, n = _size(a, -2, "np.linalg.svd"), _size(a, -1, "np.linalg.svd")
    if full_matrices and m != n:
        if of_u is not None or of_vh is not None:
            raise NoRule(
                "np.linalg.svd(full_matrices=True): the vectors beyond the singular values are arbitrary and have no "
                "gradient; pass full_matrices=False"
            )
        return _svdvals(of_s, a)
    u, s, vh = ans
    gaps = _gaps(s**2)
    middle = [] if of_s is None else [_on_diagonal(of_s)]
    outer = None
    if of_u is not None:
        turned = mm(h(u), of_u)
        middle.append(gaps * (turned - h(turned)) * s[..., None, :])
        if is_complex(a) is not False:
            middle.append(_on_diagonal(1j * np.imag(_diagonal(turned)) / s))
        if m > n:
            outer = mm((of_u - mm(u, turned)) / s[..., None, :], vh)
    if of_vh is not None:
        turned = mm(vh, h(of_vh))
        middle.append(s[..., :, None] * (gaps * (turned - h(turned))))
        if n > m:
            outer = mm(u / s[..., None, :], of_vh - mm(h(turned), vh))
    return _total(mm(mm(u, _total(*middle)), vh), outer)


def _svd_tangent(t: Any, ans: Any, a: Any, full_matrices: bool = True, compute_uv: bool = True,
                 hermitian: bool = False) -> Any:  # fmt: skip
    if not compute_uv:
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        return _real(_diagonal(mm(mm(h(u), t), h(vh))))
    m, n = _size(a, -2, "np.linalg.svd"), _size(a, -1, "np.linalg.svd")
    if full_matrices and m != n:
        raise NoRule("np.linalg.svd(full_matrices=True) has no gradient rule for forward mode: full_matrices=False has")
    u, s, vh = ans
    v = h(vh)
    inner = mm(mm(h(u), t), v)
    gaps, right, left = _gaps(s**2), s[..., None, :], s[..., :, None]
    turn_u = gaps * (inner * right + left * h(inner))
    turn_v = gaps * (left * inner + h(inner) * right)
    du, dv = mm(u, turn_u), mm(v, turn_v)
    if is_complex(a) is not False:
        du = du + u * (1j * np.imag(_diagonal(inner)) / s)[..., None, :]
    if m > n:
        du = du + (mm(t, v) - mm(u, inner)) / right
    if n > m:
        dv = dv + (mm(h(t), u) - mm(v, h(inner))) / right
    return du, _real(_diagonal(inner)), h(dv)


structural(np.linalg.svd, (_svd,), (_svd_tangent,), ("a", "full_matrices", "compute_uv", "hermitian"))
if hasattr(np.linalg, "svdvals"):
    composite(np.linalg.svdvals)(lambda x: np.linalg.svd(x, compute_uv=False))

# --- QR


def _check_qr(a: Any, mode: str) -> None:
    if mode != "reduced" or _size(a, -2, "np.linalg.qr") < _size(a, -1, "np.linalg.qr"):
        raise NoRule(
            'np.linalg.qr has a gradient rule for mode="reduced" and at least as many rows as columns: use that, or '
            "np.linalg.cholesky of the product of the matrix with itself"
        )


def _qr(ct: Any, ans: Any, a: Any, mode: str = "reduced") -> Any:
    _check_qr(a, mode)
    (q, r), (of_q, of_r) = ans, ct
    middle = _total(None if of_r is None else mm(r, h(of_r)), None if of_q is None else -mm(h(of_q), q))
    low = _lower_half(middle)
    return h(np.linalg.solve(r, h(_total(mm(q, low + h(low)), of_q))))


def _qr_tangent(t: Any, ans: Any, a: Any, mode: str = "reduced") -> Any:
    _check_qr(a, mode)
    q, r = ans
    scaled = h(np.linalg.solve(h(r), h(t)))
    inner = mm(h(q), scaled)
    low = np.tril(inner, -1)
    turn = low - h(low)
    if is_complex(a) is not False:
        turn = turn + _eye_like(r) * (1j * np.imag(inner))
    return scaled - mm(q, inner) + mm(q, turn), mm(inner - turn, r)


structural(np.linalg.qr, (_qr, None), (_qr_tangent, None), ("a", "mode"))

# --- by what they are made of


class _Lstsq(Rule):
    """Differentiate ``np.linalg.lstsq``: of its four results the rank alone has no derivative."""

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return "array" if parameter in (0, 1, "a", "b") else ""

    @staticmethod
    def _parts(a: Any, b: Any, rcond: Any = None) -> Any:
        """Return the solution, the sums of squares that are left, and the singular values."""
        x = np.matmul(np.linalg.pinv(a), b)
        rest = b - np.matmul(a, x)
        return x, np.sum(_real(conj(rest) * rest), axis=0, keepdims=_is_vector(b)), np.linalg.svd(a, compute_uv=False)

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        inner = pullback_of(self._parts, argnums, args, kwargs)

        def pullback(ct: Any) -> tuple[Any, ...]:
            left = ct[1]
            if left is not None:
                left = _if_present(left, np.sum(_real(ans[0]), axis=0, keepdims=len(shape_of(ans[0]) or ()) == 1))
            gradients: tuple[Any, ...] = inner((ct[0], left, ct[3]))
            return gradients

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x, rest, values = push_forward(self._parts, argnums, tangents, args, kwargs)
        return x, None if rest is None else _if_present(rest, ans[1]), None, values


@primitive(lambda x, like: type(like)(x.dtype, like.shape))
def _if_present(x: Any, like: Any) -> Any:
    """Return `x` if it has the shape of `like`, else zeros in that: lstsq has no residuals of low rank or few rows."""
    return x if np.shape(x) == np.shape(like) else np.zeros(np.shape(like), np.asarray(x).dtype)


structural(_if_present, (lambda ct, ans, x, like: _if_present(ct, x), None), ("same", None), ("x", "like"))
table.add(_Lstsq(np.linalg.lstsq))


@composite(np.linalg.matrix_power)
def _matrix_power(a: Any, n: int) -> Any:
    if n == 0:
        return _eye_like(a)
    if n < 0:
        a, n = np.linalg.inv(a), -n
    result = None
    while n:
        if n & 1:
            result = a if result is None else mm(result, a)
        n >>= 1
        if n:
            a = mm(a, a)
    return result


@composite(np.linalg.multi_dot)
def _multi_dot(arrays: Any, *, out: Any = None) -> Any:
    return functools.reduce(np.dot, arrays)


def _magnitude(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the square root of the sum of squares; its derivative is zero where it is zero."""
    total = np.sum(_real(conj(x) * x), axis=axis, keepdims=keepdims)
    at_zero = total == 0
    return np.where(at_zero, 0, np.sqrt(np.where(at_zero, 1, total)))


def _vector_norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    if order is None or order == 2:
        return _magnitude(x, axis, keepdims)
    size = np.abs(x)
    if order == np.inf:
        return np.max(size, axis=axis, keepdims=keepdims)
    if order == -np.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    if order == 0:
        return np.sum(x != 0, axis=axis, keepdims=keepdims) * 1.0
    if order == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    return np.power(np.sum(np.power(size, order), axis=axis, keepdims=keepdims), 1 / order)


def _matrix_norm(x: Any, order: Any, axis: tuple[int, int], keepdims: bool) -> Any:
    if order is None or order == "fro":
        return _magnitude(x, axis, keepdims)
    extreme: Callable[..., Any] = np.max if order in (1, 2, np.inf) else np.min
    if order in (1, -1, np.inf, -np.inf):
        summed, kept = axis if order in (1, -1) else axis[::-1]
        inner = np.sum(np.abs(x), axis=summed, keepdims=True)
        norm = extreme(inner, axis=kept, keepdims=True)
        return norm if keepdims else np.squeeze(norm, axis=axis)
    s = np.linalg.svd(np.moveaxis(x, axis, (-2, -1)), compute_uv=False)
    norm = np.sum(s, axis=-1) if order == "nuc" else extreme(s, axis=-1)
    return np.expand_dims(norm, axis) if keepdims else norm


@composite(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    ndim = len(shape_of(x) or ())
    if axis is None:
        if ord is None:
            return _magnitude(x, None, keepdims)
        axis = 0 if ndim == 1 else (0, 1)
    if isinstance(axis, tuple) and len(axis) == 2:
        return _matrix_norm(x, ord, (axis[0] % ndim, axis[1] % ndim), keepdims)
    return _vector_norm(x, ord, axis[0] if isinstance(axis, tuple) else axis, keepdims)


if hasattr(np.linalg, "vector_norm"):

    @composite(np.linalg.vector_norm)
    def _vector_norm_of(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
        return _vector_norm(x, ord, axis, keepdims)

    @composite(np.linalg.matrix_norm)
    def _matrix_norm_of(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
        ndim = len(shape_of(x) or ())
        return _matrix_norm(x, ord, (ndim - 2, ndim - 1), keepdims)


@composite(np.linalg.cond)
def _cond(x: Any, p: Any = None) -> Any:
    if p is None or p in (2, -2):
        s = np.linalg.svd(x, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return _norm(x, p, (-2, -1)) * _norm(np.linalg.inv(x), p, (-2, -1))


@composite(np.linalg.tensorsolve)
def _tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    if axes is not None:
        raise NoRule("np.linalg.tensorsolve(axes=...) has no gradient rule: move the axes yourself")
    rest = np.shape(a)[len(shape_of(b) or ()) :]
    size = math.prod(rest)
    return np.reshape(np.linalg.solve(np.reshape(a, (size, size)), np.ravel(b)), rest)


@composite(np.linalg.tensorinv)
def _tensorinv(a: Any, ind: int = 2) -> Any:
    shape = np.shape(a)
    size = math.prod(shape[:ind])
    return np.reshape(np.linalg.inv(np.reshape(a, (size, size))), shape[ind:] + shape[:ind])
