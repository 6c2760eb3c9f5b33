"""What README, docs and docstrings show is what happens.

A ```python block that a ```text block follows is run, and must print that text. A ```pycon block and the examples of
docstrings are doctests, in which np and pyop are known.
"""

import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import itertools
import linecache
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pyop
from pyop import functions
from pyop.gradients import table

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [
    path for path in DOCUMENTS if not {"_build", "_made", "made"} & {*path.parts}
]  # what the site's build makes
CONTINUED = ("tutorial.md",)  # where a program goes on with the names of the one before it
# What a document or a module may import that need not be there.
OPTIONAL = (
    "onnx",
    "onnxruntime",
    "numba",
    "torch",
    "jax",
    "tensorflow",
    "pytensor",
    "pymc",
    "dask",
    "pandas",
    "xarray",
)
ABSENT = [name for name in OPTIONAL if not importlib.util.find_spec(name)]
OTHERS = (*OPTIONAL, "autograd", "onnxruntime_extensions")  # what docs/coming_from shows beside pyop, too
if "onnx" in ABSENT:
    DOCUMENTS.remove(ROOT / "docs" / "saving.md")
IMPORTED = re.compile(rf"^(?:>>> )?(?:import|from) (?:.*, )?({'|'.join(OTHERS)})\b", re.MULTILINE)
FILES = re.compile(r"\.save\(|\bpyop\.(?:load|onnx)\b")  # what reads and writes files by ONNX
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(autouse=True)
def shown_rules_go():
    """docs/gradients.md gives np.i0 a rule, and pyop.functions its examples; other tests go by their having none."""
    known = {*functions.names()}
    yield
    table._rules.pop(np.i0, None)
    for shown in [*functions._rules]:
        if shown not in known:
            del functions._rules[shown]


def run_doctest(text: str, name: str, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(text, dict(names), name, None, 0)
    report = io.StringIO()
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.write)
    assert result.failed == 0, report.getvalue()


def absent(program: str) -> list[pytest.MarkDecorator]:
    """What skips an example that imports what is not installed."""
    needed = {*IMPORTED.findall(program), *(["onnx"] if FILES.search(program) else [])}
    missing = [name for name in sorted(needed) if not importlib.util.find_spec(name)]
    return [pytest.mark.skip(reason=f"{name} is not installed") for name in missing]


