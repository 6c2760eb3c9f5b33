"""B31: whole integrations by `pyop.interop.scipy.solve_ivp` against SciPy's own, with the same steps and numbers."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np

from .harness import Harness, Row, Statement


def lorenz(t: Any, y: Any, s: float, r: float, b: float) -> Any:
    return [s * (y[1] - y[0]), y[0] * (r - y[2]) - y[1], y[0] * y[1] - b * y[2]]


def network(t: Any, y: Any) -> Any:
    rates = [0.3 * (k + 1) * y[k] for k in range(10)]
    return [rates[k - 1] - rates[k] + 0.01 * y[9] * y[k] for k in range(10)]


def robertson(t: Any, y: Any) -> Any:
    slow, fast, twice = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [fast - slow, slow - fast - twice, twice]


# Title, function, span, y0, method, options; the first are those of the budget.
SYSTEMS: list[tuple[str, Any, tuple[float, float], Any, str, dict[str, Any]]] = [
    ("3 variables", lorenz, (0, 10), [1.0, 1.0, 1.0], "RK45", {"args": (10.0, 28.0, 8 / 3)}),
    ("3 variables", lorenz, (0, 10), [1.0, 1.0, 1.0], "DOP853", {"args": (10.0, 28.0, 8 / 3), "rtol": 1e-8}),
    ("10 variables", network, (0, 4), np.linspace(1, 2, 10), "RK45", {"rtol": 1e-6}),
    ("3 stiff variables", robertson, (0, 1e4), [1.0, 0.0, 0.0], "Radau", {"rtol": 1e-5}),
    ("3 stiff variables", robertson, (0, 1e4), [1.0, 0.0, 0.0], "BDF", {"rtol": 1e-5}),
]


def run(harness: Harness) -> list[Row]:
    """Each system: with plans that are there, and with the tracing in each call."""
    if not importlib.util.find_spec("scipy"):
        return [Row("B31", "solve_ivp", "≤ 1/5", None, 1 / 5, detail="needs SciPy")]
    from scipy.integrate import solve_ivp as by_scipy

    from pyop.interop.scipy import rhs, solve_ivp

    rows = []
    for what, f, span, y0, method, options in SYSTEMS:
        got = solve_ivp(f, span, y0, method, **options)
        want = by_scipy(f, span, y0, method, **options)
        assert got.native
        assert np.array_equal(got.y, want.y) or np.allclose(got.y, want.y, rtol=1e-6)
        names = {"span": span, "y0": y0, "method": method, "options": options, "scipy": by_scipy, "pyop": solve_ivp}
        times = harness.compare(
            {
                "SciPy": Statement("scipy(f, span, y0, method, **options)", {**names, "f": f}, 1),
                "kept": Statement("pyop(f, span, y0, method, **options)", {**names, "f": rhs(f)}, 1),
                "traced": Statement("pyop(f, span, y0, method, **options)", {**names, "f": f}, 1),
            }
        )
        # What a trace takes is paid once by who keeps plans: reported.
        for name, how, limit in (("kept", "plans that are there", 1 / 5), ("traced", "its tracing included", math.inf)):
            ratio = times.ratio(name, "SciPy")
            took, plain = times.ns(name) / 1e6, times.ns("SciPy") / 1e6
            detail = f"{took:.2f} ms, SciPy {plain:.1f} ms: {1 / ratio:.1f} times as fast, {want.nfev:,} evaluations"
            title = f"solve_ivp of {what}, {method}, {how}, over the plain function"
            rows.append(Row("B31", title, "≤ 1/5" if limit < 1 else "reported", ratio, limit, detail=detail))
    return rows
