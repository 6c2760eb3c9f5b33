"""Functions whose loops are left early, written once more: each loop then ends where it asks for its next item.

A loop that is recorded once must come back to its head on every way through its body (`pyop.loops.rolled`). So
``while``, and ``break``, ``return`` and ``raise`` in a loop, are written as a mark on the loop's iterator and a
``continue``; what is to be done outside of the loop is done behind it, where the variables still are what they were::

    while test:                        mark = loop()
        body                           for number in mark:
        if a:                              if not test:
            break                              mark.end(); continue
        if b:                              mark.begin()
            return y                       body
    else:                                  if a:
        other                                  mark.leave(0); continue
                                           if b:
                                               mark.leave(1); continue
                                       if mark.left_by(1):
                                           return y
                                       if not mark.left:
                                           other
"""

from __future__ import annotations

import ast
from typing import Any

__all__ = ["LOOP", "write_exits"]

LOOP = "__pyop_loop__"
"""The builtin of twins that makes the mark of a loop (`pyop.loops.leaving`)."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def write_exits(function: ast.FunctionDef) -> bool:
    """Have all loops of a function end where they ask for their next items; whether there was anything to do."""
    exits = _Exits()
    function.body = [made for statement in function.body for made in exits.statements(statement)]
    return exits.count > 0


class _Loop:
    """A loop around the statements that are written."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.exits: list[tuple[int, ast.stmt]] = []  # what is to be done behind it, by numbers
        self.broken = False


class _Exits:
    """Writes the statements of a function."""

    def __init__(self) -> None:
        self.count = 0  # loops that were written
        self.numbers = 0
        self.loops: list[_Loop | None] = []  # None: one that stays what it is

    def statements(self, node: Any) -> list[ast.stmt]:
        """What is written for a statement."""
        if isinstance(node, _SCOPES):
            same: Any = node
            return [same]
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node)
        loop = self.loops[-1] if self.loops else None
        if loop is not None:
            if isinstance(node, ast.Break):
                loop.broken = True
                return self._leave(loop, 0, node)
            if isinstance(node, (ast.Return, ast.Raise)):
                return self._exit(loop, node)
            if isinstance(node, ast.Assert):
                error = ast.Call(ast.Name("AssertionError", ast.Load()), [node.msg] if node.msg else [], [])
                raised = ast.copy_location(ast.Raise(error, None), node)
                test = ast.UnaryOp(ast.Not(), node.test)
                return [ast.copy_location(ast.If(test, self._exit(loop, raised), []), node)]
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [made for part in value for made in self._part(part)])
        return [node]

    def _part(self, part: Any) -> list[Any]:
        if isinstance(part, ast.stmt):
            return list(self.statements(part))
        if isinstance(part, (ast.ExceptHandler, ast.match_case)):
            part.body = [made for statement in part.body for made in self.statements(statement)]
        return [part]

    def _exit(self, loop: _Loop, node: ast.stmt) -> list[ast.stmt]:
        self.numbers += 1
        loop.exits.append((self.numbers, node))
        return self._leave(loop, self.numbers, node)

    def _leave(self, loop: _Loop, number: int, node: ast.AST) -> list[ast.stmt]:
        return self._at(node, f"{loop.mark}.leave({number})\ncontinue")

    def _at(self, node: ast.AST, text: str) -> list[ast.stmt]:
        """Statements of an own text, at the place of another one."""
        made: list[ast.stmt] = []
        if text.endswith("continue"):
            made = [ast.Continue()]
            text = text[: -len("continue")]
        made = [*ast.parse(text).body, *made]
        for statement in made:
            for part in ast.walk(statement):
                if "lineno" in part._attributes:
                    ast.copy_location(part, node)
        return made

    def _loop(self, node: Any) -> list[ast.stmt]:
        if (isinstance(node, ast.For) and not _leaves(node)) or _is_held(node):
            self.loops.append(None)
            node.body = [made for part in node.body for made in self.statements(part)]
            self.loops.pop()
            node.orelse = [made for part in node.orelse for made in self.statements(part)]
            return [node]
        self.count += 1
        loop = _Loop(f"__pyop_{self.count}")
        self.loops.append(loop)
        body = [made for part in node.body for made in self.statements(part)]
        self.loops.pop()
        orelse = [made for part in node.orelse for made in self.statements(part)]
        if isinstance(node, ast.For):
            start = self._at(node.iter, f"{loop.mark} = {LOOP}(0)")
            start[0].value.args = [node.iter]  # type: ignore[attr-defined]
            target: Any = node.target
        else:
            start = self._at(node.test, f"{loop.mark} = {LOOP}()")
            target = ast.copy_location(ast.Name(f"{loop.mark}_number", ast.Store()), node)
            if not (isinstance(node.test, ast.Constant) and node.test.value):
                test = ast.UnaryOp(ast.Not(), node.test)
                end = self._at(node.test, f"{loop.mark}.end()\ncontinue")
                begin = self._at(node.test, f"{loop.mark}.begin()")
                body = [ast.copy_location(ast.If(test, end, []), node.test), *begin, *body]
        iterated = ast.copy_location(ast.Name(loop.mark, ast.Load()), node)
        made = [*start, ast.copy_location(ast.For(target, iterated, body, []), node)]
        outer = self.loops[-1] if self.loops else None
        for number, statement in loop.exits:
            there: list[ast.stmt] = [statement]
            if outer is not None:
                outer.exits.append((number, statement))
                there = self._leave(outer, number, statement)
            [asked] = self._at(statement, f"if {loop.mark}.left_by({number}): pass")
            asked.body = there  # type: ignore[attr-defined]
            made.append(asked)
        if orelse and loop.broken:
            [asked] = self._at(node, f"if not {loop.mark}.left: pass")
            asked.body = orelse  # type: ignore[attr-defined]
            made.append(asked)
        else:
            made += orelse
        return made


def _inside(node: Any) -> list[Any]:
    """The statements of a loop's body, and of what stands in it."""
    waiting, found = list(node.body), []
    while waiting:
        part = waiting.pop()
        found.append(part)
        if not isinstance(part, _SCOPES):
            waiting += ast.iter_child_nodes(part)
    return found


def _leaves(loop: ast.For) -> bool:
    """Whether a loop may be left before its end."""
    if any(isinstance(part, (ast.Return, ast.Raise, ast.Assert)) for part in _inside(loop)):
        return True
    waiting: list[Any] = list(loop.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Break):
            return True
        if isinstance(part, (ast.For, ast.While, ast.AsyncFor)):
            waiting += part.orelse
        elif not isinstance(part, _SCOPES):
            waiting += ast.iter_child_nodes(part)
    return False


def _is_held(loop: Any) -> bool:
    """Whether its exits are held up on their way: something is done between them and the end of the loop."""
    held = (ast.Try, ast.With, getattr(ast, "TryStar", ast.Try))
    for part in _inside(loop):
        if isinstance(part, held):
            within: list[Any] = [x for x in ast.walk(part) if isinstance(x, (ast.Return, ast.Raise, ast.Assert))]
            if within:
                return True
    return False