def programs() -> list[object]:
    """Every (program, output) of the documents."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text()
        blocks = list(BLOCK.finditer(text))
        pairs = [
            (block[2], after[2], text.count("\n", 0, block.start()) + 2)
            for block, after in itertools.pairwise(blocks)
            if block[1] == "python" and after[1] == "text" and not text[block.end() : after.start()].strip()
        ]
        if path.name in CONTINUED:
            bodies, outputs, lines = zip(*pairs, strict=True)
            pairs = [("\n".join(bodies), "".join(outputs), lines[0])]
        for program, output, line in pairs:
            found.append(pytest.param(program, output, id=f"{path.name}:{line}", marks=absent(program)))
    return found


def sessions() -> list[object]:
    """Every interactive session of the documents."""
    return [
        pytest.param(
            block[2],
            {"np": np, "pyop": pyop},
            id=f"{path.name}:{path.read_text().count(chr(10), 0, block.start()) + 2}",
            marks=absent(block[2]),
        )
        for path in DOCUMENTS
        for block in BLOCK.finditer(path.read_text())
        if block[1] == "pycon"
    ]


def _needed(module: str) -> str:
    """The package that a module is named for, if it is: `interop.torch_library` for torch."""
    last = module.rpartition(".")[2]
    return last if last.startswith("_") else last.partition("_")[0]


def docstrings() -> list[object]:
    """Every docstring of the package that shows an example, those of C++ types among them."""
    found = {}

    def visit(name: str, thing: object, names: dict[str, object]) -> None:
        text = inspect.getdoc(thing)
        if text and ">>>" in text:
            found.setdefault(text, pytest.param(text, names, id=name, marks=absent(text)))

    def home(thing: object) -> ModuleType:
        return sys.modules[getattr(thing, "__module__", "pyop")]

    def module_names() -> list[str]:
        packages = pkgutil.walk_packages(pyop.__path__, "pyop.")
        # TensorFlow has threads of its own, which tests that fork are better off without.
        left_out = {*ABSENT, "tensorflow", "__main__", "_ctests"}
        return ["pyop", *(info.name for info in packages if _needed(info.name) not in left_out)]

    for name in module_names():
        module = importlib.import_module(name)
        visit(name, module, {})
        for attribute, thing in vars(module).items():
            if getattr(thing, "__module__", "").partition(".")[0] != "pyop":
                continue
            visit(f"{name}.{attribute}", thing, names := {"np": np, "pyop": pyop, **vars(home(thing))})
            for member, part in vars(thing).items() if inspect.isclass(thing) else ():
                visit(f"{name}.{attribute}.{member}", part, names)
    return list(found.values())


# What users import. Modules below them are nobody's interface.
PUBLIC = [
    "pyop",
    "pyop.autograd",
    "pyop.checking",
    "pyop.contrib",
    "pyop.debug",
    "pyop.functions",
    "pyop.machines",
    "pyop.onnx",
]
PUBLIC += ["pyop.profiling", *(f"pyop.scipy.{name}" for name in ("linalg", "signal", "special", "stats"))]
PUBLIC += [f"pyop.interop.{name}" for name in ("dask", "hooks", "jax", "pandas", "scipy", "torch", "xarray")]
# Other stages of CI have these, and a NumPy or threads that other tests are better off without.
PUBLIC_ELSEWHERE = ["pyop.interop.pytensor", "pyop.interop.tensorflow"]


def public_names(module: str) -> list[tuple[str, object]]:
    """What a public module exports, but for modules, which have a page of their own, and the version."""
    found = importlib.import_module(module)
    every = [(name, getattr(found, name)) for name in found.__all__ if name != "__version__"]
    return [(name, thing) for name, thing in every if not inspect.ismodule(thing)]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_an_example(module):
    if _needed(module) in ABSENT or (module == "pyop.onnx" and "onnx" in ABSENT):
        pytest.skip("its library is not installed")
    bare = [name for name, thing in public_names(module) if ">>>" not in (inspect.getdoc(thing) or "")]
    assert not bare, f"no example that runs in the docstring of {', '.join(bare)}"


@pytest.mark.parametrize("module", [*PUBLIC, *PUBLIC_ELSEWHERE])
def test_every_public_name_is_in_the_reference(module):
    """Each page lists names below the module that it has named last."""
    pages = "\n".join(path.read_text() for path in sorted((ROOT / "docs" / "reference").glob("*.md")))
    listed: dict[str, set[str]] = {}
    for part in re.split(r"^\.\. currentmodule:: ", pages, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        listed.setdefault(name, set()).update(re.findall(r"^   (\w+)$", rest, re.MULTILINE))
    source = Path(importlib.util.find_spec(module).origin).read_text()
    names = {
        name for line in re.findall(r"^__all__ \+?= (\[.*?\])", source, re.MULTILINE | re.DOTALL) for name in eval(line)
    }
    modules = {"__version__", "autograd", "contrib", "debug"} | {"linalg", "signal", "special", "stats"}
    # A name of pyop itself may stand with the module that it is of.
    missing = names - modules - listed.get(module, set()) - (listed["pyop"] if module != "pyop" else set())
    assert not missing


@pytest.mark.parametrize(("program", "output"), programs())
def test_program_prints_what_the_document_says(program, output):
    printed = io.StringIO()
    linecache.cache["<document>"] = len(program), None, program.splitlines(True), "<document>"  # as of a file
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "<document>", "exec"), {"__name__": "__main__"})
    assert printed.getvalue().rstrip() == output.rstrip()


@pytest.mark.parametrize(("text", "names"), [*sessions(), *docstrings()])
def test_example(text, names, request):
    run_doctest(text, request.node.callspec.id, names)


def test_readme_shows_an_example_and_two_commands():
    readme = (ROOT / "README.md").read_text()
    assert any(param.id.startswith("README.md") for param in programs())
    commands = [
        subprocess.run([ROOT / ".ci" / "readme_command", str(k)], capture_output=True, text=True, check=True).stdout
        for k in (1, 2)
    ]
    assert "python -m pyop demo" in commands[0]
    assert "pytest" in commands[1]
    assert all(command.strip() in readme for command in commands)


def test_every_class_of_errors_is_in_the_catalogue():
    catalogue = (ROOT / "docs" / "errors.md").read_text()
    homes = {"pyop": pyop, "pyop.autograd": pyop.autograd, "pyop.debug": pyop.debug}
    kinds = [
        f"{home}.{name}"
        for home, module in homes.items()
        for name in module.__all__
        if inspect.isclass(found := getattr(module, name)) and issubclass(found, Exception)
    ]
    assert len(kinds) >= 7
    assert [kind for kind in kinds if f"`{kind}`" not in catalogue] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert not missing
