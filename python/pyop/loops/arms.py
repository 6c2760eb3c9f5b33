"""Record each arm of a condition in a recorded loop once, and join the two (`junction`).

Lifted code goes through the arms of each condition by a loop of its own (`pyop.tracing.lifting`). Where the condition
is known that has one item. Where it is not, and a loop is being recorded, both arms are run: behind the first the
variables, and the memory that it has written, are put back; behind the second they hold what is chosen from both.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.deciding import recorded_loop
from ..graph.symbolic_number import Number, is_number
from ..tracing.lifting import ARMS, IS_NONE, NOT, TRUTH
from ..tracing.twins import BUILTINS, graph_under_twins
from .alternatives import NOTHING, OneOf, facts_of, is_alternative, like, may_be_one_of, note_facts, parts_of
from .carried import Otherwise, same_constant
from .choices import Choice, choice_of, itself
from .frames import locals_of, put
from .growing import GrowingList
from .junction import join
from .new_containers import NewContainers
from .numbers import as_value
from .sites import instructions, live_at
from .weak import key_of

__all__ = ["Arms", "unknown"]

_MISSING: Any = object()
_GENERATED = "__pyop_"


class Arms:
    """Hand out True, and then False, in one run of the function."""

    def __init__(self, loop: Any, truth: Value, frame: FrameType) -> None:
        self.loop = loop
        self.truth = truth
        self.frame: Any = frame
        self.step = 0
        self.inside: Any = None  # lists and dicts that the iteration has made
        self.head: dict[str, Any] = {}
        self.yes: dict[str, Any] = {}

    def __iter__(self) -> Arms:
        return self

    def __next__(self) -> bool:
        loop = self.loop
        if self.frame is not sys._getframe(1) or loop.recording is None:
            loop.give_up()
        self.step += 1
        if self.step == 1:
            self._begin()
            return True
        if loop.arms[-1:] != [self]:
            loop.give_up()  # one within it was left
        if self.step == 2:
            self._between()
            return False
        self._end()
        raise StopIteration

    def _begin(self) -> None:
        loop = self.loop
        if not loop.around.has_same_layout:
            loop.give_up()  # where an arm changes it back, nobody would see that the other one does not
        loop.arms.append(self)
        self.first = len(loop.graph)
        self.narrowed: dict[str, Any] = {}
        self.inside = NewContainers(self._now(), loop.around, loop.head)
        if self.inside.are_too_many:
            loop.give_up()
        self.head = self._now()
        self.log: list[Any] = []
        self.outer = Value._log_writes(self.log)
        self._narrow(True)

    def _narrow(self, holds: bool) -> None:
        """Have the variables be what they are known to be in an arm."""
        known = facts_of(self.truth, holds)
        self.narrowed = {name: made for name, x in self.head.items() for one, made in known if x is one}
        if self.narrowed:
            put(self.frame, self.narrowed, self.narrowed)
            self.loop.around.put({**self.head, **self.narrowed})

    def _now(self) -> dict[str, Any]:
        now = locals_of(self.frame)
        now.update(self.loop.around.now())
        if self.inside is not None:
            now.update(self.inside.now())
        for name, x in self.narrowed.items():
            if now.get(name) is x:  # as it was
                now[name] = self.head[name]
        return now

    def _rebind(self) -> None:
        self.loop.lists.rebind(self.loop, _live(self.frame.f_code, self.frame.f_lasti))

    def _between(self) -> None:
        """Put back what the first arm has changed."""
        self._rebind()
        self.middle = len(self.loop.graph)
        self.yes = self._now()
        self.written: list[list[Any]] = []  # of memory: a handle, what it was, and is behind each arm
        self.held_yes = self._note_writes(2, self.yes)
        self._restore(self.yes)
        self.log.clear()
        self._narrow(False)

    def _note_writes(self, arm: int, now: dict[str, Any]) -> dict[int, Value]:
        """Put back the memory that an arm has written; return what the arrays that show it were, by their ids."""
        if not (self.loop.around.has_same_layout and self.inside.has_same_layout):
            self.loop.give_up()
        handles = [handle for handle, node, _ in self.log if node < self.first]
        held = {
            id(x): x._lent()
            for x in _values(now)
            if any(x is handle or x._shares_memory(handle) or x._is_related(handle) for handle in handles)
        }
        for handle, node, output in self.log:
            if node >= self.first:
                continue  # memory of this arm alone
            known = next((x for x in self.written if x[0] is handle or x[0]._shares_memory(handle)), None)
            if known is None:
                before = self.loop.graph._value(node, output)
                self.written.append(known := [handle, before, before, before])
            known[arm] = known[0]._root()
        for x in self.written:
            x[0]._write_root(x[1])
        return held

    def _restore(self, now: dict[str, Any]) -> None:
        changed = {name for name, x in self.head.items() if now.get(name) is not x} | self.narrowed.keys()
        put(self.frame, self.head, changed)
        self.loop.around.put(self.head)
        self.inside.put(self.head)

    def _end(self) -> None:
        """Have the variables and the memory hold what is chosen."""
        loop, graph = self.loop, self.loop.graph
        self._rebind()
        no = self._now()
        self.held_no = self._note_writes(3, no)
        Value._log_writes(self.outer)
        if any(graph[k].stateful for k in range(self.first, len(graph))):
            loop.give_up()
        live = _live(self.frame.f_code, self.frame.f_lasti)
        places = {**loop.around.places, **self.inside.places}
        end = len(graph)
        chosen: dict[tuple[int, int], Any] = {}
        choices: list[Choice] = []
        self.originals: list[tuple[Any, Any]] = []
        names: dict[str, Any] = {}
        for name in dict.fromkeys((*self.head, *self.yes, *no)):
            if name not in live and name not in places:
                continue
            before = self.head.get(name, _MISSING)
            a, b = self.yes.get(name, _MISSING), no.get(name, _MISSING)
            if b is a and before is not a and name not in self.head:
                b = _MISSING  # the second arm has not bound it
            if a is before and b is before:
                continue
            names[name] = self._choose(name, a, b, chosen, choices)
        pairs = [(x.yes, x.no) for x in choices]
        weak = loop.weak()
        flags = weak.flags_of_choices(pairs, [x.made is itself for x in choices])
        pairs += [(x[2], x[3]) for x in self.written]
        chosen_flags = [(a, b) for a, b, _ in flags.values()]
        of_yes, of_no, conversions = range(self.first, self.middle), range(self.middle, end), range(end, len(graph))
        made = join(graph, self.truth, of_yes, of_no, [*pairs, *chosen_flags], conversions)
        for (k, (_, _, kind)), flag in zip(flags.items(), made[len(pairs) :], strict=True):
            value = made[k]
            weak.flags[key_of(value)] = flag if type(flag) is bool else Number(bool, flag, loop.places()), kind
        results = [choice.made(value) for choice, value in zip(choices, made, strict=False)]
        for choice, value in zip(choices, made, strict=False):
            self._note_facts(choice, value)
        self._check(results, no)
        wanted = {name: _filled(x, results) for name, x in names.items()}
        self._restore(no)
        put(self.frame, wanted, [name for name in wanted if name not in places])
        loop.around.put({**self.head, **wanted})
        self.inside.put({**self.head, **wanted})
        for (handle, before, _, _), value in zip(self.written, made[len(choices) :], strict=False):
            handle._write_root(value)
            if self.outer is not None:
                self.outer.append((handle, before.node.index, before.output_index))
        loop.arms.pop()
        self.frame, self.inside, self.outer, self.head, self.yes = None, None, None, {}, {}

    def _choose(self, name: str, a: Any, b: Any, chosen: Any, choices: list[Choice]) -> Any:
        """Return what a variable is: itself where it is known, or a `_Place` among the choices."""
        key = id(a), id(b)
        if key in chosen:
            return chosen[key]
        generated = name.startswith(_GENERATED)
        if a is _MISSING or b is _MISSING:
            if not generated:
                self.loop.give_up()  # nobody knows whether it is bound
            a, b = (_like(self.loop.graph, b, self) if a is _MISSING else a, b)
            b = _like(self.loop.graph, a, self) if b is _MISSING else b
        if (is_alternative(a) or is_alternative(b)) and a is not b and not same_constant(a, b):
            return self._alternative(name, a, b, chosen, choices)
        if type(a) is tuple and type(b) is tuple and len(a) == len(b):
            return tuple([self._choose(name, x, y, chosen, choices) for x, y in zip(a, b, strict=True)])
        try:
            found = choice_of(self.loop, self.held_yes.get(id(a), a), self.held_no.get(id(b), b))
        except Otherwise:
            self.loop.give_up()
        if found is None:
            chosen[key] = a
        else:
            chosen[key] = _Place(len(choices))
            choices.append(found)
            self.originals.append((a, b))
        return chosen[key]

    def _alternative(self, name: str, a: Any, b: Any, chosen: Any, choices: list[Choice]) -> Any:
        """Return what is one of a few constants, or something else."""
        loop = self.loop
        if not may_be_one_of(loop, self.frame.f_code):
            loop.give_up()
        (code, other, constants), (code_no, other_no, constants_no) = parts_of(a), parts_of(b)
        if code is code_no and type(code) is int and other is other_no:
            return a
        if other is not other_no:
            other = like(loop.graph, other_no) if other is NOTHING else other
            other_no = like(loop.graph, other) if other_no is NOTHING else other_no
            if other is None or other_no is None:
                loop.give_up()
            other = self._choose(name, other, other_no, chosen, choices)
        codes = [loop.graph.constant(np.asarray(x, np.int64))[()] if type(x) is int else x for x in (code, code_no)]
        made = OneOf(_Place(len(choices)), other, constants | constants_no)
        choices.append(Choice(codes[0], codes[1], itself))
        self.originals.append((codes[0], codes[1]))
        chosen[id(a), id(b)] = made
        return made

    def _note_facts(self, choice: Choice, value: Value) -> None:
        """Note what is known from both operands where an ``and`` holds, and where an ``or`` does not hold."""
        if choice.yes.dtype != np.bool_ or choice.yes.shape != ():
            return
        truth = key_of(self.truth)
        if key_of(choice.no) == truth:
            note_facts(value, [*facts_of(self.truth, True), *facts_of(choice.yes, True)], [])
        elif key_of(choice.yes) == truth:
            note_facts(value, [], [*facts_of(self.truth, False), *facts_of(choice.no, False)])

    def _check(self, results: list[Any], no: dict[str, Any]) -> None:
        """Give up where an array that is chosen shows memory of another one, which may be written."""
        for (yes, held_no), made in zip(self.originals, results, strict=True):
            if type(made) is not Value or made._is_scalar:
                continue
            self.loop.chosen[id(made)] = yes, held_no, made
            for held, now in ((yes, self.yes), (held_no, no)):
                if not held._is_alone() or sum(x is held for x in now.values()) > 1:
                    self.loop.views += [(x, x._root()._key) for x in (yes, held_no, made)]
                    break


def _values(now: dict[str, Any]) -> list[Value]:
    """Return the arrays that variables hold, also in tuples."""
    waiting, found = [*now.values()], []
    while waiting:
        x = waiting.pop()
        if type(x) is tuple:
            waiting += x
        elif type(x) is OneOf:
            waiting.append(x.other)
        elif type(x) is Value and not x._is_scalar:
            found.append(x)
    return found


class _Place:
    """Hold the number of a choice."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


