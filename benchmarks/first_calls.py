"""B20, B29, P4: what the import and the first call cost a process, and a solve so short that tracing must not be seen.

Every measurement is in a process of its own, and the processes take turns.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import pyop

from . import child
from .harness import Harness, Row


def run(harness: Harness) -> list[Row]:
    """The import and first calls in milliseconds, and solves of some 300 calls over the same with NumPy."""
    rounds = 2 if harness.quick else harness.rounds
    first = [
        *_imports(rounds),
        *_expressions(rounds),
        _reported("first compile of a process: an ODE's right-hand side", "right_hand_side", rounds, 3),
        *_nodes(rounds),
    ]
    try:
        import scipy.integrate  # noqa: F401
    except ImportError:
        return [*first, Row("P4", "solve_ivp of 300 calls", "≤ 1", None, 1.0, detail="SciPy is not installed")]
    return [*first, *[_solve(name, rounds) for name in SYSTEMS]]


def _expression(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a * b + c * d - a


def _network(t: float, y: Any) -> Any:
    """Ten variables, as arrays."""
    made, gone = y[:5], y[5:]
    pulse = 1.0 + 0.1 * np.sin(t)
    rate = pulse / (1.0 + np.roll(gone, 1) ** 2)
    return np.concatenate([rate - 0.5 * made, 0.2 * made - 0.1 * gone])


def _lorenz(t: float, y: Any) -> Any:
    """Three variables, by element."""
    return np.stack([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]])


# Each with a start and an end that takes some 300 calls.
SYSTEMS: dict[str, tuple[Any, list[float], float]] = {
    "10 variables, by arrays": (_network, [float(k) for k in range(1, 11)], 120.0),
    "3 variables, by element": (_lorenz, [1.0, 1.0, 1.0], 4.0),
}


def expression(first: bool) -> float:
    """Seconds from the function to its first result, as the first of the process or after another one."""
    given = [np.full(10, float(k)) for k in range(4)]
    if not first:
        pyop.compile(lambda a, b: a + b)(*given[:2])
    return _seconds(lambda: pyop.compile(_expression)(*given))


def later_expressions() -> float:
    """Seconds of the same for a function among many: the median of forty, all different, after twenty others."""
    given = [np.full(10, float(k + 1)) for k in range(4)]
    expressions = [f"lambda a, b, c, d: a {p} b {q} c {r} d {s} a" for p, q, r, s in product("+-*/", repeat=4)]
    functions = [eval(text) for text in expressions[::4][:60]]
    seconds = [_seconds(lambda function=function: pyop.compile(function)(*given)) for function in functions]
    return statistics.median(seconds[20:])


class _Recorder:
    """The least that stands for an array while a function is traced in Python: it writes the ufuncs down."""

    def __init__(self, calls: list[Any], at: int) -> None:
        self.calls, self.at = calls, at

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any) -> Any:
        self.calls.append((ufunc, given))
        return _Recorder(self.calls, len(self.calls) - 1)

    def __mul__(self, other: Any) -> Any:
        me: Any = self
        return np.multiply(me, other)

    def __add__(self, other: Any) -> Any:
        me: Any = self
        return np.add(me, other)

    def __sub__(self, other: Any) -> Any:
        me: Any = self
        return np.subtract(me, other)


def bare_trace() -> float:
    """Seconds to write the four ufuncs of the expression down in Python, and to call them: a floor for `expression`."""
    given = [np.full(10, float(k)) for k in range(4)]

    def run(function: Any, arrays: list[Any]) -> Any:
        calls = list[Any]()
        function(*[_Recorder(calls, ~k) for k in range(len(arrays))])
        found = list[Any]()
        for ufunc, operands in calls:
            found.append(ufunc(*[arrays[~x.at] if x.at < 0 else found[x.at] for x in operands]))
        return found[-1]

    run(lambda a, b: a + b, given[:2])
    return _seconds(lambda: run(_expression, given))


def expression_by_numexpr() -> float | None:
    """The same of numexpr, after another expression; None if it is not installed."""
    try:
        import numexpr
    except ImportError:
        return None
    given = {name: np.full(10, float(k)) for k, name in enumerate("abcd")}
    numexpr.evaluate("a + b", given)
    return _seconds(lambda: numexpr.evaluate("a*b + c*d - a", given))


def nodes(kind: str) -> tuple[float, float]:
    """Seconds to write some 10,000 nodes down, and to compile them: calls of one op, or NumPy's operations."""
    op = pyop.op("float64[n] -> float64[n]")(lambda x: x)

    def of_ops(x: Any) -> Any:
        for _ in range(10_000):
            x = op(x)
        return x

    def of_numpy(x: Any) -> Any:
        y = x
        for _ in range(2_500):
            x = x * y + y
            y = y - x * 0.5
        return x

    found: list[Any] = []
    written = _seconds(lambda: found.append(pyop.trace(of_ops if kind == "ops" else of_numpy, "float64[8]")))
    return written, _seconds(lambda: found.append(found[0].compile()))


def right_hand_side() -> float:
    """The same of an ODE's right-hand side."""
    y = np.ones(10)
    return _seconds(lambda: pyop.compile(_network)(0.5, y))


