"""Carry what is one of a few constants, or something else: None until it is found, a state by its name.

In a recorded loop such a variable holds a `OneOf`: a number that says which constant it is, 0 for something else, and
what that is. ``x is None``, ``x == "name"`` and its truth are computed of the number. In the arm of a condition in
which it is known which one it is, the variable holds just that. Behind the outermost loop it is decided by.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.deciding import recorded_loop
from ..graph.symbolic_number import Number, is_number
from .numbers import as_value
from .sites import instructions
from .weak import key_of

__all__ = [
    *("NOTHING", "Alternatives", "OneOf", "constants_by", "facts_of", "is_alternative", "like", "may_be_one_of"),
    *("note_facts", "parts_of"),
]

NOTHING: Any = type("Nothing", (), {"__slots__": ()})()
"""In the place of something else, where there are constants alone."""

_CONSTANTS = (type(None), str, bytes)
_constants: list[Any] = []  # by their numbers, which begin with 1
_numbers: dict[tuple[type, Any], int] = {}


def _number_of(x: Any) -> int:
    key = type(x), x
    if key not in _numbers:
        _constants.append(x)
        _numbers[key] = len(_constants)
    return _numbers[key]


def constants_by(numbers: Iterable[int]) -> dict[int, Any]:
    """Return constants by their numbers."""
    return {number: _constants[number - 1] for number in numbers}


_NONE = _number_of(None)
_FALSE = frozenset(map(_number_of, (None, "", b"")))


class OneOf:
    """Stand for one of the constants that `constants` counts, or `other`; `code` is a scalar that says which."""

    __slots__ = ("code", "constants", "other")
    _pyop_computes = True

    def __init__(self, code: Any, other: Any, constants: frozenset[int]) -> None:
        self.code = code
        self.other = other
        self.constants = constants

    def is_none(self) -> Any:
        """Return the truth that it is None."""
        truth = self._is(_NONE)
        note_facts(truth._value, [(self, None)], [(self, self.other)] if self.constants == {_NONE} else [])
        return truth

    def truth(self) -> Any:
        """Return its truth, as Python has it; None where that has to be known."""
        made: Any = self.code != _number_of(None)
        for number in (self.constants & _FALSE) - {_NONE}:
            made = np.logical_and(made, self.code != number)
        if self.other is NOTHING:
            return made
        value = as_value(self.other) if is_counter(self.other) else self.other
        value = value._value if is_number(value) else value
        if type(value) is not Value or value.shape != () or value.dtype is None or value.dtype.kind not in "biuf":
            return None
        made = np.logical_and(made, np.logical_or(self.code != 0, value != 0))
        note_facts(made, [(self, self.other)] if self.constants <= _FALSE else [], [])
        return made

    def _is(self, number: int) -> Number:
        return self._of(self.code == number)

    def _of(self, truth: Any) -> Number:
        loop = recorded_loop(self.code.graph)
        return self._ask() if loop is None else Number(bool, truth, loop.places())

    def _ask(self, *args: Any, **kwargs: Any) -> Any:
        loop = recorded_loop(self.code.graph)
        assert loop is not None  # behind the outermost loop it is decided by
        return loop.give_up()

    def __eq__(self, other: object) -> Any:
        if self.other is not NOTHING:
            return self._ask()
        if type(other) is OneOf and other.other is NOTHING:
            return self._of(self.code == other.code)
        return self._is(_number_of(other)) if type(other) in _CONSTANTS else self._ask()

    def __ne__(self, other: object) -> Any:
        same = self == other
        negated: Any = np.logical_not(same._value)
        return Number(bool, negated, same._places)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._ask()

    def __getattr__(self, name: str) -> Any:
        return self._ask()

    __array_ufunc__ = __array_function__ = __array__ = _ask


_OPERATORS = """
    bool int float complex index hash str repr format trunc floor ceil round reduce_ex copy deepcopy len iter next
    contains getitem setitem delitem call enter exit lt le gt ge neg pos abs invert add sub mul truediv floordiv mod
    divmod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rfloordiv rmod rdivmod rpow rmatmul rand ror rxor
    rlshift rrshift
