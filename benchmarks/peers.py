"""B6: NumPy expressions as plans against NumPy, numexpr, numba, PyTensor and JAX, all in one interleaved run.

Everybody runs on one core and one thread, and is timed by the CPU clock of the process, because JAX computes on a
thread of its own. Everybody gets its arrays ready (JAX on its device) and returns a new one. What is compiled is
compiled before; the first call, compilation included, is timed in a fresh process for each candidate.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import pyop

from . import candidates, child
from .candidates import ARITHMETIC, NUMPY, PYOP, TRANSCENDENTAL
from .harness import Harness, Row

EXPRESSIONS = (ARITHMETIC, TRANSCENDENTAL)
SIZES = (10, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
QUICK_SIZES = (10, 1_000)
# Size: how many times as fast as the best peer a plan has to be.
BUDGETS = {10: 3.0, 1_000: 1.5, 10_000: 0.9, 100_000: 0.9, 1_000_000: 0.7, 10_000_000: 0.7}
FIRST_CALL = 20.0
FIRST_CALL_SIZE = 1_000


def run(harness: Harness) -> list[Row]:
    """Rows of the budget alone; `benchmarks.report` shows all that was measured."""
    return rows(collect(harness, ["warm"]))


def collect(harness: Harness, states: list[str] | None = None) -> dict[str, Any]:
    """All measurements: ``steady`` (by state, expression and size: ns, and times as fast as NumPy), ``first``."""
    settings = {"rounds": harness.rounds, "quick": harness.quick}
    there, missing = candidates.installed()
    steady = []
    for state in states or list(child.STATES):
        steady += child.call("peers:measure", {**settings, "state": state, "names": there}, state=state)
    first = [
        child.call("peers:first_call", {"name": name, "text": text})
        for name in there
        if name != NUMPY
        for text in EXPRESSIONS[: 1 if harness.quick else None]
    ]
    return {"steady": steady, "first": first, "missing": missing, "versions": candidates.versions()}


def measure(rounds: int, quick: bool, state: str, names: list[str]) -> list[dict[str, Any]]:
    """Every candidate, interleaved, for every expression and size."""
    harness = Harness(rounds=rounds, quick=quick)
    found = []
    for text in EXPRESSIONS:
        made = {name: candidates.make(name, text) for name in names}
        for size in QUICK_SIZES if quick else SIZES:
            arrays = candidates.arrays_of(size)
            statements = {name: prepare(arrays) for name, prepare in made.items()}
            _check(statements, text, arrays)
            times = harness.compare(statements, time.process_time_ns)
            peers = [name for name in names if name not in (NUMPY, PYOP)]
            best = min(peers, key=times.ns, default=None)
            found.append(
                {
                    "state": state,
                    "expression": text,
                    "size": size,
                    "ns": {name: times.ns(name) for name in names},
                    "faster": {name: 1 / times.ratio(name, NUMPY) for name in names},
                    "best": best,
                    "over_best": times.ratio(PYOP, best) if best else None,
                }
            )
    return found


def _check(statements: dict[str, Any], text: str, arrays: dict[str, np.ndarray]) -> None:
    """Plans give NumPy's bits, peers nearly the same numbers."""
    want = candidates.function_of(text)(**arrays)
    for name, statement in statements.items():
        got = np.asarray(eval(statement.code, dict(statement.names)))
        if name == PYOP:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=name)


def first_call(name: str, text: str) -> dict[str, Any]:
    """Seconds from the text of an expression to its first result; imports are not counted."""
    arrays = candidates.arrays_of(FIRST_CALL_SIZE)
    import_peer(candidates.CANDIDATES[name][0])
    begin = time.perf_counter()
    if name == PYOP:
        pyop.compile(candidates.function_of(text))(**arrays)
    else:
        statement = candidates.make(name, text)(arrays)
        eval(statement.code, dict(statement.names))
    return {"name": name, "expression": text, "seconds": time.perf_counter() - begin}


def import_peer(package: str) -> None:
    """Load a package, and start what it starts, so that neither is part of a first call."""
    __import__(package)
    if package == "pytensor":
        __import__("pytensor.tensor")
    if package == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.device_put(np.ones(1)).block_until_ready()  # starts the device


def rows(found: dict[str, Any]) -> list[Row]:
    """The rows of B6."""
    missing = f"not installed: {', '.join(found['missing'])}" if found["missing"] else ""
    table = []
    for one in found["steady"]:
        if one["state"] != "warm":
            continue
        times_faster, best, ns = BUDGETS[one["size"]], one["best"], one["ns"]
        detail = f"{ns[PYOP]:,.0f} ns, {best} {ns[best]:,.0f} ns, NumPy {ns[NUMPY]:,.0f} ns" if best else ""
        what = f"plan of {one['expression']}, {one['size']:,} float64, over the best peer"
        detail = "; ".join(filter(None, [detail, missing]))
        table.append(Row("B6", what, f"≤ 1/{times_faster:g}", one["over_best"], 1 / times_faster, detail=detail))
    return table + _first_rows(found["first"], missing)


def _first_rows(first: list[dict[str, Any]], missing: str) -> list[Row]:
    seconds = {(one["expression"], one["name"]): one["seconds"] for one in first}
    table = []
    for text in dict.fromkeys(one["expression"] for one in first):
        ours = seconds[text, PYOP]
        theirs = min((s for (of, name), s in seconds.items() if of == text and name.startswith("numba")), default=None)
        detail = f"{ours * 1e3:.2f} ms"
        if theirs is not None:
            detail += f", numba {theirs * 1e3:,.0f} ms: {theirs / ours:,.0f} times sooner"
        what = f"first call of {text}, compilation included, over numba's"
        ratio = None if theirs is None else ours / theirs
        detail = "; ".join(filter(None, [detail, missing]))
        table.append(Row("B6", what, f"≤ 1/{FIRST_CALL:g}", ratio, 1 / FIRST_CALL, detail=detail))
    return table
