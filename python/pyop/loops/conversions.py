"""Python's own functions of numbers in lifted code: `float`, `int`, `bool`, `abs`, `round` of what is not known.

``float(x[k])`` is the element as a Python float. In a loop that is recorded ``int(v)`` is a number that the loop
computes with and looks up by; elsewhere it is decided for each call. A number that is no int64 raises a floating-point
flag, or an overflow, by which the function itself runs.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.deciding import recorded_loop
from ..graph.symbolic_number import Number, is_number
from ..tracing.math_functions import as_float, nearest, places_of
from ..tracing.twins import StandIn, called_instead, graph_under_twins, stand_in
from .arms import unknown
from .choices import choose

__all__: list[str] = []


def _float(*args: Any) -> Any:
    graph = graph_under_twins()
    value = as_float(args[0]) if graph is not None and len(args) == 1 else None
    if type(value) is not Value:
        return float(*args)
    # A node of its own: the scalar is none of Python's numbers.
    number: Any = np.positive(value)
    return Number(float, number, places_of(graph, args))


def _recorded(x: Any) -> Any:
    """Return the loop that is recorded, if something of it is asked for a number."""
    if not (type(x) is Value or is_number(x)):
        return None
    graph: Any = graph_under_twins()
    return recorded_loop(graph)


def _rounded(name: str, rounds: Callable[[Any], Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return `original`, a function that makes an int of a number, for scalars of loops."""

    def call(*args: Any) -> Any:
        x: Any = args[0] if len(args) == 1 else None
        if is_counter(x):
            return x
        loop = _recorded(x)
        value: Any = None if loop is None else x._value if is_number(x) else x
        known = value is not None and value.shape == () and value.dtype is not None and value.dtype.char in "dlifhbBHI?"
        if type(x) is Value and loop is None and graph_under_twins() is not None and _is_float(x):
            return int(rounds(x))  # decided
        if loop is None or not known or (value.dtype.kind == "b" and name != "int"):
            return original(*args)
        return loop.counted(_int64(value, rounds))

    return call


def _is_float(x: Value) -> bool:
    return x.shape == () and x.dtype is not None and x.dtype.char in "fd"


def _int64(value: Value, rounds: Callable[[Any], Any]) -> Value:
    if value.dtype == np.int64:
        return value
    made: Value
    if value.dtype is None or value.dtype.kind != "f":
        made = value.astype(np.int64)
    elif nearest() is None:
        made = rounds(value).astype(np.int64)
    else:
        made = nearest()(rounds(value if value.dtype == np.float64 else value.astype(np.float64)))
    return made


def _bool(*args: Any) -> Any:
    found = unknown(args[0]) if len(args) == 1 else None
    return bool(*args) if found is None else Number(bool, found[1], found[0].places())


def _abs(x: Any) -> Any:
    if not is_counter(x):
        return abs(x)
    graph: Any = graph_under_twins()
    loop = recorded_loop(graph)
    return abs(x) if loop is None else choose(loop, x < 0, -x, x)


called_instead(float, StandIn(float, _float))
called_instead(bool, StandIn(bool, _bool))
called_instead(int, StandIn(int, _rounded("int", np.trunc, int)))
stand_in(builtins.abs, _abs)
stand_in(builtins.round, _rounded("round", np.rint, round))
stand_in(math.floor, _rounded("floor", np.floor, math.floor))
stand_in(math.ceil, _rounded("ceil", np.ceil, math.ceil))
stand_in(math.trunc, _rounded("trunc", np.trunc, math.trunc))
