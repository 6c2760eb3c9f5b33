"""B3: a plan of 1000 independent two-input nodes against the loop; what calling a plan costs at all."""

from __future__ import annotations

import numpy as np

import pyop

from .harness import Harness, Row, Statement


def run(harness: Harness) -> list[Row]:
    """The wide plan, and the smallest one."""
    width = 100 if harness.quick else 1000
    functions = [lambda x, y: x for _ in range(width)]
    ops = [pyop.op("float64[n], float64[n] -> float64[n]")(f) for f in functions]
    x, y = np.arange(8.0), np.arange(8.0)
    wide = pyop.trace(lambda x, y: [f(x, y) for f in ops], "float64[n]", "float64[n]").compile()

    single = lambda x: x
    single_op = pyop.op("float64[n] -> float64[n]")(single)
    smallest = pyop.trace(single_op, "float64[n]").compile()

    def by_hand() -> list[np.ndarray]:
        return [f(x, y) for f in functions]

    times = harness.compare(
        {
            "loop": Statement("f()", {"f": by_hand}, unroll=1),
            "wide": Statement("f(x, y)", {"f": wide, "x": x, "y": y}, unroll=1),
            "bare": Statement("f(x)", {"f": single, "x": x}),
            "plan": Statement("f(x)", {"f": smallest, "x": x}),
        }
    )
    per_node = f"{times.ns('wide') / width:.1f} ns a node, loop {times.ns('loop') / width:.1f} ns"
    call = f"{times.ns('plan'):.0f} ns, bare {times.ns('bare'):.0f} ns, {times.ratio('plan', 'bare'):.1f}×"
    return [
        Row(
            "B3",
            f"plan of {width} independent 2-input Python nodes, over the loop",
            "≤ 1.5×",
            times.ratio("wide", "loop"),
            1.5,
            detail=per_node,
        ),
        Row(
            "B3", "call of a one-node plan, over the bare call", "≤ 150 ns", times.over("plan", "bare"), 150, "ns", call
        ),
    ]