"""
for _name in _OPERATORS.split():
    setattr(OneOf, f"__{_name}__", OneOf._ask)


def is_alternative(x: Any) -> bool:
    """Return whether `x` is a constant that a `OneOf` may be, or one."""
    return type(x) in _CONSTANTS or type(x) is OneOf


def parts_of(x: Any) -> tuple[Any, Any, frozenset[int]]:
    """Return the number that says which constant something is, what it is if none, and which constants it may be."""
    if type(x) is OneOf:
        return x.code, x.other, x.constants
    if type(x) in _CONSTANTS:
        return _number_of(x), NOTHING, frozenset((_number_of(x),))
    return 0, x, frozenset()


def like(graph: Any, x: Any) -> Any:
    """Return something of the kind of `x` that nobody reads; None where that is not known."""
    if x is NOTHING:
        return x
    if type(x) is Value:
        shape: Any = x.shape
        if (
            x.dtype is None
            or shape is None
            or x.dtype.kind not in "biufc"
            or any(type(size) is not int for size in shape)
        ):
            return None
        made = graph.constant(np.zeros(shape, x.dtype))
        return made[()] if x._is_scalar else made
    kind = int if is_counter(x) else x._kind if is_number(x) else type(x)
    if kind in (int, float, bool, complex):
        return kind()
    return (
        graph.constant(np.zeros((), x.dtype))[()] if issubclass(kind, np.generic) and x.dtype.kind in "biufc" else None
    )


class Alternatives:
    """Hold the variables of a loop that are a `OneOf`: the number and what else it may be are variables, too."""

    __slots__ = ("first", "graph", "kinds", "new")

    def __init__(self, graph: Any, names: Iterable[str], now: dict[str, Any]) -> None:
        self.graph = graph
        self.kinds: dict[str, tuple[Any, frozenset[int]]] = {}  # something of the kind of what it may be; the constants
        self.first: dict[str, tuple[Any, ...]] = {}  # what it was before the loop, and the parts of that
        for name in names:
            if type(now.get(name)) is OneOf:
                self.add(name, now[name])
        self.new = False  # there are others, or other constants, than when the iteration began

    def names(self, names: frozenset[str]) -> frozenset[str]:
        """Return the names of variables, with those of the parts."""
        return frozenset(part for name in names for part in (self._parts(name) if name in self.kinds else (name,)))

    def _parts(self, name: str) -> list[str]:
        return [f"{name}.code", f"{name}.other"][: 1 if self.kinds[name][0] is NOTHING else 2]

    def add(self, name: str, held: OneOf) -> None:
        """Have a variable be a `OneOf` from now on."""
        self.kinds[name] = held.other, held.constants
        self.new = True

    def split(self, now: dict[str, Any], before: dict[str, Any] | None) -> bool:
        """Put the parts in the place of variables; `before`: what these parts were. Return whether that can be."""
        for name, (other, constants) in self.kinds.items():
            if name not in now:
                continue
            x = now.pop(name)
            code, what, may_be = parts_of(x)
            if before is not None and name in self.first and x is self.first[name][0]:
                _, code, what = self.first[name]
            if not may_be <= constants or (other is NOTHING and what is not NOTHING):
                self.kinds[name] = what if other is NOTHING else other, constants | may_be
                self.new = True
            if what is NOTHING and other is not NOTHING:
                what = like(self.graph, other) if before is None else before[f"{name}.other"]
            if what is None:
                return False
            code = self.graph.constant(np.asarray(code, np.int64))[()] if type(code) is int else code
            if before is None:
                self.first[name] = x, code, what
            now.update(zip(self._parts(name), (code, what), strict=False))
        return True

    def joined(self, wanted: dict[str, Any], decides: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return what variables hold, those with a `OneOf` too; where `decides` has the name, it is decided by."""
        made = {}
        for name in self.kinds:
            code = wanted.get(f"{name}.code")
            if code is None:
                continue
            first = self.first.get(name)
            if first is not None and code is first[1]:
                made[name] = first[0]
                continue
            made[name] = OneOf(code, wanted.get(f"{name}.other", NOTHING), self.kinds[name][1])
            if f"{name}.code" in decides:
                made[name] = _decided(made[name])
        return {**wanted, **made} if made else wanted


def _decided(x: OneOf) -> Any:
    """Return what a variable is behind all recorded loops, in the call that is traced."""
    number = x.code.graph._deciding.decide(x.code, "i")
    return x.other if number == 0 else _constants[number - 1]


def may_be_one_of(loop: Any, code: CodeType) -> bool:
    """Return whether all that is run in a loop leaves it to lifted code to compare by ``is``."""
    if getattr(loop.graph, "_deciding", None) is None:
        return False
    functions = [x.__code__ for x in loop.around._kept if type(x) is FunctionType]
    return not any(map(_compares_identities, {code, loop.frame.f_code, *functions}))


@lru_cache(maxsize=1024)
def _compares_identities(code: CodeType) -> bool:
    return any(op.opname == "IS_OP" or op.opname.endswith(("_NONE", "_NOT_NONE")) for op in instructions(code))


# --- what is known in an arm


def note_facts(truth: Value, yes: list[Any], no: list[Any]) -> None:
    """Note which variables are known where a truth holds, and where it does not."""
    graph: Any = truth.graph
    loop = recorded_loop(graph)
    if loop is not None and (yes or no):
        loop.recording.facts.setdefault(key_of(truth), (yes, no))


def facts_of(truth: Value, holds: bool) -> list[Any]:
    """Return what is known of variables where a truth holds, or does not: each with what it is."""
    graph: Any = truth.graph
    for loop in graph._rolling:
        if loop.recording is not None and key_of(truth) in loop.recording.facts:
            found: list[Any] = loop.recording.facts[key_of(truth)][0 if holds else 1]
            return found
    if truth.node.kind == "py" and truth.node.function is np.logical_not:
        return facts_of(truth.node.inputs[0], not holds)
    return []
