"""Ten ops, declared once, that every framework's adapter is held against: their values, gradients and batches.

A `Case` has the op, arguments for it, and in plain NumPy what it computes and its gradient. Adapters say in their own
tests what a framework cannot do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pyop


@dataclass(frozen=True)
class Case:
    """One op, and what is known of it.

    `reference` takes the arguments (and the static ones) and returns what the op returns; `gradient` takes the
    cotangents, a tree like the results, and the arguments, and returns one gradient an argument, None for none.
    `arguments` makes them of a generator and a size, so that a test can ask for other ones. Where `exact` is false, the
    op adds random numbers from 0 to 1 to what `reference` returns.
    """

    name: str
    op: Any
    reference: Callable[..., Any]
    gradient: Callable[..., Any] | None
    arguments: Callable[[np.random.Generator, int], tuple[Any, ...]]
    statics: dict[str, Any] = field(default_factory=dict)
    exact: bool = True

    def made(self, n: int = 4, seed: int = 0) -> tuple[Any, ...]:
        """Arguments, the same for the same numbers."""
        return self.arguments(np.random.default_rng(seed), n)


# 1. elementwise, with a gradient


@pyop.op("float64[*sizes] -> float64[*sizes]")
def softsign(x):
    return x / (1 + np.abs(x))


@softsign.vjp
def _(ct, x):
    return ct / (1 + np.abs(x)) ** 2


# 2. two inputs that broadcast: rows and a matrix


@pyop.op("float64[m,n], float64[n] -> float64[m,n]")
def scale_rows(x, w):
    return x * w


@scale_rows.vjp
def _(ct, x, w):
    return ct * w, (ct * x).sum(0)


# 3. a reduction


@pyop.op("float64[m,n] -> float64[m]")
def log_sum_exp(x):
    top = x.max(1, initial=-np.inf)
    return top + np.log(np.exp(x - top[:, None]).sum(1))


@log_sum_exp.vjp
def _(ct, x, *, out):
    return ct[:, None] * np.exp(x - out[:, None])


# 4. a matrix product, whose sizes are names


@pyop.op("float64[m,k], float64[k,n] -> float64[m,n]")
def product(a, b):
    return a @ b


@product.vjp
def _(ct, a, b, *, needs):
    return ct @ b.T if needs[0] else None, a.T @ ct if needs[1] else None


# 5. two results, in a dict


@pyop.op(inputs=["float64[n]"], outputs={"mean": "float64[]", "centred": "float64[n]"})
def centre(x):
    mean = x.mean()
    return {"mean": mean, "centred": x - mean}


@centre.vjp
def _(ct, x):
    n = len(x)
    return ct["mean"] / n + ct["centred"] - ct["centred"].sum() / n


# 6. a static argument


@pyop.op("float64[n] -> float64[n]")
def power(x, *, exponent: int = 2):
    return x**exponent


@power.vjp
def _(ct, x, *, exponent=2):
    return ct * exponent * x ** (exponent - 1)


# 7. stateful: random numbers

_random = np.random.default_rng(7)


@pyop.op("float64[n] -> float64[n]", stateful=True)
def jitter(x):
    return x + _random.random(len(x))


@jitter.vjp
def _(ct, x):
    return ct


# 8. one that writes into its argument


@pyop.op("float64[n] -> float64[]", mutates="x")
def sort_in_place(x):
    x.sort()
    return x[len(x) // 2] if len(x) else np.float64(np.nan)


# 9. declared as a gufunc


@pyop.op("(n),(n)->()", dtype="float64")
def dot(x, y):
    return np.dot(x, y)


@dot.vjp
def _(ct, x, y):
    return ct[..., None] * y, ct[..., None] * x


# 10. of float32 or float64, with an integer input, and a gradient that uses residuals


@pyop.op("T[n], int64[m] -> T[m]")
def take_sines(x, index):
    angles = x[index]
    return pyop.saved(np.sin(angles), np.cos(angles))


@take_sines.vjp
def _(ct, x, index, *, saved):
    found = np.zeros_like(x)
    np.add.at(found, index, ct * saved)
    return found, None


def _normal(*shapes: Callable[[int], tuple[int, ...]]) -> Callable[[np.random.Generator, int], tuple[Any, ...]]:
    return lambda random, n: tuple(random.normal(size=shape(n)) for shape in shapes)


def _taken(dtype: Any) -> Callable[[np.random.Generator, int], tuple[Any, ...]]:
    return lambda random, n: (random.normal(size=n + 1).astype(dtype), random.integers(0, n + 1, 2 * n))


def _softmax(ct: Any, x: Any) -> tuple[Any]:
    top = np.exp(x - x.max(1, keepdims=True))
    return (ct[:, None] * top / top.sum(1, keepdims=True),)


def _scattered(ct: Any, x: Any, index: Any) -> tuple[Any, None]:
    found = np.zeros_like(x)
    for value, k in zip(ct * np.cos(x[index]), index, strict=True):
        found[k] += value
    return found, None


CASES = [
    Case(
        "elementwise",
        softsign,
        lambda x: x / (1 + np.abs(x)),
        lambda ct, x: (ct / (1 + np.abs(x)) ** 2,),
        _normal(lambda n: (n, 2)),
    ),
    Case(
        "broadcasting",
        scale_rows,
        lambda x, w: x * w,
        lambda ct, x, w: (ct * w, (ct * x).sum(0)),
        _normal(lambda n: (3, n), lambda n: (n,)),
    ),
    Case(
        "reduction",
        log_sum_exp,
        lambda x: np.logaddexp.reduce(x, axis=1),
        _softmax,
        _normal(lambda n: (3, n)),
    ),
    Case(
        "product",
        product,
        lambda a, b: np.einsum("ij,jk->ik", a, b),
        lambda ct, a, b: (ct @ b.T, a.T @ ct),
        _normal(lambda n: (2, n), lambda n: (n, 3)),
    ),
    Case(
        "two results",
        centre,
        lambda x: {"mean": x.mean(), "centred": x - x.mean()},
        lambda ct, x: (ct["mean"] / len(x) + ct["centred"] - ct["centred"].mean(),),
        _normal(lambda n: (n,)),
    ),
    Case(
        "static argument",
        power,
        lambda x, exponent=2: x**exponent,
        lambda ct, x: (ct * 3 * x**2,),
        _normal(lambda n: (n,)),
        statics={"exponent": 3},
    ),
    Case("stateful", jitter, lambda x: x, lambda ct, x: (ct,), _normal(lambda n: (n,)), exact=False),
    Case("writes", sort_in_place, lambda x: np.sort(x)[len(x) // 2], None, _normal(lambda n: (n,))),
    Case(
        "gufunc",
        dot,
        lambda x, y: (x * y).sum(-1),
        lambda ct, x, y: (ct[..., None] * y, ct[..., None] * x),
        _normal(lambda n: (3, n), lambda n: (3, n)),
    ),
    Case("residuals, float64", take_sines, lambda x, i: np.sin(x[i]), _scattered, _taken(np.float64)),
    Case("residuals, float32", take_sines, lambda x, i: np.sin(x[i]), _scattered, _taken(np.float32)),
]
