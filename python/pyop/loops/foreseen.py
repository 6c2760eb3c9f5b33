"""Give up a loop that is recorded iteration by iteration, after a few, if it would be too long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..graph.deciding import MOST_NODES, recorded_loop
from ..graph.graph import Graph

__all__ = ["foreseen"]

_LOOKED_AT = 4  # iterations, after which the first may have been another
_LONGER = 4  # times as long as the others, which the first may take


def foreseen(graph: Graph, items: Iterator[Any], count: int) -> Iterator[Any]:
    """Return the items of a loop; give up where they would make more nodes than a graph may have.

    It also gives up where recording them would take too long. The function itself has to run then.

    >>> from pyop import Graph
    >>> from pyop.loops.foreseen import foreseen
    >>> [*foreseen(Graph(), iter(range(3)), 3)]
    [0, 1, 2]
    """
    if graph._deciding is None or recorded_loop(graph) is not None:
        return items
    return _watched(graph, items, count)


def _watched(graph: Graph, items: Iterator[Any], count: int) -> Iterator[Any]:
    decisions: Any = graph._deciding
    start, begin = len(graph), decisions.deadline.now()
    for k, item in enumerate(items):
        if (k == 1 or k >= _LOOKED_AT) and graph._deciding is not None:
            each = (decisions.deadline.now() - begin) / (_LONGER if k == 1 else k - 1)
            if decisions.deadline.is_over(each * (count - k)):
                decisions.take_too_long(f"a loop of {count} iterations is written down one by one")
        if k == 1:
            start, begin = len(graph), decisions.deadline.now()
        elif k == _LOOKED_AT and graph._deciding is not None:
            each_adds = (len(graph) - start) // (_LOOKED_AT - 1)
            if len(graph) + each_adds * (count - k) > MOST_NODES:
                decisions.give_up(f"does more than {MOST_NODES} things in one call, in a loop of {count} iterations")
        yield item
