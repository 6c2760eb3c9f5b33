"""Choose one of two variables by a truth that is not known: what each is in a graph, and what the choice is then.

Two arrays or scalars of one spec are chosen from as they are, two Python numbers of one kind as their values. A scalar
of NumPy beside a Python number is a scalar that may be a Python number (`weak`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._core import Value
from ..graph.counter import is_counter, size_of
from ..graph.symbolic_number import Number, is_number
from .carried import Otherwise, is_int, is_known, same_constant
from .numbers import DTYPES, LARGEST, as_value, fits_scalar, named, sizes_of
from .weak import key_of

__all__ = ["Choice", "choice_of", "choose", "itself"]


class Choice(NamedTuple):
    """Hold two Values, and the function that makes of the chosen one what it stands for."""

    yes: Value
    no: Value
    made: Callable[[Value], Any]


def choice_of(loop: Any, a: Any, b: Any) -> Choice | None:
    """Return how two variables are chosen from; None where they are the same."""
    if a is b or same_constant(a, b):
        return None
    graph = loop.graph
    a, b = (graph.constant(x)[()] if issubclass(type(x), np.generic) else x for x in (a, b))
    if type(a) is Value and type(b) is Value:
        if a.spec != b.spec or a._is_scalar is not b._is_scalar or not (is_known(a) and is_known(b)):
            raise Otherwise
        return Choice(a, b, itself)
    if type(a) is Value or type(b) is Value:
        like = a if type(a) is Value else b
        return Choice(_as_scalar(loop, a, like), _as_scalar(loop, b, like), itself)
    kinds = {_kind(x) for x in (a, b)}
    if kinds == {int}:
        return Choice(_int64(graph, a), _int64(graph, b), lambda value: _named(loop, value, a, b))
    if len(kinds) == 1 and (kind := kinds.pop()) is not None:
        return Choice(_number(graph, a, kind), _number(graph, b, kind), lambda value: _made_number(loop, kind, value))
    if kinds <= {int, float}:  # beside numbers of float64 they are the same
        like = graph.constant(0.0)[()]
        return Choice(_as_scalar(loop, a, like), _as_scalar(loop, b, like), itself)
    raise Otherwise


def choose(loop: Any, truth: Any, a: Any, b: Any) -> Any:
    """Return the one of two numbers or scalars that a truth says, without a branch; outside of a loop, of floats."""
    if not (type(truth) is Value or is_number(truth)):
        return a if truth else b
    if loop is None:
        graph, places = truth._value.graph, frozenset[Any]().union(*[x._places for x in (truth, a, b) if is_number(x)])
        one: Any = np.where(truth._value, *[_number(graph, x, float) for x in (a, b)])
        return Number(float, one[()], places)
    choice = choice_of(loop, a, b)
    if choice is None:
        return a
    if choice.yes.shape != () or (type(truth) is Value and truth.shape != ()):
        raise Otherwise
    condition = truth if type(truth) is Value else truth._value
    chosen: Any = np.where(condition, choice.yes, choice.no)
    value = chosen[()]
    weak = loop.weak()
    for flag_a, flag_b, kind in _flags(weak, choice):
        flag = _either(condition, flag_a, flag_b)
        weak.flags[key_of(value)] = flag if type(flag) is bool else Number(bool, flag, loop.places()), kind
    return choice.made(value)


def _flags(weak: Any, choice: Choice) -> Any:
    follows = choice.made is itself
    return weak.flags_of_choices([(choice.yes, choice.no)], [True]).values() if follows else ()


def _either(truth: Value, a: Any, b: Any) -> Any:
    """Return one of two truths, by operations on truths alone."""
    if a is b:
        return a
    yes = a if a is False else truth if a is True else np.logical_and(truth, a)
    no = np.logical_not(truth) if b is True else b if b is False else np.logical_and(np.logical_not(truth), b)
    return no if yes is False else yes if no is False else np.logical_or(yes, no)


def itself(value: Value) -> Value:
    """Return what is chosen, which stands for itself."""
    return value


def _kind(x: Any) -> Any:
    kind: Any = int if is_counter(x) else x._kind if is_number(x) else type(x)
    return kind if kind in DTYPES else None


def _made_number(loop: Any, kind: type, value: Value) -> Number:
    loop.weak().flags[key_of(value)] = True, kind
    return Number(kind, value, loop.places())


def _scalar(x: Any) -> Value:
    """Return a Value of no dimension as a scalar."""
    made: Value = x if x._is_scalar else x[()]
    return made


def _number(graph: Any, x: Any, kind: type) -> Value:
    return _scalar(x._value if is_number(x) else graph.constant(np.asarray(x, DTYPES[kind])))


def _as_scalar(loop: Any, x: Any, like: Value) -> Value:
    """Return a Python number as a scalar of the dtype of another one."""
    if type(x) is Value:
        return x
    char = like.dtype.char if like.dtype is not None else ""
    if not like._is_scalar or like.shape != () or not char:
        raise Otherwise
    if is_number(x) or is_counter(x):
        value = as_value(x) if is_counter(x) else x._value
        if char not in "dl" or (value.dtype.char != char and not (char == "d" and value.dtype.char == "l")):
            raise Otherwise
        made: Value = value.astype(like.dtype)[()] if value.dtype.char != char else (+value)[()]
        loop.weak().add(made, loop.key)
        return made
    if not fits_scalar(x, char):
        raise Otherwise
    scalar: Value = loop.scalar(x, like.dtype)
    return scalar


def _int64(graph: Any, x: Any) -> Value:
    made = x._value if is_number(x) else as_value(x)
    if type(made) is not Value:
        if not is_int(x) or abs(x) >= 1 << 31:
            raise Otherwise
        made = graph.constant(np.asarray(x, np.int64))
    return _scalar(made)


def _named(loop: Any, value: Value, a: Any, b: Any) -> Any:
    """Return an int that is one of two, with what is known of how large it is."""
    made = named(loop.graph, value, loop.give_up)
    if is_number(a) or is_number(b):
        sizes_of(loop.graph).most[size_of(made).name] = LARGEST
    else:
        sizes_of(loop.graph).chosen(size_of(made).name, a, b)
    return made
