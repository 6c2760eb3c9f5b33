"""Provide `solve_ivp`: SciPy's, with plans in place of Python functions, stepped in C++."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..graph.deciding import PathLeft
from .ode_plans import NotHere, compiled_jacobian
from .ode_request import function_of, options_of, prepare
from .ode_result import run

__all__ = ["solve_ivp"]


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
    t_span = tuple(t_span) if isinstance(t_span, Iterator) else t_span  # it is read twice
    try:
        if vectorized:
            raise NotHere("vectorized=True")
        return run(prepare(fun, t_span, y0, method, t_eval, dense_output, events, args, options))
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
        options = {**options, "jac": compiled_jacobian(function_of(fun), options_of(fun))}
    given = {"t_eval": t_eval, "dense_output": dense, "events": events, "vectorized": vectorized, "args": args}
    result = by_scipy(fun, t_span, y0, method, **given, **options)
    result["driver"], result["native"], result["reason"] = "scipy", False, why
    return result
