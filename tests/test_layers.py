"""The Python side as tests/layers.toml has it: which module imports which, rooms in order, and no circle."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python/pyop"
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


PLACES: list[list[str]] = tomllib.loads((ROOT / "tests/layers.toml").read_text())["python"]
DEFERRED = re.compile(r'^methods_of\(\w+, "pyop\.([\w.]+)"', re.MULTILINE)  # imported by the first use of a method


def place(file: str) -> int:
    """Return the number of the row for a file: of the longest pattern that fits it."""
    found = [
        (len(p), k) for k, row in enumerate(PLACES) for p in row if fnmatch(file, p + "*" if p.endswith("/") else p)
    ]
    assert found, f"{file} is in no room of tests/layers.toml"
    return max(found)[1]


def file_of(module: str) -> str | None:
    for name in (module + ".py", module + "/__init__.py"):
        if name.replace("//", "/") in FILES:
            return name.replace("//", "/")
    return None


@cache
def imports(file: str) -> list[tuple[str, bool]]:
    """The files that one imports, and whether inside of a function. What only type checkers see is left out."""
    found = []
    text = (PACKAGE / file).read_text()
    for node, inside in _statements(ast.parse(text), False):
        folder = file.split("/")[:-1]
        folder = folder[: len(folder) - node.level + 1]
        module = "/".join([*folder, *(node.module or "").split(".")]).strip("/")
        for alias in node.names:
            other = file_of(f"{module}/{alias.name}".strip("/")) or file_of(module)
            if other and other not in ("__init__.py", file):
                found.append((other, inside))
    return found + [(file_of(module.replace(".", "/")), True) for module in DEFERRED.findall(text)]


def _statements(tree: ast.AST, inside: bool) -> Iterator[tuple[ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node, inside
        yield from _statements(node, inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_no_room_imports_from_a_later_one():
    upward = [f"{file} imports {other}" for file in FILES for other, _ in imports(file) if place(other) > place(file)]
    assert upward == []


def test_imports_go_in_no_circle():
    done: set[str] = set()

    def visit(file: str, way: tuple[str, ...]) -> None:
        assert file not in way, " -> ".join([*way[way.index(file) :], file])
        if file not in done:
            for other, _ in imports(file):
                visit(other, (*way, file))
            done.add(file)

    for file in FILES:
        visit(file, ())


def test_the_top_level_is_short():
    assert len([file for file in FILES if "/" not in file]) <= 12


@pytest.mark.parametrize("limit", [500])
def test_no_file_is_long(limit):
    assert [file for file in FILES if len((PACKAGE / file).read_text().splitlines()) > limit] == []
