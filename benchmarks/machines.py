"""B22: calls by two processes of this machine, `plan.map` against `ProcessPoolExecutor.map`, in turns.

B23, B32 (where dask and distributed are installed): a graph of a thousand nodes by `to_dask` against one task a node;
calls by two workers of Dask against this process, and an array of 64 MiB from one of them to the other.
"""

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
    return rows + _dask(harness)


def _dask(harness: Harness) -> list[Row]:
    try:
        from dask import delayed
        from distributed import Client, LocalCluster
    except ImportError:
        absent = "dask and distributed are not here"
        return [Row(name, "by Dask", "–", None, 0.0, detail=absent) for name in ("B23", "B32")]
    graph = pyop.trace(_thousand, "float64[n]")
    x = np.arange(100.0)

    def a_task_a_node() -> Any:
        y = delayed(x)
        for _ in range(500):
            y = delayed(np.sqrt)(delayed(np.add)(y, 1.0))
        return y.compute(scheduler="threads")

    pairs = []
    first = _timed(lambda: graph.to_dask(x=x).compute(scheduler="threads"))
    for _ in range(min(harness.rounds, 3)):
        ours = _timed(lambda: graph.to_dask(x=x).compute(scheduler="threads"))
        pairs.append((ours, _timed(a_task_a_node)))
    tasks = len(graph.partition().pieces)
    ratio = statistics.median(a / b for a, b in pairs)
    what = f"to_dask of 1,000 native nodes ({tasks} tasks) over one task a node"
    detail = f"{1e3 * pairs[-1][0]:.1f} ms, {1e3 * pairs[-1][1]:.0f} ms; {1e3 * first:.0f} ms the first time"
    limit = 0.05 if tasks <= 10 else 0.0
    rows = [Row("B23", what, "≤ 0.05× (20 times faster), ≤ 10 tasks", ratio, limit, detail=detail)]
    plan = pyop.trace(lambda x: _hundred_us(x), "float64[n]").compile()
    inputs = [np.full(3, float(k)) for k in range(500 if harness.quick else 10_000)]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        plan.map(inputs[:100], executor=client, progress=False)
        pairs = []
        for _ in range(min(harness.rounds, 3)):
            here = _timed(lambda: [plan(x) for x in inputs])
            pairs.append((_timed(lambda: plan.map(inputs, executor=client, progress=False)), here))
        ratio = statistics.median(a / b for a, b in pairs)
        what = "10⁴ ops of 100 µs by two workers of Dask over this process"
        detail = f"{pairs[-1][0]:.2f} s, {pairs[-1][1]:.2f} s"
        rows.append(Row("B32", what, "≤ 0.59× (1.7 times faster)", ratio, 1 / 1.7, detail=detail))
        rows += _between_workers(client, harness)
    return rows


def _between_workers(client: Any, harness: Harness) -> list[Row]:
    """A result of pyop's, and one of NumPy's, each new, made on one worker and asked for by a function on the other."""
    import dask
    from distributed import wait

    first, second = client.nthreads()
    graph = pyop.trace(lambda x: x * 2 + 1, "float64[n]")
    x = client.submit(np.ones, (64 << 20) // 8, workers=first)

    one = client.submit(np.ones, 1, workers=first)

    def ours(of: Any = x) -> Any:
        with dask.annotate(workers=[first]):
            return graph.submit(client, of)

    def theirs() -> Any:
        return client.submit(np.zeros, (64 << 20) // 8, workers=first, pure=False)

    asked: list[tuple[Callable[[], Any], Callable[[Any], Any], Any]] = [
        (ours, _first, second),
        (lambda: ours(one), _first, second),
        (theirs, _first, second),
        (ours, np.sum, second),
        (ours, np.sum, first),
    ]
    times: list[list[float]] = [[] for _ in asked]
    for _ in range(1 + min(harness.rounds, 9)):
        for (make, read, where), found in zip(asked, times, strict=True):
            made = make()
            wait(made)
            found.append(_timed(lambda: client.submit(read, made, workers=where, pure=False).result()))  # noqa: B023
    own, number, other, summed, there = [1e3 * statistics.median(each[1:]) for each in times]
    detail = (
        f"a number the same way {number:.0f} ms; with the sum of all {summed:.0f} ms, {there:.0f} where it was made"
    )
    return [
        Row("B32", "64 MiB of pyop's between local workers of Dask", "≤ 20 ms", own, 20.0, "ms", detail),
        Row("B32", "64 MiB of others, the same", "–", other, 1e9, "ms", "by Dask's own transport"),
    ]


def _first(x: Any) -> Any:
    return x[0]


def _thousand(x: Any) -> Any:
    for _ in range(500):
        x = np.sqrt(x + 1.0)
    return x


@pyop.op("float64[n] -> float64[n]")
def _hundred_us(x: Any) -> Any:
    """Compute for a tenth of a millisecond."""
    until = time.perf_counter() + 1e-4
    while time.perf_counter() < until:
        pass
    return x + 1
