"""Differentiate the ufuncs of scipy.special; loaded when a program that uses SciPy asks for a rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from ...gradients.rule import elementwise, nondifferentiable, unknown
from ...gradients.table import NoRule
from ...gradients.unbroadcast import is_complex
from . import orders  # noqa: F401  the rest of the family

PI = float(np.pi)
TWO_OVER_SQRT_PI = float(2 / np.sqrt(np.pi))
HALF_SQRT_PI = float(np.sqrt(np.pi) / 2)
DEGREE = float(np.pi / 180)
LN10 = float(np.log(10.0))
# `sp.zeta` is a function around this ufunc.
_zeta: Any = getattr(sp._ufuncs, "_zeta", sp.zeta)


def _trigamma(x: Any) -> Any:
    if is_complex(x):
        raise NoRule(
            "scipy.special.psi of complex numbers has no gradient rule: SciPy has its derivative, polygamma, for real "
            "numbers only; differentiate by real arguments"
        )
    return _zeta(2.0, x)


def _entr(t: Any, ans: Any, x: Any) -> Any:
    return t * (-np.log(x) - 1)


# fmt: off
elementwise(sp.gamma, lambda t, ans, x: t * ans * sp.psi(x))
elementwise(sp.gammaln, lambda t, ans, x: t * sp.psi(x))
elementwise(sp.loggamma, lambda t, ans, x: t * sp.psi(x))
elementwise(sp.rgamma, lambda t, ans, x: -t * ans * sp.psi(x))
elementwise(sp.psi, lambda t, ans, x: t * _trigamma(x))
elementwise(_zeta, unknown, lambda t, ans, x, q: -t * x * _zeta(x + 1.0, q))
elementwise(sp.beta, lambda t, ans, a, b: t * ans * (sp.psi(a) - sp.psi(a + b)),
            lambda t, ans, a, b: t * ans * (sp.psi(b) - sp.psi(a + b)))
elementwise(sp.betaln, lambda t, ans, a, b: t * (sp.psi(a) - sp.psi(a + b)),
            lambda t, ans, a, b: t * (sp.psi(b) - sp.psi(a + b)))
elementwise(sp.poch, lambda t, ans, z, m: t * ans * (sp.psi(z + m) - sp.psi(z)),
            lambda t, ans, z, m: t * ans * sp.psi(z + m))
elementwise(sp.binom, lambda t, ans, n, k: t * ans * (sp.psi(n + 1) - sp.psi(n - k + 1)),
            lambda t, ans, n, k: t * ans * (sp.psi(n - k + 1) - sp.psi(k + 1)))

elementwise(sp.erf, lambda t, ans, x: t * (TWO_OVER_SQRT_PI * np.exp(-x * x)))
elementwise(sp.erfc, lambda t, ans, x: -t * (TWO_OVER_SQRT_PI * np.exp(-x * x)))
elementwise(sp.erfi, lambda t, ans, x: t * (TWO_OVER_SQRT_PI * np.exp(x * x)))
elementwise(sp.erfcx, lambda t, ans, x: t * (2 * x * ans - TWO_OVER_SQRT_PI))
elementwise(sp.dawsn, lambda t, ans, x: t * (1 - 2 * x * ans))
elementwise(sp.erfinv, lambda t, ans, x: t * (HALF_SQRT_PI * np.exp(ans * ans)))
elementwise(sp.erfcinv, lambda t, ans, x: -t * (HALF_SQRT_PI * np.exp(ans * ans)))

elementwise(sp.expit, lambda t, ans, x: t * (ans * (1 - ans)))
elementwise(sp.log_expit, lambda t, ans, x: t * sp.expit(-x))
elementwise(sp.logit, lambda t, ans, x: t / (x * (1 - x)))
elementwise(sp.xlogy, lambda t, ans, x, y: t * np.log(y), lambda t, ans, x, y: t * x / y)
elementwise(sp.xlog1py, lambda t, ans, x, y: t * np.log1p(y), lambda t, ans, x, y: t * x / (1 + y))
elementwise(sp.entr, _entr)
elementwise(sp.rel_entr, lambda t, ans, x, y: t * (np.log(x / y) + 1), lambda t, ans, x, y: -t * x / y)
elementwise(sp.kl_div, lambda t, ans, x, y: t * np.log(x / y), lambda t, ans, x, y: t * (1 - x / y))
elementwise(sp.exp2, lambda t, ans, x: t * (float(np.log(2.0)) * ans))
elementwise(sp.exp10, lambda t, ans, x: t * (LN10 * ans))
elementwise(sp.expm1, lambda t, ans, x: t * (ans + 1))
elementwise(sp.log1p, lambda t, ans, x: t / (x + 1))
elementwise(sp.cosm1, lambda t, ans, x: -t * np.sin(x))
elementwise(sp.cbrt, lambda t, ans, x: t / (3 * ans * ans))
elementwise(sp.exprel, lambda t, ans, x: t * (np.exp(x) - ans) / x)
elementwise(sp.boxcox, lambda t, ans, x, lam: t * x ** (lam - 1), lambda t, ans, x, lam:
            t * (np.power(x, lam) * np.log(x) - ans) / lam)
elementwise(sp.inv_boxcox, lambda t, ans, y, lam: t * np.power(ans, 1 - lam), unknown)
elementwise(sp.huber, unknown, lambda t, ans, delta, r: t * np.minimum(np.maximum(r, -delta), delta))
elementwise(sp.pseudo_huber, unknown, lambda t, ans, delta, r: t * r / np.sqrt(1 + (r / delta) ** 2))

elementwise(sp.j0, lambda t, ans, x: -t * sp.j1(x))
elementwise(sp.j1, lambda t, ans, x: t * (sp.j0(x) - sp.jv(2.0, x)) / 2)
elementwise(sp.jv, unknown, lambda t, ans, v, x: t * (sp.jv(v - 1.0, x) - sp.jv(v + 1.0, x)) / 2)
elementwise(sp.y0, lambda t, ans, x: -t * sp.y1(x))
elementwise(sp.y1, lambda t, ans, x: t * (sp.y0(x) - sp.yv(2.0, x)) / 2)
elementwise(sp.yv, unknown, lambda t, ans, v, x: t * (sp.yv(v - 1.0, x) - sp.yv(v + 1.0, x)) / 2)
elementwise(sp.i0, lambda t, ans, x: t * sp.i1(x))
elementwise(sp.i1, lambda t, ans, x: t * (sp.i0(x) + sp.iv(2.0, x)) / 2)
elementwise(sp.i0e, lambda t, ans, x: t * (sp.i1e(x) - np.sign(x) * ans))
elementwise(sp.i1e, lambda t, ans, x: t * ((sp.i0e(x) + sp.ive(2.0, x)) / 2 - np.sign(x) * ans))
elementwise(sp.iv, unknown, lambda t, ans, v, x: t * (sp.iv(v - 1.0, x) + sp.iv(v + 1.0, x)) / 2)
elementwise(sp.k0, lambda t, ans, x: -t * sp.k1(x))
elementwise(sp.k1, lambda t, ans, x: -t * (sp.k0(x) + sp.kv(2.0, x)) / 2)
elementwise(sp.kv, unknown, lambda t, ans, v, x: -t * (sp.kv(v - 1.0, x) + sp.kv(v + 1.0, x)) / 2)
elementwise(sp.exp1, lambda t, ans, x: -t * np.exp(-x) / x)
elementwise(sp.expi, lambda t, ans, x: t * np.exp(x) / x)
elementwise(sp.expn, unknown, lambda t, ans, n, x: -t * sp.expn(n - 1, x))
elementwise(sp.ellipk, lambda t, ans, m: t * (sp.ellipe(m) / (1 - m) - ans) / (2 * m))
elementwise(sp.ellipe, lambda t, ans, m: t * (ans - sp.ellipk(m)) / (2 * m))
elementwise(sp.sindg, lambda t, ans, x: t * (DEGREE * sp.cosdg(x)))
elementwise(sp.cosdg, lambda t, ans, x: -t * (DEGREE * sp.sindg(x)))
elementwise(sp.tandg, lambda t, ans, x: t * (DEGREE * (1 + ans * ans)))
elementwise(sp.cotdg, lambda t, ans, x: -t * (DEGREE * (1 + ans * ans)))
elementwise(sp.powm1, lambda t, ans, x, y: t * (y * np.power(x, y - 1)),
            lambda t, ans, x, y: t * ((ans + 1) * np.log(x)))
elementwise(sp.boxcox1p, lambda t, ans, x, lam: t * np.power(1 + x, lam - 1),
            lambda t, ans, x, lam: t * (np.power(1 + x, lam) * np.log1p(x) - ans) / lam)
elementwise(sp.inv_boxcox1p, lambda t, ans, y, lam: t * np.power(1 + ans, 1 - lam), unknown)
if hasattr(sp, "softplus"):
    elementwise(sp.softplus, lambda t, ans, x: t * sp.expit(x))
elementwise(sp.spence, lambda t, ans, z: t * np.log(z) / (1 - z))
# fmt: on

nondifferentiable(sp.round, sp.gammasgn)
