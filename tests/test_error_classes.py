"""Every class of errors and warnings in the package is in the catalogue, docs/errors.md, with what it means, a program
that makes it (tests/test_docs.py runs it) and the remedy; or it is caught within the package, and listed here.
"""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pyop

ROOT = Path(__file__).parent.parent
PACKAGE = Path(pyop.__file__).parent

# What never leaves the package: where it is made, and who catches it.
WITHIN = {
    "autograd.function_effects.NotFollowed": "becomes a refusal, and the function itself runs",
    "checking._Failed": "becomes a finding of the report",
    "commands.targets.UnusableTarget": "becomes the last line of the command",
    "compiling.plainly.ChangesState": "ends a trace, and begins another one, with the state as inputs",
    "compiling.state_calls._GivenUp": "the function itself runs",
    "compiling.state_steps.NotInputs": "the state is no input: it is constant, or the function itself runs",
    "declare.binding.DeclarationError": "becomes a ValueError that points at the place, in declare/signature.py",
    "declare.infer._Mismatch": "becomes a ValueError that names the argument, in declare/infer.py",
    "graph.deciding.RunItself": "ends a trace",
    "graph.deciding.Specialise": "ends a trace, and begins another one",
    "graph.lists._Asked": "NumPy asks who takes part in a call: it says which arguments are arrays",
    "interop.jax_errors.CallFailed": "XLA makes a JaxRuntimeError of it; exception_of has what was raised",
    "interop.numba.CallFailed": "making one gives what the plan has raised",
    "interop.ode_plans.NotHere": "SciPy integrates instead",
    "interop.onnxruntime_shapes._Failed": "ONNX Runtime is told no shape",
    "loops.carried.Again": "an iteration is written down once more",
    "loops.carried.Otherwise": "a loop is unrolled",
    "loops.unrolled.Unroll": "ends a trace, and begins another one",
    "machines.memory.NotHere": "the task is sent once more, with its arrays",
    "machines.pieces._Carried": "unpickled, it is what the worker's exception becomes",
    "onnx.standard.emitter.NotStandard": "the call becomes a PythonOp, or the export a ValueError with its reason",
}


def classes() -> dict[str, list[str]]:
    """Every class of the package, those made in C++ too, by module and name: the last names of its bases."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[f"{module}.{node.name}"] = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    for path in sorted((ROOT / "csrc").rglob("*.cpp")):
        for name in re.findall(r'= add_class\(module, "(\w+)"', path.read_text("utf-8")):
            found[f"_core.{name}"] = ["Exception"]
    return found


def kinds() -> set[str]:
    """Those that can be raised or warned of."""
    every = classes()
    known = {n for n, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}
    kinds: set[str] = set()
    while more := {n for n, bases in every.items() if known & {*bases}} - kinds:
        kinds |= more
        known |= {name.rpartition(".")[2] for name in more}
    return kinds


def sections() -> dict[str, str]:
    """The parts of the catalogue under headings that are names of classes."""
    text = (ROOT / "docs" / "errors.md").read_text("utf-8")
    parts = re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]
    return {name: part for part in parts for name in re.findall(r"`(\w+)`", part.partition("\n")[0])}


def test_the_walk_finds_them():
    found = kinds()
    assert {"_core.InputError", "compiling.retrace.RetraceWarning", "loops.unrolled.Unroll"} <= found
    assert len(found) > 20
    assert WITHIN.keys() <= found, "listed here, and no more there"


def test_each_has_its_place_in_the_catalogue():
    catalogue = sections()
    names = {name.rpartition(".")[2] for name in kinds() - WITHIN.keys()} - {"PyopError"}
    assert names - catalogue.keys() == set()
    for name in names:
        part = catalogue[name]
        assert re.search(r"^```python\n.*?^```\n+^```text\n", part, re.MULTILINE | re.DOTALL), f"{name}: no program"
        assert "**Remedy**" in part, f"{name}: no remedy"
        meaning = re.sub(r"```.*?```", "", part, flags=re.DOTALL).partition("\n")[2].partition("**Remedy**")[0].strip()
        assert meaning, f"{name}: not said what it means"


def test_what_is_public_is_in_the_reference_of_errors():
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    modules = (pyop, pyop.autograd, __import__("pyop.machines", fromlist=["x"]))
    public = {
        name
        for module in modules
        for name in module.__all__
        if isinstance(kind := getattr(module, name), type) and issubclass(kind, BaseException)
    }
    assert len(public) >= 8
    assert public == {*re.findall(r"^   (\w+(?:Error|Warning|Rule|Died))$", page, re.MULTILINE)}
