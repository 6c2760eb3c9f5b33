"""Stencils, single numbers, sine, gradients and first calls beside their peers: half of docs/benchmarks/peers.md.

Measured as `benchmarks.peers` measures expressions: everybody in one process in turn, on one core and thread, by the
CPU clock of the process; first calls each in a process of its own. Nothing here has a budget: suites of their own have.
"""

from __future__ import annotations

import importlib.util
import time
from importlib.metadata import version
from typing import Any

import numpy as np

from . import child
from .candidates import NUMPY, PYOP
from .edge_tasks import TASKS, Task
from .harness import Harness, Row
from .peers import import_peer


def run(harness: Harness) -> list[Row]:
    """pyop over the base and over the best peer, for every task and size."""
    table = []
    for one in collect(harness)["steady"]:
        ns, best, task = one["ns"], one["best"], TASKS[one["task"]]
        over = f"; {best} {ns[best]:,.0f} ns: {1 / one['over_best']:.2f} times as fast" if best else ""
        what = f"{task.title}, {one['size']:,}, over {task.base}"
        detail = f"{ns[PYOP]:,.0f} ns, {task.base} {ns[task.base]:,.0f} ns{over}"
        table.append(Row("P6", what, "reported", 1 / one["faster"][PYOP], float("inf"), detail=detail))
    return table


def collect(harness: Harness) -> dict[str, Any]:
    """All measurements: ``steady`` (by task and size: ns, and times as fast as the base), ``first`` (seconds)."""
    steady: list[dict[str, Any]] = []
    first: list[dict[str, Any]] = []
    for key, task in TASKS.items():
        names = [name for name, (package, _) in task.candidates.items() if importlib.util.find_spec(package)]
        settings = {"rounds": harness.rounds, "quick": harness.quick, "task": key, "names": names}
        steady += child.call("edges:measure", settings)
        compilers = [name for name in names if name not in (task.base, NUMPY)]
        first += [child.call("edges:first_call", {"task": key, "name": name}) for name in compilers]
    packages = {package for task in TASKS.values() for package, _ in task.candidates.values()} - {"numpy", "pyop"}
    there = sorted(package for package in packages if importlib.util.find_spec(package))
    return {
        "steady": steady,
        "first": first,
        "versions": {package: version(package) for package in there},
        "missing": sorted(packages - {*there}),
    }


def measure(rounds: int, quick: bool, task: str, names: list[str]) -> list[dict[str, Any]]:
    """Every candidate, interleaved, for every size of a task."""
    harness = Harness(rounds=rounds, quick=quick)
    of, found = TASKS[task], []
    if of.base not in names:
        return []
    for size in of.sizes[:1] if quick else of.sizes:
        data = of.data(size)
        statements = {name: of.candidates[name][1](data) for name in names}
        _check(of, statements, data)
        times = harness.compare(statements, time.process_time_ns)
        best = min((name for name in names if name not in (of.base, PYOP)), key=times.ns, default=None)
        found.append(
            {
                "task": task,
                "size": size,
                "ns": {name: times.ns(name) for name in names},
                "faster": {name: 1 / times.ratio(name, of.base) for name in names},
                "best": best,
                "over_best": times.ratio(PYOP, best) if best else None,
            }
        )
    return found


def _check(task: Task, statements: dict[str, Any], data: Any) -> None:
    """pyop gives the base's bits where that is NumPy, everybody nearly the same numbers."""
    want = None
    for name in (task.base, *statements):
        out = data.get("out")
        if out is not None:
            out[...] = 0
        got = eval(statements[name].code, dict(statements[name].names))
        if out is not None:
            got = out.copy() if out.any() else np.asarray(got)
        parts = [np.asarray(part) for part in _parts(got)]
        if want is None:
            want = parts
        for part, like in zip(parts, want, strict=True):
            if name == PYOP and task.base == NUMPY:
                np.testing.assert_array_equal(part, like)
            else:
                np.testing.assert_allclose(part, like, rtol=1e-9, atol=1e-12, err_msg=name)


def _parts(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in _parts(one)]
    return [result]


def first_call(task: str, name: str) -> dict[str, Any]:
    """Seconds from the function to its first result, at the smallest size; imports are not counted."""
    of = TASKS[task]
    data = of.data(of.sizes[0])
    import_peer(of.candidates[name][0])
    begin = time.perf_counter()
    statement = of.candidates[name][1](data)
    eval(statement.code, dict(statement.names))
    return {"task": task, "name": name, "seconds": time.perf_counter() - begin}
