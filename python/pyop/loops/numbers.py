"""Compute with integers that depend on the numbers of iterations, as Values, and compare them.

Python's ints have no largest one, and int64 has. How large a number may be is followed from loop to loop (`Sizes`);
where that does not show that it stays an int64, overflows raise while the plan runs (`Graph._overflows`), and the
function itself runs.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dim import Dim
from ..graph import number_operators  # noqa: F401  # what Numbers are computed with
from ..graph.counter import Counter, is_counter, set_arithmetic, size_of
from ..graph.deciding import recorded_loop
from ..graph.symbolic_number import Number, counted, is_number

__all__ = ["DTYPES", "LARGEST", "Sizes", "as_value", "fits_scalar", "named", "sizes_of"]

DTYPES = {int: np.dtype("l"), float: np.dtype("d"), complex: np.dtype("D"), bool: np.dtype("?")}
"""What arrays of Python's numbers are of."""
_MOST = 1 << 50  # what is carried is assumed to be below, until that is shown
_INT64 = 1 << 62
LARGEST = 1 << 63
"""Bound of the absolute value of an int of which nothing is known."""
_SHIFTS = 62
_FLOATS = 1 << 53  # ints below are floats, too
_ITERATIONS = 1 << 40  # nobody waits for more


class Sizes:
    """Hold how large ints are at most, by their names.

    That is `most`, or by how much more than another one, `more`; `between` has the bounds of those that count loops.
    """

    __slots__ = ("between", "more", "most")

    def __init__(self) -> None:
        self.between: dict[str, tuple[int, int]] = {}
        self.most: dict[str, int] = {}
        self.more: dict[str, tuple[str, int]] = {}

    def largest(self, x: Any) -> int:
        """Return how large the absolute value of a size or int may be."""
        if type(x) is int:
            return abs(x)
        total = 0
        for monomial, factor in size_of(x).terms:
            part = abs(factor)
            for atom in monomial:
                part *= self._of_name(atom) if type(atom) is str else _MOST
            total += part
        return total

    def _of_name(self, name: str) -> int:
        if name in self.more:
            base, extra = self.more[name]
            return self._of_name(base) + extra
        return self.most.get(name, _MOST)

    def bounds(self, x: Any) -> tuple[int, int] | None:
        """Return the least and the largest number that a size or int may be; None if that is not known."""
        if type(x) is int:
            return x, x
        least = largest = 0
        for monomial, factor in size_of(x).terms:
            if len(monomial) > 1 or (monomial and monomial[0] not in self.between):
                return None
            ends = self.between[monomial[0]] if monomial else (1, 1)
            least += factor * ends[factor < 0]
            largest += factor * ends[factor > 0]
        return least, largest

    def counts(self, name: str, start: Any, stop: Any, step: int) -> None:
        """Note the count of a loop."""
        ends = self.bounds(start), self.bounds(stop)
        if ends[0] is not None and ends[1] is not None:
            self.between[name] = (ends[0][0], ends[1][1] - 1) if step > 0 else (ends[1][0] + 1, ends[0][1])
        endless = type(stop) is int and stop == sys.maxsize
        self.most[name] = max(self.largest(start), _MOST if endless else self.largest(stop))

    def growth(self, x: Any, own: str) -> tuple[bool, int]:
        """Return whether an int is that of this name and something more, and how large that, or else all, may be."""
        if type(x) is int:
            return False, abs(x)
        grows, rest = False, 0
        for monomial, factor in size_of(x).terms:
            atom, extra = (monomial[0], 0) if len(monomial) == 1 and factor == 1 else (None, 0)
            while atom in self.more:
                atom, more = self.more[atom]
                extra += more
            if atom == own and not grows:
                grows, rest = True, rest + extra
                continue
            part = abs(factor)
            for atom in monomial:
                part *= self._of_name(atom) if type(atom) is str else _MOST
            rest += part
        return grows, rest

    def chosen(self, name: str, a: Any, b: Any) -> None:
        """Note an int that is one of two."""
        bases: list[Any] = [(size_of(x).terms if type(x) is not int else (((), x),)) for x in (a, b)]
        named = [[m[0] for m, factor in terms if len(m) == 1 and factor == 1] for terms in bases]
        extra = [sum(abs(factor) for m, factor in terms if not m) for terms in bases]
        one = all(len(terms) == len(of) + any(not m for m, _ in terms) for terms, of in zip(bases, named, strict=True))
        roots = [self._root(of[0]) for of in named if len(of) == 1 and type(of[0]) is str]
        if one and len(roots) == 2 and roots[0][0] == roots[1][0]:
            self.more[name] = roots[0][0], max(more + x for (_, more), x in zip(roots, extra, strict=True))
        else:
            self.most[name] = max(self.largest(a), self.largest(b))

    def _root(self, name: str) -> tuple[str, int]:
        more = 0
        while name in self.more:
            name, extra = self.more[name]
            more += extra
        return name, more

    def leaves(self, name: str, start: Any, iterations: int, growth: int, reset: int | None) -> bool:
        """Note how large an int is behind a loop; return whether it is sure to stay an int64.

        It grows by `growth` at most in each iteration, or is set to `reset` at most.
        """
        grown = growth * min(iterations, _ITERATIONS)
        terms = () if type(start) is int else size_of(start).terms
        bases = [monomial[0] for monomial, factor in terms if len(monomial) == 1 and factor == 1]
        if reset is None and len(bases) == 1 and type(bases[0]) is str and grown < _MOST:
            others = sum(abs(factor) for monomial, factor in terms if not monomial)
            if len(terms) == 1 + any(not monomial for monomial, _ in terms):
                self.more[name] = bases[0], grown + others
                return True
        self.most[name] = max(self.largest(start), reset or 0) + grown
        return self.most[name] < _MOST


