"""Provide ``scipy.linalg`` with decompositions, solvers and matrix functions for Tensors and Values.

They are `expm`, `sqrtm`, `solve_sylvester`, `solve_triangular`, `solve_banded`, `cho_factor` and `cho_solve`.

`h` is the conjugate transpose; an adjoint of ``X -> A X B`` is ``ct -> h(A) ct h(B)``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.linalg as _linalg

from ..declare.spec import Spec
from ..functions.linalg.grad import h, mm
from ..functions.operand import Operand, Sample, operand, probe
from ..functions.shape import broadcast
from ..gradients import table
from ..gradients.adjoints import along
from ..gradients.rule import PerArgument
from ..gradients.unbroadcast import conj, is_complex, shape_of, unbroadcast
from ..transforms.composite import composite
from ._mirror import mirrored, rest_of

__all__ = ["cho_factor", "cho_solve", "expm", "solve_banded", "solve_sylvester", "solve_triangular", "sqrtm"]

__getattr__ = rest_of(_linalg)


def _rules(public: Any, vjps: Any, jvps: Any, names: tuple[str, ...]) -> None:
    table.add(PerArgument(public, vjps, jvps, names, lambda ct, like, ans: unbroadcast(ct, like)))


def _small(part: Operand) -> Sample:
    return Sample(part.dtype, (1, 1))


# --- functions of matrices


def _square_specs(a: Any) -> Spec:
    part = operand(a)
    return Spec(probe(_linalg.expm, _small(part)), part.shape)


def _expm_tangent(t: Any, ans: Any, a: Any) -> Any:
    """Return the tangent of expm by the exponential of ``[[a, t], [0, a]]``, which has it beside its diagonal."""
    n = np.shape(a)[-1]
    t = t + np.zeros_like(a)
    above = np.concatenate([a + np.zeros_like(t), t], axis=-1)
    below = np.concatenate([np.zeros_like(t), a + np.zeros_like(t)], axis=-1)
    return expm(np.concatenate([above, below], axis=-2))[..., :n, n:]


_EXPM = "pyop.jvp(expm, (np.zeros((1, 1)),), (np.ones((1, 1)),))\n(array([[1.]]), array([[1.]]))"
expm = mirrored(_linalg.expm, __name__, _square_specs, example=_EXPM)
_rules(expm, (lambda ct, ans, a: _expm_tangent(ct, ans, h(a)),), (_expm_tangent,), ("A",))

# Whether the root of a real matrix is real is seen when it is computed.
_SQRTM = "pyop.jvp(sqrtm, (np.full((1, 1), 4.0),), (np.ones((1, 1)),))\n(array([[2.]]), array([[0.25]]))"
sqrtm = mirrored(_linalg.sqrtm, __name__, lambda a, *rest, **kw: Spec(None, operand(a).shape), example=_SQRTM)
_rules(
    sqrtm,
    (lambda ct, ans, a: _sylvester(h(ans), h(ans), ct),),
    (lambda t, ans, a: _sylvester(ans, ans, t),),
    ("A",),
)


# --- equations


def _sylvester_specs(a: Any, b: Any, q: Any) -> Spec:
    parts = [operand(x) for x in (a, b, q)]
    dtype = probe(_linalg.solve_sylvester, *map(_small, parts))
    if any(part.shape is None for part in parts):
        return Spec(dtype, None)
    fronts = [part.shape[:-2] for part in parts]  # type: ignore[index]
    front = broadcast(*fronts)
    return Spec(dtype, None if front is None else (*front, *parts[2].shape[-2:]))  # type: ignore[index]


_SYLVESTER = "pyop.grad(lambda q: solve_sylvester([[1.0]], [[1.0]], q)[0, 0])(np.ones((1, 1)))\narray([[0.5]])"
solve_sylvester = mirrored(_linalg.solve_sylvester, __name__, _sylvester_specs, example=_SYLVESTER)


def _sylvester(a: Any, b: Any, q: Any) -> Any:
    """Return `solve_sylvester` of arrays all real or all complex; SciPy may return something else for a mixture."""
    if any(is_complex(x) is not False for x in (a, b, q)) and not all(is_complex(x) for x in (a, b, q)):
        a, b, q = a + 0j, b + 0j, q + 0j
    return solve_sylvester(a, b, q)


_rules(
    solve_sylvester,
    (
        lambda ct, ans, a, b, q: -mm(_sylvester(h(a), h(b), ct), h(ans)),
        lambda ct, ans, a, b, q: -mm(h(ans), _sylvester(h(a), h(b), ct)),
        lambda ct, ans, a, b, q: _sylvester(h(a), h(b), ct),
    ),
    (
        lambda t, ans, a, b, q: -_sylvester(a, b, mm(t, ans)),
        lambda t, ans, a, b, q: -_sylvester(a, b, mm(ans, t)),
        lambda t, ans, a, b, q: _sylvester(a, b, t),
    ),
    ("a", "b", "q"),
)


def _solution_specs(function: Any) -> Any:
    def specs(a: Any, b: Any, *args: Any, **kwargs: Any) -> Spec:
        matrix, right = operand(a), operand(b)
        dtype = probe(_solved_once, function, _small(matrix), _small(right))
        if matrix.shape is None or right.shape is None:
            return Spec(dtype, None)
        if len(matrix.shape) == 2:
            return Spec(dtype, right.shape)
        core = 1 if len(right.shape) == 1 else 2
        front = broadcast(matrix.shape[:-2], right.shape[:-core])
        return Spec(dtype, None if front is None else (*front, *right.shape[-core:]))

    return specs


def _solved_once(function: Any, a: Any, b: Any) -> Any:
    if function is _linalg.solve_banded:  # which has a way of its own for a single equation
        return function((0, 0), np.repeat(a, 2, axis=1), np.repeat(b, 2, axis=0))
    return function((a, False), b) if function is _linalg.cho_solve else function(a, b)


def _columns(x: Any, b: Any) -> Any:
    """Return solutions to `b` as matrices."""
    return x[..., None] if len(shape_of(b) or ()) == 1 else x


def _times(m: Any, x: Any, b: Any) -> Any:
    return mm(m, _columns(x, b))[..., 0] if len(shape_of(b) or ()) == 1 else mm(m, x)


def _solved(solve: Any, x: Any, b: Any) -> Any:
    """Return `solve` of an array shaped like solutions to `b`, which are stacked vectors if the matrices are."""
    if len(shape_of(b) or ()) == 1 and len(shape_of(x) or ()) > 1:
        return solve(x[..., None])[..., 0]
    return solve(x)


def _pairs(x: Any, y: Any, b: Any) -> Any:
    """Return ``x h(y)``."""
    return mm(_columns(x, b), h(_columns(y, b)))


# --- triangular

_TRANSPOSED = {"N": 0, "T": 1, "C": 2}


def _triangle(a: Any, lower: bool, unit: bool) -> Any:
    return np.tril(a, -1 if unit else 0) if lower else np.triu(a, 1 if unit else 0)


def _how(trans: Any) -> int:
    return int(_TRANSPOSED.get(trans, trans))


def _turned(m: Any, trans: int) -> Any:
    return m if trans == 0 else np.swapaxes(m, -1, -2) if trans == 1 else h(m)


def _triangular_a(ct: Any, ans: Any, a: Any, b: Any, trans: Any = 0, lower: Any = False, unit_diagonal: Any = False,
                  *rest: Any, **kw: Any) -> Any:  # fmt: skip
    back = _triangular_b(ct, ans, a, b, trans, lower, unit_diagonal)
    return _triangle(-_turned(_pairs(back, ans, b), _how(trans)), lower, unit_diagonal)


def _triangular_b(ct: Any, ans: Any, a: Any, b: Any, trans: Any = 0, lower: Any = False, unit_diagonal: Any = False,
                  *rest: Any, **kw: Any) -> Any:  # fmt: skip
    """Return the solution with the conjugate transpose of the matrix that `trans` selects."""
    how = _how(trans)
    if how == 1:
        return conj(_solved(lambda x: solve_triangular(a, x, 0, lower, unit_diagonal), conj(ct), b))
    return _solved(lambda x: solve_triangular(a, x, 2 if how == 0 else 0, lower, unit_diagonal), ct, b)


def _triangular_a_tangent(t: Any, ans: Any, a: Any, b: Any, trans: Any = 0, lower: Any = False,
                          unit_diagonal: Any = False, *rest: Any, **kw: Any) -> Any:  # fmt: skip
    moved = _turned(_triangle(t, lower, unit_diagonal), _how(trans))
    return -_solved(lambda x: solve_triangular(a, x, trans, lower, unit_diagonal), _times(moved, ans, b), b)


_TRIANGULAR = "pyop.grad(lambda b: solve_triangular([[2.0]], b)[0])(np.ones(1))\narray([0.5])"
solve_triangular = mirrored(
    _linalg.solve_triangular, __name__, _solution_specs(_linalg.solve_triangular), example=_TRIANGULAR
)
_rules(solve_triangular, (_triangular_a, _triangular_b), (_triangular_a_tangent, "same"), ("a", "b"))


# --- banded


def _banded_specs(l_and_u: Any, ab: Any, b: Any, *args: Any, **kwargs: Any) -> Spec:
    spec: Spec = _solution_specs(_linalg.solve_banded)(ab, b)
    return spec


def _moved(x: Any, by: int, axis: int) -> Any:
    """Return `x` shifted along an axis, with zeros where no element comes from."""
    if by == 0:
        return x
    size = np.shape(x)[axis]
    gap = abs(by) if not isinstance(size, int) else min(abs(by), size)
    kept = x[along(axis, slice(None, -gap) if by > 0 else slice(gap, None))]
    zeros = np.zeros_like(x[along(axis, slice(0, gap))])
    return np.concatenate([zeros, kept] if by > 0 else [kept, zeros], axis=axis)


def _adjoint_band(l_and_u: Any, ab: Any) -> Any:
    low, up = l_and_u
    rows = [_moved(ab[..., r, :], r - up, -1) for r in range(low + up + 1)]
    return conj(np.stack(rows[::-1], axis=-2))


def _banded_ab(ct: Any, ans: Any, l_and_u: Any, ab: Any, b: Any, *rest: Any, **kw: Any) -> Any:
    low, up = l_and_u
    back = _columns(_banded_b(ct, ans, l_and_u, ab, b), b)
    x = conj(_columns(ans, b))
    rows = [-np.sum(_moved(back, up - r, -2) * x, axis=-1) for r in range(low + up + 1)]
    return np.stack(rows, axis=-2)


def _banded_b(ct: Any, ans: Any, l_and_u: Any, ab: Any, b: Any, *rest: Any, **kw: Any) -> Any:
    low, up = l_and_u
    return _solved(lambda x: solve_banded((up, low), _adjoint_band(l_and_u, ab), x), ct, b)


def _banded_ab_tangent(t: Any, ans: Any, l_and_u: Any, ab: Any, b: Any, *rest: Any, **kw: Any) -> Any:
    low, up = l_and_u
    x = _columns(ans, b)
    total: Any = 0.0
    for r in range(low + up + 1):
        total = total + _moved(t[..., r, :, None] * x, r - up, -2)
    moved = total[..., 0] if len(shape_of(b) or ()) == 1 else total
    return -_solved(lambda x: solve_banded(l_and_u, ab, x), moved, b)


_BANDED = "pyop.grad(lambda b: solve_banded((0, 0), [[2.0, 4.0]], b).sum())(np.ones(2))\narray([0.5 , 0.25])"
solve_banded = mirrored(_linalg.solve_banded, __name__, _banded_specs, example=_BANDED)
_rules(solve_banded, (None, _banded_ab, _banded_b), (None, _banded_ab_tangent, "same"), ("l_and_u", "ab", "b"))


# --- by the factors of Cholesky


def _solve_by_factor(c: Any, b: Any, lower: bool, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    return _linalg.cho_solve((c, lower), b, overwrite_b, check_finite)


def _factor(a: Any, lower: bool, check_finite: bool = True) -> Any:
    return _linalg.cho_factor(a, lower, check_finite=check_finite)[0]


def _back_factor(ct: Any, c: Any, b: Any, lower: Any) -> Any:
    return _solved(lambda x: by_factor(c, x, lower), ct, b)


def _of_factor(a_bar: Any, c: Any, lower: Any) -> Any:
    both = a_bar + h(a_bar)
    used = _triangle(c, lower, False)
    return _triangle(mm(both, used) if lower else mm(used, both), lower, False)


def _factor_tangent(t: Any, ans: Any, c: Any, b: Any, lower: Any, *rest: Any) -> Any:
    used, t = _triangle(c, lower, False), _triangle(t, lower, False)
    half = mm(t, h(used)) if lower else mm(h(t), used)
    return -_solved(lambda x: by_factor(c, x, lower), _times(half + h(half), ans, b), b)


by_factor = mirrored(_solve_by_factor, __name__, lambda c, b, *rest, **kw: _solution_specs(_linalg.cho_solve)(c, b),
                     "by_factor")  # fmt: skip
_rules(
    by_factor,
    (
        lambda ct, ans, c, b, lower, *rest: _of_factor(-_pairs(_back_factor(ct, c, b, lower), ans, b), c, lower),
        lambda ct, ans, c, b, lower, *rest: _back_factor(ct, c, b, lower),
    ),
    (_factor_tangent, "same"),
    ("c", "b"),
)
factor = mirrored(_factor, __name__, lambda a, *rest, **kw: _square_specs(a), "factor")


@composite(factor)
def _factor_made(a: Any, lower: bool, check_finite: bool = True) -> Any:
    """Return the factor with the numbers that SciPy leaves of the matrix in the other triangle."""
    inner = _triangle(a, lower, True)
    diagonal = np.tril(np.triu(np.real(a)))
    low = np.linalg.cholesky(inner + h(inner) + diagonal)
    if not _leaves_other_triangle():
        return low if lower else h(low)
    return low + _triangle(a, False, True) if lower else h(low) + _triangle(a, True, True)


@functools.cache
def _leaves_other_triangle() -> bool:
    """Return whether this SciPy (before 1.18) leaves numbers of the matrix in the unused triangle."""
    return bool(_linalg.cho_factor(np.array([[4.0, 1.0], [1.0, 4.0]]))[0][1, 0])


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Factor a matrix as ``scipy.linalg.cho_factor``, for Tensors and Values too.

    >>> import numpy as np, pyop
    >>> from pyop.scipy.linalg import cho_factor
    >>> pyop.grad(lambda a: cho_factor(a)[0][0, 0])(np.full((1, 1), 4.0))
    array([[0.25]])
    """
    return factor(a, lower, check_finite), lower


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Solve by a Cholesky factor as ``scipy.linalg.cho_solve``, for Tensors and Values too.

    >>> import numpy as np, pyop
    >>> from pyop.scipy.linalg import cho_factor, cho_solve
    >>> pyop.grad(lambda a: cho_solve(cho_factor(a), np.ones(1))[0])(np.full((1, 1), 4.0))
    array([[-0.0625]])
    """
    c, lower = c_and_lower
    return by_factor(c, b, lower, overwrite_b, check_finite)
