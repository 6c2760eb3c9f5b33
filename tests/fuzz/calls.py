"""Random lines of NumPy: the makers of all kinds, and which of them follow each other."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from . import (  # noqa: F401 - each adds its kinds
    elementwise,
    moving,
    products,
    reductions,
    views,
    writes,
)
from .draw import KINDS, Draw, Made

_MAKERS = [maker for _, maker in KINDS.values()]
_CUMULATED = list(np.cumsum([weight for weight, _ in KINDS.values()]))
_CHAINED = [(weight, maker) for weight, maker in KINDS.values() if maker.__module__ == elementwise.__name__]


class ChainDraw(Draw):
    """Draws the last value most of the time, so that each line reads the one before it."""

    def value(self, accept: Callable[[np.ndarray], Any] = lambda a: True) -> int:
        if self.random() < 0.6 and accept(self.values[-1]):
            return len(self.values) - 1
        return super().value(accept)


def random_call(r: random.Random, values: list[np.ndarray]) -> Made:
    """One line, of a random kind."""
    return r.choices(_MAKERS, cum_weights=_CUMULATED)[0](Draw(r, values))


def chain_call(r: random.Random, values: list[np.ndarray]) -> Made:
    """One elementwise line, most often of the value before it."""
    weights = [weight for weight, _ in _CHAINED]
    return r.choices(_CHAINED, weights)[0][1](ChainDraw(r, values))


def ending_call(r: random.Random, values: list[np.ndarray]) -> Made:
    """A reduction of the last value, of all of it more often than along some axes."""
    d = ChainDraw(r, values)
    last = len(values) - 1
    name = r.choices(["sum", "max", "min", "prod", "mean", "any", "all", "var"], [8, 3, 3, 3, 5, 1, 1, 1])[0]
    if r.random() < 0.5:
        return r.choice([f"np.{name}($0)", f"$0.{name}()"]), (last,)
    more = ", keepdims=True" if r.random() < 0.3 else ""
    if name in ("sum", "prod", "mean") and r.random() < 0.3:
        more += f", dtype={d.dtype()!r}"
    elif name in ("sum", "prod", "max", "min") and r.random() < 0.2:
        more += f", initial={d.number()}"
    return f"np.{name}($0, axis={r.choice(['None', d.axes(last)])}{more})", (last,)
