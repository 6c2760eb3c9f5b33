"""B19: what profiling costs a call of an op and a node of a plan, while a profile runs and while none does.

"Off" cannot be timed against a build without profiling in one run. What it adds to a call is one branch on a flag, so
the row compares calls before any profile has run in the process with calls after one has: whatever a profile leaves
behind would show. The branch itself is counted in instructions: `python -m benchmarks.callgrind op`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

import pyop

from .harness import Harness, Row, Statement


def run(harness: Harness) -> list[Row]:
    """An eager op on eight float64, and a plan of 100 Python nodes."""
    x = np.arange(8.0)
    nodes = 100
    fns = [lambda x: x for _ in range(nodes)]
    op = pyop.op("float64[n] -> float64[n]")(fns[0])
    ops = [pyop.op("float64[n] -> float64[n]")(f) for f in fns]

    def chain(x):  # type: ignore[no-untyped-def]
        for f in ops:
            x = f(x)
        return x

    plan = pyop.trace(chain, "float64[n]").compile()
    native = pyop.trace(lambda a: a * 2 + a, "float64[n]").compile()
    works: dict[str, tuple[Statement, int]] = {
        "op": (Statement("f(x)", {"f": op, "x": x}), 1),
        "plan": (Statement("f(x)", {"f": plan, "x": x}, unroll=2), nodes + 1),
        "native": (Statement("f(x)", {"f": native, "x": x}), 2),
    }
    rows = []
    clock = time.thread_time_ns
    details = {}
    for name, (statement, events) in works.items():
        loop = statement.compile(clock)
        count = calibrate(loop, harness.sample_ns)
        before = [loop(count) for _ in range(harness.rounds)]
        off, on = [], []
        for _ in range(harness.rounds):
            off.append(loop(count))
            with pyop.profile(events=10_000):
                on.append(loop(count))
        calls = count * statement.unroll
        cost = statistics.median((b - a) / calls / events for a, b in zip(off, on, strict=True))
        details[name] = min(off) / min(before)
        what = {
            "op": "an eager op while a profile runs, more than while none does",
            "plan": f"a node of a plan of {nodes} Python nodes, the same",
            "native": "a plan of one fused group (two events), each event",
        }[name]
        detail = f"{statistics.median(off) / calls:.0f} ns off, {statistics.median(on) / calls:.0f} ns on"
        rows.append(Row("B19", what, "≤ 50 ns", cost, 50, unit="ns", detail=detail))
    worst = max(details.values())
    detail = ", ".join(f"{name} {ratio:.3f}×" for name, ratio in details.items())
    rows.insert(
        0,
        Row("B19", "off: after a profile over before any (least of the rounds)", "≤ 1.01×", worst, 1.01, detail=detail),
    )
    return rows


def calibrate(loop: Callable[[int], int], sample_ns: int) -> int:
    """Turns of the loop that fill a sample."""
    count = 1
    while (elapsed := loop(count)) < sample_ns / 4:
        count *= 4
    return max(1, round(count * sample_ns / elapsed))
