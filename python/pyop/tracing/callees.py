"""Calls of what is behind attributes and items, ``self.h(x)`` or ``table["h"](x)``, and of variables, written so that
twins find the twin.

What a function reads by the name of a global it reads from the globals of its twin, which hold other functions. An
object and a list it has itself, and what it finds there is itself, too: so ``self.h(x)`` becomes
``__pyop_callee(self.h)(x)``. The object that it is called on stays what it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

__all__ = ["CALLEE", "has_callees", "write_callees"]

CALLEE = "__pyop_callee"
"""The builtin of twins that has, for what is called, its twin (`pyop.tracing.twins`)."""


def has_callees(function: ast.stmt, modules: frozenset[str], names: frozenset[str]) -> bool:
    """Whether there are such calls. `names`: of variables that may hold what is called."""
    return next(_callees(function, modules, names), None) is not None


def write_callees(function: ast.stmt, modules: frozenset[str], names: frozenset[str]) -> bool:
    """Write all of them so; whether there are any."""
    found = list(_callees(function, modules, names))
    for call in found:
        name = ast.copy_location(ast.Name(CALLEE, ast.Load()), call.func)
        call.func = ast.copy_location(ast.Call(name, [call.func], []), call.func)
    return bool(found)


def _callees(function: ast.stmt, modules: frozenset[str], names: frozenset[str]) -> Iterator[ast.Call]:
    waiting: list[Any] = [function]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.ClassDef):
            continue  # names that begin so are others there
        waiting += ast.iter_child_nodes(part)
        if isinstance(part, ast.Call) and _is_one(part.func, modules, names):
            yield part


def _is_one(called: ast.expr, modules: frozenset[str], names: frozenset[str]) -> bool:
    if isinstance(called, ast.Name):
        return called.id in names
    if isinstance(called, ast.Attribute):
        return _dotted(called.value) not in modules
    return isinstance(called, (ast.Subscript, ast.Call))


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
