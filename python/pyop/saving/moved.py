"""Where the modules and functions are now that saved files and pickles name by earlier paths.

A file of `Graph.save` asks `current`. A pickle imports what it names by itself, so `install` adds a finder for modules
that are no longer there.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from operator import attrgetter
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "current", "install"]

# Modules, or functions of modules that were taken apart: the earlier path, and that of today.
MOVED: dict[str, str] = {
    "pyop.gradients.eager": "pyop.transforms.eager",
    "pyop.gradients.forward": "pyop.transforms.forward",
    "pyop.gradients.inline": "pyop.transforms.inline",
    "pyop.gradients.marker": "pyop.transforms.marker",
    "pyop.gradients.op_calls": "pyop.transforms.op_calls",
    "pyop.gradients.op_rule": "pyop.transforms.op_rule",
    "pyop.gradients.opened": "pyop.transforms.opened",
    "pyop.gradients.pulled": "pyop.transforms.pulled",
    "pyop.gradients.reverse": "pyop.transforms.reverse",
    "pyop.gradients.stop": "pyop.transforms.stop",
    "pyop.compiling.type_checks": "pyop.tracing.type_checks",
    "pyop.compiling.error_checks": "pyop.tracing.error_checks",
    "pyop.compiling.names": "pyop.tracing.names",
    "pyop.compiling.captured": "pyop.tracing.captured",
    "pyop.compiling.generators": "pyop.tracing.generators",
    "pyop.compiling.same": "pyop.tracing.same",
    "pyop.compiling.unread": "pyop.compiling.unused_arguments",
    "pyop.compiling.number": "pyop.graph.symbolic_number",
    "pyop.saving.references": "pyop.declare.references",
    "pyop.abstract": "pyop.declare.abstract",
    "pyop.binding": "pyop.declare.binding",
    "pyop.contracts": "pyop.declare.contracts",
    "pyop.dim": "pyop.declare.dim",
    "pyop.dims": "pyop.declare.dims",
    "pyop.dtype_text": "pyop.declare.dtype_text",
    "pyop.infer": "pyop.declare.infer",
    "pyop.marks": "pyop.declare.marks",
    "pyop.parameters": "pyop.declare.parameters",
    "pyop.rebuild": "pyop.declare.rebuild",
    "pyop.signature": "pyop.declare.signature",
    "pyop.signature_text": "pyop.declare.signature_text",
    "pyop.spec": "pyop.declare.spec",
    "pyop.spec_text": "pyop.declare.spec_text",
    "pyop.spec_tree": "pyop.declare.spec_tree",
    "pyop.array_protocol": "pyop.graph.array_protocol",
    "pyop.calls": "pyop.graph.calls",
    "pyop.composed": "pyop.graph.composed",
    "pyop.explain": "pyop.graph.explain",
    "pyop.foreign_ufuncs": "pyop.graph.foreign_ufuncs",
    "pyop.forms": "pyop.graph.forms",
    "pyop.in_place": "pyop.graph.in_place",
    "pyop.operands": "pyop.graph.operands",
    "pyop.powers": "pyop.graph.powers",
    "pyop.sizes": "pyop.graph.sizes",
    "pyop.value_methods": "pyop.graph.value_methods",
    "pyop.value_refusals": "pyop.graph.value_refusals",
    "pyop.value_sequence": "pyop.graph.value_sequence",
    "pyop.views": "pyop.graph.views",
    "pyop.op_gradients": "pyop.ops.op_gradients",
    "pyop.gradients.distributions": "pyop.functions.distributions.grad",
    "pyop.gradients.elementwise": "pyop.functions.elementwise.grad",
    "pyop.gradients.fit": "pyop.gradients.unbroadcast",
    "pyop.gradients.fourier": "pyop.functions.fourier.grad",
    "pyop.gradients.indexing": "pyop.functions.indexing.grad",
    "pyop.gradients.joining": "pyop.functions.joining.grad",
    "pyop.gradients.linalg": "pyop.functions.linalg.grad",
    "pyop.gradients.moves": "pyop.gradients.adjoints",
    "pyop.gradients.numerics": "pyop.functions.numerics.grad",
    "pyop.gradients.order": "pyop.functions.sorting.grad",
    "pyop.gradients.primitives": "pyop.functions.adjoints.grad",
    "pyop.gradients.products": "pyop.functions.products.grad",
    "pyop.gradients.reductions": "pyop.functions.reductions.grad",
    "pyop.gradients.special": "pyop.functions.special.grad",
    "pyop.gradients.shapes._pad_with_zeros": "pyop.functions.inserting.grad.pad_with_zeros",
    "pyop.gradients.special_orders": "pyop.functions.special.orders",
    "pyop.rules": "pyop.functions",
    "pyop.rules._operand": "pyop.functions.operand",
    "pyop.rules._shape": "pyop.functions.shape",
    "pyop.rules.axes": "pyop.functions.axes.spec",
    "pyop.rules.creation": "pyop.functions.creation.spec",
    "pyop.rules.elementwise": "pyop.functions.elementwise.spec",
    "pyop.rules.fourier": "pyop.functions.fourier.spec",
    "pyop.rules.gufuncs": "pyop.functions.gufuncs",
    "pyop.rules.indexing": "pyop.functions.indexing.spec",
    "pyop.rules.inserting": "pyop.functions.inserting.spec",
    "pyop.rules.joining": "pyop.functions.joining.spec",
    "pyop.rules.linalg": "pyop.functions.linalg.spec",
    "pyop.rules.numerics": "pyop.functions.numerics.spec",
    "pyop.rules.order": "pyop.functions.sorting.spec",
    "pyop.rules.polynomials": "pyop.functions.polynomials.spec",
    "pyop.rules.products": "pyop.functions.products.spec",
    "pyop.rules.reductions": "pyop.functions.reductions.spec",
    "pyop.rules.reshaping": "pyop.functions.reshaping.spec",
    "pyop.rules.selecting": "pyop.functions.selecting.spec",
    "pyop.rules.sets": "pyop.functions.sets.spec",
    "pyop.rules.splitting": "pyop.functions.splitting.spec",
    "pyop.rules.statistics": "pyop.functions.statistics.spec",
    "pyop.rules.ufuncs": "pyop.functions.ufuncs",
    "pyop.onnx.held._unpickled": "pyop.onnx.loaded.facts_of",
    "pyop.graph.Graph": "pyop.graph.graph.Graph",
    "pyop.graph.trace": "pyop.tracing.trace.trace",
    **{
        f"pyop.transforms.{name}": f"pyop.transforms.transforms.{name}"
        for name in ("grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp", "vmap")
    },
}
# Modules that had the names of pyop's functions. An import would put the module in the place of the function, so these
# are known as imported from the beginning.
HIDDEN = {"pyop.op": "pyop.ops.op", "pyop.py_func": "pyop.ops.py_func"}


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
    """Finds modules under their earlier names; asked first, as editable installs remember files that are gone."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("pyop.") or not (name in MOVED or any(old.startswith(f"{name}.") for old in MOVED)):
            return None
        if name not in MOVED and PathFinder.find_spec(name, path) is not None:
            return None  # a package that something has moved out of
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


def _getter(module: str) -> Any:
    def get(attribute: str) -> Any:
        home, _, name = MOVED.get(f"{module}.{attribute}", "").rpartition(".")
        if not home:
            raise AttributeError(f"module {module!r} has no attribute {attribute!r}", name=attribute)
        return attrgetter(name)(importlib.import_module(home))

    return get


def install() -> None:
    """Let pickles find what they name by earlier paths."""
    finder: Any = _Finder
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
    for old, new in HIDDEN.items():
        sys.modules.setdefault(old, importlib.import_module(new))
    for name in {old.rpartition(".")[0] for old in MOVED}:
        if name in sys.modules and name.count(".") == 1:  # a package of today that names have moved out of
            sys.modules[name].__getattr__ = _getter(name)  # type: ignore[method-assign]
