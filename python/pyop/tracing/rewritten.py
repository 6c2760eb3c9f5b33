"""Rewrite functions for twins.

Their loops and conditions become calls (`pyop.tracing.lifting`); what they call behind attributes and items is found as
twins (`pyop.tracing.callees`).

The source has to be that of the code: compiled as it stands, it must give the same code. Lines stay what they are.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from types import CodeType
from typing import Any

from .callees import has_callees, write_callees
from .code import codes, jumps_back
from .lifting import lift
from .list_names import write_lists
from .syntax import give_places, walk

__all__ = ["rewritten"]

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
# What shows the function which variables and calls it has: here it has more.
_SHOW_NAMES = frozenset(("locals", "dir", "vars", "eval", "exec", "_getframe", "currentframe", "stack"))
_BRANCHES = re.compile(r"\b(if|while|and|or|not)\b")
_LONGEST = 2000  # lines of a function
_OUTER = "__pyop_outer__"
_FUTURE = 0x1FE0000  # flags of __future__


@lru_cache(maxsize=1024)
def rewritten(code: CodeType, modules: frozenset[str], objects: frozenset[str]) -> CodeType:
    """Return the code of a function as twins run it.

    `modules`: the names, with dots, that are modules there; `objects`: the globals that may be called and are no
    functions.

    >>> from pyop.tracing.rewritten import rewritten
    >>> def f(x):
    ...     return x
    >>> rewritten(f.__code__, frozenset(), frozenset()) is f.__code__
    True
    """
    if code.co_flags & _GENERATORS or not _SHOW_NAMES.isdisjoint(code.co_names):
        return code
    try:
        return _rewritten(code, modules, objects) or code
    except (SyntaxError, ValueError, RecursionError, IndentationError, KeyError, IndexError):
        return code


def _rewritten(code: CodeType, modules: frozenset[str], objects: frozenset[str]) -> CodeType | None:
    names = objects.union(*((*part.co_varnames, *part.co_cellvars, *part.co_freevars) for part in codes(code)))
    for function, branches in _sources(code):
        if not branches and not has_callees(function, modules, names):
            continue
        for imports in _imports(code.co_filename):  # calls of what they bind are other instructions
            if _compiled(function, code, imports, same=True) is not None:
                break
        else:
            continue  # another source than that of the code
        if branches:
            write_lists(function)
        called = write_callees(function, modules, names)  # before there are calls of what is lifted
        if branches:
            lift(function)
        elif not called:
            return None
        give_places(function)
        made = _compiled(function, code, imports, same=False)
        if made is not None:
            return made.replace(co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno)
    return None


def _sources(code: CodeType) -> Iterator[tuple[Any, bool]]:
    """Yield statements that may be the source of a function, and whether there may be conditions in it."""
    if code.co_name == "<lambda>":
        lines = tuple(linecache.getlines(code.co_filename))
        for found in _lambdas(lines).get(code.co_firstlineno, ()):
            name = ast.copy_location(ast.Name("_", ast.Store()), found)
            yield ast.copy_location(ast.Assign([name], copy.deepcopy(found)), found), False
        return
    block = inspect.getblock(linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :][:_LONGEST])
    text = "".join(block)
    branches = _BRANCHES.search(text) is not None or jumps_back(code)
    if not branches and "(" not in text:
        return
    indented = block[0][:1].isspace()
    before = code.co_firstlineno - 1  # lines
    module = ast.parse("\n" * (before - indented) + ("if 1:\n" if indented else "") + text)
    statements: Any = module.body
    function = statements[0].body[0] if indented else statements[0]
    if type(function) is ast.FunctionDef and function.name == code.co_name:
        function.decorator_list = []
        yield function, branches


@lru_cache(maxsize=16)
def _lambdas(lines: tuple[str, ...]) -> dict[int, list[ast.Lambda]]:
    """Return the lambdas of a file, by the lines that they begin in."""
    found: dict[int, list[ast.Lambda]] = {}
    for part in walk(ast.parse("".join(lines))):
        if isinstance(part, ast.Lambda):
            found.setdefault(part.lineno, []).append(part)
    return found


def _imports(file: str) -> Iterator[list[ast.stmt]]:
    """Yield what a module imports at its top, and then what it imports anywhere."""
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
    """Return the code of a function, compiled; None if it is another one.

    It is compiled among the variables that it shares with others, and in its class, which has a part in its private
    names. `same`: it has to do the same as `code`.
    """
    inner: list[ast.stmt] = [function]
    if owner := _class_of(code.co_qualname):
        inner = [ast.copy_location(ast.ClassDef(owner, [], [], inner, []), function)]
        give_places(inner[0])
    if code.co_freevars:
        outer = ast.parse(f"def {_OUTER}():\n    pass").body[0]
        assert isinstance(outer, ast.FunctionDef)
        outer.body = [*ast.parse("\n".join(f"{name} = None" for name in code.co_freevars)).body, *inner]
        inner = [give_places(outer)]
    module = ast.Module(body=[*imports, *inner], type_ignores=[])
    whole = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    found = _of_name(whole, code.co_name, owner)
    if found is None or found.co_freevars != code.co_freevars:
        return None
    return found if not same or _is_same(found, code) else None


def _class_of(qualname: str) -> str:
    """Return the class whose private names a function has, or ""."""
    for scope in reversed(qualname.split(".<locals>.")):
        if "." in scope:
            return scope.split(".")[-2]
    return ""


def _of_name(whole: CodeType, name: str, owner: str) -> CodeType | None:
    for around in (_OUTER, owner):
        inner = (part for part in whole.co_consts if isinstance(part, CodeType) and part.co_name == around)
        whole = next(inner, whole)
    found = (part for part in whole.co_consts if isinstance(part, CodeType) and part.co_name == name)
    return next(found, None)


_ATTRIBUTES = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount")


def _is_same(a: CodeType, b: CodeType) -> bool:
    """Return whether two codes do the same."""
    if any(getattr(a, name) != getattr(b, name) for name in _ATTRIBUTES) or len(a.co_consts) != len(b.co_consts):
        return False
    return all(
        _is_same(x, y) if isinstance(x, CodeType) and isinstance(y, CodeType) else repr(x) == repr(y)
        for x, y in zip(a.co_consts, b.co_consts, strict=True)
    )
