"""Find arguments that a function never reads: what they are makes no difference to its trace.

The right-hand side of an autonomous equation has a `t` that it does not use. SciPy gives it as a Python float in the
first call and as np.float64 later, and one trace does for both.
"""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from .._core import Plan
from ..tracing.code import variables
from ..tracing.places import Reading
from .arguments import Argument

__all__ = ["signature", "traced_already", "unread"]

# What gives a function, or those that it calls, its variables by their names.
_SEE_ALL = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "inspect", "evaluate"))
_NOTHING: frozenset[int] = frozenset()


def unread(fn: Any) -> frozenset[int]:
    """Return the positions of parameters whose names do not occur in a function's code; none for another callable.

    >>> from pyop.compiling.unused_arguments import unread
    >>> unread(lambda t, y: -y), unread(lambda t, y: -y * t), unread(lambda t, y: [y for _ in range(2) if t])
    (frozenset({0}), frozenset(), frozenset())
    """
    return _unread(fn.__code__) if type(fn) is FunctionType else _NOTHING


def _unread(code: CodeType) -> frozenset[int]:
    read = variables(code) if _SEE_ALL.isdisjoint(code.co_names) else range(code.co_argcount)
    names = code.co_varnames[: min(code.co_argcount, 256)]
    return frozenset(k for k, name in enumerate(names) if k not in read and name not in code.co_cellvars)


def signature(arguments: list[Argument], n: int, names: Any, unread: frozenset[int]) -> Any:
    """Return a key, equal for calls that a function cannot tell apart; None if that is not certain.

    So many as `n` of the arguments are positional, the others have `names`.
    """
    parts: list[Any] = [n, tuple(names)]
    for k, (tree, places) in enumerate(arguments):
        parts.append(None if tree.is_leaf else tree)
        for place in places:
            if place.kind == b"a":
                kind: Any = place.value.flags.writeable
            elif place.kind == b"n":
                kind = None if k < n and k in unread else type(place.value)
            else:
                return None
            parts.append((place.path, place.spec, kind))
    return parts


def _is_still(reading: Reading) -> bool:
    """Return whether a function, or its attributes, are what they were."""
    kind, owner, _, value, _ = reading
    if kind == b"z":
        return bool(len(owner) == value)
    now = (owner.__code__, owner.__defaults__, owner.__kwdefaults__)
    return all((Ellipsis if a is None else a) is b for a, b in zip(now, value, strict=True))


def traced_already(last: Any, function: Any, known: Any) -> Plan | None:
    """Return the plan of the last trace if it does for this call too, as the arguments differ in what is not read.

    `last` has the arguments' `signature`, a weak reference to the plan, and what the trace has read beside them, which
    is nothing but the function itself, and still is the same; or it is None.
    """
    if last is None or last[0] != known or not all(map(_is_still, last[2])):
        return None
    plan: Plan | None = last[1]() if function._counts()[2] else None  # else all are forgotten, to be made anew
    return plan
