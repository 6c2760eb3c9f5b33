"""Differentiate functions of scipy.special with an order or parameters, and those with several results.

They are Bessel and Struve functions, hypergeometric functions, orthogonal polynomials and elliptic integrals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from ...gradients.rule import PerArgument, elementwise, structural, unknown
from ...gradients.table import add
from ...gradients.unbroadcast import conj, is_complex, unbroadcast

_lambertw: Any = getattr(sp._ufuncs, "_lambertw", None)


def _recurring(f: Any, sign: float = -1.0, scaled: complex = 0.0) -> None:
    """Add the rule of a function of order and argument with ``f' = (f(v-1) + sign * f(v+1)) / 2 + scaled * f``."""

    def by_argument(t: Any, ans: Any, v: Any, x: Any) -> Any:
        slope = (f(v - 1, x) + sign * f(v + 1, x)) / 2
        return t * (slope + scaled * ans if scaled else slope)

    elementwise(f, unknown, by_argument)


def _several(f: Any, *slopes: Any) -> None:
    """Add the rule of a function of one argument with several results; `slopes` of ``(x, *results)``."""

    def vjp(ct: Any, ans: Any, x: Any) -> Any:
        parts = [c * conj(slope(x, *ans)) for c, slope in zip(ct, slopes, strict=True) if c is not None]
        return sum(parts[1:], parts[0]) if parts else None

    structural(f, (vjp,), (lambda t, ans, x: tuple([t * slope(x, *ans) for slope in slopes]),), ("x",))


def _enveloped(f: Any, slope: Any, part: Any) -> None:
    """Add the rule of a function of order and argument times ``exp(-abs(part(z)))``, which is not holomorphic."""

    def vjp(ct: Any, ans: Any, v: Any, z: Any) -> Any:
        unit = 1.0 if part is np.real else 1j
        gradient = conj(slope(v, z)) * ct - unit * np.sign(part(z)) * np.real(conj(ans) * ct)
        return gradient if is_complex(z) is not False else np.real(gradient)

    def jvp(t: Any, ans: Any, v: Any, z: Any) -> Any:
        return slope(v, z) * t - np.sign(part(z)) * part(t) * ans

    add(PerArgument(f, (unknown, vjp), (unknown, jvp), ("v", "z"), unbroadcast))


def _sine2(m: Any, phi: Any) -> Any:
    return 1 - m * np.sin(phi) ** 2


def _ellipkinc_m(t: Any, ans: Any, phi: Any, m: Any) -> Any:
    rest = sp.ellipeinc(phi, m) / (2 * m * (1 - m)) - ans / (2 * m)
    return t * (rest - np.sin(2 * phi) / (4 * (1 - m) * np.sqrt(_sine2(m, phi))))


# fmt: off
for _f in (sp.yn, sp.hankel1, sp.hankel2):
    _recurring(_f)
_enveloped(sp.jve, lambda v, z: (sp.jve(v - 1, z) - sp.jve(v + 1, z)) / 2, np.imag)
_enveloped(sp.yve, lambda v, z: (sp.yve(v - 1, z) - sp.yve(v + 1, z)) / 2, np.imag)
_enveloped(sp.ive, lambda v, z: (sp.ive(v - 1, z) + sp.ive(v + 1, z)) / 2, np.real)
_recurring(sp.hankel1e, scaled=-1j)
_recurring(sp.hankel2e, scaled=1j)
elementwise(sp.kve, unknown, lambda t, ans, v, x: t * (ans - (sp.kve(v - 1, x) + sp.kve(v + 1, x)) / 2))
elementwise(sp.kn, unknown, lambda t, ans, n, x: -t * (sp.kv(n - 1.0, x) + sp.kv(n + 1.0, x)) / 2)
elementwise(sp.k0e, lambda t, ans, x: t * (ans - sp.k1e(x)))
elementwise(sp.k1e, lambda t, ans, x: t * (ans - (sp.k0e(x) + sp.kve(2.0, x)) / 2))
elementwise(sp.struve, unknown, lambda t, ans, v, x: t * (sp.struve(v - 1, x) - v * ans / x))
elementwise(sp.modstruve, unknown, lambda t, ans, v, x: t * (sp.modstruve(v - 1, x) - v * ans / x))
for _f, _slope in ((sp.ber, sp.berp), (sp.bei, sp.beip), (sp.ker, sp.kerp), (sp.kei, sp.keip)):
    elementwise(_f, lambda t, ans, x, slope=_slope: t * slope(x))