def sizes_of(graph: Any) -> Sizes:
    """Return how large the ints of a graph's loops are."""
    if graph._sizes is None:
        graph._sizes = Sizes()
    found: Sizes = graph._sizes
    return found


def named(graph: Any, value: Any, needed: Any) -> Counter:
    """Return an int64 of the graph, of no dimension, as a Counter, like the number of an iteration."""
    if value.output_index:
        value = value + 0
    name = f"i{value.node.index}"
    graph._counters[name] = value.node.index
    size: Any = Dim(name)
    return Counter(size, graph, needed)


def as_value(bound: Any) -> Any:
    """Return a number of an iteration, or one that is computed of it, as an int64."""
    if not is_counter(bound):
        return bound
    made = _as_value(bound)
    if type(made) is Value:
        bound._graph._numbers.add((made.node.index, made.output_index))
    return made


def _as_value(bound: Any) -> Any:
    graph, size = bound._graph, size_of(bound)
    if sizes_of(graph).largest(bound) >= _INT64:
        graph._overflows = True
    if any(type(atom) is not str or atom not in graph._counters for monomial, _ in size.terms for atom in monomial):
        return counted(size, graph)
    total: Any = None
    constant = 0
    for monomial, factor in size.terms:
        if not monomial:
            constant = factor
            continue
        part = graph._value(graph._counters[monomial[0]], 0)
        for atom in monomial[1:]:
            part = part * graph._value(graph._counters[atom], 0)
        part = part if factor == 1 else part * factor
        total = part if total is None else total + part
    return total if constant == 0 else total + constant


def _number(counter: Counter) -> Number:
    places: Any = frozenset((counter._needed,))
    return Number(int, as_value(counter), places)


def _compare(op: Any, a: Any, b: Any) -> Any:
    """Return the truth of a comparison, or None.

    In a loop that is recorded it is that of each iteration, elsewhere one to decide by. It is None where nothing is
    decided, in a loop that is unrolled, which would decide in each iteration, and where Python compares otherwise than
    NumPy does.
    """
    graph = a._graph
    kind = b._kind if is_number(b) else int if is_counter(b) else type(b)
    if kind not in (int, float) or (type(b) is int and abs(b) >= LARGEST):
        return None
    if recorded_loop(graph) is None and (
        getattr(graph, "_deciding", None) is None or any(type(key) is tuple for key in graph._unrolled or ())
    ):
        return None
    value, other = as_value(a), b._value if is_number(b) else as_value(b)
    if kind is float:
        if sizes_of(graph).largest(a) >= _FLOATS:
            return None
        value = value.astype(np.float64)
    places: Any = {a._needed, *(b._places if is_number(b) else ())}
    return Number(bool, op(value, other), frozenset(places))


def _of_bits(op: Any, a: Any, b: Any) -> Any:
    """Return `op`, one of ``& | ^ << >>``, of ints of which one is a Counter; None where it has to be known."""
    counter = a if is_counter(a) else b
    if any(type(x) is not int and not is_counter(x) for x in (a, b)) or any(
        type(x) is int and abs(x) >= LARGEST for x in (a, b)
    ):
        return None
    graph = counter._graph
    sizes = sizes_of(graph)
    shifts = op in (operator.lshift, operator.rshift)
    if shifts and not (type(b) is int and 0 <= b < _SHIFTS):
        return None
    if op is operator.lshift:
        return a * (1 << b)
    if any(is_counter(x) and sizes.largest(x) >= _INT64 for x in (a, b)):
        graph._overflows = True  # where one of them is no int64
    made = named(graph, op(*[as_value(x) if is_counter(x) else np.int64(x) for x in (a, b)]), counter._needed)
    known = [x for x in (a, b) if type(x) is int and x >= 0]
    if op is operator.rshift:
        most = (sizes.largest(a) >> b) + 1
    elif op is operator.and_ and known:
        most = known[0]
    else:
        most = 1 << max(sizes.largest(x).bit_length() for x in (a, b))
    sizes.most[size_of(made).name] = most
    return made


def _divided(a: Counter, by: int, remainder: bool) -> Any:
    """Return ``a % by`` or ``a // by`` as a number that is counted, too."""
    graph = a._graph
    value = as_value(a) % by if remainder else as_value(a) // by
    recording = next((loop.recording for loop in reversed(graph._rolling) if loop.recording is not None), None)
    if recording is None:
        made = named(graph, value[()], a._needed)
        sizes_of(graph).most[size_of(made).name] = by if remainder else sizes_of(graph).largest(a)
        return made
    # One name in both arms of a condition, in each of which there is another node.
    name = recording.names.setdefault((size_of(a), by, remainder), f"r{recording.first}k{len(recording.names)}")
    graph._counters[name] = value.node.index
    sizes_of(graph).most[name] = by if remainder else sizes_of(graph).largest(a)
    size: Any = Dim(name)
    return Counter(size, graph, a._needed)


set_arithmetic(_compare, _divided, _of_bits, _number)


def fits_scalar(number: Any, char: str) -> bool:
    """Return whether a Python number is the same as a scalar of this dtype."""
    kind: type = type(number)
    if char not in "ldD?":
        return False
    if kind is bool:
        return char == "?"
    if kind is int:
        return bool(abs(number) < 1 << 53)
    return (kind is float and char in "dD") or (kind is complex and char == "D")
