"""Map earlier paths of modules and functions, as saved files and pickles name them, to today's.

A file of `Graph.save` asks `current`. A pickle imports the names itself, so `install` adds a finder for modules that
are no longer there.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from operator import attrgetter
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "current", "install"]

# Modules that went from one package to another under their names.
_PACKAGES = {
    ("pyop.gradients", "pyop.transforms"): "eager forward inline marker op_calls op_rule opened pulled reverse stop",
    ("pyop.compiling", "pyop.tracing"): "type_checks error_checks names captured generators same",
    ("pyop", "pyop.declare"): "abstract binding contracts dim dims dtype_text infer marks parameters rebuild signature "
    "signature_text spec spec_text spec_tree",
    ("pyop", "pyop.graph"): "array_protocol calls composed explain foreign_ufuncs forms in_place operands powers sizes "
    "value_methods value_refusals value_sequence views",
    ("pyop.transforms", "pyop.transforms.transforms"): "grad hessian hvp jacobian jvp value_and_grad vjp vmap",
}
# Rules of NumPy's functions, which stood by kind and stand by family: the families, other names of theirs given.
_FAMILIES = {
    ("pyop.gradients", "grad"): "distributions elementwise fourier indexing joining linalg numerics order=sorting "
    "primitives=adjoints products reductions special",
    (
        "pyop.rules",
        "spec",
    ): "axes creation elementwise fourier indexing inserting joining linalg numerics order=sorting "
    "polynomials products reductions reshaping selecting sets splitting statistics",
}
# Modules, or functions of modules that were taken apart: the earlier path, and that of today.
MOVED: dict[str, str] = {
    **{f"{a}.{name}": f"{b}.{name}" for (a, b), names in _PACKAGES.items() for name in names.split()},
    **{
        f"{package}.{name.partition('=')[0]}": f"pyop.functions.{name.rpartition('=')[2]}.{kind}"
        for (package, kind), names in _FAMILIES.items()
        for name in names.split()
    },
    "pyop.graph.value_methods._getitem_with_bounds": "pyop.declare.rebuild.getitem_with_bounds",
    "pyop.compiling.unread": "pyop.compiling.unused_arguments",
    "pyop.compiling.number": "pyop.graph.symbolic_number",
    "pyop.saving.references": "pyop.declare.references",
    "pyop.op_gradients": "pyop.ops.op_gradients",
    "pyop.gradients.fit": "pyop.gradients.unbroadcast",
    "pyop.gradients.moves": "pyop.gradients.adjoints",
    "pyop.gradients.shapes._pad_with_zeros": "pyop.functions.inserting.grad.pad_with_zeros",
    "pyop.gradients.special_orders": "pyop.functions.special.orders",
    "pyop.rules": "pyop.functions",
    "pyop.rules._operand": "pyop.functions.operand",
    "pyop.rules._shape": "pyop.functions.shape",
    "pyop.rules.gufuncs": "pyop.functions.gufuncs",
    "pyop.rules.ufuncs": "pyop.functions.ufuncs",
    "pyop.onnx.held._unpickled": "pyop.onnx.loaded.facts_of",
    "pyop.graph.symbolic_number._real_power": "pyop.graph.symbolic_number.real_power",
    "pyop.graph.symbolic_number._quotient": "pyop.graph.symbolic_number.quotient",
    "pyop.graph.Graph": "pyop.graph.graph.Graph",
    "pyop.graph.trace": "pyop.tracing.trace.trace",
}
# Modules that had the names of pyop's functions. An import would put the module in the place of the function, so these
# are known as imported from the beginning.
HIDDEN = {"pyop.op": "pyop.ops.op", "pyop.py_func": "pyop.ops.py_func"}
HIDDEN |= {"pyop.check": "pyop.checking", "pyop.profile": "pyop.profiling"}


def current(path: str) -> str:
    """Return the path of today for one that a file names.

    Examples
    --------
    >>> current("numpy.sin")
    'numpy.sin'
    """
    home, rest = path, ""
    while home:
        if home in MOVED:
            return MOVED[home] + rest
        if home in HIDDEN and rest:
            return HIDDEN[home] + rest
        home, dot, name = home.rpartition(".")
        rest = f"{dot}{name}{rest}"
    return path


class _Finder:
    """Find modules under their earlier names; asked first, as editable installs remember files that are gone."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("pyop."):
            return None
        if name not in MOVED:
            if f" {name}." not in f" {' '.join(MOVED)}":  # every module of pyop comes here
                return None
            if (spec := PathFinder.find_spec(name, path)) is not None:  # a package that something has moved out of
                return _with_names(spec) if name.count(".") == 1 else None
        loader: Any = _Loader
        return ModuleSpec(name, loader)


class _Loader:
    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        name = module.__name__
        if name in MOVED:
            sys.modules[name] = importlib.import_module(MOVED[name])  # which the import system takes instead
        else:
            module.__getattr__ = _getter(name)  # type: ignore[method-assign]


def _with_names(spec: ModuleSpec) -> ModuleSpec:
    """Return the spec of an existing package, with the names that have moved out of it."""
    loader: Any = spec.loader
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        execute(module)
        module.__getattr__ = _getter(spec.name)

    loader.exec_module = exec_module
    return spec


def _getter(module: str) -> Any:
    def get(attribute: str) -> Any:
        home, _, name = MOVED.get(f"{module}.{attribute}", "").rpartition(".")
        if not home:
            raise AttributeError(f"module {module!r} has no attribute {attribute!r}", name=attribute)
        return attrgetter(name)(importlib.import_module(home))

    return get


def _of_module(module: str, attribute: str) -> Any:
    if attribute.startswith("__"):  # who walks through all modules asks each for its file
        raise AttributeError(attribute)
    return getattr(importlib.import_module(module), attribute)


def load_hidden() -> None:
    """Import the modules of `HIDDEN`.

    A pickler that searches all modules for a function asks these too, and would stop if that imported something.
    """
    for module in HIDDEN.values():
        importlib.import_module(module)


def install() -> None:
    """Install the finder for pickles that name modules by earlier paths."""
    finder: Any = _Finder
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
    for old, new in HIDDEN.items():
        hidden = ModuleType(old)
        hidden.__getattr__ = partial(_of_module, new)  # type: ignore[method-assign]
        sys.modules.setdefault(old, hidden)
    for name in {old.rpartition(".")[0] for old in MOVED}:
        if name in sys.modules and name.count(".") == 1:  # a package that is imported before this one
            sys.modules[name].__getattr__ = _getter(name)  # type: ignore[method-assign]
