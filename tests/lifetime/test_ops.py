"""Ops and plans that are at work when the interpreter goes down."""

from __future__ import annotations

import pytest

from .harness import run

SETUP = """
import numpy as np, pyop
from pyop import debug

@pyop.op("float64[n] -> float64[n]")
def slow(x):
    time.sleep(0.0001)
    return x + 1

@pyop.op("float64[n] -> float64[n]")
def quick(x):
    return x

@atexit.register
def before_close():
    stats = debug.stats()
    if stats["leaked"] or stats["closed"]:
        say("before close", stats)

x = np.ones(8)
"""


@pytest.mark.parametrize("attempt", range(4))
@pytest.mark.parametrize(
    "call",
    [
        "[slow(x), quick(x)]",
        "pyop.trace(lambda v: (slow(v), quick(slow(v))), 'float64[n]').compile()(x)",
        "pyop.trace(lambda v: (slow(v), slow(slow(v)), quick(v)), 'float64[n]').compile(threads=3)(x)",
    ],
    ids=["op", "plan", "plan-threads"],
)
def test_daemon_threads_calling_at_exit(call: str, attempt: int) -> None:
    """Up to 3.13 Python ends them wherever they are: under our frames, with references on the stack."""
    end = run(
        SETUP
        + f"""
def work():
    while True:
        {call}

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""",
        owner="PyNode",
    )
    assert end.said == []


def test_ops_still_work_after_close() -> None:
    """In atexit functions registered before pyop was imported, and while modules are torn down."""
    end = run(
        SETUP
        + """
plan = pyop.trace(lambda v: slow(quick(v)), "float64[n]").compile()
""",
        owner="PyNode",
        at_last="say(quick(x).sum(), plan(x).sum(), debug.stats()['closed'])",
    )
    assert end.said == ["8.0 16.0 True"]
