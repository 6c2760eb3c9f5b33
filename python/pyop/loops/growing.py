"""Represent lists that a recorded loop changes as arrays with a length (`GrowingList`).

A list that a loop appends to becomes an array of as many elements as there may be at most, and the number of those
that are there, which the loop carries as it carries any int. Items of tuples have an array each. All items are of one
kind, a Python number or a scalar of NumPy of one dtype, or either, which an array of truths says; where they are not,
the loop is not recorded. An index that is
out of bounds, and a list that outgrows its array, raise in the plan, and the function itself runs. A list that items
are taken from the front of, or a deque, begins at another place of its array, and goes on at the array's start.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from .._core import Value
from ..graph.counter import is_counter, size_of
from ..graph.deciding import recorded_loop
from ..graph.symbolic_number import Number, is_number
from ..tracing.made import made_value, uniform
from .alternatives import constants_by, parts_of
from .list_arrays import as_array
from .list_kinds import TEXT, Either, Kind, Mixed, OfKind, Separate, dtype_of, is_known, kind_of, mixed
from .numbers import DTYPES, as_value, named, sizes_of
from .unrolled import Unroll
from .weak import key_of

__all__ = ["GrowingList", "set_iterate"]

_LONGEST = 1 << 16  # items that are looked at before a loop
_LARGE = 1 << 13  # bytes of an array that is filled rather than copied


class _Checks:
    """Mark a graph whose plan raises where an index is out of bounds."""

    _pyop_checks_results = True


_CHECKS = _Checks()


def _zeros(graph: Any, size: int, dtype: np.dtype[Any]) -> Any:
    large = size * dtype.itemsize > _LARGE
    return uniform(graph, np.zeros(1, dtype), (size,)) if large else made_value(graph, np.zeros(size, dtype))


class GrowingList:
    """Represent a list by arrays (`columns`) of which `length` elements are there, a number that loops carry."""

    __slots__ = (
        "appended",
        "arms",
        "begin",
        "capacity",
        "columns",
        "first",
        "has_rows",
        "is_deque",
        "kind",
        "length",
        "loop",
        "name",
        "prefix",
        "read",
        "scalars",
        "texts",
    )
    _pyop_list = True  # for pyop.graph.lists and pyop.compiling.results

    def __init__(self, loop: Any, name: str, is_deque: bool = False) -> None:
        self.loop = loop
        self.is_deque = is_deque
        self.has_rows = False  # items may be lists, which nobody else holds
        self.name = name
        self.kind: Kind | None = None
        self.columns: list[Any] = []  # Values
        self.capacity = 0
        self.first = 0  # so many items were there before the loop
        self.length: Any = 0
        self.begin: Any = 0  # where in the arrays the first item is
        self.prefix: list[Any] = []  # items of another kind, which nobody changes
        self.appended: Kind | None = None  # the kind of those behind them
        self.arms: list[Any] = []  # that it is made in
        self.scalars: list[Value] = []  # that are among its items
        self.read = False  # somebody sees whether they are of NumPy
        self.texts: frozenset[int] = frozenset()  # numbers of the constants among its items

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return deque if self.is_deque else list

    # --- made

    def take(self, items: list[Any]) -> bool:
        """Hold these items; False if they are not of one kind."""
        self.columns, self.capacity, self.first = [], 0, len(items)
        marks = [mark for mark in self.loop.graph._unrolled if type(mark) in (OfKind, Mixed, Separate)]
        told = {type(mark): mark.kind for mark in marks if mark[:2] == (self.loop.key, self.name)}
        either = told.get(Mixed)
        separate = either is None and Separate in told
        self.prefix = list(items) if separate else []
        self.appended = told.get(Separate)
        if len(items) > _LONGEST or any(type(x) is list for x in items):
            return False
        kinds = {*map(kind_of, [] if separate else items)}
        if either is not None and None not in kinds and all(map(either.holds, kinds)):
            kinds = {either}
        elif not kinds:
            kinds = {told[OfKind]} if OfKind in told else set()
        if len(kinds) > 1 or None in kinds:
            return False
        self.kind = kinds.pop() if kinds else None
        self.length = 0 if separate else len(items)
        return True

    def prepare(self, items: list[Any], capacity: int) -> None:
        """Make the arrays, once it is known of what."""
        if self.kind is None or self.columns:
            return
        graph = self.loop.graph
        self.capacity = capacity
        graph._keep(_CHECKS)
        rows = [] if self.prefix else [self._parts(item) for item in items]
        self.columns = [self._column(graph, k, [row[k] for row in rows]) for k in range(len(self.kind.columns))]

    def _column(self, graph: Any, k: int, items: list[Any]) -> Any:
        assert self.kind is not None
        dtype = dtype_of(self.kind.columns[k])
        if not items:
            return _zeros(graph, self.capacity, dtype)
        if all(map(is_known, items)) and self.kind.columns[k] != TEXT:
            start = np.zeros(self.capacity, dtype)
            start[: len(items)] = items
            return made_value(graph, start)
        made = _zeros(graph, self.capacity, dtype)
        for at, x in enumerate(items):
            made[at] = self._stored(x, self.kind.columns[k])
        return made

    def become(self, other: Any) -> None:
        """Hold the items of another list, which nobody has any more; if there is no room, a further pass makes some."""
        if type(other) is list:
            items, other = other, GrowingList(self.loop, self.name)
            kinds = {*map(kind_of, items)}
            other.kind, other.length = kinds.pop() if kinds else self.kind, len(items)
            if kinds:
                self._needed()
            other.prepare(items, max(len(items), 1))
        if self.kind is None and other.kind is not None:
            raise Unroll({OfKind(self.loop.key, self.name, other.kind)})
        if self.kind != other.kind or self.prefix or other.prefix or other.is_deque or self.is_deque:
            self._needed()
        if other.capacity <= self.capacity:
            for mine, column in zip(self.columns, other.columns, strict=True):
                mine[: other.capacity] = other.straight(column)
        self.texts |= other.texts
        self.scalars += other.scalars
        self.length, self.begin = other.length, 0

    def extend(self, capacity: int) -> None:
        """Make room for so many items."""
        here = slice(self.capacity) if self._is_straight() else self.position(np.arange(self.capacity), capacity)
        for k, column in enumerate(self.columns):
            made = _zeros(self.loop.graph, capacity, column.dtype)
            made[here] = self.straight(column)
            self.columns[k] = made
        self.capacity = capacity

    def _parts(self, item: Any) -> tuple[Any, ...]:
        """Return what the arrays hold of an item."""
        assert self.kind is not None
        either = self.kind.either
        if either is None:
            return item if self.kind.row else (item,)
        if type(item) is not Value:
            return item, not issubclass(type(item), np.generic)
        weak = self.loop.weak()
        flag, number = weak.flag_of(item)
        weak.keep_flag(item)
        return (item, flag) if flag is False or number is either.number else self._needed()

    def _stored(self, x: Any, column: Any) -> Any:
        """Return an item as its array holds it."""
        if column == TEXT:
            code, _, constants = parts_of(x)
            self.texts |= constants
            return code if type(code) is Value else self.loop.graph.constant(np.asarray(code, np.int64))[()]
        if type(column) is Either and not issubclass(type(x), np.generic):
            x = as_value(x) if is_counter(x) else x._value if is_number(x) else x
            value = x if type(x) is Value else self.loop.graph.constant(np.asarray(x, column.dtype))[()]
            return value if value.dtype == column.dtype else value.astype(column.dtype)
        if isinstance(column, type):
            value = as_value(x) if is_counter(x) else x._value if is_number(x) else x
            return value if type(value) is Value else self.loop.graph.constant(np.asarray(value, DTYPES[column]))[()]
        if type(x) is Value:
            self.scalars.append(x)
            if self.read:
                self.is_read()
            return x
        return self.loop.graph.constant(np.asarray(x))[()]

    def is_read(self) -> None:
        """Note that items are read or returned: none of NumPy's scalars among them may be a Python number."""
        self.read = True
        for x in self.scalars:
            self.loop.weak().needs_scalar(x)
        self.scalars = []

    # --- whatever nobody knows

    def _needed(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.loop.give_up()
        raise AssertionError("a loop gives up by what it raises")

    __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __imul__ = __contains__ = __delitem__ = __reversed__ = _needed
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __str__ = __repr__ = __format__ = _needed
    __reduce_ex__ = __copy__ = __deepcopy__ = __array__ = __sizeof__ = _needed
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if hasattr(list, name):
            self._needed()
        raise AttributeError(f"'list' object has no attribute {name!r}")

    # --- as a list

    def _is_straight(self) -> bool:
        return type(self.begin) is int and self.begin == 0

    def position(self, number: Any, capacity: int = 0) -> Any:
        """Return where the item of a number lies."""
        if self._is_straight():
            return number
        at = as_value(number) if is_counter(number) else number
        return (at + as_value(self.begin)) % (capacity or self.capacity)

    def straight(self, column: Any) -> Any:
        """Return an array with the first item first."""
        return column if self._is_straight() else column[self.position(np.arange(self.capacity))]

    def size(self) -> Any:
        """Return the number of items."""
        return self.length + len(self.prefix)

    def __len__(self) -> int:
        size = self.size()
        return size if type(size) is int else self._needed()

    def __bool__(self) -> bool:
        return bool(self.size() > 0)

    def append(self, item: Any) -> None:
        """Append an item, of the kind of all others."""
        self._grows(item)
        self._put(item, self._free(self.length))
        self.length = self.length + 1

    def appendleft(self, item: Any) -> None:
        """Put an item before all others of a deque."""
        if not self.is_deque:
            self._needed()
        self._grows(item)
        self.begin = self.begin - 1
        self._put(item, self._free(0))
        self.length = self.length + 1

    def _free(self, number: Any) -> Any:
        """Return where there is room for an item; where there is none, that is beyond the array."""
        if self._is_straight() or not self.columns:
            return number
        at = np.where(as_value(self.length < self.capacity), self.position(number), self.capacity)
        return at[()]

    def _grows(self, item: Any) -> None:
        """Look at an item that the list gets."""
        self._changes()
        kind = kind_of(item)
        if kind is None or (kind.row is list and not self.has_rows):
            self._needed()
        if self.kind is None:
            self.kind = kind
        elif not self.kind.holds(kind):
            self._differs(kind)
        full = type(self.length) is int and self.length >= self.capacity
        if full and self.columns and recorded_loop(self.loop.graph) is None:
            self.extend(2 * self.capacity)

    def popleft(self) -> Any:
        """Return the first item of a deque, which is none any more."""
        return self._pop(0) if self.is_deque else self._needed()

    def pop(self, *index: Any) -> Any:
        """Return the last item, or the first one, which is none any more."""
        at = index[0] if index else -1
        if len(index) > 1 or (index and self.is_deque) or type(at) is not int or at not in (0, -1):
            self._needed()
        return self._pop(at)

    def _pop(self, number: int) -> Any:
        self._changes()
        if self.prefix:
            self._needed()
        at = self._at(number, "pop from an empty deque" if self.is_deque else "pop from empty list")
        item = self._item(at)
        if number == 0:
            self.begin = self.begin + 1
        self.length = self.length - 1
        if type(at) is Value:  # though nobody reads the item, the plan looks whether there is one
            self.length = self.length + self._nothing_if(self.length >= 0)
        return item

    def __getitem__(self, key: Any) -> Any:
        if type(key) is slice:
            return self._turned() if key == slice(None, None, -1) and not self.is_deque else self._needed()
        if self.prefix:
            if type(key) is not int or not 0 <= key < len(self.prefix):
                self._mix(kind_of(self.prefix[0]))
            return self.prefix[key]
        return self._item(self._at(key, "list index out of range"))

    def __setitem__(self, key: Any, item: Any) -> None:
        self._changes()
        kind = kind_of(item)
        if type(key) is slice or kind is None or kind.row is list:
            self._needed()
        if self.prefix or self.kind is None or not self.kind.holds(kind):
            self._mix(kind_of(self.prefix[0]) if self.prefix else kind)
        self._put(item, self._at(key, "list assignment index out of range"))

    def _turned(self) -> GrowingList:
        """Return ``items[::-1]``, behind all loops."""
        if self.prefix or not self.columns or recorded_loop(self.loop.graph) is not None:
            self._needed()
        made = GrowingList(self.loop, self.name)
        made.kind, made.capacity, made.length, made.texts = self.kind, self.capacity, self.length, self.texts
        made.scalars, made.read = self.scalars, self.read
        numbers, length = np.arange(self.capacity), as_value(self.length)
        turned = self.position(np.where(numbers < length, length - 1 - numbers, numbers))
        made.columns = [column[turned] for column in self.columns]
        return made

    def reverse(self) -> None:
        """Reverse the items in place."""
        turned = self._turned()
        self.columns, self.begin = turned.columns, 0

    def __iter__(self) -> Iterator[Any]:
        return _iterate(self, sys._getframe(1))

    def items(self) -> Iterator[Any]:
        """Return an iterator over the items of a list whose length is known."""
        return iter([self[k] for k in range(len(self))])

    # --- items

    def _changes(self) -> None:
        """Give up where a loop that is recorded does not look at the length."""
        loop = recorded_loop(self.loop.graph)
        if loop is not None and not loop.around.looks_at(self) and loop.arms != self.arms:
            self._needed()

    def _mix(self, kind: Kind | None) -> NoReturn:
        """End the trace: some items are Python numbers, and others scalars."""
        both = mixed(self.kind or self.appended, kind)
        if both is None:
            self._needed()
        raise Unroll({Mixed(self.loop.key, self.name, both)})

    def _differs(self, kind: Kind) -> NoReturn:
        """End the trace: an item is of another kind than those before."""
        if self.first and not self.prefix:
            raise Unroll({Separate(self.loop.key, self.name, kind)})
        self._mix(kind)

    def _at(self, key: Any, error: str) -> Any:
        """Return where an item lies: an int, or a Value that is beyond the array where there is none."""
        if self.kind is not None and not self.columns:
            raise Unroll({OfKind(self.loop.key, self.name, self.kind)})
        if type(key) is int and type(self.length) is int:
            at = key if key >= 0 else key + self.length
            if not 0 <= at < self.length:
                raise IndexError(error)
            return self.position(at)
        if not (type(key) is int or is_counter(key) or (type(key) is Value and key._is_scalar)):
            self._needed()
        if type(key) is int:
            return self._within(as_value(key if key >= 0 else self.length + key), as_value(self.length), key < 0)
        place: Any = as_value(key) if is_counter(key) else key
        if type(place) is not Value or place.dtype is None or place.dtype.kind not in "iu" or place.dtype == np.uint64:
            self._needed()
        if place.dtype != np.int64:  # a uint8 has no room for the length
            place = place.astype(np.int64)
        length = as_value(self.length)
        return self._within(np.where(place < 0, place + length, place), length)

    def _within(self, at: Any, length: Any, low: bool = True) -> Any:
        there = np.logical_and(at >= 0, at < length) if low else at < length
        chosen: Any = np.where(there, self.position(at), self.capacity)
        return chosen[()]

    def _nothing_if(self, truth: Any) -> Any:
        """Return an int that is 0; a run raises where the truth does not hold."""
        if type(truth) is bool:
            return 0 if truth else self._needed()
        graph = self.loop.graph
        zero = graph.constant(np.zeros(1, np.int64))
        made = named(graph, zero[np.where(truth._value, 0, 1)[()]], self.loop.give_up)
        sizes_of(graph).most[size_of(made).name] = 0
        return made

    def _item(self, at: Any) -> Any:
        assert self.kind is not None
        if self.kind.row is list:
            self._needed()  # what is written into it would be seen
        count = 1 if self.kind.either is not None else len(self.columns)
        try:
            items = tuple([self._read(k, at) for k in range(count)])
        except IndexError:  # known already, and Python's list says it in its own words
            self._needed()
        return items if self.kind.row else items[0]

    def _read(self, k: int, at: Any) -> Any:
        assert self.kind is not None
        kind, value = self.kind.columns[k], self.columns[k][at]
        if type(kind) is Either:
            value = value[()]
            self.loop.weak().add(value, self.loop.key)
            self.loop.weak().flags[key_of(value)] = (
                Number(bool, self.columns[1][at][()], self.loop.places()),
                kind.number,
            )
            return value
        self.is_read()
        if not isinstance(kind, type):
            return self._needed() if kind == TEXT else value
        return self.loop.counted(value) if kind is int else Number(kind, value[()], self.loop.places())

    def _put(self, item: Any, at: Any) -> None:
        assert self.kind is not None
        if not self.columns:
            return  # the iteration is asked for once more
        try:
            for column, kind, x in zip(self.columns, self.kind.columns, self._parts(item), strict=True):
                column[at] = self._stored(x, kind)
        except IndexError:
            self._needed()

    # --- as an array, and as a result

    def array(self, dtype: Any = None) -> Any:
        """Return ``np.array(items, dtype)``."""
        return as_array(self, dtype)

    def listed(self) -> tuple[tuple[Any, ...], list[Value]]:
        """Return the form of the items, and the arrays of those behind the first ones.

        The form has the kinds of the items, whether they are tuples or lists, the first ones, and the constants by
        their numbers (csrc/plan/result_forms.cpp).
        """
        kind = self.kind
        if kind is None or not self.columns:
            self._needed()
        if kind.either is not None:
            forms = "i?" if kind.either.number is int else "e?"
        else:
            forms = "".join(["p" if isinstance(x, type) else "t" if x == TEXT else "s" for x in kind.columns])
        if self.is_deque or not all(map(is_known, self.prefix)):
            self._needed()
        form = forms, kind.row, tuple(self.prefix), constants_by(self.texts)
        return form, [self.straight(column)[: self.length] for column in self.columns]


_iterate: Callable[[GrowingList, FrameType], Iterator[Any]]


def set_iterate(iterate: Callable[[GrowingList, FrameType], Iterator[Any]]) -> None:
    """Set how a loop goes through such a list, which a module above defines."""
    global _iterate
    _iterate = iterate
