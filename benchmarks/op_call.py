"""B1: what an eager op costs over calling its function: contract checked, argument lent read-only, result adopted."""

from __future__ import annotations

import numpy as np

import pyop

from .harness import Harness, Row, Statement


def run(harness: Harness) -> list[Row]:
    """One input and two inputs, eight float64 each."""
    x, y = np.arange(8.0), np.arange(8.0)

    one = lambda x: x
    two = lambda x, y: x
    one_op = pyop.op("float64[n] -> float64[n]")(one)
    two_op = pyop.op("float64[n], float64[n] -> float64[n]")(two)

    times = harness.compare(
        {
            "one": Statement("f(x)", {"f": one, "x": x}),
            "one op": Statement("f(x)", {"f": one_op, "x": x}),
            "two": Statement("f(x, y)", {"f": two, "x": x, "y": y}),
            "two op": Statement("f(x, y)", {"f": two_op, "x": x, "y": y}),
        }
    )

    def row(name: str, what: str, budget: str, limit: float) -> Row:
        detail = f"{times.ns(name + ' op'):.0f} ns, bare {times.ns(name):.0f} ns"
        detail += f", over it {times.over(name + ' op', name):.0f} ns"
        return Row("B1", what, budget, times.ratio(name + " op", name), limit, detail=detail)

    return [
        row("one", "eager op, 1 in 1 out, over the bare call", "≤ 5× (≤ 60 ns over it)", 5),
        row("two", "eager op, 2 in 1 out, over the bare call", "≤ 7×", 7),
    ]
