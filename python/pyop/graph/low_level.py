"""Provide plans for callers that want addresses: `Plan.low_level_callable` and `Plan.ctypes`."""

from __future__ import annotations

import ctypes
from typing import Any

from .._core import Plan

__all__: list[str] = []

# By SciPy's function: which of the ways of `csrc/entry/low_level.cpp` it calls in.
_WAYS = {
    "quad": "quad",
    "dblquad": "quad",
    "tplquad": "quad",
    "nquad": "quad",
    "generic_filter": "generic_filter",
    "generic_filter1d": "generic_filter1d",
    "geometric_transform": "geometric_transform",
}


def low_level_callable(self: Plan, function: str = "quad") -> Any:
    """Return the plan as a :class:`scipy.LowLevelCallable`, which SciPy calls without Python in between.

    The plan takes numbers, or arrays that these numbers fill one behind the other, of declared sizes. All are float64,
    and int64 for ``geometric_transform``. SciPy's function raises the plan's exceptions unchanged.

    Parameters
    ----------
    function : str
        SciPy's function that will call it: ``"quad"``, ``"dblquad"``, ``"tplquad"``, ``"nquad"`` (the variables, and
        then what their ``args=`` hold, to one number); ``"generic_filter"`` (a window, to one number);
        ``"generic_filter1d"`` (a line, to a line); ``"geometric_transform"`` (int64 coordinates of the result, to
        float64 coordinates of the input).

    Returns
    -------
    scipy.LowLevelCallable
        Which keeps the plan alive.

    Raises
    ------
    TypeError
        If sizes or dtypes are not known, or are not those of that function.
    ValueError
        If there is no such function.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from scipy.integrate import quad
    >>> plan = pyop.trace(lambda x: np.exp(-x * x), "float64[]").compile()
    >>> round(quad(plan.low_level_callable(), 0, 1)[0], 6)
    0.746824
    """
    from scipy import LowLevelCallable

    if function not in _WAYS:
        raise ValueError(f"function={function!r} cannot take a plan; these can: {', '.join(_WAYS)}")
    return LowLevelCallable(self._low_level(_WAYS[function]))


@property  # type: ignore[misc]
def _ctypes(self: Plan) -> Any:
    """Return ``int call(pyop_plan *plan, const void **in, void **out)`` of <pyop/entry.h> as a ctypes function.

    It serves `ctypes` itself, and libraries that take its functions (numba). It runs without the GIL; pass
    `plan.address` first.

    Examples
    --------
    >>> import ctypes, numpy as np, pyop
    >>> plan = pyop.trace(lambda x, y: x * y, "float64[]", "float64[]").compile()
    >>> x, y, z = ctypes.c_double(3.0), ctypes.c_double(4.0), ctypes.c_double()
    >>> at = ctypes.addressof
    >>> inputs, results = (ctypes.c_void_p * 2)(at(x), at(y)), (ctypes.c_void_p * 1)(at(z))
    >>> plan.ctypes(plan.address, inputs, results), z.value
    (0, 12.0)
    """
    # The first word of a pyop_plan is the address of its table, whose first pointer is that of the function.
    table = ctypes.c_void_p.from_address(self.address).value
    assert table is not None
    function = ctypes.c_void_p.from_address(table + 8).value
    assert function is not None
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(function)


setattr(Plan, "low_level_callable", low_level_callable)  # noqa: B010
setattr(Plan, "ctypes", _ctypes)  # noqa: B010
