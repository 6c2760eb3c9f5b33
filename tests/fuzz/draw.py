"""What the makers of lines draw from: the values of a program so far, and the table of the makers.

A maker of a kind gives the text of a call, in which ``$0``, ``$1``, … stand for values. It is free to give a call that
NumPy refuses: the program is grown by running it, and what fails is not taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import DTYPES, WEIGHTS

Made = tuple[str, tuple[int, ...]]


class Draw:
    """Random choices among the values of a program so far."""

    def __init__(self, r: random.Random, values: list[np.ndarray]) -> None:
        self.values = values
        self.random = r.random
        self.pick = r.choice
        self.weighted = r.choices
        self.below = r.randrange
        self._r = r

    def value(self, accept: Callable[[np.ndarray], Any] = lambda a: True) -> int:
        """The place of a value, a recent one more often; of one that is accepted, if there is any."""
        places = range(len(self.values))
        for _ in range(6):
            k = self.pick(places[-3:]) if self.random() < 0.5 else self.pick(places)
            if accept(self.values[k]):
                return k
        fitting = [k for k in places if accept(self.values[k])]
        return self.pick(fitting or places)

    def two(self, accept: Callable[[np.ndarray], Any] = lambda a: True) -> tuple[int, int]:
        """Places of two values that broadcast, if there are such."""
        a = self.value(accept)
        return a, self.beside(a, accept)

    def beside(self, a: int, accept: Callable[[np.ndarray], Any] = lambda a: True) -> int:
        shape = self.values[a].shape
        return self.value(lambda b: broadcasts(shape, b.shape) and accept(b))

    def number(self) -> str:
        return self.pick(NUMBERS)

    def operands(self, accept: Callable[[np.ndarray], Any] = lambda a: True) -> Made:
        """Two operands: values, or a value and a number."""
        if self.random() < 0.25:
            a = self.value(accept)
            return self.pick([f"$0, {self.number()}", f"{self.number()}, $0"]), (a,)
        return "$0, $1", self.two(accept)

    def axis(self, a: int) -> int:
        rank = self.values[a].ndim
        return self._r.randrange(-rank, rank) if rank else 0

    def axes(self, a: int) -> str:
        rank = self.values[a].ndim
        if not rank or self.random() < 0.25:
            return "None"
        if self.random() < 0.6:
            return str(self.axis(a))
        return str(tuple(self._r.sample(range(rank), self.below(rank + 1))))

    def dtype(self) -> str:
        return self.weighted(DTYPES, WEIGHTS)[0]

    def sample(self, items: Any, k: int) -> list[Any]:
        return self._r.sample(items, k)


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b), strict=False))


def small(a: np.ndarray) -> bool:
    return bool(a.size < 400)


Maker = Callable[[Draw], Made]
KINDS: dict[str, tuple[float, Maker]] = {}
NUMBERS = ["2", "3", "-1", "0", "1", "2.0", "0.5", "-0.0", "1e30", "True", "1j", "300", "np.float32(1.5)", "np.int8(3)"]
REAL = lambda a: a.dtype.kind in "buif"
FLOAT = lambda a: a.dtype.kind == "f"
INTEGER = lambda a: a.dtype.kind in "biu"
INEXACT = lambda a: a.dtype.kind in "fc"
RANKED = lambda a: a.ndim > 0


def kind(weight: float) -> Callable[[Maker], Maker]:
    def register(maker: Maker) -> Maker:
        KINDS[maker.__name__] = (weight, maker)
        return maker

    return register
