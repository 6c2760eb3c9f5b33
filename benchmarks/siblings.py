"""B40: results in containers over an array's; first calls on new instances, and of new closures of the same code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

_RESULTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "[a[0] * 2, a[1] + 1]": (lambda a: [a[0] * 2, a[1] + 1.0], lambda a: np.array([a[0] * 2, a[1] + 1.0])),
    "(sum, x)": (lambda a: (np.sum(a * a), a * 2), lambda a: (np.sum(a * a, keepdims=True), a * 2)),
    "{energy: sum, x: x}": (
        lambda a: {"energy": np.sum(a * a), "x": a * 2},
        lambda a: (np.sum(a * a, keepdims=True), a * 2),
    ),
    "nested, of 5": (
        lambda a: {"a": [np.sum(a), a * 2], "b": (a[0], {"c": a[1], "none": None})},
        lambda a: (np.sum(a, keepdims=True), a * 2, a[:1] * 1, a[1:2] * 1),
    ),
}


class _Model:
    def __init__(self, k: float) -> None:
        self.k, self.w = k, np.arange(50.0)

    @pyop.compile
    def step(self, x: Any) -> Any:
        return x * self.k + self.w


def _closure(k: float) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        return x * k + 1.0

    return f


def run(harness: Harness) -> list[Row]:
    """The time of a call over that of a call that returns arrays, and of first calls over later ones."""
    x = np.linspace(0.1, 1.0, 50)
    rows = []
    for name, (f, of_arrays) in _RESULTS.items():
        times = harness.compare(
            {
                "compiled": Statement("f(x)", {"f": pyop.compile(f), "x": x}),
                "arrays": Statement("f(x)", {"f": pyop.compile(of_arrays), "x": x}),
                "plain": Statement("f(x)", {"f": f, "x": x}),
            },
            warm=3,
        )
        rows.append(_row(times, f"{name}, over arrays", 250, "arrays"))
    f, g = (lambda a, b: (a + b, a - b)), (lambda a, b: np.array([a + b, a - b]))
    times = harness.compare(
        {
            "compiled": Statement("f(1.5, 2.5)", {"f": pyop.compile(f)}),
            "arrays": Statement("f(1.5, 2.5)", {"f": pyop.compile(g)}),
            "plain": Statement("f(1.5, 2.5)", {"f": f}),
        },
        warm=3,
    )
    rows.append(_row(times, "two Python floats, over an array of them", 250, "arrays"))
    known, known_closure = _Model(2.0), pyop.compile(_closure(2.0))
    times = harness.compare(
        {
            "compiled": Statement("M(2.0).step(x)", {"M": _Model, "x": x}),
            "known": Statement("M(2.0); m.step(x)", {"M": _Model, "m": known, "x": x}),
            "plain": Statement("f(M(2.0), x)", {"M": _Model, "f": _Model.step.__wrapped__, "x": x}),
        },
        warm=3,
    )
    rows.append(_row(times, "the first call on a new instance, over a later one", 5000, "known"))
    names = {"make": _closure, "compile": pyop.compile, "x": x}
    times = harness.compare(
        {
            "compiled": Statement("compile(make(2.0))(x)", names),
            "known": Statement("compile(make(2.0)); f(x)", {**names, "f": known_closure}),
            "plain": Statement("make(2.0)(x)", names),
        },
        warm=3,
    )
    rows.append(_row(times, "the first call of a new closure, over a later one", 5000, "known"))
    return rows


def _row(times: Any, name: str, budget: int, base: str) -> Row:
    detail = f"{times.ns('compiled'):.0f} ns, {base} {times.ns(base):.0f} ns, plain {times.ns('plain'):.0f} ns"
    return Row("B40", name, f"≤ {budget} ns", times.over("compiled", base), budget, unit=" ns", detail=detail)
