"""Add the attributes of a plan that numba uses, imported at their first use."""

from __future__ import annotations

from typing import Any

from .._core import Plan

__all__: list[str] = []


@property  # type: ignore[misc]
def _numba_type(self: Plan) -> Any:
    """Return the type that numba asks of an object in a function to compile (`numba.py`)."""
    try:
        from .numba import dispatcher_of
    except ImportError as error:
        raise AttributeError(f"numba cannot be imported: {error}") from error
    return dispatcher_of(self)._numba_type_


@property  # type: ignore[misc]
def _cfunc(self: Plan) -> Any:
    """Return the plan as a C function of its own arguments: a ``numba.cfunc``, which needs numba.

    Numbers are passed by value, complex ones and arrays by the address of their elements in C order. A plan whose one
    result is a float is ``double f(double x, const double *a, ...)``. Any other is ``int f(..., double *y, ...)``, with
    an address for each result, and returns a status: 0, or a negative number as `pyop_plan_call` does
    (``<pyop/entry.h>``).

    A function that returns a float has no status. Where the plan raises, it returns NaN, and does so at once from then
    on. The exception is raised when the thread returns to Python; on a thread that Python does not know it goes to
    `sys.unraisablehook`. The address is valid as long as the plan or the returned object lives.

    Returns
    -------
    numba.core.ccallback.CFunc
        With ``address``, ``ctypes`` and ``native_name``; the same one at every time.

    Raises
    ------
    AttributeError
        If numba cannot be imported.
    TypeError
        If sizes or dtypes are not known, or numba has no such dtype.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> plan = pyop.trace(lambda x, y: np.hypot(x, y), "float64[]", "float64[]").compile()
    >>> plan.cfunc.ctypes(3.0, 4.0)  # doctest: +SKIP
    5.0
    """
    try:
        from .numba_cfunc import cfunc_of
    except ImportError as error:
        raise AttributeError(f"plan.cfunc needs numba, which cannot be imported: {error}") from error
    return cfunc_of(self)


setattr(Plan, "_numba_type_", _numba_type)  # noqa: B010
setattr(Plan, "cfunc", _cfunc)  # noqa: B010
