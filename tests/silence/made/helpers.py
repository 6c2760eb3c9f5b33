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
    "Field": (
        "class Field:\n    scale = 0.5\n    def __init__(self, v):\n        self.v = v\n"
        "    def __iadd__(self, other):\n        self.v += other * self.scale\n        return self\n"
    ),
    "early": "def early(a):\n    if a.sum() > 0.123:\n        return a * 2.0\n    a += 1.0\n    return a\n",
    "larger": "def larger(a, b):\n    return a if a.sum() > b.sum() + 0.3 else b\n",
    "halves": "def halves(a):\n    for k in range(2):\n        a *= 0.5\n        yield a[k:]\n",
    "summed": (
        "def summed(a):\n    total = 0.0\n    def add(x):\n        nonlocal total\n        total = total + x\n"
        "        a[...] = a * 0.5\n    for k in range(2):\n        add(a.sum())\n    return total\n"
    ),
    "deep": "def deep(a, n):\n    if n == 0:\n        return a\n    a += n\n    return deep(a[1:], n - 1)\n",
    "exchange": "def exchange(box, i=0, j=1):\n    box[i], box[j] = box[j], box[i]\n    box[i] += 1.0\n",
    "apply": "def apply(f, *arrays):\n    for a in arrays:\n        f(a)\n",
    "made_like": "def made_like(a):\n    out = np.zeros(a.shape)\n    out[...] = a\n    return out\n",
    "padded": "def padded(a):\n    out = np.zeros(len(a) + 2)\n    out[1:-1] = a\n    return out\n",
    "differences": (
        "def differences(a):\n    out = np.empty(len(a) - 1)\n    for k in range(len(out)):\n"
        "        out[k] = a[k + 1] - a[k]\n    return out\n"
    ),
    "TABLE": "TABLE = np.array([0.5, 1.5, -2.5, 3.5])\n",
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

    @staticmethod
    def empty(shape: Any) -> Any:
        return np.empty(shape, complex)

    @staticmethod
    def eye(n: int) -> Any:
        return np.eye(n, dtype=complex)

    @staticmethod
    def arange(n: Any) -> Any:
        return np.arange(n, dtype=complex)

    @staticmethod
    def linspace(low: float, high: float, n: int) -> Any:
        return np.linspace(low, high, n, dtype=complex)

    @staticmethod
    def array(x: Any, **options: Any) -> Any:
        return np.array(x, complex, **options)


def names(*, complexes: bool = False) -> dict[str, Any]:
    """The globals of a program."""
    found: dict[str, Any] = {"np": np, "math": math}
    if complexes:
        steps = SimpleNamespace(sin=cmath.sin, exp=cmath.exp, cos=cmath.cos)
        found = {"np": Complexes(), "math": steps, "float": lambda x: complex(x)}
    for text in SOURCE.values():
        exec(text, found)
    return found