def _filled(x: Any, results: list[Any]) -> Any:
    if type(x) is _Place:
        return results[x.at]
    if type(x) is OneOf:
        return OneOf(_filled(x.code, results), _filled(x.other, results), x.constants)
    return tuple([_filled(item, results) for item in x]) if type(x) is tuple else x


def _like(graph: Any, x: Any, arms: Arms) -> Any:
    """Return something of the kind of what one arm alone makes, which nobody reads."""
    if type(x) is tuple:
        return tuple([_like(graph, item, arms) for item in x])
    if not (type(x) is Value or is_number(x) or is_counter(x)):
        return x
    made = like(graph, x)
    return arms.loop.give_up() if made is None else made


@lru_cache(maxsize=4096)
def _live(code: CodeType, header: int) -> frozenset[str]:
    """Return the variables that may be read behind the arms whose loop has its FOR_ITER at `header`."""
    end = next(op.argval for op in instructions(code) if op.offset == header)
    return live_at(code, end)


def unknown(test: Any) -> tuple[Any, Value] | None:
    """Return the loop that is recorded and a truth that is not known; None where it is, or has to be."""
    if type(test) is GrowingList:
        test = test.size()
    kind = type(test)
    if kind is bool or not (kind is Value or kind is OneOf or is_number(test) or is_counter(test)):
        return None
    graph: Any = graph_under_twins()
    loop = recorded_loop(graph)
    if loop is None:
        return None
    if kind is OneOf:
        truth = test.truth()
        return (loop, truth) if truth is not None else loop.give_up()
    value = as_value(test) if is_counter(test) else test._value if is_number(test) else test
    if type(value) is not Value or value.shape != () or value.dtype is None or value.dtype.kind not in "biufc":
        return None
    return loop, value if value.dtype == np.bool_ else value != 0


class _Builtin:
    """Stand for a builtin in lifted code that has no effect beyond the iteration of a loop."""

    __slots__ = ("call",)
    _pyop_computes = True

    def __init__(self, call: Any) -> None:
        self.call = call


class _OfArms(_Builtin):
    __slots__ = ()

    def __call__(self, test: Any) -> Any:
        found = unknown(test)
        if found is None:
            return (True,) if test else (False,)
        return Arms(*found, sys._getframe(1))


def _truth(test: Any) -> Any:
    found = unknown(test)
    return bool(test) if found is None else Number(bool, found[1], found[0].places())


def _not(test: Any) -> Any:
    found = unknown(test)
    if found is None:
        return not test
    negated: Any = np.logical_not(found[1])
    return Number(bool, negated, found[0].places())


def _is_none(x: Any) -> Any:
    return x.is_none() if type(x) is OneOf else x is None


class _OfTruths(_Builtin):
    __slots__ = ()

    def __call__(self, test: Any) -> Any:
        return self.call(test)


BUILTINS[ARMS] = _OfArms(None)
BUILTINS[TRUTH] = _OfTruths(_truth)
BUILTINS[NOT] = _OfTruths(_not)
BUILTINS[IS_NONE] = _OfTruths(_is_none)
