"""The functions whose gradients are measured (gradients.py): numbers of arrays, in the functions of a module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Loss:
    """A function, what it is declared with, arrays of about `size` elements, and which arguments it is differentiated
    by.
    """

    name: str
    written: Callable[[Any], Function]
    specs: tuple[str, ...]
    arrays: Callable[[np.random.Generator, int], tuple[Any, ...]]
    argnums: tuple[int, ...]


def expression(xp: Any) -> Function:
    """20 operations and a sum, in the functions of a module."""

    def f(x: Any, y: Any, z: Any) -> Any:
        waves = xp.tanh(x * y + z) * xp.exp(-x) + xp.sin(y) * xp.cos(z)
        return xp.sum(waves - x / (1.0 + y * y) + xp.sqrt(z * z + 1.0) * x - y * 0.5)

    return f


def arithmetic(xp: Any) -> Function:
    """21 operations that take a nanosecond each, and a sum."""

    def f(x: Any, y: Any, z: Any) -> Any:
        a = x * y + z
        b = a * a - x / (1.0 + y * y)
        c = xp.sqrt(z * z + 1.0) * x - y * 0.5
        d = (b - c) * (a + x)
        e = d * d + b * c - z
        return xp.sum(e * e)

    return f


def horner(xp: Any) -> Function:
    """A polynomial of one array, by Horner's rule."""

    def f(x: Any) -> Any:
        t = x
        for k in range(7):
            t = t * x + (0.1 * k + 0.3)
        return xp.sum(t * t - x / (1.0 + x * x))

    return f


def rosenbrock(xp: Any) -> Function:
    """Slices of one array."""

    def f(x: Any) -> Any:
        return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return f


def least_squares(xp: Any) -> Function:
    """A matrix product, and the mean of squares."""

    def f(w: Any, a: Any, b: Any) -> Any:
        r = xp.dot(a, w) - b
        return xp.mean(r * r)

    return f


def cross_entropy(xp: Any) -> Function:
    """The softmax of a linear model against labels, one-hot."""

    def f(w: Any, x: Any, labels: Any) -> Any:
        scores = xp.dot(x, w)
        centred = scores - xp.max(scores, axis=1, keepdims=True)
        logs = centred - xp.log(xp.sum(xp.exp(centred), axis=1, keepdims=True))
        return -xp.mean(xp.sum(labels * logs, axis=1))

    return f


def logistic(xp: Any) -> Function:
    """Logistic regression with a penalty."""

    def f(w: Any, x: Any, y: Any) -> Any:
        return xp.mean(xp.log(1.0 + xp.exp(-y * xp.dot(x, w)))) + 0.01 * xp.sum(w * w)

    return f


def _vectors(count: int) -> Callable[[np.random.Generator, int], tuple[Any, ...]]:
    return lambda rng, size: tuple(rng.random((count, size)))


def _rows(rng: np.random.Generator, size: int, columns: int) -> tuple[Any, int]:
    n = max(size // columns, 2)
    return rng.random((n, columns)), n


def _regression(rng: np.random.Generator, size: int) -> tuple[Any, ...]:
    x, n = _rows(rng, size, 10)
    return rng.random(10), x, np.where(rng.random(n) < 0.5, -1.0, 1.0)


def _classes(rng: np.random.Generator, size: int) -> tuple[Any, ...]:
    x, n = _rows(rng, size, 20)
    return rng.random((20, 10)), x, np.eye(10)[rng.integers(0, 10, n)]


_THREE = ("float64[n]",) * 3
EXPRESSIONS = (
    Loss("20 operations, four of them functions", expression, _THREE, _vectors(3), (0, 1, 2)),
    Loss("21 operations of arithmetic", arithmetic, _THREE, _vectors(3), (0, 1, 2)),
    Loss("a polynomial", horner, ("float64[n]",), _vectors(1), (0,)),
    Loss("Rosenbrock's function", rosenbrock, ("float64[n]",), _vectors(1), (0,)),
)
MODELS = (
    Loss("least squares", least_squares, ("float64[d]", "float64[n,d]", "float64[n]"), _regression, (0,)),
    Loss("softmax cross entropy", cross_entropy, ("float64[d,k]", "float64[n,d]", "float64[n,k]"), _classes, (0,)),
    Loss("logistic regression", logistic, ("float64[d]", "float64[n,d]", "float64[n]"), _regression, (0,)),
)
