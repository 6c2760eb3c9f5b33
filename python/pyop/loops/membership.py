"""Decide ``k in table`` and ``(i, j) == goal`` in lifted code, of ints that a recorded loop computes.

The container holds ints that are known, or tuples of such: it is asked as a chain of comparisons, or by a table of
truths. Where it holds anything else, Python asks it, which needs the number. Outside of a recorded loop the answer is
decided for each call.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.deciding import recorded_loop
from ..graph.symbolic_number import Number, is_number
from ..tracing.lifting import EQUAL, IN
from ..tracing.twins import BUILTINS, graph_under_twins
from .counted import Numbers
from .numbers import as_value

__all__: list[str] = []

_CONTAINERS = (tuple, list, set, frozenset, dict, range)
_NEVER = (str, bytes, type(None))  # what is equal to no int
_CHAIN = 16  # comparisons
_MOST = 1 << 16  # truths of a table
_LARGEST = 1 << 53  # ints that a float64 holds


class _Membership:
    __slots__ = ("_asks", "_call")
    _pyop_computes = True

    def __init__(self, asks: Any, call: Any) -> None:
        self._asks = asks  # a truth of numbers that are not known; None where that is Python's
        self._call = call

    def __call__(self, x: Any, y: Any) -> Any:
        if type(x) in (int, float, str):
            return self._call(x, y)
        graph = graph_under_twins()
        loop = None if graph is None else recorded_loop(graph)
        found = None if graph is None or (loop is None and type(x) is not Value) else self._asks(graph, x, y)
        if found is None or type(found) is bool:
            return self._call(x, y) if found is None else found
        return bool(found[()]) if loop is None else Number(bool, found[()], loop.places())


def _contains(graph: Any, x: Any, container: Any) -> Any:
    if type(container) is Numbers and container._backwards is None:
        container = container._range
    if type(container) not in _CONTAINERS or len(container) > _MOST:
        return None
    if type(x) is tuple:
        found = [_equal(graph, x, item) for item in container] if len(container) <= _CHAIN else [None]
        return None if any(truth is None for truth in found) else _any(found)
    value = _int64(x)
    if value is None:
        return None
    if type(container) is range:
        return _within(graph, value, container)
    if not all(map(_is_constant, container)):
        return None
    keys = [int(key) for key in container if type(key) not in _NEVER and key == key // 1]
    if len(keys) <= _CHAIN:
        return _any([value == key for key in keys])
    low, high = min(keys), max(keys)
    if high - low >= _MOST:
        return None
    table = np.zeros(high - low + 2, np.bool_)
    table[np.subtract(keys, low)] = True
    there = np.logical_and(value >= low, value <= high)
    return graph.constant(table)[np.where(there, value - low, high - low + 1)]


def _is_constant(key: Any) -> bool:
    """Return whether it is known which int a key is equal to, if any."""
    return type(key) in _NEVER or (type(key) in (int, bool, float) and abs(key) < _LARGEST)


def _within(graph: Any, value: Any, numbers: range) -> Any:
    if not numbers or abs(numbers[0]) >= _LARGEST or abs(numbers[-1]) >= _LARGEST:
        return None if numbers else False
    low, high = sorted((numbers[0], numbers[-1]))
    there = np.logical_and(value >= low, value <= high)
    step = abs(numbers.step)
    return there if step == 1 else np.logical_and(there, (np.where(there, value, low) - low) % step == 0)


def _equal(graph: Any, a: Any, b: Any) -> Any:
    """Return whether two tuples are equal; None where that is not known by ints alone."""
    if type(a) is not tuple or type(b) is not tuple:
        return None
    if len(a) != len(b):
        return False
    truths: list[Any] = []
    for x, y in zip(a, b, strict=True):
        if type(x) is int and type(y) is int:
            truths.append(x == y)
            continue
        x, y = (z if type(z) is int and abs(z) < _LARGEST else _int64(z) for z in (x, y))
        if x is None or y is None:
            return None
        truths.append(x == y)
    return _joined(truths, np.logical_and, False)


def _any(truths: list[Any]) -> Any:
    return _joined(truths, np.logical_or, True)


def _joined(truths: list[Any], join: np.ufunc, decides: bool) -> Any:
    """Return what truths are together, of which some are known; one that `decides` does for all."""
    if any(truth is decides for truth in truths):
        return decides
    unknown = [truth for truth in truths if type(truth) is not bool]
    return reduce(join, unknown) if unknown else not decides


def _int64(x: Any) -> Value | None:
    """Return an int that is not known as a scalar of int64; None where it is none."""
    value: Any = as_value(x) if is_counter(x) else x._value if is_number(x) and x._kind in (int, bool) else x
    if type(value) is not Value or value.shape != () or value.dtype is None:
        return None
    if type(x) is Value and not x._is_scalar:
        return None
    if value.dtype.kind not in "iub" or value.dtype == np.uint64:
        return None
    made: Value = value if value.dtype == np.int64 else value.astype(np.int64)
    return made


BUILTINS[IN] = _Membership(_contains, lambda x, y: x in y)
BUILTINS[EQUAL] = _Membership(_equal, lambda x, y: x == y)
