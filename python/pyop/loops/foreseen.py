"""Loops that are written down iteration by iteration: that they would be too long is said after a few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..graph.deciding import MOST_NODES, recorded_loop
from ..graph.graph import Graph

__all__ = ["foreseen"]

_LOOKED_AT = 4  # iterations, after which the first may have been another


def foreseen(graph: Graph, items: Iterator[Any], count: int) -> Iterator[Any]:
    """The items of a loop; where so many of them would make more nodes than a graph may have, the function itself has
    to run.

    >>> from pyop import Graph
    >>> from pyop.loops.foreseen import foreseen
    >>> [*foreseen(Graph(), iter(range(3)), 3)]
    [0, 1, 2]
    """
    if graph._deciding is None or recorded_loop(graph) is not None:
        return items
    return _watched(graph, items, count)


def _watched(graph: Graph, items: Iterator[Any], count: int) -> Iterator[Any]:
    start = 0
    for k, item in enumerate(items):
        if k == 1:
            start = len(graph)
        elif k == _LOOKED_AT and graph._deciding is not None:
            each = (len(graph) - start) // (_LOOKED_AT - 1)
            if len(graph) + each * (count - k) > MOST_NODES:
                graph._deciding.give_up(
                    f"does more than {MOST_NODES} things in one call, in a loop of {count} iterations"
                )
        yield item
