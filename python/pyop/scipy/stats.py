"""Provide ``scipy.stats`` with six distributions for Tensors and Values.

They are the densities and distribution functions of `norm`, `t`, `gamma`, `beta`, `chi2` and `poisson`.

The derivatives by argument, location and scale are there for all; those by a shape wherever they have a closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as sp
import scipy.stats as _stats

from ._mirror import by_factors, elementwise_spec, mirrored, rest_of

__all__ = ["beta", "chi2", "gamma", "norm", "poisson", "t"]

__getattr__ = rest_of(_stats)

Slope = Callable[..., Any]  # of (z, *shapes), for the standard distribution


class Distribution:
    """Wrap a distribution of SciPy whose densities and distribution functions take Tensors and Values.

    Everything else is SciPy's own, and takes arrays. Called with its parameters it is frozen, as in SciPy.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.scipy import stats
    >>> pyop.grad(lambda mu: stats.norm.logpdf(1.0, mu, 2.0))(0.0)
    array(0.25)
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self._scipy = getattr(_stats, name)
        self._names = tuple(names)
        self.__name__ = name

    def _mirrored(self, method: str, factors: Sequence[Any]) -> Any:
        function = getattr(self._scipy, method)
        public = mirrored(function, __name__, elementwise_spec(function), f"{self.__name__}.{method}")
        by_factors(public, self._names, factors)
        setattr(self, method, public)
        return public

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        return Frozen(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._scipy, name)

    def __repr__(self) -> str:
        return f"<pyop.scipy.stats.{self.__name__}>"

    def __reduce__(self) -> str:
        return self.__name__


