"""B4, B5: NumPy expressions as plans against NumPy itself, in the allocator's state of an ordinary process.

The rows are times relative to NumPy's, so a budget of "7 times faster" reads ≤ 1/7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

ARITHMETIC = "a*b + c*d - a"
TRANSCENDENTAL = "sin(a)*b + exp(c) - d"
# Size: how many times faster than NumPy the budget asks a plan to be.
BUDGETS = {
    ("B4", ARITHMETIC): {10: 7.0, 1_000: 3.0, 10_000: 1.8, 100_000: 5.0, 1_000_000: 1.3},
    ("B5", TRANSCENDENTAL): {10: 6.0, 1_000: 1.1, 100_000: 1.1, 1_000_000: 1.05},
}


def run(harness: Harness) -> list[Row]:
    """Both expressions at every size."""
    rows = []
    for (budget, text), sizes in BUDGETS.items():
        function = eval(f"lambda a, b, c, d: {text}", {"sin": np.sin, "exp": np.exp})
        plan = pyop.trace(function, *["float64[n]"] * 4).compile()
        for size, times_faster in sizes.items():
            if not (harness.quick and size > 1_000):
                rows.append(_row(harness, budget, text, size, times_faster, function, plan))
    return rows


def _row(
    harness: Harness,
    budget: str,
    text: str,
    size: int,
    times_faster: float,
    function: Callable[..., Any],
    plan: pyop.Plan,
) -> Row:
    rng = np.random.default_rng(0)
    arrays = {name: rng.random(size) for name in "abcd"}
    assert np.array_equal(plan(**arrays), function(**arrays))
    times = harness.compare(
        {
            "numpy": Statement("f(a, b, c, d)", {"f": function, **arrays}, unroll=1),
            "plan": Statement("f(a, b, c, d)", {"f": plan, **arrays}, unroll=1),
        }
    )
    ratio = times.ratio("plan", "numpy")
    return Row(
        budget,
        f"plan of {text}, {size:,} float64, over NumPy",
        f"≤ 1/{times_faster:g}",
        ratio,
        1 / times_faster,
        detail=f"{times.ns('plan'):,.0f} ns, NumPy {times.ns('numpy'):,.0f} ns: {1 / ratio:.2f} times faster",
    )
