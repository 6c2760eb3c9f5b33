"""No block of the documents escapes: what tests/test_docs.py does not run is in the tree, or compiles, or is text."""

import ast
import re
import shlex
import shutil
import subprocess
import sysconfig
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

import pyop

ROOT = Path(__file__).parent.parent
MADE = {"_build", "_made", "made"}
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [path for path in DOCUMENTS if not MADE & {*path.parts}]

# Where the code of a page comes from. The project in Cython is built and tested by .ci/out_of_tree.
KERNELS = [f"examples/cython_kernel/src/fastparts/{name}" for name in ("_solve.pyx", "_kernels.pyx", "ops.py")]
SOURCES = {
    ("cython.md", "cython"): KERNELS,
    ("cython.md", "py"): KERNELS,
    ("cython.md", "cmake"): ["examples/cython_kernel/CMakeLists.txt"],
    ("cython.md", "python"): ["examples/cython_kernel/README.md"],
    ("native_kernels.md", "cython"): ["tests/native/test_sources.py"],
}
# What is no program: trees of files, diagrams, a grammar, commands of a shell, and output with times in it.
TEXTS = {
    ("README.md", "sh"),  # run by .ci/run, word for word
    ("index.md", "sh"),
    ("CONTRIBUTING.md", ""),
    ("architecture.md", ""),
    ("declarations.md", ""),
    ("performance.md", ""),
    ("compiling.md", "console"),
    ("profiling.md", "console"),
}


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str
    shown: str  # the language of a block that follows at once


def blocks() -> list[Block]:
    found = []
    for path in DOCUMENTS:
        text = path.read_text()
        matches = list(re.finditer(r"^(`{3,})([^\n`]*)\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL))
        for match, after in zip_longest(matches, matches[1:]):
            shown = after[2] if after and not text[match.end() : after.start()].strip() else ""
            found.append(Block(path.name, text.count("\n", 0, match.start()) + 1, match[2].strip(), match[3], shown))
    return found


BLOCKS = blocks()


def test_every_block_is_run_or_accounted_for():
    """A ```python block without the ```text that it prints is run by nothing."""
    free = [
        f"{block.page}:{block.line} {block.language or 'without a language'}"
        for block in BLOCKS
        if not (
            block.language in ("pycon", "text", "c")
            or block.language.startswith("{")
            or (block.language == "python" and (block.shown == "text" or block.page == "CONTRIBUTING.md"))
            or (block.page, block.language) in TEXTS | SOURCES.keys()
        )
    ]
    assert not free, "run them (```python and the ```text it prints), or say in this file where they come from"


def stripped(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip() and "# with the example" not in line)


@pytest.mark.parametrize(
    "block",
    [b for b in BLOCKS if (b.page, b.language) in SOURCES and b.shown != "text"],
    ids=lambda block: f"{block.page}:{block.line}",
)
def test_an_excerpt_stands_in_the_tree(block):
    sources = [stripped((ROOT / name).read_text()) for name in SOURCES[block.page, block.language]]
    assert any(stripped(block.text) in source for source in sources)


def functions(text: str) -> list[str]:
    """Each function of a module without its annotations, as the parser reads it."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                argument.annotation = None
            found.append(ast.unparse(node))
    return found


def test_the_rules_that_contributing_shows_are_those_of_the_tree():
    (program, cases) = [b.text for b in BLOCKS if (b.page, b.language) == ("CONTRIBUTING.md", "python")]
    family = ROOT / "python" / "pyop" / "functions" / "creation"
    tree = [each for name in ("spec", "grad", "onnx") for each in functions((family / f"{name}.py").read_text())]
    shown = functions(program)
    assert len(shown) == 3
    assert [each for each in shown if each not in tree] == []
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    assert [line for line in cases.splitlines() if line not in tests] == []


@pytest.mark.parametrize("page", ["calling.md", "native_kernels.md"])
def test_the_c_of_a_page_compiles(page, tmp_path):
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    if not shutil.which(compiler) or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip(f"no C compiler {compiler!r}, or no headers of Python")
    parts = ["#include <Python.h>\n#include <stdio.h>\n"]
    for block in BLOCKS:
        if (block.page, block.language) == (page, "c"):
            whole = block.text.startswith("#include")
            parts.append(block.text if whole else f"PyObject *part(void) {{\n{block.text}return capsule;\n}}\n")
    assert len(parts) > 1
    source = tmp_path / "page.c"
    source.write_text("\n".join(parts))
    include = [f"-I{pyop.get_include()}", f"-I{sysconfig.get_path('include')}"]
    command = [compiler, "-std=c99", "-Wall", "-Werror", "-fsyntax-only", *include, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
