"""B9: a 64 MiB array through an op and through a plan of ten. No byte may be copied, on the way in or out."""

from __future__ import annotations

import numpy as np

import pyop

from .harness import Harness, Row, Statement

DEPTH = 10


def address(array: np.ndarray) -> int:
    """Where the data lies."""
    pointer: int = array.__array_interface__["data"][0]
    return pointer


class Stage:
    """A function that reads all of its argument and returns it; it remembers where the argument lay."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.seen = address(x)
        np.maximum.reduce(x)
        return x


def run(harness: Harness) -> list[Row]:
    """Addresses first, then the time against direct calls."""
    x = np.ones((1 if harness.quick else 64) * 2**20 // 8)
    stages = [Stage() for _ in range(DEPTH)]
    ops = [pyop.op("float64[n] -> float64[n]")(stage) for stage in stages]

    def direct(x: np.ndarray) -> np.ndarray:
        for stage in stages:
            x = stage(x)
        return x

    def through(x: np.ndarray) -> np.ndarray:
        for op in ops:
            x = op(x)
        return x

    plan = pyop.trace(through, "float64[n]").compile()
    elsewhere = {}
    for name, call, used in (("op", ops[0], stages[:1]), ("plan", plan, stages)):
        for stage in used:
            stage.seen = 0
        result = call(x)
        arrays = [stage.seen for stage in used] + [address(result)]
        elsewhere[name] = sum(pointer != address(x) for pointer in arrays) * x.nbytes

    times = harness.compare(
        {
            "direct": Statement("f(x)", {"f": stages[0], "x": x}, unroll=1),
            "op": Statement("f(x)", {"f": ops[0], "x": x}, unroll=1),
            "direct ten": Statement("f(x)", {"f": direct, "x": x}, unroll=1),
            "plan": Statement("f(x)", {"f": plan, "x": x}, unroll=1),
        }
    )
    size = f"{x.nbytes // 2**20} MiB"
    rows = []
    for name, base, what in (("op", "direct", "an op"), ("plan", "direct ten", f"a plan of {DEPTH}")):
        detail = "pointers equal" if elsewhere[name] == 0 else "an argument or the result lies elsewhere"
        rows.append(Row("B9", f"{size} through {what}: bytes copied", "0", elsewhere[name], 0, "bytes", detail))
        detail = f"{times.ns(name) / 1e6:.2f} ms, direct {times.ns(base) / 1e6:.2f} ms"
        rows.append(
            Row(
                "B9",
                f"{size} through {what}, over the direct calls",
                "≤ 1.02×",
                times.ratio(name, base),
                1.02,
                detail=detail,
            )
        )
    return rows
