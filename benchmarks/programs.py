"""B18: the programs of docs/compiling.md, before and after: each function by itself, and the whole run around it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop
from examples import find_edges, kalman_filter

from .harness import Harness, Row, Statement


def run(harness: Harness) -> list[Row]:
    """An ODE under SciPy, a function with its gradient under SciPy, a Kalman filter, a pipeline over images."""
    return [*_ode(harness), *_minimum(harness), *_kalman(harness), *_edges(harness)]


def _ode(harness: Harness) -> list[Row]:
    try:
        from examples import reaction_network as program
    except ImportError:
        return [Row("B18", "right-hand side of an ODE", "≤ 1/5", None, 1 / 5, detail="SciPy is not installed")]
    y = np.linspace(1.0, 10.0, 2 * program.GENES)
    until = 2.0 if harness.quick else 200.0
    calls = program.solve(program.rhs, until).nfev
    assert np.array_equal(program.solve(program.rhs, until).y, program.solve(program.compiled_rhs, until).y)
    return [
        _row(harness, "right-hand side of an ODE, 10 variables", "f(t, y)", program.rhs, {"t": 1.5, "y": y}, faster=5),
        _row(
            harness,
            f"solve_ivp around it, {calls:,} calls",
            "solve(f, until)",
            program.rhs,
            {"solve": program.solve, "until": until},
        ),
    ]


def _valley(x: Any) -> Any:
    """Rosenbrock's function."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def _valley_and_slope(x: Any) -> Any:
    """The same with its gradient, by hand."""
    rise, rest = x[1:] - x[:-1] ** 2, 1.0 - x[:-1]
    slope = np.zeros_like(x)
    slope[1:] = 200.0 * rise
    slope[:-1] -= 400.0 * x[:-1] * rise + 2.0 * rest
    return np.sum(100.0 * rise**2 + rest**2), slope


def _minimum(harness: Harness) -> list[Row]:
    what = "value and gradient, 10 variables"
    try:
        from scipy.optimize import minimize
    except ImportError:
        return [Row("B18", what, "≤ 1/5", None, 1 / 5, detail="SciPy is not installed")]
    compiled = pyop.compile(pyop.value_and_grad(_valley))
    x = np.linspace(-1.0, 1.5, 10)
    for ours, by_hand in zip(compiled(x), _valley_and_slope(x), strict=True):
        assert np.allclose(ours, by_hand, rtol=1e-12)
    names = {"minimize": minimize, "x": np.zeros(10)}
    whole = "minimize(f, x, jac=True, method='L-BFGS-B')"
    return [
        _row(harness, what, "f(x)", _valley_and_slope, {"x": x}, faster=5, compiled=compiled),
        _row(harness, "minimize around it, L-BFGS-B", whole, _valley_and_slope, names, compiled=compiled),
    ]


def _kalman(harness: Harness) -> list[Row]:
    _, measured = kalman_filter.flight(50 if harness.quick else 1000)
    names = {"measured": measured, "noise": np.float64(1.0)}
    what = f"Kalman track of {len(measured):,} measurements, 4 states"
    return [_row(harness, what, "f(measured, noise)", kalman_filter.track, names)]


def _edges(harness: Harness) -> list[Row]:
    height, width = (48, 64) if harness.quick else (480, 640)
    (frame,) = find_edges.film(1, height, width)
    return [_row(harness, f"edges in a frame of {width} by {height}", "f(frame)", find_edges.edges, {"frame": frame})]


def _row(
    harness: Harness,
    what: str,
    code: str,
    function: Callable[..., Any],
    names: dict[str, Any],
    faster: float | None = None,
    compiled: Callable[..., Any] | None = None,
) -> Row:
    """A statement with `f` compiled over the same with NumPy; `faster` is the budget, if there is one."""
    functions = {"numpy": function, "compiled": compiled or pyop.compile(function)}
    for f in functions.values():
        eval(code, {"f": f, **names})  # traced and compiled here
    unroll = 5 if code.startswith("f(") else 1
    statements = {name: Statement(code, {"f": f, **names}, unroll) for name, f in functions.items()}
    times = harness.compare(statements)
    ratio = times.ratio("compiled", "numpy")
    return Row(
        "B18",
        f"{what}, compiled over NumPy",
        f"≤ 1/{faster:g}" if faster else "reported",
        ratio,
        1 / faster if faster else math.inf,
        detail=f"{_time(times.ns('compiled'))}, NumPy {_time(times.ns('numpy'))}: {1 / ratio:.2f} times faster",
    )


def _time(ns: float) -> str:
    return f"{ns:,.0f} ns" if ns < 1e4 else f"{ns / 1e3:,.0f} µs" if ns < 1e7 else f"{ns / 1e6:,.1f} ms"
