"""The site builds with pyop and the dependency group `docs` alone; other libraries that it reads of have stand-ins."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IMPORTED_AS = {"scikit-learn": "sklearn", "ipykernel": "IPython"}
BROUGHT_ALONG = {"numpy", "pyop", "google"}  # by pyop, and by onnx


def installed() -> set[str]:
    """Return the modules that pyop and the group `docs` install."""
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["docs"]
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in group]
    return {IMPORTED_AS.get(name, name) for name in names} | BROUGHT_ALONG


def replaced() -> set[str]:
    """Return the libraries that docs/conf.py gives stand-ins for."""
    names = re.search(r"^ADAPTED = (\(.*?\))$", (ROOT / "docs/conf.py").read_text(), re.MULTILINE | re.DOTALL)[1]
    return set(ast.literal_eval(names))


def statements(tree: ast.AST, deep: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of a module: those that run when it is imported, or all of them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif deep or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from statements(node, deep)


@cache
def needed(source: str, name: str, deep: bool = False) -> tuple[set[str], set[str]]:
    """Return the other libraries that a module imports, and the modules of pyop."""
    libraries, own = set(), set()
    for node in statements(ast.parse(source), deep):
        if isinstance(node, ast.Import):
            libraries.update(alias.name.partition(".")[0] for alias in node.names)
        elif not node.level:
            libraries.add(node.module.partition(".")[0])
        else:
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), name)
            own.update([module, *(f"{module}.{alias.name}" for alias in node.names)])
    return libraries - {*sys.stdlib_module_names}, own


def documented() -> list[str]:
    """Return the modules whose names the reference lists."""
    pages = "\n".join(path.read_text() for path in (ROOT / "docs/reference").glob("*.md"))
    return sorted(set(re.findall(r"^\.\. currentmodule:: (\S+)", pages, re.MULTILINE)))


def test_the_reference_lists_adapters():
    assert len([name for name in documented() if name.startswith("pyop.interop.")]) > 5


@pytest.mark.parametrize("name", documented())
def test_the_reference_is_read_without_other_libraries(name):
    """Import nothing of torch_library, which conf.py replaces as a whole."""
    waiting, seen, missing = [name], {"pyop.interop.torch_library"}, {}
    while waiting:
        name = waiting.pop()
        base = ROOT / "python" / name.replace(".", "/")
        path = next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)
        if name not in seen and path:
            seen.add(name)
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            libraries, own = needed(path.read_text(), package)
            waiting += own
            missing |= dict.fromkeys(libraries - installed() - replaced(), name)
    assert missing == {}


PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", [*PROGRAMS, *NOTEBOOKS, ROOT / "docs/conf.py"], ids=lambda path: path.name)
def test_what_the_build_runs_is_in_the_group(path):
    text = path.read_text()
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
        text = re.sub(r"^%.*", "", text, flags=re.MULTILINE)
    assert needed(text, "pyop", deep=True)[0] - installed() == set()
