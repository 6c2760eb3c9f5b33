"""Write the conditions of expressions as statements: ``a if c else b``, ``and``, ``or``, ``not`` and chains.

Whatever an expression computes before its last condition goes into variables first, so that the order of evaluation
stays what it was::

    f(x, a if c else b)            t1 = f; t2 = x
                                   for arm in ARMS(c):
                                       if arm: t3 = a
                                       else: t3 = b
                                   t1(t2, t3)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .syntax import children, walk

__all__ = ["ARMS", "IS_NONE", "NOT", "TRUTH", "Conditions", "is_concrete"]

ARMS, NOT, TRUTH, IS_NONE = "__pyop_arms__", "__pyop_not__", "__pyop_truth__", "__pyop_is_none__"
"""The builtins of lifted code that go through the arms of a condition, negate a truth, ask for one, and for what is
None (`pyop.loops.arms`)."""

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CHILDREN: dict[type, tuple[str, ...]] = {
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.Compare: ("left", "comparators"),
    ast.Call: ("func", "args", "keywords"),
    ast.Attribute: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Tuple: ("elts",),
    ast.List: ("elts",),
    ast.Set: ("elts",),
}
_WITHIN = {ast.keyword: ("value",), ast.Slice: ("lower", "upper", "step")}
_KEPT = (ast.NamedExpr, ast.Starred, ast.Await, ast.Yield, ast.YieldFrom)
_ASKS = frozenset(("isinstance", "issubclass", "callable", "hasattr"))
_Lowered = tuple[list[ast.stmt], ast.expr]


def is_concrete(test: ast.expr) -> bool:
    """Return True where a condition can only be a Python bool: comparisons by ``is``, isinstance, constants."""
    if isinstance(test, ast.Constant):
        return True
    if _asks_none(test):
        return False
    if isinstance(test, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops)
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id in _ASKS
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_concrete(test.operand)
    return isinstance(test, ast.BoolOp) and all(map(is_concrete, test.values))


def _asks_none(expr: Any) -> bool:
    """Return True for ``x is None`` and ``x is not None``, of which a recorded loop may not know the outcome."""
    one = isinstance(expr, ast.Compare) and len(expr.ops) == 1 and isinstance(expr.ops[0], (ast.Is, ast.IsNot))
    return one and isinstance(expr.comparators[0], ast.Constant) and expr.comparators[0].value is None


class Conditions:
    """Lower the expressions of a function. `count` numbers its variables."""

    def __init__(self) -> None:
        self.count = 0

    def name(self, letter: str) -> str:
        """Return the name of a new variable."""
        self.count += 1
        return f"__pyop_{letter}{self.count}__"

    def call(self, name: str, *args: ast.expr) -> ast.expr:
        """Return the call of a builtin of lifted code."""
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [*args], []), args[0])

    def arms(self, test: ast.expr, yes: list[ast.stmt], no: list[ast.stmt]) -> ast.stmt:
        """Return the statement that runs one of two arms, or records both."""
        arm = self.name("a")
        body = ast.If(ast.Name(arm, ast.Load()), yes or [ast.Pass()], no)
        loop = ast.For(ast.Name(arm, ast.Store()), self.call(ARMS, test), [body], [])
        made: ast.stmt = _at(loop, test, test)
        return made

    def test(self, expr: ast.expr) -> _Lowered:
        """Lower an expression of which only the truth is asked."""
        if is_concrete(expr):
            return [], expr
        if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not):
            before, operand = self.test(expr.operand)
            return before, self.call(NOT, operand)
        if isinstance(expr, ast.BoolOp):
            return self._either(expr, self.test, lambda x: self.call(TRUTH, x))
        if isinstance(expr, ast.Compare) and len(expr.ops) > 1:
            return self._chain(expr, self.test)
        return self.value(expr)

    def value(self, expr: Any) -> _Lowered:
        """Lower an expression."""
        if not _needs(expr):
            return [], expr
        if isinstance(expr, ast.IfExp):
            before, test = self.test(expr.test)
            name = self.name("v")
            arms = []
            for part in (expr.body, expr.orelse):
                inner, made = self.value(part)
                arms.append([*inner, _set(name, made)])
            return [*before, self.arms(test, *arms)], _get(name, expr)
        if isinstance(expr, ast.BoolOp):
            return self._either(expr, self.value, lambda x: x)
        if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not):
            before, operand = self.test(expr.operand)
            return before, self.call(NOT, operand)
        if isinstance(expr, ast.Compare) and len(expr.ops) > 1:
            return self._chain(expr, self.value)
        if _asks_none(expr):
            before, operand = self.value(expr.left)
            found = self.call(IS_NONE, operand)
            return before, found if isinstance(expr.ops[0], ast.Is) else self.call(NOT, found)
        if type(expr) not in _CHILDREN or any(isinstance(part, _KEPT) for part in walk(expr)):
            return [], expr
        return self._in_order(expr), expr

    def _either(self, expr: ast.BoolOp, lower: Callable[[Any], _Lowered], kept: Any) -> _Lowered:
        """Lower ``and`` and ``or``: a variable that each further operand may set."""
        name = self.name("v")
        before, first = lower(expr.values[0])
        rest = (
            expr.values[1] if len(expr.values) == 2 else ast.copy_location(ast.BoolOp(expr.op, expr.values[1:]), expr)
        )
        inner, last = lower(rest)
        arm = [*inner, _set(name, kept(last))]
        yes, no = (arm, []) if isinstance(expr.op, ast.And) else ([], arm)
        return [*before, _set(name, kept(first)), self.arms(_get(name, expr), yes, no)], _get(name, expr)

    def _chain(self, expr: ast.Compare, lower: Callable[[Any], _Lowered]) -> _Lowered:
        """Lower ``a < b < c``, which asks for ``b`` once."""
        left, middle = self.name("v"), self.name("v")
        before, first = self.value(expr.left)
        inner, second = self.value(expr.comparators[0])
        start = [*before, _set(left, first), *inner, _set(middle, second)]
        one = ast.copy_location(ast.Compare(_get(left, expr), expr.ops[:1], [_get(middle, expr)]), expr)
        rest = ast.copy_location(ast.Compare(_get(middle, expr), expr.ops[1:], expr.comparators[1:]), expr)
        further, found = lower(ast.copy_location(ast.BoolOp(ast.And(), [one, rest]), expr))
        return [*start, *further], found

    def _in_order(self, expr: Any) -> list[ast.stmt]:
        """Lower the parts of an expression; what is computed before the last statement goes into variables."""
        places = [*_parts(expr)]
        lowered = [self.value(part) for part, _ in places]
        last = max((k for k, (before, _) in enumerate(lowered) if before), default=-1)
        made: list[ast.stmt] = []
        for k, ((_, put), (before, found)) in enumerate(zip(places, lowered, strict=True)):
            made += before
            if k < last and not isinstance(found, (ast.Constant, ast.Name)):
                name = self.name("v")
                made.append(_set(name, found))
                found = _get(name, found)
            put(found)
        return made


def _parts(expr: Any) -> Iterator[tuple[Any, Callable[[Any], None]]]:
    """Yield the parts of an expression in the order of evaluation, each with what puts another one there."""
    for field in _CHILDREN.get(type(expr)) or _WITHIN[type(expr)]:
        part = getattr(expr, field)
        items = part if isinstance(part, list) else [part]
        for k, item in enumerate(items):
            if type(item) in _WITHIN:
                yield from _parts(item)
            elif item is not None:
                yield item, partial(_put, expr, field, k)


def _put(expr: Any, field: str, k: int, new: ast.expr) -> None:
    items = getattr(expr, field)
    if isinstance(items, list):
        items[k] = new
    else:
        setattr(expr, field, new)


def _needs(expr: ast.AST) -> bool:
    """Return True where there is a condition that may be symbolic."""
    if isinstance(expr, _SCOPES):
        return False
    if isinstance(expr, ast.IfExp):
        return not is_concrete(expr.test) or any(map(_needs, children(expr)))
    if isinstance(expr, ast.BoolOp) or (isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not)):
        return not is_concrete(expr)
    if (isinstance(expr, ast.Compare) and len(expr.ops) > 1) or _asks_none(expr):
        return True
    return any(map(_needs, children(expr)))


def _set(name: str, value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), value)], value), value)


def _get(name: str, at: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _at(made: Any, place: ast.AST, kept: ast.AST) -> Any:
    """Give nodes that have none the place of another one; `kept` has its own."""
    if "lineno" in made._attributes and not hasattr(made, "lineno"):
        ast.copy_location(made, place)
        for part in children(made):
            if part is not kept:
                _at(part, place, kept)
    return made
