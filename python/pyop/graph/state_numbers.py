"""Compute with ints that an instance or closure holds, and that other calls may change: no constants of a plan.

They are computed as int64, and the plan is of calls in which no result leaves that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value

__all__ = ["of_int64"]

_MOST = 1 << 62  # the sum of two below is an int64
_UFUNCS: dict[Any, np.ufunc] = {operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply}
_DIVISIONS: dict[Any, np.ufunc] = {operator.floordiv: np.floor_divide, operator.mod: np.remainder}


def of_int64(op: Callable[..., Any], a: Any, b: Any) -> Any:
    """Return the result of two ints, with Values of int64 for unknown ones, as Python computes it.

    None if that is not known to be an int64.

    >>> import operator
    >>> from pyop.graph.state_numbers import of_int64
    >>> of_int64(operator.pow, 2, 3) is None
    True
    """
    if op in _DIVISIONS:
        within = type(b) is int and 0 < b < _MOST
        return _DIVISIONS[op](a, np.int64(b)) if within else None
    if op not in _UFUNCS:
        return None
    constants = [abs(x) for x in (a, b) if type(x) is int]
    most = _MOST
    if op is operator.mul:
        most = _MOST // max(constants[0], 1) if constants else 1 << 31
    if max(constants, default=0) >= _MOST or most < 2:
        return None
    for x in (a, b):
        if type(x) is Value and not np.logical_and(x > -most, x < most):  # decided, and guarded
            return None
    return _UFUNCS[op](*[np.int64(x) if type(x) is int else x for x in (a, b)])
