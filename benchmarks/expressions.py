"""B4, B5: NumPy expressions as plans against NumPy itself.

In the allocator's state of an ordinary process, and at 10^5 elements, where it decides, in the warm one too. The rows
are times relative to NumPy's, so a budget of "7 times faster" reads ≤ 1/7.
"""

from __future__ import annotations

import time

import numpy as np

import pyop

from . import child
from .candidates import ARITHMETIC, CALL, TRANSCENDENTAL, arrays_of, function_of
from .harness import Harness, Row, Statement

# Budget, expression, how (as `measure` has it), and by size: how many times faster than NumPy a plan has to be.
BUDGETS = [
    ("B4", ARITHMETIC, "plan", {10: 7.0, 1_000: 3.0, 10_000: 1.8, 100_000: 5.0, 1_000_000: 1.3, 10_000_000: 1.5}),
    ("B4", ARITHMETIC, "out=", {10: 10.0}),
    ("B4", ARITHMETIC, "warm", {100_000: 1.8}),
    ("B4", ARITHMETIC, "2 threads", {10_000_000: 2.0}),
    ("B5", TRANSCENDENTAL, "plan", {10: 6.0, 1_000: 1.1, 100_000: 1.1, 10_000_000: 1.05}),
]
WORDS = {
    "plan": "",
    "out=": ", into out=",
    "warm": ", allocator kept warm",
    "2 threads": ", 2 threads",
}


def run(harness: Harness) -> list[Row]:
    """Every budget."""
    cases = [
        (budget, text, how, size, times_faster)
        for budget, text, how, sizes in BUDGETS
        for size, times_faster in sizes.items()
        if not (harness.quick and size > 100_000)
    ]
    table = {}
    for state, one_core in (("ordinary", True), ("warm", True), ("ordinary", False)):
        these = [case for case in cases if (state, one_core) == (_state(case[2]), case[2] != "2 threads")]
        these.sort(key=lambda case: case[3])  # large arrays, once freed, leave the allocator warm for those after them
        given = {"rounds": harness.rounds, "quick": harness.quick, "cases": [case[1:4] for case in these]}
        found = child.call("expressions:measure", given, state=state, one_core=one_core) if these else []
        for case, one in zip(these, found, strict=True):
            budget, text, how, size, times_faster = case
            what = f"plan of {text}, {size:,} float64{WORDS[how]}, over NumPy"
            table[case] = _row(budget, what, size, times_faster, one)
    return [table[case] for case in cases]


def _state(how: str) -> str:
    return "warm" if how == "warm" else "ordinary"


def measure(rounds: int, quick: bool, cases: list[tuple[str, str, int]]) -> list[dict[str, float]]:
    """NumPy and a plan, interleaved: ns of both, and the plan's time over NumPy's; for each text, how and size."""
    return [_compare(Harness(rounds=rounds, quick=quick), *case) for case in cases]


def _compare(harness: Harness, text: str, how: str, size: int) -> dict[str, float]:
    function, arrays = function_of(text), arrays_of(size)
    plan = pyop.trace(function, *["float64[n]"] * 4).compile(threads=2 if how == "2 threads" else 1)
    np.testing.assert_array_equal(plan(**arrays), function(**arrays))
    called = Statement(CALL, {"f": plan, **arrays}, unroll=1)
    statements = {
        "numpy": Statement(CALL, {"f": function, **arrays}, unroll=1),
        "plan": _into(plan, arrays, size) if how == "out=" else called,
    }
    if text == TRANSCENDENTAL:
        statements["loops"] = _loops_alone(arrays, size)
    times = harness.compare(statements, time.perf_counter_ns if how == "2 threads" else time.thread_time_ns)
    return {"ratio": times.ratio("plan", "numpy"), **{name: times.ns(name) for name in statements}}


def _into(plan: pyop.Plan, arrays: dict[str, np.ndarray], size: int) -> Statement:
    """A call that writes into an array of the caller."""
    return Statement("f(a, b, c, d, out=o)", {"f": plan, "o": np.empty(size), **arrays}, unroll=1)


def _loops_alone(arrays: dict[str, np.ndarray], size: int) -> Statement:
    """The two loops of NumPy's that who wants its bits must call: no plan is faster."""
    scope = {"sin": np.sin, "exp": np.exp, "o": np.empty(size), "a": arrays["a"], "c": arrays["c"]}
    return Statement("sin(a, out=o); exp(c, out=o)", scope, unroll=1)


def _row(budget: str, what: str, size: int, times_faster: float, found: dict[str, float]) -> Row:
    detail = f"{found['plan']:,.0f} ns, NumPy {found['numpy']:,.0f} ns: {1 / found['ratio']:.2f} times faster"
    if size > 10 and "loops" in found:
        detail += (
            f" ({found['numpy'] / found['loops']:.2f} is the most: sin and exp alone take {found['loops']:,.0f} ns)"
        )
    return Row(budget, what, f"≤ 1/{times_faster:g}", found["ratio"], 1 / times_faster, detail=detail)
