"""`solve_ivp`: SciPy's, with plans in place of Python functions, stepped in C++."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._core import CompiledFunction, _Integration
from ..graph.deciding import PathLeft
from .ode_plans import (
    Described,
    KeepsPlans,
    NotHere,
    compiled_jacobian,
    derivative_of,
    derived_jacobian_of,
    described,
    event_of,
    jacobian_of,
)

__all__ = ["solve_ivp"]

_METHODS = {"RK23": 0, "RK45": 0, "DOP853": 1, "Radau": 2, "BDF": 3}  # csrc/ode/solver.h: Method
_IMPLICIT = ("Radau", "BDF")
_FINISHED, _FAILED, _EVENTS = 1, 2, 3  # csrc/ode/integrate.h: Outcome
_EPS = float(np.finfo(np.float64).eps)
_MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    1: "A termination event occurred.",
}
_MOST_KEPT = 64


class _Events(NamedTuple):
    functions: list[Callable[..., Any]]  # of (t, y), as Python has them
    plans: tuple[tuple[Described, int], ...]  # with directions
    most: np.ndarray[Any, Any]  # how often each may occur


class _Prepared(NamedTuple):
    integration: _Integration
    method: str
    n: int
    columns: int
    t_eval: np.ndarray[Any, Any] | None
    dense: bool
    events: _Events | None


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """Integrate a system of differential equations, as `scipy.integrate.solve_ivp` does, without Python in its steps.

    The function, its Jacobian and its events become plans, which are stepped in C++: with the GIL given up where they
    need no Python. Steps, norms of errors and interpolation are SciPy's, and so is the BLAS that sums: the numbers are
    those of SciPy, most often to the bit.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)``, which returns the derivatives: an array of shape ``(n,)``, or a list or tuple of n
        numbers. It is traced as by `pyop.compile`. What `rhs` makes of it keeps its plans for further calls; a plain
        function is traced in each.
    t_span, y0, method, t_eval, dense_output, events, vectorized, args
        As SciPy takes them. Methods that are stepped here are "RK23", "RK45", "DOP853", "Radau" and "BDF".
    **options
        ``first_step``, ``max_step``, ``rtol``, ``atol``, ``jac``. With ``jac=True`` the Jacobian is derived from `fun`;
        without it, it is estimated by differences, as SciPy does.

    Returns
    -------
    scipy.integrate.OdeResult
        SciPy's, and in addition ``driver``, "pyop" or "scipy", ``native``, whether the steps were without Python, and
        ``reason``, why SciPy has integrated: the function cannot be compiled, `y0` is complex, or what else only SciPy
        does (``method="LSODA"``, ``vectorized=True``, ``jac_sparsity``), where SciPy's own function is called as it is.

    Raises
    ------
    ValueError, TypeError
        As SciPy does. What `fun` raises comes out as it is.

    Notes
    -----
    Where the derivatives are not finite at the start, SciPy does not end; here the status is -1.

    Examples
    --------
    >>> import numpy as np
    >>> from pyop.interop.scipy import rhs, solve_ivp
    >>> def lorenz(t, y, s, r, b):
    ...     return [s * (y[1] - y[0]), y[0] * (r - y[2]) - y[1], y[0] * y[1] - b * y[2]]
    >>> fun = rhs(lorenz)
    >>> found = solve_ivp(fun, (0, 10), [1.0, 1.0, 1.0], "DOP853", args=(10.0, 28.0, 8 / 3), rtol=1e-9, atol=1e-9)
    >>> found.success, found.driver, found.native
    (True, 'pyop', True)
    >>> found.y.shape == (3, found.t.size)
    True
    """
    try:
        if vectorized:
            raise NotHere("vectorized=True")
        prepared = _prepare(fun, t_span, y0, method, t_eval, dense_output, events, args, options)
        return _run(prepared)
    except NotHere as reason:
        why = str(reason)
    except PathLeft:
        why = "a branch that was not seen when the function was traced"
    return _by_scipy(fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args, options, why)


def _by_scipy(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any,
    t_eval: Any,
    dense: bool,
    events: Any,
    vectorized: bool,
    args: Any,
    options: dict[str, Any],
    why: str,
) -> Any:
    from scipy.integrate import solve_ivp as by_scipy

    if options.get("jac") is True:
        options = {**options, "jac": compiled_jacobian(_function(fun), _options(fun))}
    given = {"t_eval": t_eval, "dense_output": dense, "events": events, "vectorized": vectorized, "args": args}
    found = by_scipy(fun, t_span, y0, method, **given, **options)
    found["driver"], found["native"], found["reason"] = "scipy", False, why
    return found


# --- what is asked for


def _prepare(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any,
    t_eval: Any,
    dense: bool,
    events: Any,
    args: Any,
    options: dict[str, Any],
) -> _Prepared:
    """What is integrated here; NotHere for all else, and for what SciPy has an error or a warning to say about."""
    from .ode_dense import blas

    if not isinstance(method, str) or method not in _METHODS:
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
    plain = _function(fun)
    if not callable(plain):
        raise NotHere(f"fun is a {type(fun).__name__}")
    arguments = np.array(t0), state, *more

    def plan(form: Any, f: Any) -> Described:
        return described(form, f, arguments, kept, _options(fun))

    described_f = plan(derivative_of, plain)
    jac = _jacobian(options.get("jac"), fun, plain, n, plan) if implicit else None
    found_events = None if events is None else _events(events, more, plan)
    tableau = None if implicit else _tableau(method)
    integration = _Integration(
        _METHODS[method],
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
    return _Prepared(integration, method, n, 0 if tableau is None else tableau[2], times, bool(dense), found_events)


def _options(f: Any) -> dict[str, Any]:
    """Those of `pyop.compile`."""
    return f._options if isinstance(f, KeepsPlans) else {}


def _function(f: Any) -> Any:
    """The function of the user's."""
    if isinstance(f, KeepsPlans):
        return f._f
    return f.__wrapped__ if isinstance(f, CompiledFunction) else f


