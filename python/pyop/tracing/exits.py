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

The source has to be that of the code: compiled as it stands, it must give the same code. Lines stay what they are.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from types import CodeType
from typing import Any

from .code import jumps_back

__all__ = ["LOOP", "with_exits"]

LOOP = "__pyop_loop"
"""The builtin of twins that makes the mark of a loop (`pyop.loops.leaving`)."""

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
# What shows the function which variables it has: here it has more.
_SHOW_NAMES = frozenset(("locals", "dir", "vars", "eval", "exec", "_getframe", "currentframe", "stack"))
_WORDS = ("while", "break", "return", "raise", "assert")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LONGEST = 2000  # lines of a function
_FUTURE = 0x1FE0000  # flags of __future__


@lru_cache(maxsize=1024)
def with_exits(code: CodeType) -> CodeType:
    """The code of a function, whose loops end where they ask for their next items.

    >>> from pyop.tracing.exits import with_exits
    >>> def f(x):
    ...     return x
    >>> with_exits(f.__code__) is f.__code__
    True
    """
    if code.co_flags & _GENERATORS or not jumps_back(code) or not _SHOW_NAMES.isdisjoint(code.co_names):
        return code
    try:
        return _rewritten(code) or code
    except (SyntaxError, ValueError, RecursionError, IndentationError, KeyError):
        return code


def _rewritten(code: CodeType) -> CodeType | None:
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :][:_LONGEST]
    if not lines:
        return None
    block = inspect.getblock(lines)
    text = "".join(block)
    if not any(word in text for word in _WORDS):
        return None
    indented = block[0][:1].isspace()
    module = ast.parse(("if 1:\n" if indented else "") + text)
    ast.increment_lineno(module, code.co_firstlineno - 1 - indented)
    statements: Any = module.body
    function: Any = statements[0]
    function = function.body[0] if indented else function
    if type(function) is not ast.FunctionDef or function.name != code.co_name:
        return None
    function.decorator_list = []
    for imports in _imports(code.co_filename):  # calls of what they bind are other instructions
        if _compiled(function, code, imports, same=True) is not None:
            break
    else:
        return None  # another source than that of the code
    exits = _Exits()
    function.body = [made for statement in function.body for made in exits.statements(statement)]
    if not exits.count:
        return None
    ast.fix_missing_locations(function)
    made = _compiled(function, code, imports, same=False)
    return None if made is None else made.replace(co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno)


def _imports(file: str) -> Iterator[list[ast.stmt]]:
    """What a module imports at its top, and what it imports anywhere."""
    lines = linecache.getlines(file)
    for pattern in (r"(?:import|from)\s", r"\s*(?:import|from)\s"):
        found = []
        for k, line in enumerate(lines):
            if re.match(pattern, line):
                text = line.strip()
                while text.count("(") > text.count(")") and k + 1 < len(lines):
                    k += 1
                    text += lines[k]
                with suppress(SyntaxError):
                    found += ast.parse(text).body
        yield [part for part in found if isinstance(part, (ast.Import, ast.ImportFrom)) and not _is_future(part)]


def _is_future(part: Any) -> bool:
    return isinstance(part, ast.ImportFrom) and part.module == "__future__"


def _compiled(function: Any, code: CodeType, imports: list[ast.stmt], same: bool) -> CodeType | None:
    """The code of the function among the variables that it shares with others."""
    inner: list[ast.stmt] = [function]
    if code.co_freevars:
        outer = ast.parse("def outer():\n    pass").body[0]
        assert isinstance(outer, ast.FunctionDef)
        outer.body = [*ast.parse("\n".join(f"{name} = None" for name in code.co_freevars)).body, function]
        inner = [ast.fix_missing_locations(outer)]
    module = ast.Module(body=[*imports, *inner], type_ignores=[])
    whole = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    found = _of_name(whole, code.co_name)
    if found is None or found.co_freevars != code.co_freevars:
        return None
    return found if not same or _is_same(found, code) else None


def _of_name(whole: CodeType, name: str) -> CodeType | None:
    for part in whole.co_consts:
        if isinstance(part, CodeType):
            if part.co_name == name:
                return part
            if part.co_name == "outer":
                return _of_name(part, name)
    return None


_ATTRIBUTES = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount")


def _is_same(a: CodeType, b: CodeType) -> bool:
    """Whether two codes do the same."""
    if any(getattr(a, name) != getattr(b, name) for name in _ATTRIBUTES) or len(a.co_consts) != len(b.co_consts):
        return False
    return all(
        _is_same(x, y) if isinstance(x, CodeType) and isinstance(y, CodeType) else repr(x) == repr(y)
        for x, y in zip(a.co_consts, b.co_consts, strict=True)
    )


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
