"""Find variables of a function whose lists loops may hold as arrays with a length, since each use of them is known.

Such a list is appended to, popped from at either end, reversed, indexed, counted, asked whether it is empty and for its
least item, gone through, given to NumPy, and returned. One that is put elsewhere, or given to a function that may keep
it, is none of them. Whether another variable holds it, too, is known where a loop begins.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .syntax import children, walk

__all__ = ["LISTS", "REBOUND", "ROWS", "changed_lists", "write_lists"]

LISTS = "__pyop_lists__"
"""The variable of a twin that has their names (`pyop.loops.growing`)."""

REBOUND = "__pyop_rebound__"
"""The variable that has the names of those that are bound to another list of this function: ``row = new``."""

ROWS = "__pyop_rows__"
"""The variable that has the names of those which are appended nothing but lists that are written there, ``[a, b]``, and
that nobody else holds."""

_METHODS = {"append": (1,), "appendleft": (1,), "pop": (0, 1), "popleft": (0,), "reverse": (0,)}
_LIBRARIES = frozenset(("np", "numpy"))
_CONTAINERS = (ast.Tuple, ast.List)


def write_lists(function: ast.FunctionDef) -> None:
    """Have a function, and those in it, bind the names of such lists to a variable."""
    for part in [part for part in walk(function) if isinstance(part, ast.FunctionDef)]:
        if names := changed_lists(part):
            first = part.body[0]
            documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            rebound = sorted({target for target, _ in _aliases(part)} & {*names})
            for variable, named in ((ROWS, _of_rows(part, names)), (REBOUND, rebound), (LISTS, names)):
                known: Any = tuple(named)
                told = ast.Assign([ast.Name(variable, ast.Store())], ast.Constant(known))
                for made in walk(told):
                    ast.copy_location(made, first)
                part.body.insert(int(documented), told)


def changed_lists(function: ast.FunctionDef) -> list[str]:
    """Return the names of such lists that are changed by an index that is no constant, or in their length.

    >>> import ast
    >>> from pyop.tracing.list_names import changed_lists
    >>> text = "def f(x):\\n    y = []\\n    z = []\\n    for v in x: y.append(v); z.append(v)\\n    return y, g(z)"
    >>> changed_lists(ast.parse(text).body[0])
    ['y']
    """
    others = {argument.arg for argument in walk(function.args) if isinstance(argument, ast.arg)}
    bound: set[str] = set()
    changed: set[str] = set()
    ended: set[str] = set()  # names that are something else from here on
    for statement in function.body:
        for node, around in _with_parents(ast.Module([statement], [])):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                others.update(node.names)
            elif isinstance(node, ast.Name) and node.id in ended:
                others.update([] if isinstance(node.ctx, ast.Load) else [node.id])
            elif isinstance(node, ast.Name):
                use = _use(node, around)
                if use is not False:
                    (others if use is None else changed).add(node.id)
                elif isinstance(node.ctx, ast.Store):
                    bound.add(node.id)
        ended.update(_ends(statement) & changed)
    for loop in walk(function):
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Name) and loop.iter.id in changed:
            name = loop.iter.id
            if any(_use(node, around) for node, around in _with_parents(loop) if _is_named(node, name)):
                others.add(name)  # it grows while it is gone through
    aliases = _aliases(function)
    for _ in aliases:  # what one name is used for, the list of the other one may be
        others.update(name for pair in aliases for name in pair if not others.isdisjoint(pair))
        changed.update(target for target, source in aliases if source in changed)
    return sorted((changed & bound) - others)


def _aliases(function: ast.FunctionDef) -> list[tuple[str, str]]:
    """Return the pairs of variables of which the first is bound to what the other one holds."""
    pairs = []
    for part in walk(function):
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Name) and len(part.targets) == 1:
            target = part.targets[0]
            pairs += [(target.id, part.value.id)] if isinstance(target, ast.Name) else []
    return pairs


def _of_rows(function: ast.FunctionDef, names: list[str]) -> list[str]:
    """Return which of these lists are appended nothing but lists that are written there."""
    rows, others = set[str](), set[str]()
    for call in walk(function):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if isinstance(call.func.value, ast.Name) and call.func.attr in ("append", "appendleft"):
            (rows if all(isinstance(x, ast.List) for x in call.args) else others).add(call.func.value.id)
    return sorted((rows - others) & {*names})


def _ends(statement: ast.stmt) -> set[str]:
    """Return the variable that a statement of the function's own makes an array of NumPy's: ``y = np.array(y)``."""
    if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
        return set()
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or len(statement.targets) > 1:
        return set()
    return {target.id} if isinstance(statement.value.func, ast.Attribute) else set()


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _with_parents(function: ast.AST) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the nodes of a function, each with those around it from the inside out."""
    waiting: list[tuple[ast.AST, tuple[Any, ...]]] = [(child, (function,)) for child in children(function)]
    while waiting:
        node, around = waiting.pop()
        yield node, around
        waiting += [(child, (node, *around[:3])) for child in children(node)]


def _use(name: ast.Name, around: tuple[Any, ...]) -> bool | None:
    """Return whether a use changes a list; None for one by which it may be known elsewhere."""
    parent = around[0]
    if isinstance(name.ctx, ast.Store):
        return None if isinstance(parent, ast.AugAssign) else False
    if not isinstance(name.ctx, ast.Load):
        return None
    if isinstance(parent, ast.Attribute):
        call = around[1] if len(around) > 1 else None
        if not isinstance(call, ast.Call) or call.func is not parent or call.keywords:
            return None
        return True if len(call.args) in _METHODS.get(parent.attr, ()) else None
    if isinstance(parent, ast.Subscript) and parent.value is name:
        if isinstance(parent.slice, ast.Slice) and isinstance(parent.ctx, ast.Load):
            return False if _is_reversing(parent.slice) else None
        if isinstance(parent.slice, (ast.Slice, ast.Tuple)) or isinstance(parent.ctx, ast.Del):
            return None
        return isinstance(parent.ctx, ast.Store) and not _is_constant(parent.slice)
    if isinstance(parent, ast.Call):
        return False if _is_known_call(parent) else None
    if isinstance(parent, ast.Assign):
        return False if len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name) else None
    if isinstance(parent, ast.For):
        return False if parent.iter is name else None
    if _is_asked(name, around):
        return False
    if isinstance(parent, ast.Return):
        return False
    if isinstance(parent, _CONTAINERS) or (isinstance(parent, ast.Dict) and name in parent.values):
        return False if len(around) > 1 and isinstance(around[1], ast.Return) else None
    return None


def _is_constant(index: Any) -> bool:
    return isinstance(index, ast.Constant) or (
        isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant)
    )


def _is_reversing(index: ast.Slice) -> bool:
    """Return whether it is ``[::-1]``."""
    return index.lower is None and index.upper is None and index.step is not None and ast.unparse(index.step) == "-1"


def _is_known_call(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        alone = len(call.args) == 1 and not call.keywords
        return call.func.id in ("len", "sum") or (call.func.id in ("min", "max") and alone)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in _LIBRARIES


def _is_asked(operand: Any, around: tuple[Any, ...]) -> bool:
    """Return whether something is asked for its truth alone."""
    parent = around[0] if around else None
    if isinstance(parent, ast.BoolOp):
        return _is_asked(parent, around[1:])
    if isinstance(parent, (ast.If, ast.IfExp, ast.While)):
        return parent.test is operand
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
