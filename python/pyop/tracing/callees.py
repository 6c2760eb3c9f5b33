"""Have twins call twins behind attributes (``self.h(x)``), items (``table["h"](x)``) and variables.

What a function reads by the name of a global it reads from the globals of its twin, which hold other functions. An
object and a list it has itself, and what it finds there is itself, too: so ``self.h(x)`` becomes
``__pyop_callee__(self.h)(x)``, and ``map(self.h, xs)`` becomes ``map(__pyop_callee__(self.h), xs)``. The object that it
is called on stays what it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .syntax import walk

__all__ = ["CALLEE", "has_callees", "write_callees"]

_Found = tuple[ast.expr, Callable[[ast.expr], Any]]  # what is called, and what puts another expression there

CALLEE = "__pyop_callee__"
"""The builtin of twins that has, for what is called, its twin (`pyop.tracing.twins`)."""


# What calls its first argument.
_CALL_IT = frozenset(("map", "filter", "reduce", "starmap", "functools.reduce", "itertools.starmap"))


def has_callees(function: ast.stmt, modules: frozenset[str], names: frozenset[str]) -> bool:
    """Return whether `write_callees` has anything to write. `names`: of variables that may hold what is called."""
    return next(_callees(function, modules, names), None) is not None


def write_callees(function: ast.stmt, modules: frozenset[str], names: frozenset[str]) -> bool:
    """Write each such call with `CALLEE`, in place; return whether there are any."""
    found = list(_callees(function, modules, names))
    for called, put in found:
        name = ast.copy_location(ast.Name(CALLEE, ast.Load()), called)
        put(ast.copy_location(ast.Call(name, [called], []), called))
    return bool(found)


def _callees(function: ast.stmt, modules: frozenset[str], names: frozenset[str]) -> Iterator[_Found]:
    for part in walk(function):
        if isinstance(part, ast.Call):
            if part.args and _dotted(part.func) in _CALL_IT and _is_one(part.args[0], modules, names):
                yield part.args[0], partial(part.args.__setitem__, 0)
            if _is_one(part.func, modules, names):
                yield part.func, partial(setattr, part, "func")


def _is_one(called: ast.expr, modules: frozenset[str], names: frozenset[str]) -> bool:
    if isinstance(called, ast.Name):
        return called.id in names
    if isinstance(called, ast.Attribute):
        return _dotted(called.value) not in modules
    return not isinstance(called, (ast.Lambda, ast.Starred, ast.Constant))


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
