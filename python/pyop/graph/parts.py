"""Functions of NumPy that plans compute as a few simpler ones (`composed_nodes.py`): how they are written down.

A node keeps its function. When it is compiled a part is written for it: a graph of the functions that it is made of,
which all run natively. Each part does what NumPy's function does with arrays, rounding for rounding. What it does not
know how to do gives `NotImplemented`; what is told only by the numbers is a `Checked`: where a check does not hold when
the plan runs, or where anything would warn or raise, the function itself is called.
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
    """The result of a part, if all these Values of one truth are true."""

    def __init__(self, result: Any, *checks: Any) -> None:
        self.result = result
        self.checks = checks


def part_of(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register how some functions are composed: the decorated one is called with the arguments of a node, Values in
    place of arrays.
    """

    def register(composed: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            PARTS[function] = composed
        return composed

    return register


def in_any_layout(*functions: Any) -> None:
    """The results of these parts lie as NumPy's do whatever the arguments' order in memory is."""
    IN_ANY_LAYOUT.update(functions)


def is_value(x: Any) -> bool:
    """Whether it is a Value, and no array or number."""
    return type(x) is Value


def is_float(*values: Any) -> bool:
    """Whether all are Values of float64 or of float32, of one dtype."""
    return all(type(x) is Value and x.dtype is not None and x.dtype.char in "df" for x in values) and (
        len({x.dtype for x in values}) <= 1
    )


def is_double(*values: Any) -> bool:
    """Whether all are Values of float64."""
    return all(type(x) is Value and x.dtype == np.float64 for x in values)


def axis_in(axis: Any, ndim: int) -> int | None:
    """An axis counted from the front, or None if it is none."""
    return axis % ndim if type(axis) is int and -ndim <= axis < ndim else None


def along(x: Any, axis: int, part: Any) -> Any:
    """``x[part]`` along an axis."""
    return x[(slice(None),) * axis + (part,)]


def all_of(truths: Any) -> Any:
    """Whether all of them are true."""
    return np.all(truths) if truths.ndim else truths


def is_number(x: Any) -> bool:
    """Whether it is a number of Python that is no subclass."""
    return type(x) in (int, float, bool)
