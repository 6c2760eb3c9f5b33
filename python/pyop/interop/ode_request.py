"""Read the arguments of `solve_ivp` into the form that `_core._Integration` takes.

NotHere for anything that is not integrated here, and for arguments about which SciPy raises or warns; it then does so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._core import CompiledFunction, _Integration
from .ode_plans import (
    Described,
    KeepsPlans,
    NotHere,
    derivative_of,
    derived_jacobian_of,
    described,
    event_of,
    jacobian_of,
)

__all__ = ["EPS", "METHODS", "Events", "Prepared", "function_of", "options_of", "prepare"]

METHODS = {"RK23": 0, "RK45": 0, "DOP853": 1, "Radau": 2, "BDF": 3}  # csrc/ode/solver.h: Method
EPS = float(np.finfo(np.float64).eps)
_IMPLICIT = ("Radau", "BDF")
_MOST_KEPT = 64


class Events(NamedTuple):
    functions: list[Callable[..., Any]]  # of (t, y), as Python has them
    plans: tuple[tuple[Described, int], ...]  # with directions
    most: np.ndarray[Any, Any]  # how often each may occur


class Prepared(NamedTuple):
    integration: _Integration
    method: str
    n: int
    columns: int
    t_eval: np.ndarray[Any, Any] | None
    dense: bool
    events: Events | None


def prepare(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any,
    t_eval: Any,
    dense: bool,
    events: Any,
    args: Any,
    options: dict[str, Any],
) -> Prepared:
    """Return the integration that these arguments of `solve_ivp` ask for."""
    from .ode_dense import blas

    if not isinstance(method, str) or method not in METHODS:
        raise NotHere(f"method={method!r}")
    implicit = method in _IMPLICIT
    known = {"first_step", "max_step", "rtol", "atol"} | ({"jac", "jac_sparsity"} if implicit else set())
    if not known.issuperset(options) or options.get("jac_sparsity") is not None:
        raise NotHere("options that are SciPy's alone")
    functions = blas()
    if functions is None:
        raise NotHere("SciPy's BLAS is called in another way")
    t0, t_bound = _span(t_span)
    state = np.asarray(y0)
    if state.dtype.kind not in "biuf" or state.ndim != 1 or not 0 < state.size < 1 << 24:
        raise NotHere("y0 is no vector of real numbers")
    state = state.astype(np.float64)
    if not np.isfinite(state).all():
        raise NotHere("y0 is not finite")
    n = state.size
    rtol, atol = options.get("rtol", 1e-3), options.get("atol", 1e-6)
    rtols, atols = _tolerances(rtol, atol, n, implicit)
    first, longest = _steps(options.get("first_step"), options.get("max_step", np.inf), abs(t_bound - t0))
    times = None if t_eval is None else _times(t_eval, t0, t_bound)
    more = _arguments(args)

    owner = fun if isinstance(fun, KeepsPlans) else None
    kept = None if owner is None else owner._plans
    if kept is not None and len(kept) > _MOST_KEPT:
        kept.clear()
    plain = function_of(fun)
    if not callable(plain):
        raise NotHere(f"fun is a {type(fun).__name__}")
    arguments = np.array(t0), state, *more

    def plan(form: Any, f: Any) -> Described:
        return described(form, f, arguments, kept, options_of(fun))

    described_f = plan(derivative_of, plain)
    jac = _jacobian(options.get("jac"), fun, plain, n, plan) if implicit else None
    found_events = None if events is None else _events(events, more, plan)
    tableau = None if implicit else _tableau(method)
    integration = _Integration(
        METHODS[method],
        (t0, t_bound),
        state.tobytes(),
        rtols.tobytes(),
        atols.tobytes(),
        float(rtols[0]),
        first,
        longest,
        described_f,
        jac,
        () if found_events is None else found_events.plans,
        tableau,
        functions,
        None if times is None else times.astype(np.float64).tobytes(),
        bool(dense),
    )
    return Prepared(integration, method, n, 0 if tableau is None else tableau[2], times, bool(dense), found_events)


def options_of(f: Any) -> dict[str, Any]:
    """Return the options of `pyop.compile`."""
    return f._options if isinstance(f, KeepsPlans) else {}


def function_of(f: Any) -> Any:
    """Return the user's function."""
    if isinstance(f, KeepsPlans):
        return f._f
    return f.__wrapped__ if isinstance(f, CompiledFunction) else f


def _span(t_span: Any) -> tuple[float, float]:
    try:
        t0, t_bound = map(float, t_span)
    except Exception as error:
        raise NotHere("t_span") from error
    if not math.isfinite(t0) or math.isnan(t_bound) or t0 == t_bound:
        raise NotHere("t_span is empty, or not finite")
    return t0, t_bound


