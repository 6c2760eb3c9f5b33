"""B31: SciPy's quad over a plan's C entry against NumPy's function; a C call of a native plan from 8 threads of C."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

CALLER = Path(__file__).parent.parent / "tests" / "entry" / "caller.c"


def damped(x: Any) -> Any:
    return np.exp(-x * x) * np.sin(3 * x) + x


def rational(x: Any) -> Any:
    return np.sqrt(np.abs(x * x - 2)) / (np.maximum(x, 0.5) + np.square(x))


def run(harness: Harness) -> list[Row]:
    """Two integrands, and 2 x + 1."""
    return [*integrals(harness), call(harness)]


def integrals(harness: Harness) -> list[Row]:
    """quad over each integrand."""
    titles = {damped: "exp and sin", rational: "sqrt, abs, maximum and a quotient"}
    if not importlib.util.find_spec("scipy"):
        return [Row("B31", "quad", "≤ 1/12", None, 1 / 12, detail="needs SciPy")]
    from scipy.integrate import quad

    rows = []
    for f, what in titles.items():
        way = pyop.trace(f, "float64[]").compile().low_level_callable()
        names = {"quad": quad, "f": f, "way": way}
        times = harness.compare(
            {"NumPy": Statement("quad(f, 0, 3)", names, 1), "plan": Statement("quad(way, 0, 3)", names, 1)}
        )
        ratio = times.ratio("plan", "NumPy")
        detail = (
            f"{times.ns('plan') / 1000:.1f} µs, NumPy {times.ns('NumPy') / 1000:.1f} µs: {1 / ratio:.1f} times faster"
        )
        rows.append(
            Row("B31", f"quad of {what}, by the plan's C entry over NumPy", "≤ 1/12", ratio, 1 / 12, detail=detail)
        )
    return rows


def call(harness: Harness) -> Row:
    """Calls from threads of C, by the processor's time of each; what the plan computes is in it."""
    what, budget = "C call of a native plan of a product and a sum, from 8 threads of C", "≤ 40 ns"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler or not CALLER.exists():
        return Row("B31", what, budget, None, 40, unit="ns", detail="needs a C compiler")
    plan = pyop.trace(lambda x: 2 * x + 1, "float64[]").compile()
    times = []
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "caller.so"
        flags = ["-O2", "-shared", "-fPIC", "-D_POSIX_C_SOURCE=200809L", "-I", pyop.get_include()]
        subprocess.run([compiler, *flags, CALLER, "-o", library, "-lpthread", "-lm"], check=True)
        threads = ctypes.CDLL(str(library)).run_threads
        threads.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
        threads.restype = ctypes.c_long
        nanoseconds = ctypes.c_double()
        for _ in range(harness.rounds):
            failed = threads(plan.address, 8, harness.sample_ns // 40, ctypes.byref(nanoseconds))
            assert failed == 0
            times.append(nanoseconds.value)
    return Row("B31", what, budget, statistics.median(times), 40, unit="ns", detail="the slowest of the threads")
