"""B22: calls by two processes of this machine, `plan.map` against `ProcessPoolExecutor.map`, in turns."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def run(harness: Harness) -> list[Row]:
    """Tiny calls, and arrays of 64 MiB there and back."""
    plan = pyop.trace(lambda x: x + 1, "float64[n]").compile()
    tiny = [np.arange(4.0) + i for i in range(200 if harness.quick else 4000)]
    large = [np.zeros((64 << 20) // 8) for _ in range(1 if harness.quick else 4)]
    rows = []
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for given, what, budget, limit in (
            (tiny, "plan.map of tiny tasks over the same by ProcessPoolExecutor", "≤ 0.5×", 0.5),
            (large, "arrays of 64 MiB, the same", "≤ 0.2× (5 times faster)", 0.2),
        ):
            pairs = []
            plan.map(given, executor=2, progress=False)
            list(pool.map(plan, given[:2]))
            for _ in range(min(harness.rounds, 5)):
                ours = _timed(lambda: plan.map(given, executor=2, progress=False))  # noqa: B023
                theirs = _timed(lambda: list(pool.map(plan, given)))  # noqa: B023
                pairs.append((ours, theirs))
            ratio = statistics.median(a / b for a, b in pairs)
            each = [1e6 * min(times) / len(given) for times in zip(*pairs, strict=True)]
            detail = f"{each[0]:.0f} µs a call, {each[1]:.0f} µs"
            rows.append(Row("B22", what, budget, ratio, limit, detail=detail))
    return rows
