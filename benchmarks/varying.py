"""B37, B39: calls that differ from one another: numbers, shapes, texts and what the function reads."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

_CALLS = 1000
_KNOTS = np.linspace(0.0, 1.0, 10)
_NUMBERS: dict[str, Callable[..., Any]] = {
    "np.interp(t, ...)": lambda x, t: np.interp(t, _KNOTS, _KNOTS**2) * x,
    "np.clip(x, 0, t)": lambda x, t: np.clip(x, 0.0, t),
    "np.array of t and 2 * t": lambda x, t: np.array([t, 2 * t]).sum() * x,
    "np.polyval(p, t)": lambda x, t: np.polyval([1.0, 2.0, 3.0], t) * x,
    "np.full(3, t)": lambda x, t: np.full(3, t).sum() * x,
    "np.dot(x, t)": lambda x, t: np.dot(x, t),
    "np.searchsorted(a, t)": lambda x, t: np.searchsorted(_KNOTS, t) + x,
    "round(t, 2)": lambda x, t: round(t, 2) * x,
    "max(t, .5)": lambda x, t: max(t, 0.5) * x,
    "t**2.5": lambda x, t: t**2.5 * x,
    "math.exp(t)": lambda x, t: math.exp(t) * x,
    "if t > .5": lambda x, t: x * 2 if t > 0.5 else x,
    "int(t * 40)": lambda x, t: x[int(t * 40) :].sum(),
}


def run(harness: Harness) -> list[Row]:
    """The time of a call over the plain function's after a thousand calls, and in how many of these it was traced."""
    x = np.linspace(0.1, 1.0, 50)
    numbers = [float(t) for t in np.random.default_rng(0).random(_CALLS)]
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        rows += [_row(harness, "B37", name, f, x, numbers) for name, f in _NUMBERS.items()]
        body = lambda x: np.sqrt((x * x).sum()) * x + np.exp(-x)
        shapes = [np.ones(n) for n in range(1, 20 * _CALLS)]
        texts = [f"{k:x}" for k in range(100 * _CALLS)]
        rows.append(_row(harness, "B39", "another shape each", lambda _, v: body(v), x, shapes))
        rows.append(_row(harness, "B39", "another text each", lambda x, text: body(x) * len(text), x, texts))
    return rows


def _row(harness: Harness, budget: str, name: str, f: Callable[..., Any], x: Any, values: list[Any]) -> Row:
    compiled, given = pyop.compile(f), itertools.cycle(values)
    for _ in range(_CALLS):
        compiled(x, next(given))
    traces = compiled.cache_info().misses
    times = harness.compare(
        {
            "compiled": Statement("f(x, next(v))", {"f": compiled, "x": x, "v": given}),
            "plain": Statement("f(x, next(v))", {"f": f, "x": x, "v": itertools.cycle(values)}),
        }
    )
    detail = f"{times.ns('compiled'):.0f} ns, plain {times.ns('plain'):.0f} ns, {traces} traces in {_CALLS} calls"
    return Row(
        budget, f"{name}, over the plain function", "≤ 1.05×", times.ratio("compiled", "plain"), 1.05, detail=detail
    )
