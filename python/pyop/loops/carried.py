"""Find what a recorded loop carries from iteration to iteration, and keep it apart from all else.

A variable that is bound anew is a unit, and so is memory that is written. Python ints that grow by the same number each
time are known from the number of the iteration.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np

from .._core import Value
from ..graph.counter import is_counter, size_of
from ..graph.graph import Graph
from ..graph.symbolic_number import is_number
from .alternatives import Alternatives, OneOf
from .numbers import DTYPES, LARGEST, as_value, fits_scalar, sizes_of
from .recording import Recording
from .sites import Site
from .weak import Weak, key_of

__all__ = ["Again", "Carried", "Otherwise", "Unit", "is_int", "is_known", "one_memory", "same_constant"]

_MISSING: Any = object()
_MOST = 1 << 31  # what a Python int may be multiplied by in an iteration: it stays an int64
_LARGEST = 1 << 49  # what it may be, or be set to


class Again(Exception):
    """Signal that the iteration has to be recorded once more."""


class Otherwise(Exception):
    """Signal that something cannot be carried from here on."""


class Unit:
    """Hold one thing that is carried: a Value or number under some names, or memory that is written."""

    __slots__ = (
        *("first", "fresh", "grown", "handle", "holders", "kind", "names", "reset", "stand_in", "start", "weak"),
        "written",
    )

    def __init__(self, handle: Any, names: list[str], start: Value) -> None:
        self.handle = handle
        self.names = names
        self.start = start
        self.stand_in = start
        self.fresh: Any = None  # what the variables hold in the iteration
        self.written = False  # in place, under its names
        self.holders: list[Unit] = []  # whose variables may hold, behind an iteration, what it was before
        self.kind: Any = None  # of a Python number, which it is in all iterations
        self.weak = False  # it may be a Python number
        self.grown = 0  # by which an int grows in an iteration at most
        self.reset: int | None = None  # what it is set to at most, if it is set
        self.first = False  # each iteration binds it anew, and so does the first


def _references(unit: Unit) -> int:
    handle = unit.handle
    return sys.getrefcount(handle)


def _references_alone() -> int:
    """Return how many references `_references` counts to an object that only a unit has."""
    unit: Any = Unit(None, [], None)  # type: ignore[arg-type]
    unit.handle = object()
    return _references(unit)


_ALONE = _references_alone()


class Carried:
    """Hold what the iterator of a loop knows of what is carried."""

    graph: Graph
    site: Site
    key: Any
    recording: Recording | None
    head: dict[str, Any]
    handed: dict[str, Any]
    alternatives: Alternatives
    written: list[Any]
    units: list[Unit]
    news: list[Unit]
    affine: dict[str, int]
    ints: set[str]
    bounds: Any
    around: Any
    lists: Any
    counter: Any
    mark: Any
    one: list[tuple[Unit, ...]]
    bound_at_times: set[str]
    chosen: dict[int, tuple[Value, ...]]  # of an array that two arms have made: that, and the two
    once: bool
    expected: Any
    frame: Any
    log: list[Any]
    views: list[tuple[Value, int]]

    def _give_up_all(self) -> NoReturn:
        raise NotImplementedError

    def scalar(self, x: Any, dtype: Any) -> Value:
        """Return a Value as it is, a Python number as a scalar of a dtype."""
        if type(x) is Value:
            return x
        made: Value = self.graph.constant(np.asarray(x, dtype))[()]
        self.weak().add(made, self.key)
        self.weak().flags[key_of(made)] = True, type(x)
        return made

    def weak(self) -> Weak:
        if self.graph._weak is None:
            self.graph._weak = Weak()
        found: Weak = self.graph._weak
        return found

    def _results(self, now: dict[str, Any]) -> list[Value]:
        """Return what each unit is behind the iteration; raise `Again` if another one is found."""
        self.news = []
        again = self.alternatives.new
        found: dict[int, Value] = {}
        of = {name: unit for unit in self.units for name in unit.names}
        groups: dict[Any, Unit] = {}
        for name in sorted(self.site.carried):
            if name in self.site.targets:
                if self.mark is None and name in self.site.behind and now.get(name) is not self.counter:
                    self._give_up_all()  # the body binds it, too
                if self.mark is None or name not in self.site.behind:
                    continue
            held, given = now.get(name, _MISSING), self.handed.get(name, _MISSING)
            if issubclass(type(held), np.generic) and held is not given:
                held = self._constant(held, held)
            if type(held) is OneOf:
                again = self._alternative(name, held)
                continue
            unit = of.get(name)
            if unit is None and name in self.site.targets:
                given = _MISSING
            if unit is not None:
                if unit.first and held is unit.fresh and name not in self.site.targets:
                    self.bound_at_times.add(name)
                    self.units.remove(unit)
                    raise Again
                result = self._result(unit, held)
                before = found.setdefault(id(unit), result)
                if before is not result and before._key != result._key:
                    raise Otherwise  # variables that have been one array, and are no more
            elif name in self.affine:
                if not _same_int(held, given + self.affine[name]):
                    self.ints.add(name)
                    del self.affine[name]
                    again = self._number(name, self.head[name], held) or again
            elif held is given:
                if name in self.site.fresh:
                    self.bound_at_times.add(name)
                continue
            elif issubclass(type(given), np.generic) and type(held) is Value:
                self.news.append(Unit(given, [name], self._constant(given, given)))
            elif self.once and self._is_fresh(name, given):
                self.news.append(self._first(name, held))
            elif type(given) is Value:
                if type(held) is not Value:
                    raise Otherwise
                key = id(given), id(held)
                if key not in groups:
                    groups[key] = Unit(given, [], given)
                    self.news.append(groups[key])
                groups[key].names.append(name)
            else:
                again = self._number(name, given, held) or again
        for handle, node, _ in self.written:
            again = self._wrote(handle, node) or again
        if again or self.news:
            raise Again
        results = []
        for unit in self.units:
            result = unit.handle._root() if not unit.names else found[id(unit)]
            if result.spec != unit.start.spec or result._is_scalar != unit.start._is_scalar:
                if not unit.weak or is_number(unit.handle) or not is_known(result) or not result._is_scalar:
                    raise Otherwise
                unit.start = self._constant(unit.handle, result)
                raise Again
            if self.expected is not None and result._key == unit.stand_in._key:
                raise Otherwise  # it is not changed this time
            results.append(result)
        return results

    def _is_fresh(self, name: str, given: Any) -> bool:
        """Return whether an iteration binds a variable before it reads it.

        It has not read a variable that was not bound, nor what a loop around it holds for such a one.
        """
        fresh = given is _MISSING or name in self.site.fresh
        if not fresh:
            fresh = any(unit.first and unit.fresh is given for loop in self.graph._rolling[:-1] for unit in loop.units)
        return fresh and name not in self.bound_at_times

    def _alternative(self, name: str, held: OneOf) -> bool:
        """Carry a variable that has become a `OneOf`; return True, as the iteration has to be recorded again."""
        if name not in self.head or name in self.site.targets:
            raise Otherwise
        self.alternatives.add(name, held)
        self.affine.pop(name, None)
        self.ints.discard(name)
        for unit in self.units:
            unit.names = [x for x in unit.names if x != name] if name in unit.names else unit.names
        self.units = [unit for unit in self.units if unit.names or type(unit.handle) is Value]
        return True

    def _result(self, unit: Unit, held: Any) -> Value:
        if type(held) is Value:
            if unit.kind is not None:
                if unit.kind is int or held.spec != unit.start.spec or not held._is_scalar:
                    raise Otherwise
                unit.kind, unit.weak = None, True
                raise Again
            return held._apart()
        if unit.kind is int:
            if not is_int(held):
                raise Otherwise
            return self._counted(unit, held)
        if unit.kind is not None:
            if is_number(held) and held._kind is unit.kind:
                number: Value = held._value
                return number
            if type(held) is unit.kind:
                return self._constant(held, unit.start)
            raise Otherwise
        # A Python number in the place of a scalar.
        kind = unit.start.dtype.char if unit.start.dtype is not None else ""
        if type(held) in DTYPES and unit.start._is_scalar and kind and fits_scalar(held, kind):
            if not unit.weak:
                unit.weak = True
                raise Again
            return self.scalar(held, unit.start.dtype)
        raise Otherwise

    def _first(self, name: str, held: Any) -> Unit:
        """Return the unit of a variable that each iteration binds before it is read."""
        unit = Unit(None, [name], self._constant(0, np.zeros(0, np.int64)))
        unit.first = True
        if type(held) is Value and is_known(held):
            if not all(type(size) is int for size in held.shape or ()):
                raise Otherwise
            start: Value = self.graph.constant(np.zeros(held.shape or (), held.dtype))
            unit.start = start[()] if held._is_scalar else start
        elif is_int(held):
            unit.kind = int
        elif type(held) in (float, bool) or is_number(held):
            unit.kind = held._kind if is_number(held) else type(held)
            unit.start = self._constant(0, np.zeros(0, DTYPES[unit.kind]))
        else:
            raise Otherwise
        return unit

    def _constant(self, number: Any, like: Any) -> Value:
        made: Value = self.graph.constant(np.asarray(number, like.dtype))[()]
        return made

    def _number(self, name: str, given: Any, held: Any) -> bool:
        """Find how to carry a variable that was a Python number and was bound anew; return whether it is carried."""
        if same_constant(given, held):
            return False
        kind = int if is_counter(given) else given._kind if is_number(given) else type(given)
        if kind is int and (is_int(held) or name in self.ints):
            return self._int(name, given, held)
        if kind not in DTYPES or is_counter(given):
            raise Otherwise
        if type(held) is Value:
            char = held.dtype.char if held.dtype is not None else ""
            fits = char == "d" and kind is float if is_number(given) else fits_scalar(given, char)
            if not held._is_scalar or not char or not is_known(held) or not fits:
                raise Otherwise
            unit = Unit(given, [name], +given._value if is_number(given) else self._constant(given, held))
            unit.weak = True
            self.news.append(unit)
            return True
        if kind in (float, bool) and (type(held) is kind or (is_number(held) and held._kind is kind)):
            start = given._value if is_number(given) else self.graph.constant(np.asarray(given))[()]
            unit = Unit(given, [name], start)
            unit.kind = kind
            self.news.append(unit)
            return True
        raise Otherwise

    def _int(self, name: str, given: Any, held: Any) -> bool:
        """Note a Python int: one that grows by the same in each iteration is known, another one is carried."""
        step = held - given if is_int(held) and is_int(given) else None
        counted = (self.bounds.known is not None and self.mark is None) or name not in self.site.behind
        if name not in self.ints and type(step) is int and step % self.bounds.step == 0 and counted:
            self.affine[name] = step
            return True
        self.ints.add(name)
        start = given._value[()] if is_number(given) else as_value(given)
        if type(start) is not Value:
            if abs(given) >= _LARGEST:
                raise Otherwise
            start = self.graph.constant(np.asarray(given, np.int64))[()]
        unit = Unit(given, [name], start)
        unit.kind = int
        self.news.append(unit)
        return True

    def _counted(self, unit: Unit, held: Any) -> Value:
        """Return a Python int behind an iteration as a Value; note in its unit how far it may grow, or be set."""
        carried = {f"i{unit.stand_in.node.index}" for unit in self.units if unit.kind is int}
        grows, size = sizes_of(self.graph).growth(held, f"i{unit.stand_in.node.index}")
        if grows:
            unit.grown = max(unit.grown, size)
        else:
            unit.reset = max(unit.reset or 0, size)
        if type(held) is int:
            if abs(held) >= _LARGEST:
                raise Otherwise
            return self._constant(held, self.graph.constant(np.int64(0)))
        grown = 0
        for monomial, factor in size_of(held).terms:
            if len(monomial) > 1 or any(type(atom) is not str for atom in monomial) or abs(factor) >= _MOST:
                raise Otherwise
            if monomial and monomial[0] in carried:
                grown += 1 if factor == 1 else 2
        if grown > 1:
            raise Otherwise
        made = as_value(held)
        if type(made) is not Value:
            raise Otherwise
        return made._apart()

    def _note_size(self, unit: Unit, made: Any, iterations: int) -> None:
        """Remember how large an int may be behind the loop."""
        if is_number(unit.handle):  # the caller's
            sizes_of(self.graph).most[size_of(made).name] = LARGEST
            self.graph._overflows = True
            return
        start = unit.handle if is_int(unit.handle) else 0
        if not sizes_of(self.graph).leaves(size_of(made).name, start, iterations, unit.grown, unit.reset):
            self.graph._overflows = True

    def _wrote(self, handle: Value, node: int) -> bool:
        """Note a write into what was there before the iteration; return whether that is news."""
        assert self.recording is not None
        for unit in self.units:
            if unit.stand_in.node.index == node:
                if unit.names:
                    unit.written = True
                return False
        if node >= self.recording.first:
            return False
        for unit in (*self.news, *self.units):
            if type(unit.handle) is Value and one_memory(handle, unit.handle):
                if unit.names and unit in self.units:
                    raise Otherwise  # what it was first is written under another name
                return False
        self.news.append(Unit(handle, [], handle))
        return True

    def _check(self) -> None:
        """Raise `Otherwise` unless what is carried is apart, so that its new memory is unobservable."""
        if not all(is_known(unit.start) for unit in self.units):
            raise Otherwise
        memory = [unit for unit in self.units if not unit.names]
        named = [unit for unit in self.units if unit.names and type(unit.handle) is Value]
        for unit in named:
            if unit.start._is_scalar:
                continue
            if any(unit.handle._is_related(other.handle) or one_memory(unit.handle, other.handle) for other in memory):
                raise Otherwise
            if (unit.written or self._may_be_behind(unit)) and not (unit.handle._is_alone() and self._only_here(unit)):
                raise Otherwise
        for k, a in enumerate(memory):
            for b in memory[:k]:
                if one_memory(a.handle, b.handle) or a.handle._is_related(b.handle):
                    raise Otherwise

    def _forget(self) -> None:
        """Hold nothing that was carried: the mark of a loop is a variable of the function, and holds the iterator."""
        self.frame, self.head, self.handed, self.around, self.lists = None, {}, {}, None, None
        self.units, self.log, self.written, self.views, self.chosen = [], [], [], [], {}

    def _may_be_behind(self, unit: Unit) -> bool:
        """Return whether the value of a variable before the loop may be that of one behind it."""
        found = [unit] if not self.once else [*unit.holders]
        for holder in found:
            found += [other for other in holder.holders if other not in found]
        return any(not self.site.behind.isdisjoint(holder.names) for holder in found)

    def _check_first(self, results: list[Value]) -> None:
        """Raise `Again` where results need what a variable was that each iteration seemed to bind first."""
        assert self.recording is not None
        reached = {value._key for value in results}
        for index in self.recording._needed(results):
            reached.update(value._key for value in self.graph[index].inputs)
        seen = [unit for unit in self.units if unit.first and unit.stand_in._key in reached]
        for unit in seen:
            self.bound_at_times.update(unit.names)
            self.units.remove(unit)
        if seen:
            raise Again

    def _only_here(self, unit: Unit) -> bool:
        """Return whether only the variables of this function hold the first value of a variable.

        From CPython 3.14 on their frame may, too, once they have been put back, so that the answer is no.
        """
        handle = unit.handle
        names = [name for name, x in self.head.items() if x is handle]
        del handle
        dead = self.site.fresh | (self.site.stored - self.site.carried)
        return dead.issuperset({*names} - {*unit.names}) and _references(unit) <= len(names) + _ALONE

    def _apart(self, now: dict[str, Any]) -> None:
        """Raise `Otherwise` unless the variables hold memory of their own behind the iteration."""
        seen: list[tuple[Unit, list[Value]]] = []
        named = {name for unit in self.units for name in unit.names}  # each of them is looked at
        given = {id(unit.fresh): unit for unit in self.units if unit.names and not unit.start._is_scalar}
        stored = self.site.carried
        for unit in self.units:
            if not unit.names or unit.kind is not None or unit.start._is_scalar:
                continue
            if type(now[unit.names[0]]) is not Value:
                continue
            held = self._one_of(now[unit.names[0]])
            for before, others in seen:
                shared = any(x is y or x._shares_memory(y) for x in held for y in others)
                if shared and not self._may_be_one(unit, before):
                    raise Otherwise
            seen.append((unit, held))
            for one in held:
                if id(one) in given:
                    given[id(one)].holders.append(unit)
                if not one._is_alone():
                    raise Otherwise
                if any(
                    x is one
                    for name, x in now.items()
                    if name not in unit.names and name not in named and (name in stored or name not in self.site.stored)
                ):
                    raise Otherwise

    def _one_of(self, value: Value) -> list[Value]:
        """Return an array and those from which it was chosen, one of which it is."""
        found = [value]
        for x in found:
            found += [y for y in self.chosen.get(id(x), ()) if not any(y is z for z in found)]
        return found

    def _may_be_one(self, *units: Unit) -> bool:
        """Return whether two variables may hold one array behind an iteration, unobservably.

        The next iteration must not read both. Where both are read behind the loop, it is checked there.
        """
        inner, behind = (
            all(not names.isdisjoint(unit.names) for unit in units) for names in (self.site.inner, self.site.behind)
        )
        if behind:
            self.one.append(units)
        return not inner and not (behind and any(loop.recording is not None for loop in self.graph._rolling[:-1]))


def is_known(value: Value) -> bool:
    return (
        value.dtype is not None
        and value.dtype.kind in "biufc"
        and value.shape is not None
        and value._is_scalar is not None
        and all(size is not None for size in value.shape)
    )


def one_memory(a: Value, b: Value) -> bool:
    """Return whether two arrays show one memory."""
    return a is b or a._shares_memory(b)


def is_int(x: Any) -> bool:
    return type(x) is int or is_counter(x)


def _same_int(a: Any, b: Any) -> bool:
    if not is_int(a) or not is_int(b):
        return False
    a, b = size_of(a), size_of(b)
    return type(a) is type(b) and bool(a == b)


def same_constant(a: Any, b: Any) -> bool:
    """Return whether two things that are no Values are one number or name, which an iteration does not change."""
    if a is b:
        return type(a) is not Value
    return type(a) is type(b) and type(a) in (int, float, complex, bool, str) and repr(a) == repr(b)
