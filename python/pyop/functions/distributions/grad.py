"""Differentiate cumulative distribution functions of scipy.special, and their inverses, by their densities."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from ...gradients.rule import elementwise, unknown
from ...transforms.composite import composite

SQRT_TWO_PI = float(np.sqrt(2 * np.pi))


def _gamma(a: Any, x: Any) -> Any:
    return np.exp((a - 1) * np.log(x) - x - sp.gammaln(a))


def _beta(a: Any, b: Any, x: Any) -> Any:
    return np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - sp.betaln(a, b))


def _chi_square(v: Any, x: Any) -> Any:
    return 0.5 * _gamma(v / 2, x / 2)


def _student(df: Any, t: Any) -> Any:
    size = np.exp(sp.gammaln((df + 1) / 2) - sp.gammaln(df / 2)) / np.sqrt(df * np.pi)
    return size * np.power(1 + t * t / df, -(df + 1) / 2)


# fmt: off
elementwise(sp.gammainc, unknown, lambda t, ans, a, x: t * _gamma(a, x))
elementwise(sp.gammaincc, unknown, lambda t, ans, a, x: -t * _gamma(a, x))
elementwise(sp.gammaincinv, unknown, lambda t, ans, a, y: t / _gamma(a, ans))
elementwise(sp.gammainccinv, unknown, lambda t, ans, a, y: -t / _gamma(a, ans))
elementwise(sp.betainc, unknown, unknown, lambda t, ans, a, b, x: t * _beta(a, b, x))
elementwise(sp.betaincinv, unknown, unknown, lambda t, ans, a, b, y: t / _beta(a, b, ans))
if hasattr(sp, "betaincc"):
    elementwise(sp.betaincc, unknown, unknown, lambda t, ans, a, b, x: -t * _beta(a, b, x))
    elementwise(sp.betainccinv, unknown, unknown, lambda t, ans, a, b, y: -t / _beta(a, b, ans))
elementwise(sp.chdtr, unknown, lambda t, ans, v, x: t * _chi_square(v, x))
elementwise(sp.chdtrc, unknown, lambda t, ans, v, x: -t * _chi_square(v, x))
elementwise(sp.chdtri, unknown, lambda t, ans, v, p: -t / _chi_square(v, ans))
elementwise(sp.gdtr, lambda t, ans, a, b, x: t * x * _gamma(b, a * x), unknown,
            lambda t, ans, a, b, x: t * a * _gamma(b, a * x))
elementwise(sp.gdtrc, lambda t, ans, a, b, x: -t * x * _gamma(b, a * x), unknown,
            lambda t, ans, a, b, x: -t * a * _gamma(b, a * x))
elementwise(sp.pdtr, unknown, lambda t, ans, k, m: -t * _gamma(np.floor(k) + 1, m))
elementwise(sp.pdtrc, unknown, lambda t, ans, k, m: t * _gamma(np.floor(k) + 1, m))
elementwise(sp.bdtr, unknown, unknown, lambda t, ans, k, n, p: -t * _beta(n - np.floor(k), np.floor(k) + 1, 1 - p))
elementwise(sp.bdtrc, unknown, unknown, lambda t, ans, k, n, p: t * _beta(n - np.floor(k), np.floor(k) + 1, 1 - p))
elementwise(sp.nbdtr, unknown, unknown, lambda t, ans, k, n, p: t * _beta(n, np.floor(k) + 1, p))
elementwise(sp.nbdtrc, unknown, unknown, lambda t, ans, k, n, p: -t * _beta(n, np.floor(k) + 1, p))
elementwise(sp.stdtr, unknown, lambda t, ans, df, x: t * _student(df, x))
elementwise(sp.stdtrit, unknown, lambda t, ans, df, p: t / _student(df, ans))
elementwise(sp.ndtr, lambda t, ans, x: t * (np.exp(-0.5 * x * x) / SQRT_TWO_PI))
elementwise(sp.log_ndtr, lambda t, ans, x: t * (np.exp(-0.5 * x * x - ans) / SQRT_TWO_PI))
elementwise(sp.ndtri, lambda t, ans, x: t * (SQRT_TWO_PI * np.exp(0.5 * ans * ans)))
elementwise(sp.ndtri_exp, lambda t, ans, y: t * (SQRT_TWO_PI * np.exp(y + 0.5 * ans * ans)))
elementwise(sp.owens_t, lambda t, ans, h, a:
            -t * np.exp(-0.5 * h * h) * sp.erf(a * h / np.sqrt(2)) / (2 * SQRT_TWO_PI),
            lambda t, ans, h, a: t * np.exp(-0.5 * h * h * (1 + a * a)) / (2 * np.pi * (1 + a * a)))
# fmt: on


@composite(sp.fdtr)
def _fdtr(a: Any, b: Any, x: Any) -> Any:
    return sp.betainc(a / 2, b / 2, a * x / (b + a * x))


@composite(sp.fdtrc)
def _fdtrc(a: Any, b: Any, x: Any) -> Any:
    return sp.betainc(b / 2, a / 2, b / (b + a * x))


@composite(sp.voigt_profile)
def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    scale = sigma * np.sqrt(2)
    return np.real(sp.wofz((x + 1j * gamma) / scale)) / (sigma * SQRT_TWO_PI)
