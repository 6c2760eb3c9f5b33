"""What the nodes of a graph hold beside their inputs: symbolic numbers and arrays would stay symbolic there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from .._core import GraphBase
from ..declare.rebuild import layers
from ..graph.symbolic_number import Specialise, is_number
from ..refusals import may_run_itself, refusal
from .left_behind import symbolic_in

__all__ = ["check_statics"]

_PLAIN = frozenset((int, float, bool, str, type(None)))
_FUNCTIONS = frozenset((FunctionType, MethodType, partial))
_KNOWN_CALLED = frozenset((np.ufunc, FunctionType, BuiltinFunctionType))


def check_statics(graph: GraphBase) -> None:
    """Ask for the Numbers that stand among the static arguments of nodes, or in functions among these.

    Raises
    ------
    Specialise
        There are some.
    TypeError
        A function that a node is to call (``np.piecewise(x, c, [lambda v: v * y])``) reads an array of the graph.
    """
    places: frozenset[int] = frozenset()
    for index in range(len(graph)):
        node = graph[index]
        form, called = node._form, node.function
        statics = () if form is None else [x for x in form[1] if type(x) not in _PLAIN and not _is_empty(x)]
        if statics:
            places |= _places_in(statics, node.name)
        if type(called) not in _KNOWN_CALLED:
            for function in layers(called):
                if leaves := getattr(function, "leaves", ()):
                    places |= _places_in(leaves, node.name)
    if places:
        raise Specialise(places)


def _is_empty(x: Any) -> bool:
    return type(x) is tuple and not x


def _places_in(statics: Any, name: str) -> frozenset[int]:
    places: frozenset[int] = frozenset()
    for x in _leaves(statics):
        if is_number(x):
            places |= x._places
        elif type(x) in _FUNCTIONS:
            for found in symbolic_in(x):
                if not is_number(found):
                    raise may_run_itself(_reads_an_array(x, name))
                places |= found._places
    return places


def _leaves(x: Any) -> Iterator[Any]:
    """What stands in nested containers, however deep, once."""
    pending, seen = [x], {id(x)}
    while pending:
        x = pending.pop()
        if isinstance(x, (tuple, list)):
            parts = x
        elif isinstance(x, dict):
            parts = [*x.values()]
        elif type(x) is slice:
            parts = (x.start, x.stop, x.step)
        else:
            yield x
            continue
        inner = [part for part in parts if id(part) not in seen]
        seen.update(map(id, inner))
        pending.extend(inner)


def _reads_an_array(function: Any, name: str) -> Exception:
    called = getattr(function, "__name__", "a function")
    return refusal(
        f"{name} is given {called}, which reads an array of the graph that it has no numbers of when {name} calls it: "
        "pass that array as an argument, or compute with np.where"
    )
