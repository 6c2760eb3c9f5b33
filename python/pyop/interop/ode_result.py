"""Run integrations, and build the result of `solve_ivp`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..graph.cells import warn
from .ode_request import EPS, METHODS, Events, Prepared

__all__ = ["run"]

_FINISHED, _FAILED, _EVENTS = 1, 2, 3  # csrc/ode/integrate.h: Outcome
_MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    1: "A termination event occurred.",
}


def run(prepared: Prepared) -> Any:
    """Integrate; what SciPy returns."""
    from .ode_dense import Interpolant

    integration, events = prepared.integration, prepared.events
    made_of = METHODS[prepared.method], prepared.n, prepared.columns
    times: list[list[float]] = []
    states: list[list[Any]] = []
    if events is not None:
        times, states = [[] for _ in events.functions], [[] for _ in events.functions]
        counts = np.zeros(len(events.functions))
    status = None
    while status is None:
        outcome = integration.advance()
        if outcome == _FAILED:
            status = -1
        elif outcome == _FINISHED:
            status = 0
        else:
            assert outcome == _EVENTS
            assert events is not None
            active = np.array(integration.active())
            interpolant = Interpolant(*made_of, bytes(integration.segment()))
            end = _locate(events, active, counts, interpolant, times, states)
            if end is not None:
                status = 1
            integration.go_on(np.nan if end is None else end)
    return _result(prepared, status, times, states)


def _locate(
    events: Events,
    active: Any,
    counts: Any,
    interpolant: Any,
    times: list[list[float]],
    states: list[list[Any]],
) -> float | None:
    """Find when the events of a step have occurred, and note it; the time of one that ends the integration, if any."""
    from scipy.optimize import brentq

    counts[active] += 1
    t_old, t = interpolant.t_old, interpolant.t
    roots = np.array(
        [
            brentq(lambda s, k=k: events.functions[k](s, interpolant(s)), t_old, t, xtol=4 * EPS, rtol=4 * EPS)
            for k in active
        ]
    )
    terminates = False
    if np.any(counts[active] >= events.most[active]):
        order = np.argsort(roots if t > t_old else -roots)
        active, roots = active[order], roots[order]
        last = np.nonzero(counts[active] >= events.most[active])[0][0]
        active, roots = active[: last + 1], roots[: last + 1]
        terminates = True
    for k, root in zip(active, roots, strict=True):
        times[k].append(root)
        states[k].append(interpolant(root))
    return float(roots[-1]) if terminates else None


def _result(prepared: Prepared, status: int, times: list[list[float]], states: list[list[Any]]) -> Any:
    from .ode_dense import Interpolant

    ts, ys, ti, segments, numbers, nfev, njev, nlu, flags, singular, message = prepared.integration.found()
    _tell(flags, singular)
    t: Any = np.frombuffer(ts)
    y: Any = np.frombuffer(ys).reshape(-1, prepared.n).T
    ends = t
    if prepared.t_eval is not None:
        ends = np.frombuffer(ti)
        t = prepared.t_eval[: t.size].copy()
        y = np.ascontiguousarray(y)
        if t.size == 0:
            t, y = [], []
    sol = None
    if prepared.dense:
        from scipy.integrate import OdeSolution

        made_of = METHODS[prepared.method], prepared.n, prepared.columns
        length = 8 * numbers
        parts = [Interpolant(*made_of, bytes(segments[k : k + length])) for k in range(0, len(segments), length)]
        sol = OdeSolution(ends, parts, alt_segment=prepared.method == "BDF")
    result = _result_type()(
        t=t,
        y=y,
        sol=sol,
        t_events=None if prepared.events is None else [np.asarray(each) for each in times],
        y_events=None if prepared.events is None else [np.asarray(each) for each in states],
        nfev=nfev,
        njev=njev,
        nlu=nlu,
        status=status,
        message=_MESSAGES.get(status, message),
        success=status >= 0,
    )
    result["driver"], result["native"], result["reason"] = "pyop", prepared.integration.native, ""
    return result


@cache
def _result_type() -> Any:
    """Return SciPy's class of results, which has no public name."""
    from scipy.integrate import solve_ivp as by_scipy

    return type(by_scipy(lambda t, y: y, (0, 1e-3), [1.0]))


def _tell(flags: int, singular: int) -> None:
    """Warn or raise as NumPy does, by `np.errstate`, of what the arithmetic of the steps has met; and as SciPy."""
    if not flags and not singular:
        return
    one, large, small = np.ones(1), np.full(1, 1e300), np.full(1, 1e-300)
    if flags & 1:
        np.divide(one, 0.0)
    if flags & 2:
        np.multiply(large, large)
    if flags & 4:
        np.multiply(small, small)
    if flags & 8:
        np.subtract(large * np.inf, np.inf)
    if singular:
        from scipy.linalg import LinAlgWarning

        warn("A matrix of the iterations was singular.", LinAlgWarning)
