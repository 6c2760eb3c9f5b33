"""Define how plans compute functions of NumPy by simpler ones (`composed_nodes.py`).

A node keeps its function. At compile time a part is recorded for it: a graph of simpler functions, which all run
natively. Each part does what NumPy's function does with arrays, rounding for rounding. It returns `NotImplemented` for
arguments that it does not handle. A condition on the numbers is a `Checked`: where it does not hold when the plan
runs, or where anything would warn or raise, the function itself is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value

__all__ = ["IN_ANY_LAYOUT", "PARTS", "Checked", "in_any_layout", "part_of"]

PARTS: dict[Any, Callable[..., Any]] = {}
IN_ANY_LAYOUT: set[Any] = set()


class Checked:
    """Hold the result of a part that is valid if all these Values of one truth are true."""

    def __init__(self, result: Any, *checks: Any) -> None:
        self.result = result
        self.checks = checks


def part_of(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register how functions are composed: the decorated one gets the arguments of a node, Values for arrays."""

    def register(composed: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            PARTS[function] = composed
        return composed

    return register


def in_any_layout(*functions: Any) -> None:
    """Register parts whose results lie in memory as NumPy's do, whatever the order of the arguments is."""
    IN_ANY_LAYOUT.update(functions)


def is_value(x: Any) -> bool:
    """Return whether it is a Value, and no array or number."""
    return type(x) is Value


def is_float(*values: Any) -> bool:
    """Return whether all are Values of float64, or all of float32."""
    return all(type(x) is Value and x.dtype is not None and x.dtype.char in "df" for x in values) and (
        len({x.dtype for x in values}) <= 1
    )


def is_double(*values: Any) -> bool:
    """Return whether all are Values of float64."""
    return all(type(x) is Value and x.dtype == np.float64 for x in values)


def axis_in(axis: Any, ndim: int) -> int | None:
    """Return an axis counted from the front, or None if the array has no such axis."""
    return axis % ndim if type(axis) is int and -ndim <= axis < ndim else None


def along(x: Any, axis: int, part: Any) -> Any:
    """Return ``x[part]`` along an axis."""
    return x[(slice(None),) * axis + (part,)]


def all_of(truths: Any) -> Any:
    """Return whether all truths are true, as a Value."""
    return np.all(truths) if truths.ndim else truths


def is_number(x: Any) -> bool:
    """Return whether it is a Python int, float or bool, and of no subclass."""
    return type(x) in (int, float, bool)