def solve(system: str, compiled: bool) -> tuple[float, int]:
    """Seconds of a solve, tracing included, and how often it called."""
    from scipy.integrate import solve_ivp

    function, start, until = SYSTEMS[system]
    found = []
    seconds = _seconds(
        lambda: found.append(solve_ivp(pyop.compile(function) if compiled else function, (0.0, until), start))
    )
    return seconds, found[0].nfev


def _seconds(do: Any) -> float:
    start = time.process_time()
    do()
    return time.process_time() - start


def _expressions(rounds: int) -> list[Row]:
    what = "first call of a 4-operation expression"
    rows = [
        _reported(f"{what}, the second function of a process", "expression", rounds, 0.15, {"first": False}),
        _reported(f"{what}, the first of a process", "expression", rounds, 3, {"first": True}),
        _reported(f"{what}, after twenty others", "later_expressions", rounds, 0.15),
    ]
    floor = min(child.call("first_calls:bare_trace", {}) for _ in range(rounds + 1))
    rows[0] = replace(rows[0], detail=f"{rows[0].detail}; a bare trace of it in Python {floor * 1e6:,.0f} µs")
    theirs = [child.call("first_calls:expression_by_numexpr", {}) for _ in range(rounds + 1)][1:]
    if None in theirs:
        return [*rows, Row("B29", f"{what}, over numexpr's", "≤ 1/3", None, 1 / 3, detail="numexpr is not installed")]
    middle = statistics.median(theirs) * 1e3
    detail = f"numexpr {middle * 1e3:,.0f} µs"
    return [
        *rows,
        Row("B29", f"{what}, over numexpr's", "≤ 1/3", (rows[0].value or math.nan) / middle, 1 / 3, detail=detail),
    ]


def _nodes(rounds: int) -> list[Row]:
    rows = []
    for kind, what in (("ops", "calls of one op"), ("numpy", "operations of NumPy")):
        found = [child.call("first_calls:nodes", {"kind": kind}) for _ in range(rounds + 1)][1:]
        written, compiled = (statistics.median(column) * 1e3 for column in zip(*found, strict=True))
        detail = f"writing them down {written:.1f} ms"
        rows.append(Row("B29", f"compiling 10⁴ nodes, {what}", "≤ 15 ms", compiled, 15, unit="ms", detail=detail))
    return rows


def _reported(what: str, name: str, rounds: int, goal: float, given: dict[str, Any] | None = None) -> Row:
    seconds = [child.call(f"first_calls:{name}", given or {}) for _ in range(rounds + 1)][1:]  # the first writes *.pyc
    middle = statistics.median(seconds)
    detail = f"{middle * 1e6:,.0f} µs; least {min(seconds) * 1e6:,.0f} µs"
    return Row("B29", what, f"≤ {goal:g} ms", middle * 1e3, goal, unit="ms", detail=detail)


# The clock is asked in a process that runs nothing else, on one core; the modules are compiled by an earlier one. The
# finder of an editable install would look for changed files, and costs more than much of the import.
_IMPORTS = """
import os, sys, time
sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable_")]
if hasattr(os, "sched_setaffinity"): os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
start = time.process_time(); import numpy
middle = time.process_time(); import pyop
print(middle - start, time.process_time() - middle)
"""


def _one_package(directory: Path) -> bool:
    """Lay an editable pyop out below `directory` as an installed one is; False if this one is installed."""
    sources, built = Path(pyop.__file__).parent, Path(pyop._core.__file__).parent
    if sources == built:
        return False
    package = directory / "pyop"
    package.mkdir()
    for entry in (*sources.iterdir(), *(path for path in built.iterdir() if path.suffix == ".so")):
        (package / entry.name).symlink_to(entry)
    return True


def _imports(rounds: int) -> list[Row]:
    """Of pyop as it is when it is installed, also where it is an editable one."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    samples = []
    with tempfile.TemporaryDirectory() as directory:
        if _one_package(Path(directory)):
            environment["PYTHONPATH"] = os.pathsep.join([directory, environment.get("PYTHONPATH", "")]).strip(
                os.pathsep
            )
        for _ in range(rounds + 1):
            command = [sys.executable, "-c", _IMPORTS]
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=directory)
            samples.append([float(word) for word in done.stdout.split()])
    numpy, beyond = (statistics.median(column) * 1e3 for column in zip(*samples[1:], strict=True))
    detail = f"NumPy {numpy:.1f} ms, pyop beyond it {beyond:.1f} ms, as where it is installed plainly"
    return [
        Row("B20", "import pyop over import numpy", "≤ 1.3×", 1 + beyond / numpy, 1.3, detail=detail),
        Row("B29", "import pyop beyond NumPy", "≤ 15 ms", beyond, 15, unit="ms", detail=detail),
    ]


def _solve(system: str, rounds: int) -> Row:
    ratios, times, calls = [], [], 0
    for _ in range(rounds):
        plain, calls = child.call("first_calls:solve", {"system": system, "compiled": False})
        compiled, _ = child.call("first_calls:solve", {"system": system, "compiled": True})
        ratios.append(compiled / plain)
        times.append((compiled, plain))
    compiled, plain = (statistics.median(column) for column in zip(*times, strict=True))
    return Row(
        "P4",
        f"solve_ivp of {calls} calls, {system}: compiled, tracing included, over NumPy",
        "≤ 1",
        statistics.median(ratios) if ratios else math.nan,
        1.0,
        detail=f"{compiled * 1e3:.1f} ms, NumPy {plain * 1e3:.1f} ms",
    )