class Frozen:
    """Hold a distribution with its parameters.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.scipy import stats
    >>> pyop.grad(lambda s: stats.norm(0.0, scale=s).logpdf(2.0))(1.0)
    array(3.)
    """

    def __init__(self, distribution: Distribution, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._distribution = distribution
        self._args = args
        self._kwargs = kwargs

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"):
            return getattr(self._distribution._scipy(*self._args, **self._kwargs), name)
        method = getattr(self._distribution, name)
        return lambda x: method(x, *self._args, **self._kwargs)


# --- location and scale


def _standard(x: Any, rest: tuple[Any, ...], kwargs: dict[str, Any], names: Sequence[str]) -> tuple[Any, Any, Any]:
    """Return the standardized argument, the shapes, and the scale, of the arguments after the first."""
    given = {**dict(zip(names[1:], rest, strict=False)), **kwargs}
    loc, scale = given.get("loc", 0), given.get("scale", 1)
    return (x - loc) / scale, [given[name] for name in names[1:-2]], scale


def _continuous(
    name: str, shapes: Sequence[str], slope: Slope, by_shape: Sequence[Slope], inside: Slope, middle: float
) -> Distribution:
    """Return a continuous distribution, by the derivatives of the logarithm of its standard density.

    `inside` says where the density is not zero. `middle` is a point there, at which formulas are computed instead of
    outside.
    """
    names = ("x", *shapes, "loc", "scale")
    made = Distribution(name, names)

    def of_log(which: Callable[..., Any], outside: float) -> Any:
        """Return a derivative of the logarithm of the density; `which` is a function of (z, shapes, scale)."""

        def factor(x: Any, rest: Any, kwargs: Any) -> Any:
            z, values, scale = _standard(x, rest, kwargs, names)
            within = np.logical_and(inside(z), scale > 0)
            return np.where(within, which(np.where(within, z, middle), values, scale), outside)

        return factor

    log_slopes = [
        lambda z, values, scale: slope(z, *values) / scale,
        *[lambda z, values, scale, f=f: f(z, *values) + 0 * z for f in by_shape],
        lambda z, values, scale: -slope(z, *values) / scale,
        lambda z, values, scale: -(z * slope(z, *values) + 1) / scale,
    ]
    of_pdf = [of_log(which, 0.0) for which in log_slopes]
    of_logpdf = [of_log(which, np.nan) for which in log_slopes]
    made._mirrored("pdf", [lambda ans, x, *r, f=f, **k: ans * f(x, r, k) for f in of_pdf])
    made._mirrored("logpdf", [lambda ans, x, *r, f=f, **k: f(x, r, k) for f in of_logpdf])

    def by_density(log: bool, sign: float) -> list[Any]:
        def density(ans: Any, x: Any, rest: Any, kwargs: Any) -> Any:
            if log:
                return sign * np.exp(made.logpdf(x, *rest, **kwargs) - ans)
            return sign * made.pdf(x, *rest, **kwargs)

        def by_scale(ans: Any, x: Any, *rest: Any, **kwargs: Any) -> Any:
            z = _standard(x, rest, kwargs, names)[0]
            slope = density(ans, x, rest, kwargs)
            return -slope * np.where(slope == 0, 0, z)

        return [
            lambda ans, x, *r, **k: density(ans, x, r, k),
            *([None] * len(shapes)),
            lambda ans, x, *r, **k: -density(ans, x, r, k),
            by_scale,
        ]

    made._mirrored("cdf", by_density(False, 1.0))
    made._mirrored("logcdf", by_density(True, 1.0))
    made._mirrored("sf", by_density(False, -1.0))
    made._mirrored("logsf", by_density(True, -1.0))
    return made


def _everywhere(z: Any) -> Any:
    return z == z


def _positive(z: Any) -> Any:
    return z > 0


def _student_slope(z: Any, df: Any) -> Any:
    return -z * (1 + 1 / df) / (1 + z * z / df)


def _student_df(z: Any, df: Any) -> Any:
    square = z * z / df
    logs = sp.psi((df + 1) / 2) - sp.psi(df / 2) - np.log1p(square)
    return 0.5 * (logs - 1 / df + (1 + 1 / df) * square / (1 + square))


# fmt: off
norm = _continuous("norm", (), lambda z: -z, (), _everywhere, 0.0)
t = _continuous("t", ("df",), _student_slope, (_student_df,), _everywhere, 0.0)
gamma = _continuous("gamma", ("a",), lambda z, a: (a - 1) / z - 1, (lambda z, a: np.log(z) - sp.psi(a),),
                    _positive, 1.0)
beta = _continuous("beta", ("a", "b"), lambda z, a, b: (a - 1) / z - (b - 1) / (1 - z),
                   (lambda z, a, b: np.log(z) - sp.psi(a) + sp.psi(a + b),
                    lambda z, a, b: np.log1p(-z) - sp.psi(b) + sp.psi(a + b)),
                   lambda z: np.logical_and(z > 0, z < 1), 0.5)
chi2 = _continuous("chi2", ("df",), lambda z, df: (df / 2 - 1) / z - 0.5,
                   (lambda z, df: 0.5 * (np.log(z / 2) - sp.psi(df / 2)),), _positive, 1.0)
# fmt: on


# --- counts


def _counting() -> Distribution:
    made = Distribution("poisson", ("k", "mu", "loc"))

    def slope(k: Any, mu: Any, loc: Any = 0) -> Any:
        return (k - loc) / mu - 1

    def whole(k: Any, loc: Any) -> Any:
        return np.floor(k - loc)

    pmf = made._mirrored("pmf", (None, lambda ans, k, mu, loc=0: ans * np.where(ans == 0, 0, slope(k, mu, loc)), None))
    logpmf = made._mirrored("logpmf", (None, lambda ans, k, mu, loc=0: slope(k, mu, loc), None))

    def by_mass(sign: float, log: bool) -> Any:
        def factor(ans: Any, k: Any, mu: Any, loc: Any = 0) -> Any:
            if log:
                return sign * np.exp(logpmf(whole(k, loc), mu) - ans)
            return sign * pmf(whole(k, loc), mu)

        return factor

    for name, sign in (("cdf", -1.0), ("sf", 1.0)):
        made._mirrored(name, (None, by_mass(sign, False), None))
        made._mirrored(f"log{name}", (None, by_mass(sign, True), None))
    return made


poisson = _counting()
