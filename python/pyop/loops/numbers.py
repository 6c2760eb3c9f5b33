"""Integers that are computed of the numbers of iterations: as Values, and compared."""

from __future__ import annotations

from typing import Any

from ..declare.dim import Dim
from ..graph.counter import Counter, is_counter, set_compare, size_of
from ..graph.symbolic_number import counted

__all__ = ["as_value", "named"]


def named(graph: Any, value: Any, needed: Any) -> Counter:
    """An int64 of the graph, of no dimension, as the number of an iteration."""
    if value.output_index:
        value = value + 0
    name = f"i{value.node.index}"
    graph._counters[name] = value.node.index
    size: Any = Dim(name)
    return Counter(size, graph, needed)


def as_value(bound: Any) -> Any:
    """A number of an iteration, or one that is computed of it, as an int64."""
    if not is_counter(bound):
        return bound
    graph, size = bound._graph, size_of(bound)
    total: Any = None
    constant = 0
    for monomial, factor in size.terms:
        if not monomial:
            constant = factor
            continue
        node = graph._counters.get(monomial[0]) if len(monomial) == 1 and type(monomial[0]) is str else None
        if node is None:
            return counted(size, graph)
        part = graph._value(node, 0)
        part = part if factor == 1 else part * factor
        total = part if total is None else total + part
    return total if constant == 0 else total + constant


def _compare(op: Any, a: Any, b: Any) -> Any:
    """The truth of a comparison, in a loop that may go both ways; None elsewhere."""
    graph = a._graph
    if not any(loop.recording is not None for loop in graph._rolling):
        return None
    return op(as_value(a), as_value(b))


def _remainder(a: Counter, by: int) -> Any:
    graph = a._graph
    recording = next((loop.recording for loop in reversed(graph._rolling) if loop.recording is not None), None)
    if recording is None:
        return None
    value = as_value(a) % by
    # One name on all ways through the iteration, on each of which there is another node.
    name = recording.names.setdefault((size_of(a), by), f"r{recording.first}k{len(recording.names)}")
    graph._counters[name] = value.node.index
    size: Any = Dim(name)
    return Counter(size, graph, a._needed)


set_compare(_compare, _remainder)
