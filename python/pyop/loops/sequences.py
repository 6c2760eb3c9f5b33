"""Count ``for v in x``, ``enumerate`` and ``zip`` of arrays: their items are looked up by the number.

Python's iterators look at an array's items one after the other, too, and see what is written meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from .._core import Value
from ..graph import value_sequence
from ..graph.graph import Graph
from ..tracing.twins import graph_under_twins, stand_in
from .counted import Bounds, Numbers
from .growing import GrowingList, set_iterate
from .rolled import FEW, Rolled
from .sites import site_of

__all__ = ["Items", "counted"]


class Items:
    """Stand for ``enumerate`` and ``zip`` of arrays: `size` items, by their numbers."""

    __slots__ = ("_graph", "_item", "_iterator", "_plain", "_size")

    def __init__(self, graph: Graph, size: int, item: Callable[[Any], Any], plain: Callable[[], Iterator[Any]]) -> None:
        self._graph = graph
        self._size = size
        self._item = item
        self._plain = plain
        self._iterator: Any = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._plain())

    def __iter__(self) -> Any:
        frame = sys._getframe(1)
        if self._iterator is None:
            found = _rolled(self._graph, self._size, self._item, self._plain, frame)
            if found is not None:
                return found
        return self

    def __next__(self) -> Any:
        if self._iterator is None:
            self._iterator = self._plain()
        return next(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(), name)


def _rolled(graph: Graph, size: int, item: Any, plain: Any, frame: Any) -> Any:
    key = frame.f_code, frame.f_lasti
    site = None if key in graph._unrolled else site_of(*key)
    return None if site is None else Rolled(Bounds(0, size, 1), graph, frame, site, key, item, plain)


def _looked_up(x: Any) -> tuple[int, Callable[[Any], Any]] | None:
    """Return how many items something has, and how they are looked up by a number; None if that is not sure."""
    if type(x) is Value:
        if x._is_scalar is not False or not x.shape or type(x.shape[0]) is not int:
            return None
        return x.shape[0], x.__getitem__
    if type(x) is Numbers and x._range is not None and x._backwards is None:
        numbers = x._range
        return len(numbers), lambda i: i * numbers.step + numbers.start
    if type(x) is Items and x._iterator is None:
        return x._size, x._item
    return None


def counted(x: Any) -> tuple[Bounds, Any, Any] | None:
    """Return the numbers of a loop over something, what looks an item up, and what makes Python's iterator.

    Return None if that is not sure, or not worth it.
    """
    if type(x) is Numbers:
        return None if x._backwards is not None else (x._bounds, None, None)
    if type(x) is GrowingList:
        return None if type(size := x.size()) is int and size < FEW else (Bounds(0, size, 1), x.__getitem__, x.items)
    found = _looked_up(x)
    if found is None or found[0] < FEW:
        return None
    size, item = found
    return Bounds(0, size, 1), item, x._plain if type(x) is Items else lambda: map(x.__getitem__, range(size))


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    graph = graph_under_twins()
    found = None if graph is None or graph._unrolled is None or type(start) is not int else _looked_up(iterable)
    if graph is None or found is None or found[0] < FEW:
        return enumerate(iterable, start)
    size, item = found
    return Items(graph, size, lambda i: (i + start, item(i)), lambda: enumerate(iterable, start))


def _zip(*iterables: Any, **options: Any) -> Any:
    graph = graph_under_twins()
    known = graph is not None and graph._unrolled is not None and not set(options) - {"strict"}
    found = [_looked_up(x) for x in iterables] if known else []
    sizes = {size for size, _ in filter(None, found)}
    if graph is None or not found or None in found or len(sizes) != 1 or min(sizes) < FEW:
        return zip(*iterables, **options)  # noqa: B905
    items = [item for _, item in filter(None, found)]

    def plain() -> Any:
        return zip(*iterables, **options)  # noqa: B905

    return Items(graph, sizes.pop(), lambda i: tuple([item(i) for item in items]), plain)


def _iterate(value: Value, size: int, frame: Any) -> Any:
    """Return the iterator of an array, where a loop that may be recorded once asks for it."""
    graph: Any = value.graph
    if getattr(graph, "_twins", None) is None or graph._unrolled is None or size < FEW:
        return None
    plain = lambda: map(value.__getitem__, range(size))  # noqa: E731
    return _rolled(graph, size, value.__getitem__, plain, frame)


def _iterate_list(items: GrowingList, frame: Any) -> Any:
    """Return the iterator of a list that loops hold as an array."""
    found = counted(items)
    graph = items.loop.graph
    key = frame.f_code, frame.f_lasti
    site = None if found is None or key in graph._unrolled else site_of(*key)
    return items.items() if found is None or site is None else Rolled(found[0], graph, frame, site, key, *found[1:])


stand_in(enumerate, _enumerate)
stand_in(zip, _zip)
value_sequence.set_rolls(_iterate)
set_iterate(_iterate_list)
