"""Check what the nodes of a graph hold beside their inputs: what is symbolic there would stay so."""

from __future__ import annotations

from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ..declare.rebuild import layers
from ..graph.calls import CALLED_BACK
from ..graph.deciding import Specialise
from ..graph.graph import Graph
from ..graph.symbolic_number import is_number
from ..refusals import refusal

__all__ = ["check", "check_functions"]

_PLAIN = frozenset((int, float, bool, str, type(None)))
_KNOWN_CALLED = frozenset((np.ufunc, FunctionType, BuiltinFunctionType))


def check(graph: Graph) -> None:
    """Ask for the Numbers that nodes hold, by raising Specialise: as static arguments, or in functions among these."""
    check_functions(graph)
    places: frozenset[int] = frozenset()
    for index in range(len(graph)):
        node = graph[index]
        form, called = node._form, node.function
        statics = () if form is None else [x for x in form[1] if type(x) not in _PLAIN and not _is_empty(x)]
        if statics:
            places |= _places_in(statics)
        if type(called) not in _KNOWN_CALLED:
            for function in layers(called):
                if leaves := getattr(function, "leaves", ()):
                    places |= _places_in(leaves)
    if places:
        raise Specialise(places)


def check_functions(graph: Graph) -> None:
    """Ask for the Numbers that functions read which nodes were given: ``np.piecewise(x, c, [lambda v: v * t])``.

    Raises
    ------
    TypeError
        One of them reads an array of the graph.
    """
    functions = [x for x in graph._kept if type(x) in CALLED_BACK]
    if not functions:
        return
    from .left_behind import symbolic_in  # on first use

    places: frozenset[int] = frozenset()
    for function in functions:
        for found in symbolic_in(function):
            if not is_number(found):
                raise _reads_an_array(function)
            places |= found._places
    if places:
        raise Specialise(places)


def _places_in(statics: Any) -> frozenset[int]:
    return frozenset().union(*[x._places for x in _leaves(statics) if is_number(x)])


def _is_empty(x: Any) -> bool:
    return type(x) is tuple and not x


def _leaves(x: Any) -> Iterator[Any]:
    """Go through what stands in nested containers, however deep, once."""
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


def _reads_an_array(function: Any) -> Exception:
    name = getattr(function, "__name__", "a function")
    return refusal(
        f"{name} is given to a function of NumPy that calls it when the graph runs, and reads an array of the graph, "
        "which is symbolic: pass that array as an argument, or compute with np.where"
    )
