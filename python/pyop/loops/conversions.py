"""Convert numbers that are not known in lifted code: `float`, `int`, `bool`, `abs` and `round` of them.

``float(x[k])`` is the element as a Python float. In a loop that is recorded ``int(v)`` is a number that the loop
computes with and looks up by; elsewhere it is decided for each call. A number that is no int64 raises a floating-point
flag, or an overflow, by which the function itself runs.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._core import Value
from ..graph.counter import is_counter, size_of
from ..graph.deciding import recorded_loop
from ..graph.known import numbers_asked
from ..graph.symbolic_number import Number, is_number
from ..graph.value_methods import set_item
from ..tracing.math_functions import as_float, nearest, places_of
from ..tracing.twins import StandIn, called_instead, graph_under_twins, stand_in
from .arms import unknown
from .choices import choose
from .numbers import LARGEST, as_value, named, sizes_of
from .unrolled import Unroll

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
        value: Any = x if type(x) is Value else x._value if loop is not None else None
        graph: Any = graph_under_twins() if value is not None and _has_int(value, name) else None
        counts = graph is not None and value.dtype.char in "dlifhbBHI?"
        if loop is not None:
            return loop.counted(_int64(value, rounds)) if counts else original(*args)
        if not counts:
            return original(*args) if graph is None else _known(value, rounds)
        frame = sys._getframe(1)
        return _of_call(graph, x, rounds, Decided((frame.f_code, frame.f_lasti)))

    return call


def _has_int(x: Value, name: str) -> bool:
    """Return whether a function of Python gives an int for such a scalar."""
    if x.shape != () or x.dtype is None or x.dtype.kind not in "biuf":
        return False
    return (x.dtype.kind != "b" or name == "int") and (x.dtype.char == "d" or name != "trunc")


def _known(x: Value, rounds: Callable[[Any], Any]) -> int:
    """Return an int that is decided."""
    known: Any = rounds(x) if x.dtype is not None and x.dtype.kind == "f" else x
    return int(known)


class Decided(NamedTuple):
    """Note that the int that is made at a place outside of loops has to be known."""

    place: Any

    @property
    def blamed(self) -> Decided:
        """Return what is to be done otherwise in the next trace."""
        return self

    def needed(self) -> NoReturn:
        """End the trace, as the number is asked for."""
        raise Unroll({self})


def _of_call(graph: Any, value: Value, rounds: Callable[[Any], Any], decided: Decided) -> Any:
    """Return an int that is another one in each call: a number of the graph, or one that a plan holds for."""
    is_decided = graph._unrolled is None or decided in graph._unrolled or graph._deciding is None
    if is_decided or numbers_asked(value) is not None:
        return _known(value, rounds)
    kind: Any = value.dtype
    graph._overflows |= kind.kind == "f"
    made = named(graph, _int64(value, rounds)[()], decided.needed)
    sizes_of(graph).most[size_of(made).name] = 1 << (8 * kind.itemsize) if kind.kind != "f" else LARGEST
    return made


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
    if loop is not None:
        return choose(loop, x < 0, -x, x)
    one: Any = np.where(np.less(as_value(x), 0), as_value(-x), as_value(x))
    made = named(graph, one[()], x._needed)
    sizes_of(graph).most[size_of(made).name] = sizes_of(graph).largest(x)
    return made


def _item(x: Value, args: tuple[Any, ...]) -> Any:
    """Return ``x.item(*args)`` as a number that is not known; None where it has to be."""
    graph: Any = graph_under_twins()
    shape: Any = x.shape
    if graph is None or x.dtype is None or shape is None or not all(type(k) is int or is_counter(k) for k in args):
        return None
    if len(args) == len(shape) > 0:
        x = x[args]
    elif len(args) == 1:
        x = x.reshape(-1)[args[0]]
    elif not args and all(type(n) is int and n == 1 for n in shape):
        x = x.reshape(())[()]
    if x.shape != () or x.dtype is None:
        return None  # NumPy has the words for it
    if x.dtype.kind not in "iu":
        return _float(x) if x.dtype == np.float64 else None
    if x.dtype.char not in "lihbBHI":
        return None
    loop = recorded_loop(graph)
    if loop is not None:
        return loop.counted(_int64(x, np.trunc))
    frame = sys._getframe(2)  # of who calls the method
    return _of_call(graph, x, np.trunc, Decided((frame.f_code, frame.f_lasti)))


called_instead(float, StandIn(float, _float))
called_instead(bool, StandIn(bool, _bool))
called_instead(int, StandIn(int, _rounded("int", np.trunc, int)))
stand_in(builtins.abs, _abs)
stand_in(builtins.round, _rounded("round", np.rint, round))
stand_in(math.floor, _rounded("floor", np.floor, math.floor))
stand_in(math.ceil, _rounded("ceil", np.ceil, math.ceil))
stand_in(math.trunc, _rounded("trunc", np.trunc, math.trunc))
set_item(_item)