elementwise(sp.hyp0f1, unknown, lambda t, ans, v, z: t * sp.hyp0f1(v + 1, z) / v)
elementwise(sp.hyp1f1, unknown, unknown, lambda t, ans, a, b, x: t * (a / b * sp.hyp1f1(a + 1, b + 1, x)))
elementwise(sp.hyp2f1, unknown, unknown, unknown,
            lambda t, ans, a, b, c, z: t * (a * b / c * sp.hyp2f1(a + 1, b + 1, c + 1, z)))
elementwise(sp.hyperu, unknown, unknown, lambda t, ans, a, b, x: -t * (a * sp.hyperu(a + 1, b + 1, x)))

elementwise(sp.eval_chebyt, None, lambda t, ans, n, x: t * (n * sp.eval_chebyu(n - 1, x)))
elementwise(sp.eval_chebyu, None, lambda t, ans, n, x: t * ((n + 1) * sp.eval_chebyt(n + 1, x) - x * ans) / (x * x - 1))
elementwise(sp.eval_hermite, None, lambda t, ans, n, x: t * (2 * n * (sp.eval_hermite(n - 1, x))))
elementwise(sp.eval_hermitenorm, None, lambda t, ans, n, x: t * (n * sp.eval_hermitenorm(n - 1, x)))
elementwise(sp.eval_legendre, None, lambda t, ans, n, x: t * n * (x * ans - sp.eval_legendre(n - 1, x)) / (x * x - 1))
elementwise(sp.eval_laguerre, None, lambda t, ans, n, x: -t * sp.eval_genlaguerre(n - 1, 1.0, x))
elementwise(sp.eval_genlaguerre, None, unknown, lambda t, ans, n, a, x: -t * sp.eval_genlaguerre(n - 1, a + 1, x))
elementwise(sp.eval_gegenbauer, None, unknown,
            lambda t, ans, n, a, x: t * (2 * a * sp.eval_gegenbauer(n - 1, a + 1, x)))
elementwise(sp.eval_jacobi, None, unknown, unknown, lambda t, ans, n, a, b, x:
            t * ((n + a + b + 1) / 2 * sp.eval_jacobi(n - 1, a + 1, b + 1, x)))

elementwise(sp.ellipkm1, lambda t, ans, p: t * (ans - sp.ellipe(1 - p) / p) / (2 * (1 - p)))
elementwise(sp.ellipeinc, lambda t, ans, phi, m: t * np.sqrt(_sine2(m, phi)),
            lambda t, ans, phi, m: t * (ans - sp.ellipkinc(phi, m)) / (2 * m))
elementwise(sp.ellipkinc, lambda t, ans, phi, m: t / np.sqrt(_sine2(m, phi)), _ellipkinc_m)
if hasattr(sp, "elliprf"):
    elementwise(sp.elliprf, lambda t, ans, x, y, z: -t * sp.elliprd(y, z, x) / 6,
                lambda t, ans, x, y, z: -t * sp.elliprd(x, z, y) / 6,
                lambda t, ans, x, y, z: -t * sp.elliprd(x, y, z) / 6)
    elementwise(sp.elliprc, lambda t, ans, x, y: -t * sp.elliprd(y, y, x) / 6,
                lambda t, ans, x, y: -t * sp.elliprd(x, y, y) / 3)
if _lambertw is not None:
    elementwise(_lambertw, lambda t, ans, z, k, tol: t * ans / (z * (1 + ans)), None, None)
elementwise(sp.wofz, lambda t, ans, z: t * (2j / np.sqrt(np.pi) - 2 * z * ans))
elementwise(sp.wrightomega, lambda t, ans, z: t * ans / (1 + ans))

_several(sp.sici, lambda x, s, c: np.sin(x) / x, lambda x, s, c: np.cos(x) / x)
_several(sp.shichi, lambda x, s, c: np.sinh(x) / x, lambda x, s, c: np.cosh(x) / x)
_several(sp.fresnel, lambda x, s, c: np.sin(np.pi / 2 * x * x), lambda x, s, c: np.cos(np.pi / 2 * x * x))
_several(sp.airy, lambda x, a, ap, b, bp: ap, lambda x, a, ap, b, bp: x * a, lambda x, a, ap, b, bp: bp,
         lambda x, a, ap, b, bp: x * b)
_several(sp.itj0y0, lambda x, j, y: sp.j0(x), lambda x, j, y: sp.y0(x))
_several(sp.iti0k0, lambda x, i, k: sp.i0(x), lambda x, i, k: sp.k0(x))
# fmt: on
