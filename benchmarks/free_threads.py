"""B33: an interpreter without a GIL: a plan of Python nodes called by two threads, an op by one.

Needs a free-threaded CPython and a build for developers (csrc/runtime/README.md):
`pip install -Ccmake.define.PYOP_WITHOUT_GIL=ON .`, and `PYTHON_GIL=0` around the command.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement


def run(harness: Harness) -> list[Row]:
    """Work on two threads at once, over the same work on one."""
    plan_row = ("B33", "a plan of 10 Python nodes, from two threads, over one", "≤ 1/1.8")
    op_row = ("B33", "an eager op, one thread", "≤ 80 ns")
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        why = "needs a free-threaded CPython, PYOP_WITHOUT_GIL and PYTHON_GIL=0"
        return [Row(*plan_row, None, 1 / 1.8, detail=why), Row(*op_row, None, 80, unit="ns", detail=why)]
    if (os.cpu_count() or 1) < 2:
        return [Row(*plan_row, None, 1 / 1.8, detail="needs two cores"), eager(harness, op_row)]
    count = 200 if harness.quick else 3000
    plan = plan_of_python()
    plans, bare = [plan, plan], [loop, loop]
    ratio, at_best = over_one(harness, plans, count), over_one(harness, bare, count)
    detail = f"{1 / ratio:.2f} times as fast; the Python functions alone {1 / at_best:.2f} times"
    return [Row(*plan_row, ratio, 1 / 1.8, detail=detail), eager(harness, op_row)]


def over_one(harness: Harness, calls: list[Callable[[Any], Any]], count: int) -> float:
    """The time of two threads at once over that of the same calls one after the other."""
    return statistics.median(together(calls, count) / apart(calls, count) for _ in range(harness.rounds))


def eager(harness: Harness, row: tuple[str, str, str]) -> Row:
    """An op of one argument that returns it."""
    kept = np.ones(8)
    op = pyop.op(lambda x: kept, "float64[n] -> float64[n]", name="takes")
    times = harness.compare({"op": Statement("f(x)", {"f": op, "x": np.ones(8)})})
    return Row(*row, times.ns("op"), 80, unit="ns")


def step(x: Any) -> Any:
    """Some microseconds of Python, on numbers of this call alone."""
    total = 0
    for k in range(200):
        total += k * k
    return x + total


def loop(x: Any) -> Any:
    """What the plan's nodes do, without a plan."""
    for _ in range(10):
        x = step(x)
    return x


def plan_of_python() -> Any:
    """Ten nodes, one behind the other."""
    op = pyop.op(step, "float64[n] -> float64[n]", name="step")

    def chain(x: Any) -> Any:
        for _ in range(10):
            x = op(x)
        return x

    return pyop.trace(chain, "float64[n]").compile()


def apart(calls: list[Callable[[Any], Any]], count: int) -> float:
    """Seconds of each loop of calls after the other."""
    begin = time.perf_counter()
    for call in calls:
        repeat(call, count)
    return time.perf_counter() - begin


def together(calls: list[Callable[[Any], Any]], count: int) -> float:
    """Seconds of all of them, a thread each."""
    threads = [threading.Thread(target=repeat, args=(call, count)) for call in calls]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def repeat(call: Callable[[Any], Any], count: int) -> None:
    """The call, again and again, on an array of this thread's."""
    x = np.ones(8)
    for _ in range(count // 10):
        call(x)
