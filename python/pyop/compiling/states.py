"""Decide when the state of an instance or a closure becomes inputs: once it was seen to differ, or to be changed.

The first instance of a class has plans of its own, in which what it holds is constant. Where another one comes, or this
one holds other objects, or the function changes what it holds, plans of the code take its state as inputs. Closures of
the same code share these, though each is a `CompiledFunction` of its own.
"""

from __future__ import annotations

import operator
import weakref
from types import FunctionType, MethodType
from typing import Any

from .._core import CompiledFunction
from ..tracing.captured import Watch
from ..tracing.code import DYNAMIC, facts, instructions
from ..tracing.libraries import is_library
from .arguments import Arguments
from .options import Options
from .retrace import log
from .state_calls import state_inputs
from .state_steps import Known, NotInputs, Steps

__all__ = ["States", "known_of"]

_MOST_CODES = 256
_MOST_PLANS = 8
_SET = frozenset(("setattr", "__setattr__"))
# By code, globals and options. Code and globals are kept alive, so that their ids stay their own.
_known: dict[Any, tuple[Any, Known]] = {}


def known_of(fn: Any, options: Options) -> Known:
    """Return what is known of the state of all closures of this code.

    >>> from pyop.compiling.options import Options
    >>> from pyop.compiling.states import known_of
    >>> options = Options((), 1, True, (), "exact", 64)
    >>> def scaled(k):
    ...     return lambda x: x * k
    >>> known_of(scaled(1.0), options) is known_of(scaled(2.0), options)
    True
    """
    function = fn.__func__ if type(fn) is MethodType else fn
    if type(function) is not FunctionType:
        return Known()
    kind = type(fn.__self__) if type(fn) is MethodType else None
    key = id(function.__code__), id(function.__globals__), kind, options.key
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MOST_CODES:
            _known.pop(next(iter(_known)))
        found = _known[key] = (function.__code__, function.__globals__), Known()
    return found[1]


def changes_state(fn: Any, of_argument: bool) -> bool:
    """Return whether a function binds attributes or variables of its closure, or stores into what these hold."""
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    if code is None:
        return False
    used = {op.opname for op in instructions(code)}
    binds = {"STORE_ATTR", "STORE_DEREF"} if code.co_freevars else {"STORE_ATTR"}
    holds = "LOAD_ATTR" if of_argument or type(fn) is MethodType else "LOAD_DEREF"
    return not used.isdisjoint(binds) or ("STORE_SUBSCR" in used and holds in used)


class States:
    """Decide when the state of one compiled function becomes inputs."""

    def __init__(self, fn: Any, arguments: Arguments, options: Options) -> None:
        self._fn = fn
        self._arguments = arguments
        self._options = options
        self._of_argument = arguments.parameters.is_method
        self.asks = True  # whether a trace that changes something ends, for plans with the state as inputs
        self.known = Known() if self._of_argument else known_of(fn, options)

    @property
    def may_change(self) -> bool:
        """Return whether the function changes what it holds, going by its code."""
        return changes_state(self._fn, self._of_argument)

    def call(
        self, function: CompiledFunction[Any, Any], args: tuple[Any, ...], n: int, names: Any, needed: bool
    ) -> Any:
        """Return the result of a call by plans of the code; NotImplemented if there are none for it.

        `needed`: there is no plan for what it holds alone.
        """
        known = self.known
        if self._of_argument and (n == 0 or isinstance(args[0], type)):
            return NotImplemented
        root = args[0] if self._of_argument else self._fn
        if not (self._differs(root) or needed) or len(known.plans) >= _MOST_PLANS or type(root) in known.refused:
            return NotImplemented
        own = self._made(root, needed)
        if own is None:
            known.refuse(type(root))
            return NotImplemented
        known.plans.append(own)
        return own.call(function, args, n, names or ())

    def _differs(self, root: Any) -> bool:
        """Return whether it is other state than the last that was traced, and keep which it is."""
        known = self.known
        last, known.last = known.last, (_reference(root), _held(root))
        return last is not None and (last[0]() is not root or last[1] != known.last[1])

    def _made(self, root: Any, needed: bool) -> Any:
        watch = Watch(self._fn, [root] if self._of_argument else [])
        names = _names(watch)
        if names is None or watch.goes_on or watch.overflown:
            log("%s has no plan with its state as inputs: what it reads cannot be told", self._arguments.name)
            return None
        try:
            steps = Steps(root, names, "self" if self._of_argument else "", self.may_change)
            if not (steps.leaves or needed):
                return None
            return state_inputs(self._fn, self._arguments, self._options, steps, self._of_argument, self.known)
        except NotInputs as error:
            log("%s has no plan with its state as inputs: it holds %s", self._arguments.name, error)
            return None


def _names(watch: Watch) -> frozenset[str] | None:
    """Return the names of attributes that the code may read; None if it may read others, too.

    What only sets others by name (``__setattr__`` of a frozen dataclass) is seen in what it has set.
    """
    names = watch.read()[1]
    if names is not None:
        return names
    reached = watch.reached()
    if any(isinstance(x, (operator.attrgetter, operator.methodcaller)) for x in reached):
        return None
    functions = [x for x in reached if type(x) is FunctionType and not is_library(x)]
    if any(facts(x.__code__).dynamic and not _only_sets(x) for x in functions):
        return None
    return frozenset[str]().union(*[facts(x.__code__).names for x in functions])


def _only_sets(fn: FunctionType) -> bool:
    read = facts(fn.__code__)
    by_name = read.names & DYNAMIC <= _SET and "copy" not in read.globals_read
    return by_name and all(op.opname != "MATCH_CLASS" for op in instructions(fn.__code__))


def _held(root: Any) -> dict[Any, int]:
    """Return which objects it holds, by their ids."""
    if type(root) is MethodType:
        root = root.__self__
    if type(root) is FunctionType:
        return {k: id(_content(cell)) for k, cell in enumerate(root.__closure__ or ())}
    held = getattr(root, "__dict__", None)
    return {name: id(x) for name, x in held.items()} if type(held) is dict else {}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _reference(x: Any) -> Any:
    try:
        return weakref.WeakMethod(x) if type(x) is MethodType else weakref.ref(x)
    except TypeError:
        return int  # such an object is another one each time
