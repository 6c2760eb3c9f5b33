"""B2: a plan of 1000 chained Python nodes against the loop that somebody would write by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import pyop

from .harness import Harness, Row, Statement

Function = Callable[[np.ndarray], np.ndarray]


def by_hand(functions: list[Function], x: np.ndarray) -> np.ndarray:
    """What the plan has to compete with."""
    for f in functions:
        x = f(x)
    return x


def returns_its_own() -> Function:
    """A function that returns an array of its own instead of its argument."""
    own = np.arange(8.0)
    return lambda x: own


def run(harness: Harness) -> list[Row]:
    """Declared and checked, and with nothing declared."""
    length = 100 if harness.quick else 1000
    functions: list[Function] = [lambda x: x for _ in range(length)]  # distinct objects, so that nothing merges
    # Beside the budget's trivial function, which hands on the array it was lent: one that returns another array every
    # time, as real ones do, so that each has to be lent anew.
    others: list[Function] = [returns_its_own() for _ in range(length)]
    declared = [pyop.op("float64[n] -> float64[n]")(f) for f in functions]
    declared_others = [pyop.op("float64[n] -> float64[n]")(f) for f in others]
    undeclared = [pyop.op(f) for f in functions]
    x = np.arange(8.0)

    plans = {
        "declared": pyop.trace(lambda x: by_hand(declared, x), "float64[n]").compile(),
        "undeclared": pyop.trace(lambda x: by_hand(undeclared, x), "float64[n]").compile(),
        "others": pyop.trace(lambda x: by_hand(declared_others, x), "float64[n]").compile(),
    }
    times = harness.compare(
        {
            "loop": Statement("f(functions, x)", {"f": by_hand, "functions": functions, "x": x}, unroll=1),
            "loop others": Statement("f(functions, x)", {"f": by_hand, "functions": others, "x": x}, unroll=1),
            **{name: Statement("f(x)", {"f": plan, "x": x}, unroll=1) for name, plan in plans.items()},
        }
    )

    def row(name: str, budget: str, limit: float) -> Row:
        detail = f"{times.ns(name) / length:.1f} ns a node, loop {times.ns('loop') / length:.1f} ns"
        if name == "declared":
            detail += f"; other arrays returned: {times.ns('others') / length:.1f} ns, "
            detail += f"{times.ratio('others', 'loop others'):.2f}×"
        what = f"plan of {length} chained Python nodes, {name}, over the loop"
        return Row("B2", what, budget, times.ratio(name, "loop"), limit, detail=detail)

    return [row("declared", "≤ 1.4×", 1.4), row("undeclared", "≤ 1.25×", 1.25)]
