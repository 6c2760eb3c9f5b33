"""Provide ``scipy.special`` with more functions for Tensors and Values.

They are `logsumexp`, `softmax`, `log_softmax`, `polygamma` and `multigammaln`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as _special

from ..declare.spec import Spec
from ..functions.operand import one, operand, probe
from ..functions.reductions.grad import expanded
from ..functions.shape import broadcast, reduced
from ..gradients import table
from ..gradients.rule import PerArgument, structural
from ..gradients.table import NoRule
from ..gradients.unbroadcast import conj, is_complex, unbroadcast
from ._mirror import by_factors, elementwise_spec, mirrored, rest_of

__all__ = ["log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"]

__getattr__ = rest_of(_special)


# --- logsumexp


def _logsumexp_specs(a: Any, axis: Any = None, b: Any = None, keepdims: Any = False, return_sign: Any = False) -> Any:
    parts = [operand(a)] if b is None else [operand(a), operand(b)]
    shape = reduced(broadcast(*parts), axis, keepdims)
    if b is None:
        specs = [Spec(probe(_special.logsumexp, one(parts[0])), shape)]
    else:
        specs = [Spec(probe(_logsumexp_of_two, *map(one, parts)), shape)]
    return (specs[0], Spec(None, shape)) if return_sign else specs[0]


def _logsumexp_of_two(a: Any, b: Any) -> Any:
    return _special.logsumexp(a, b=b)


def _shares(ans: Any, a: Any, axis: Any, b: Any, keepdims: Any, return_sign: Any) -> tuple[Any, Any]:
    """Return the derivatives of the result by each exponent, and by each factor."""
    sign: Any = 1.0
    if return_sign:
        if is_complex(a) is not False or (b is not None and is_complex(b)):
            raise NoRule(
                "logsumexp(return_sign=True) of complex numbers has no gradient rule: use logsumexp without it, which "
                "returns a complex logarithm"
            )
        ans, sign = ans[0], expanded(ans[1], axis, keepdims)
    total = expanded(ans, axis, keepdims)
    each = np.exp(a - np.where(np.isfinite(total), total, 0)) * sign  # where all exponents are -inf nothing changes
    return (each, each) if b is None else (each * b, each + np.zeros_like(b))


def _logsumexp_rules(of_weight: bool) -> tuple[Any, Any]:
    def vjp(ct: Any, ans: Any, a: Any, axis: Any = None, b: Any = None, keepdims: Any = False,
            return_sign: Any = False) -> Any:  # fmt: skip
        ct = ct[0] if return_sign else ct
        share = _shares(ans, a, axis, b, keepdims, return_sign)[of_weight]
        return None if ct is None else expanded(ct, axis, keepdims) * conj(share)

    def jvp(t: Any, ans: Any, a: Any, axis: Any = None, b: Any = None, keepdims: Any = False,
            return_sign: Any = False) -> Any:  # fmt: skip
        share = _shares(ans, a, axis, b, keepdims, return_sign)[of_weight]
        total = np.sum(t * share, axis=axis, keepdims=keepdims)
        return (total, None) if return_sign else total

    return vjp, jvp


_LOGSUMEXP = "pyop.grad(logsumexp)(np.ones(2))\narray([0.5, 0.5])"
logsumexp = mirrored(_special.logsumexp, __name__, _logsumexp_specs, example=_LOGSUMEXP)
(_vjp_a, _jvp_a), (_vjp_b, _jvp_b) = _logsumexp_rules(False), _logsumexp_rules(True)
_rules = (_vjp_a, None, _vjp_b), (_jvp_a, None, _jvp_b), ("a", "axis", "b")
table.add(PerArgument(logsumexp, *_rules, lambda ct, like, ans: unbroadcast(ct, like)))


# --- softmax


def _softmax_specs(x: Any, axis: Any = None) -> Spec:
    part = operand(x)
    return Spec(probe(_special.softmax, one(part)), part.shape)


def _softmax_tangent(t: Any, ans: Any, x: Any, axis: Any = None) -> Any:
    weighted = ans * t
    return weighted - ans * np.sum(weighted, axis=axis, keepdims=True)


_SOFTMAX = "pyop.grad(lambda x: softmax(x)[0])(np.zeros(2))\narray([ 0.25, -0.25])"
softmax = mirrored(_special.softmax, __name__, _softmax_specs, example=_SOFTMAX)
_LOG_SOFTMAX = "pyop.grad(lambda x: log_softmax(x)[0])(np.zeros(2))\narray([ 0.5, -0.5])"
log_softmax = mirrored(_special.log_softmax, __name__, _softmax_specs, example=_LOG_SOFTMAX)
# fmt: off
structural(softmax, (lambda ct, ans, x, axis=None: conj(_softmax_tangent(conj(ct), ans, x, axis)),),
           (_softmax_tangent,), ("x", "axis"))
structural(log_softmax,
           (lambda ct, ans, x, axis=None: ct - conj(np.exp(ans)) * np.sum(ct, axis=axis, keepdims=True),),
           (lambda t, ans, x, axis=None: t - np.sum(np.exp(ans) * t, axis=axis, keepdims=True),), ("x", "axis"))
# fmt: on


# --- derivatives of the gamma function

_POLYGAMMA = "pyop.grad(lambda x: polygamma(0, x))(1.0).round(4)\nnp.float64(1.6449)"
polygamma = mirrored(_special.polygamma, __name__, elementwise_spec(_special.polygamma), example=_POLYGAMMA)
by_factors(polygamma, ("n", "x"), (None, lambda ans, n, x: polygamma(n + 1, x)))


def _multigammaln_specs(a: Any, d: Any) -> Spec:
    part = operand(a)
    return Spec(probe(_far_from_the_bound, one(part)), part.shape)


def _far_from_the_bound(a: Any) -> Any:
    return _special.multigammaln(a, 1)


def _multigammaln_slope(ans: Any, a: Any, d: Any) -> Any:
    slope = _special.psi(a)
    for k in range(1, int(d)):
        slope = slope + _special.psi(a - k / 2)
    return slope


_MULTIGAMMALN = "pyop.grad(lambda a: multigammaln(a, 1))(1.0).round(4)\nnp.float64(-0.5772)"
multigammaln = mirrored(_special.multigammaln, __name__, _multigammaln_specs, example=_MULTIGAMMALN)
by_factors(multigammaln, ("a", "d"), (_multigammaln_slope, None))
