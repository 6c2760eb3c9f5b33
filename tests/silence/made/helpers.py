"""What programs find defined: functions and classes of a user's own module."""

from __future__ import annotations

import cmath
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

SOURCE = {
    "bump": "def bump(a, by=1.0):\n    a += by\n",
    "halve": "def halve(a):\n    a *= 0.5\n    return a\n",
    "keep": "def keep(a):\n    return a\n",
    "first_rows": "def first_rows(a):\n    return a[:2]\n",
    "store": "def store(box, key, a):\n    box[key] = a\n    return box\n",
    "clear": "def clear(a, *rest):\n    a[...] = 0\n    for b in rest:\n        b -= b.mean()\n",
    "normalise": "def normalise(a):\n    a -= a.mean()\n    return a.sum()\n",
    "Box": (
        "class Box:\n    def __init__(self, v):\n        self.v = v\n"
        "    def step(self, by):\n        self.v += by\n        return self.v\n"
    ),
}


class Complexes:
    """NumPy with complex numbers where it would make floats: functions of real numbers take a complex step in it."""

    float64 = staticmethod(lambda x: np.complex128(x))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def zeros(shape: Any) -> Any:
        return np.zeros(shape, complex)

    @staticmethod
    def ones(shape: Any) -> Any:
        return np.ones(shape, complex)

    @staticmethod
    def full(shape: Any, value: Any) -> Any:
        return np.full(shape, value, complex)


def names(*, complexes: bool = False) -> dict[str, Any]:
    """The globals of a program."""
    found: dict[str, Any] = {"np": np, "math": math}
    if complexes:
        steps = SimpleNamespace(sin=cmath.sin, exp=cmath.exp, cos=cmath.cos)
        found = {"np": Complexes(), "math": steps, "float": lambda x: complex(x)}
    for text in SOURCE.values():
        exec(text, found)
    return found
