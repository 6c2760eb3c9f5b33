"""Pass comprehensions of lifted code what they read as arguments.

These are generators that a builtin consumes at once, and before CPython 3.12, which inlines these, lists, sets and
dicts. A variable that such a comprehension reads lives in a cell, which no recorded loop carries::

    [v - level for v in x]       becomes       (lambda level, x: [v - level for v in x])(level, x)
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from .syntax import children, walk

__all__ = ["close_comprehensions"]

_INLINED = sys.version_info >= (3, 12)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_KEPT = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)
_CONSUMERS = frozenset(("sum", "min", "max", "any", "all", "list", "tuple", "set", "sorted"))
_LOOKS = frozenset(("locals", "vars", "eval", "exec", "dir", "super", "__class__"))


def close_comprehensions(function: ast.FunctionDef) -> None:
    """Rewrite, in place, the comprehensions of a function whose variables are all bound where they are reached."""
    bound = {argument.arg for argument in walk(function.args) if isinstance(argument, ast.arg)}
    local = bound | {x.id for x in _own(function) if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load)}
    deleted = {x.id for x in _own(function) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Del)}
    others = {name for x in _own(function) if isinstance(x, (ast.Global, ast.Nonlocal)) for name in x.names}
    for statement in function.body:
        _Closed(frozenset(local - others), frozenset(bound - deleted)).visit(statement)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            bound |= {name for target in targets for name in _stored(walk(target))}


def _stored(nodes: Iterable[Any]) -> set[str]:
    return {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}


def _own(function: Any) -> Iterator[Any]:
    """Yield the nodes of a function, but for those of scopes in it."""
    waiting = [*function.body]
    while waiting:
        part = waiting.pop()
        yield part
        if not isinstance(part, (*_SCOPES, *_COMPREHENSIONS, ast.GeneratorExp)):
            waiting += children(part)


class _Closed(ast.NodeTransformer):
    def __init__(self, local: frozenset[str], bound: frozenset[str]) -> None:
        self.local = local
        self.bound = bound

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _SCOPES):
            return node
        if isinstance(node, _COMPREHENSIONS):
            return node if _INLINED else self._closed(node)
        if isinstance(node, ast.GeneratorExp):
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CONSUMERS:
            node.args = [self._closed(x) if isinstance(x, ast.GeneratorExp) else x for x in node.args]
        return self.generic_visit(node)

    def _closed(self, node: Any) -> Any:
        parts = [*walk(node)]
        if any(isinstance(x, _KEPT) or (isinstance(x, ast.comprehension) and x.is_async) for x in parts):
            return node
        own = _stored(parts)
        read = {x.id for x in parts if isinstance(x, ast.Name)} - own
        names = sorted(read & self.local)
        first = {x.id for x in walk(node.generators[0].iter) if isinstance(x, ast.Name)}
        if not names or not read.isdisjoint(_LOOKS) or first & own or not self.bound.issuperset(names):
            return node
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        made = ast.Call(ast.Lambda(arguments, node), [ast.Name(name, ast.Load()) for name in names], [])
        for x in walk(made):
            if "lineno" in x._attributes and not hasattr(x, "lineno"):
                ast.copy_location(x, node)
        return made