def _span(t_span: Any) -> tuple[float, float]:
    try:
        t0, t_bound = map(float, t_span)
    except Exception as error:
        raise NotHere("t_span") from error
    if not math.isfinite(t0) or math.isnan(t_bound) or t0 == t_bound:
        raise NotHere("t_span is nothing, or not finite")
    return t0, t_bound


def _tolerances(rtol: Any, atol: Any, n: int, implicit: bool) -> tuple[Any, Any]:
    try:
        rtols, atols = np.asarray(rtol, np.float64), np.asarray(atol, np.float64)
    except (TypeError, ValueError) as error:
        raise NotHere("rtol or atol") from error
    shapes = {(), (n,)}
    fits = (rtols.shape == () if implicit else rtols.shape in shapes) and atols.shape in shapes
    if not fits or not np.all(rtols >= 100 * _EPS) or not np.all(atols >= 0):
        raise NotHere("rtol or atol")
    return np.broadcast_to(rtols, n).copy(), np.broadcast_to(atols, n).copy()


def _steps(first: Any, longest: Any, length: float) -> tuple[float, float]:
    """First and largest step; 0 for a first step that is to be selected."""
    try:
        longest, first = float(longest), 0.0 if first is None else float(first)
    except (TypeError, ValueError) as error:
        raise NotHere("first_step or max_step") from error
    if not longest > 0 or not 0 <= first <= length or (first == 0.0 and math.copysign(1, first) < 0):
        raise NotHere("first_step or max_step")
    return first, longest


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
    derived = jac is True or (isinstance(fun, KeepsPlans) and getattr(jac, "__self__", None) is fun and jac == fun.jac)
    if jac is None:
        return None
    if derived:
        return plan(derived_jacobian_of, plain)
    if callable(jac):
        return plan(jacobian_of, _function(jac))
    constant = np.asarray(jac) if not hasattr(jac, "tocsc") else None
    if constant is None or constant.dtype.kind not in "biuf" or constant.shape != (n, n):
        raise NotHere("jac is no matrix of n times n real numbers")
    return constant.astype(np.float64).tobytes()


def _events(events: Any, args: tuple[Any, ...], plan: Callable[[Any, Any], Described]) -> _Events:
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
        plans.append((plan(event_of, _function(event)), (direction > 0) - (direction < 0)))
        functions.append(lambda t, y, event=event: event(t, y, *args))
    return _Events(functions, tuple(plans), np.array(most, np.float64))


@cache
def _tableau(method: str) -> tuple[Any, ...]:
    """Coefficients as `csrc/ode/ode_type.cpp` reads them: those of SciPy's class."""
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


# --- what is found


def _run(prepared: _Prepared) -> Any:
    from .ode_dense import Interpolant

    integration, events = prepared.integration, prepared.events
    made_of = _METHODS[prepared.method], prepared.n, prepared.columns
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
            assert events is not None
            active = np.array(integration.active())
            interpolant = Interpolant(*made_of, bytes(integration.segment()))
            end = _locate(events, active, counts, interpolant, times, states)
            if end is not None:
                status = 1
            integration.go_on(np.nan if end is None else end)
    return _result(prepared, status, times, states)


def _locate(
    events: _Events,
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
            brentq(lambda s, k=k: events.functions[k](s, interpolant(s)), t_old, t, xtol=4 * _EPS, rtol=4 * _EPS)
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


def _result(prepared: _Prepared, status: int, times: list[list[float]], states: list[list[Any]]) -> Any:
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

        made_of = _METHODS[prepared.method], prepared.n, prepared.columns
        length = 8 * numbers
        parts = [Interpolant(*made_of, bytes(segments[k : k + length])) for k in range(0, len(segments), length)]
        sol = OdeSolution(ends, parts, alt_segment=prepared.method == "BDF")
    found = _result_type()(
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
    found["driver"], found["native"], found["reason"] = "pyop", prepared.integration.native, ""
    return found


@cache
def _result_type() -> Any:
    """SciPy's class of results, which has no public name."""
    from scipy.integrate import solve_ivp as by_scipy

    return type(by_scipy(lambda t, y: y, (0, 1e-3), [1.0]))


def _tell(flags: int, singular: int) -> None:
    """Warn or raise as NumPy does, by `np.errstate`, of what the arithmetic of the steps has met; and as SciPy."""
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
        import warnings

        from scipy.linalg import LinAlgWarning

        warnings.warn("A matrix of the iterations was singular.", LinAlgWarning, stacklevel=4)
