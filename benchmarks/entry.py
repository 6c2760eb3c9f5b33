"""B16, B31: SciPy's quad over a plan's C entry against NumPy's function; what a call costs in each way."""

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


# What quad itself costs is in what the plan takes: no integrand can be faster than these.
FLOORS = {
    damped: "exp(-x[0] * x[0]) * sin(3 * x[0]) + x[0]",
    rational: "sqrt(fabs(x[0] * x[0] - 2)) / (fmax(x[0], 0.5) + x[0] * x[0])",
}


def in_c(expression: str) -> Any:
    """The integrand as C's compiler makes it, for quad; None without a compiler."""
    from scipy import LowLevelCallable

    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return None
    source = f"#include <math.h>\ndouble f(int n, double *x, void *data) {{ return {expression}; }}\n"
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "floor.so"
        command = [compiler, "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-lm"]
        subprocess.run(command, input=source, text=True, check=True)
        f = ctypes.CDLL(str(library)).f
    f.restype, f.argtypes = ctypes.c_double, [ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p]
    return LowLevelCallable(f)


def lorenz(y: Any) -> Any:
    return np.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def ways(harness: Harness) -> list[Row]:
    """A call of a plan of one number, and of one of three, in each way."""
    rows = []
    for f, spec, x, what in [
        (lambda x: 2 * x + 1, "float64[]", np.array(0.5), "2 x + 1"),
        (lorenz, "float64[3]", np.array([1.0, 2.0, 3.0]), "Lorenz' system"),
    ]:
        plan = pyop.trace(f, spec).compile()
        result = np.empty(x.shape)
        given, made = ((ctypes.c_void_p * 1)(a.ctypes.data) for a in (x, result))
        names = {
            "plan": plan,
            "x": x,
            "call": plan.ctypes,
            "a": plan.address,
            "given": given,
            "made": made,
            "many": None,
        }
        statements = {"Python": Statement("plan(x)", names), "ctypes": Statement("call(a, given, made)", names)}
        if importlib.util.find_spec("cffi"):
            import cffi

            ffi = cffi.FFI()
            address = ctypes.cast(plan.ctypes, ctypes.c_void_p).value
            names["foreign"] = ffi.cast("int (*)(void *, void *, void *)", address)
            names["f_a"], names["f_given"], names["f_made"] = (
                ffi.cast("void *", each) for each in (plan.address, ctypes.addressof(given), ctypes.addressof(made))
            )
            statements["cffi"] = Statement("foreign(f_a, f_given, f_made)", names)
        if importlib.util.find_spec("numba"):
            names["many"] = many_by_numba(plan, x)
            statements["numba"] = Statement("many(x[()])", names, 1)
        times = harness.compare(statements)
        for way in statements:
            calls = CALLS if way == "numba" else 1
            title = f"a call of a plan of {what}: {way}"
            rows.append(Row("B31", title, "-", times.ns(way) / calls, float("inf"), unit="ns"))
    return rows


CALLS = 1000


def many_by_numba(plan: pyop.Plan, x: Any) -> Any:
    """So many calls in compiled code."""
    import numba

    if x.ndim:

        @numba.njit  # type: ignore[untyped-decorator,unused-ignore]
        def many(x: Any) -> Any:
            total = 0.0
            for _ in range(CALLS):
                total += plan(x)[0]
            return total

    else:

        @numba.njit  # type: ignore[untyped-decorator,unused-ignore]
        def many(x: Any) -> Any:
            total = 0.0
            for i in range(CALLS):
                total += plan(x + i)
            return total

    many(x[()])
    return many


def run(harness: Harness) -> list[Row]:
    """Two integrands; 2 x + 1 in each way, and Lorenz' right-hand side."""
    return [*integrals(harness), call(harness), *ways(harness)]


def integrals(harness: Harness) -> list[Row]:
    """quad over each integrand."""
    titles = {damped: "exp and sin", rational: "sqrt, abs, maximum and a quotient"}
    if not importlib.util.find_spec("scipy"):
        return [Row("B31", "quad", "≤ 1/12", None, 1 / 12, detail="needs SciPy")]
    from scipy.integrate import quad

    rows = []
    for f, what in titles.items():
        way = pyop.trace(f, "float64[]").compile().low_level_callable()
        names = {"quad": quad, "f": f, "way": way, "floor": in_c(FLOORS[f])}
        statements = {"NumPy": Statement("quad(f, 0, 3)", names, 1), "plan": Statement("quad(way, 0, 3)", names, 1)}
        if names["floor"] is not None:
            statements["C"] = Statement("quad(floor, 0, 3)", names, 1)
        times = harness.compare(statements)
        ratio = times.ratio("plan", "NumPy")
        detail = (
            f"{times.ns('plan') / 1000:.1f} µs, NumPy {times.ns('NumPy') / 1000:.1f} µs: {1 / ratio:.1f} times faster"
        )
        if "C" in statements:
            detail += (
                f"; the same compiled from C {times.ns('C') / 1000:.1f} µs, {1 / times.ratio('C', 'NumPy'):.1f} times"
            )
        if f is damped:
            title = "native plan inside quad, over the same Python function"
            rows.append(Row("B16", title, "≤ 1/5", ratio, 1 / 5, detail=detail))
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
