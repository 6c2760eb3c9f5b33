"""Ints that an instance or closure holds: others in each call, as counters are, and so no constants of a plan.

A node computes with Python's ints. A result that is no int64 ends the run of the plan, and the function itself runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["within_int64"]


class WithinInt64:
    """An operation on ints whose result must be an int64."""

    __slots__ = ("__name__", "op")
    _pyop_checks_results = True

    def __init__(self, op: Callable[[int, int], int]) -> None:
        self.op = op
        self.__name__ = op.__name__

    def __call__(self, a: int, b: int) -> int:
        result = self.op(a, b)
        if not -(1 << 63) <= result < 1 << 63:
            raise OverflowError(f"{self.__name__} of ints gives {result}, which is no int64")
        return result


_OPERATIONS: dict[Any, WithinInt64] = {
    op: WithinInt64(op) for op in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)
}


def within_int64(op: Callable[..., Any]) -> WithinInt64 | None:
    """Return the operation whose result must be an int64; None for another one than these.

    >>> import operator
    >>> from pyop.graph.state_numbers import within_int64
    >>> within_int64(operator.add)(2, 3), within_int64(operator.pow)
    (5, None)
    """
    return _OPERATIONS.get(op)