def _tolerances(rtol: Any, atol: Any, n: int, implicit: bool) -> tuple[Any, Any]:
    try:
        rtols, atols = np.asarray(rtol, np.float64), np.asarray(atol, np.float64)
    except (TypeError, ValueError) as error:
        raise NotHere("rtol or atol") from error
    if rtols.shape == atols.shape == ():
        if not (rtols >= 100 * EPS and atols >= 0):
            raise NotHere("rtol or atol")
        return np.full(n, rtols), np.full(n, atols)
    shapes = {(), (n,)}
    fits = (rtols.shape == () if implicit else rtols.shape in shapes) and atols.shape in shapes
    if not fits or not np.all(rtols >= 100 * EPS) or not np.all(atols >= 0):
        raise NotHere("rtol or atol")
    return np.broadcast_to(rtols, n).copy(), np.broadcast_to(atols, n).copy()


def _steps(first: Any, longest: Any, length: float) -> tuple[float, float]:
    """Return first and largest step; 0 for a first step that is to be selected."""
    try:
        longest, asked = float(longest), None if first is None else float(first)
    except (TypeError, ValueError) as error:
        raise NotHere("first_step or max_step") from error
    if not longest > 0 or not (asked is None or 0 < asked <= length):
        raise NotHere("first_step or max_step")
    return asked or 0.0, longest


def _times(t_eval: Any, t0: float, t_bound: float) -> np.ndarray[Any, Any]:
    times = np.asarray(t_eval)
    if times.ndim != 1 or times.dtype.kind not in "biuf":
        raise NotHere("t_eval")
    steps = np.diff(times) if t_bound > t0 else -np.diff(times)
    inside = (times >= min(t0, t_bound)) & (times <= max(t0, t_bound))
    if not inside.all() or not (steps > 0).all() or times.dtype.kind == "b":
        raise NotHere("t_eval is not sorted, or not within t_span")
    return times


def _arguments(args: Any) -> tuple[Any, ...]:
    if args is None:
        return ()
    try:
        return (*args,)
    except TypeError as error:
        raise NotHere("args") from error


def _jacobian(
    jac: Any, fun: Any, plain: Any, n: int, plan: Callable[[Any, Any], Described]
) -> Described | bytes | None:
    own = isinstance(fun, KeepsPlans) and getattr(jac, "__self__", None) is fun and jac == getattr(fun, "jac", None)
    if jac is None:
        return None
    if own or jac is True:
        return plan(derived_jacobian_of, plain)
    if callable(jac):
        return plan(jacobian_of, function_of(jac))
    constant = np.asarray(jac) if not hasattr(jac, "tocsc") else None
    if constant is None or constant.dtype.kind not in "biuf" or constant.shape != (n, n):
        raise NotHere("jac is no matrix of n times n real numbers")
    return constant.astype(np.float64).tobytes()


def _events(events: Any, args: tuple[Any, ...], plan: Callable[[Any, Any], Described]) -> Events:
    given = (events,) if callable(events) else events
    functions, plans, most = [], [], []
    if not isinstance(given, Iterable):
        raise NotHere("events")
    for event in given:
        terminal, direction = getattr(event, "terminal", None), getattr(event, "direction", 0)
        try:
            direction = float(direction)
            if terminal is None or terminal == 0:
                most.append(np.inf)
            elif int(terminal) == terminal and terminal > 0:
                most.append(terminal)
            else:
                raise NotHere("an event's `terminal`")
        except (TypeError, ValueError) as error:
            raise NotHere("an event's `terminal` or `direction`") from error
        if math.isnan(direction):
            raise NotHere("an event's `direction`")
        plans.append((plan(event_of, function_of(event)), (direction > 0) - (direction < 0)))
        functions.append(lambda t, y, event=event: event(t, y, *args))
    return Events(functions, tuple(plans), np.array(most, np.float64))


@cache
def _tableau(method: str) -> tuple[Any, ...]:
    """Return coefficients as `csrc/ode/ode_type.cpp` reads them: those of SciPy's class."""
    from scipy import integrate

    kind = getattr(integrate, method)
    stages = kind.n_stages
    A = np.zeros((stages, stages))
    A[:, : kind.A.shape[1]] = kind.A
    head = stages, kind.error_estimator_order
    if method == "DOP853":
        return (
            *head,
            len(kind.D),
            *_bytes(A, kind.B, kind.C, kind.E5, kind.D, kind.E3, kind.A_EXTRA, kind.C_EXTRA),
        )
    return *head, kind.P.shape[1], *_bytes(A, kind.B, kind.C, kind.E, kind.P)


def _bytes(*arrays: Any) -> list[bytes]:
    return [np.asarray(a, np.float64).tobytes() for a in arrays]
