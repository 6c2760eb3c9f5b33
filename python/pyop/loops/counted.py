"""Stand for `range` in lifted code: numbers that a loop counts, whose bounds a loop around it may count."""

from __future__ import annotations

import operator
import sys
from typing import Any

from .._core import Value
from ..graph.counter import Counter, is_counter
from ..graph.deciding import recorded_loop
from ..graph.graph import Graph
from ..graph.symbolic_number import is_number
from ..tracing.twins import graph_under_twins, stand_in
from .carried import Otherwise
from .choices import choose
from .foreseen import foreseen
from .growing import GrowingList
from .list_functions import extreme
from .numbers import as_value
from .rolled import FEW, Rolled
from .sites import site_of

__all__ = ["Bounds", "Numbers"]


def _range(*args: Any) -> Any:
    graph = graph_under_twins()
    if graph is None or graph._unrolled is None:
        return range(*args)
    if any(map(is_counter, args)):
        return _symbolic(graph, *args)
    numbers = range(*args)
    return (
        Numbers(Bounds(numbers.start, numbers.stop, numbers.step), graph, numbers) if len(numbers) >= FEW else numbers
    )


def _symbolic(graph: Graph, *args: Any) -> Any:
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    if any(type(x) is not int and not is_counter(x) for x in (start, stop)) or type(step) is not int or step == 0:
        return range(*args)  # a Counter among them says that its number is needed
    return Numbers(Bounds(start, stop, step), graph, None)


class Bounds:
    """Hold the bounds of a range, from `start` to `stop`, not included; each may be a Counter."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start = start
        self.stop = stop
        self.step = step

    @property
    def known(self) -> range | None:
        """Return the range; None if it depends on the loop around."""
        return None if is_counter(self.start) or is_counter(self.stop) else range(self.start, self.stop, self.step)

    def needed(self) -> Any:
        """Report to the loop around that its number is needed."""
        counter: Counter = self.start if is_counter(self.start) else self.stop
        return counter._needed()

    def values(self) -> tuple[Any, Any, int]:
        """Return the bounds and the step as a Loop is given them."""
        return as_value(self.start), as_value(self.stop), self.step


class Numbers:
    """Stand for a range, which counts symbolically if a loop iterates over it."""

    __slots__ = ("_backwards", "_bounds", "_graph", "_range")

    def __init__(self, bounds: Bounds, graph: Graph, known: range | None, backwards: Any = None) -> None:
        self._bounds = bounds
        self._graph = graph
        self._range = known
        self._backwards = backwards  # what makes the iterator that Python has here, if it is no range

    def __iter__(self) -> Any:
        frame = sys._getframe(1)
        key = frame.f_code, frame.f_lasti
        site = None if key in self._graph._unrolled else site_of(*key)
        if site is None:
            plain = iter(self._known()) if self._backwards is None else self._backwards()
            return foreseen(self._graph, plain, len(self._known()))
        return Rolled(self._bounds, self._graph, frame, site, key)

    def _known(self) -> Any:
        return self._bounds.needed() if self._range is None else self._range

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return range if self._backwards is None else type(self._backwards())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._known(), name)

    def __len__(self) -> int:
        return len(self._known())

    def __getitem__(self, key: Any) -> Any:
        return self._known()[key]

    def __contains__(self, item: object) -> bool:
        return item in self._known()

    def __reversed__(self) -> Any:
        return reversed(self._known())

    def __eq__(self, other: object) -> bool:
        return bool(self._known() == (other._known() if type(other) is Numbers else other))

    def __hash__(self) -> int:
        return hash(self._known())

    def __repr__(self) -> str:
        return repr(self._known())

    def __reduce__(self) -> Any:
        return self._known().__reduce__()


def _least(first: Any, *rest: Any, **options: Any) -> Any:
    return _extreme(min, operator.lt, first, rest, options)


def _greatest(first: Any, *rest: Any, **options: Any) -> Any:
    return _extreme(max, operator.gt, first, rest, options)


def _extreme(original: Any, op: Any, first: Any, rest: tuple[Any, ...], options: Any) -> Any:
    """Return ``min`` or ``max`` of the arguments; numbers that are not known are chosen from, without a branch."""
    graph = graph_under_twins()
    items = (first, *rest)
    if type(first) is GrowingList and not rest and not options:
        return extreme(first, original is max)
    if graph is None or options or len(items) < 2:
        return original(*items, **options)
    loop = recorded_loop(graph)
    known = not any(type(x) is Value or is_number(x) or is_counter(x) for x in items)
    if known or (loop is None and not all(map(_is_float, items))):
        return original(*items)
    chosen = first
    try:
        for item in rest:
            chosen = choose(loop, op(item, chosen), item, chosen)
    except Otherwise:
        return original(*items)
    return chosen


def _is_float(x: Any) -> bool:
    return (x._kind if is_number(x) else type(x)) is float


def _reversed(x: Any) -> Any:
    if type(x) is not Numbers:
        return reversed(x)
    bounds = x._bounds
    if x._range is not None:
        back = x._range[::-1]
        return Numbers(Bounds(back.start, back.stop, back.step), x._graph, back, lambda: reversed(x._range))
    if bounds.step not in (1, -1):
        return bounds.needed()
    return Numbers(Bounds(bounds.stop - bounds.step, bounds.start - bounds.step, -bounds.step), x._graph, None)


stand_in(range, _range)
stand_in(reversed, _reversed)
stand_in(min, _least)
stand_in(max, _greatest)
