"""Plans that are called by C in all ways at once, with their arguments."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import pyop

from ..calling import pointers, results_for


def _in_python(x):
    return np.sin(x) + 1


def _raising(x):
    raise ValueError("it is raised on purpose")


# Without Python, and with.
NATIVE = {
    "numbers": (lambda x: np.exp(-x * x) * np.sin(3 * x) + x, "float64[]"),
    "small arrays": (lambda x: (np.tanh(x) * 2 + x.sum(), x.max() - x.mean(), x[1:] @ x[:-1]), "float64[9]"),
    "matrices": (lambda a: (a @ a.T, a.sum(axis=0), np.concatenate([a, a], axis=1)), "float64[4,4]"),
    "a loop": (lambda x: pyop.fori_loop(0, 20, lambda i, v: np.cos(v) + 0.1 * x, x), "float64[5]"),
}
ATTACHED = {
    "Python": (lambda x: pyop.py_func(_in_python, [x], "float64[4]"), "float64[4]"),
    "a sort": (lambda x: np.sort(x) * 2, "float64[16]"),
}
RAISING = (lambda x: pyop.py_func(_raising, [x], "float64[]"), "float64[]")


class Called:
    """A plan, arguments in C's words, and what Python gives for them."""

    def __init__(self, f: Any, spec: str) -> None:
        self.plan = pyop.trace(f, spec).compile()
        text = spec[:-1].partition("[")[2]
        shape = tuple(int(n) for n in text.split(",")) if text else ()
        self.argument = np.asarray(np.random.default_rng(0).normal(size=shape))
        self.results = results_for(self.plan)
        got = self.plan(self.argument)
        self.expected = [np.asarray(r) for r in (got if isinstance(got, tuple) else (got,))]
        self._in, self._out = pointers([self.argument]), pointers(self.results)
        self._want = pointers(self.expected)
        at = ctypes.addressof
        self.call = (self.plan.address, at(self._in), at(self._out))
        self.check = (self.plan.address, at(self._in), at(self._want))

    def right(self) -> bool:
        return all(a.tobytes() == b.tobytes() for a, b in zip(self.expected, self.results, strict=True))
