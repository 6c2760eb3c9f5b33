"""Decide what a model may reach: the only place where a name in a file becomes a Python object.

A name in a model is untrusted text. By default it can reach

- `pyop.Op` and `pyop.Function` objects in modules that are imported already: somebody declared them to be called on
  arrays;
- functions defined in the caller's own imported modules, which are neither of the standard library nor installed
  packages;
- the NumPy functions that pyop knows, which compute and nothing else;
- anything callable in modules that the caller lists.

No name with two leading underscores is followed, and nothing is imported but what `modules` or ``"imports"`` allow.
"""

from __future__ import annotations

import importlib
import operator
import os
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .._core import Op
from ..saving.moved import current

__all__ = ["LEVELS", "Trust", "import_path", "is_known_numpy"]

# Functions of pyop itself that stand in nodes. They compute on arrays or call what else the model names, and nothing
# else; so do the primitives of pyop.gradients and the functions of pyop.scipy, which are known by their rules.
_WITH_RULES = ("pyop.functions.", "pyop.gradients.", "pyop.scipy.", "pyop.transforms.")
_INTERNAL = (
    "pyop.graph.array_protocol._leaves_of",
    "pyop.compiling.results._second",
    "pyop.functions.inserting.grad.pad_with_zeros",
    "pyop.declare.rebuild.call_with_sizes",
    "pyop.declare.rebuild.getitem_with_bounds",
)

# Modules of which every function does; scipy.special is one of ufuncs, which are allowed as such.
_COMPUTING = ("numpy.fft", "numpy.linalg", "numpy.strings", "scipy.special", "scipy.special._ufuncs")
_FUNCTIONS = (FunctionType, BuiltinFunctionType, type(np.sum))  # and no object that happens to be callable

# Of ndarray only what computes: it has methods that write files, too.
_METHODS = (np.ndarray.astype, np.ndarray.copy, np.ndarray.view, np.ndarray.conj, np.ndarray.conjugate)

LEVELS = ("none", "listed", "imports", "pickles")


@dataclass(frozen=True)
class Trust:
    """Hold how far a model is trusted."""

    level: str = "listed"
    modules: frozenset[str] = frozenset()

    @classmethod
    def make(cls, level: str | None, modules: Iterable[str] = ()) -> Trust:
        """Return the trust that the arguments of ``load`` give."""
        if level is not None and level not in LEVELS:
            raise ValueError(f"trust is one of {', '.join(map(repr, LEVELS))}, not {level!r:.80}")
        if isinstance(modules, str):
            raise TypeError(f"modules takes several names of modules: modules=[{modules!r}]")
        return cls(level or "listed", frozenset(modules))

    @property
    def pickles(self) -> bool:
        """Return whether functions stored by value may be made."""
        return self.level == "pickles"

    def runs(self, kind: type) -> bool:
        """Return whether code of a class may run while a model is loaded."""
        return self.level in ("imports", "pickles") or self.lists(kind.__module__)

    def lists(self, module: str) -> bool:
        """Return whether the caller has named the module, or a package it is in."""
        parts = module.split(".")
        return any(".".join(parts[:k]) in self.modules for k in range(1, len(parts) + 1))


def import_path(path: str, trust: Trust) -> Any:
    """Return the object of an import path, or a str with the reason if there is none."""
    if trust.level == "none":
        return 'nothing is looked up with trust="none"'
    path = current(path)
    parts = path.split(".")
    if len(path) > 1000 or not all(part.isidentifier() for part in parts) or len(parts) < 2:
        return "the name is no import path"
    if any(part.startswith("__") and part != "__main__" for part in parts):
        return "an import path must not go through names such as __builtins__"
    reason = f"no module of the path {path!r} is imported" + (
        "" if trust.level in ("imports", "pickles") else '; modules=["..."] lists modules to import'
    )
    for cut in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:cut])
        module = _module(name, trust)
        if module is None:
            continue
        target: Any = module
        for part in parts[cut:]:
            target = vars(target).get(part) if isinstance(target, ModuleType) else getattr(target, part, None)
            if target is None:
                break
        if target is None:
            reason = f"module {name!r} has no {'.'.join(parts[cut:])!r}"
            continue
        if not callable(target):
            return f"{path!r} is not callable"
        refusal = _refused(target, name, trust)
        return target if refusal is None else refusal
    return reason


def _module(name: str, trust: Trust) -> ModuleType | None:
    module = sys.modules.get(name)
    if module is not None:
        return module
    if trust.level in ("imports", "pickles") or trust.lists(name) or _has_internal(name) or name in _COMPUTING:
        try:
            return importlib.import_module(name)
        except ImportError:
            return None
    return None


def _refused(found: Any, module: str, trust: Trust) -> str | None:
    """Return why an object that the path leads to must not be called; None if it may."""
    if trust.level in ("imports", "pickles") or trust.lists(module) or is_known_numpy(found):
        return None
    if isinstance(found, Op) or _is_internal(found):
        return None
    if isinstance(found, type):
        from ..autograd import Function

        if issubclass(found, Function):
            return None
        # Containers that results come in.
        is_container = hasattr(found, "_fields") or hasattr(found, "__dataclass_fields__")
        if is_container and found.__module__ == module and (module.partition(".")[0] == "numpy" or _is_own(module)):
            return None
    elif isinstance(found, FunctionType) and found.__module__ == module and _is_own(module):
        return None
    return (
        f"it stands in module {module!r}, which the caller has not listed: load(..., modules=[{module!r}]) allows "
        "what is in it"
    )


def is_known_numpy(found: Any) -> bool:
    """Return whether this is a NumPy function that pyop knows to compute and nothing else."""
    from .. import functions as rules

    if found in (operator.pow, operator.getitem) or found in _METHODS:
        return True
    if isinstance(found, np.ufunc) or isinstance(getattr(found, "__self__", None), np.ufunc):
        return True
    module = getattr(found, "__module__", None) or ""
    if type(found) not in _FUNCTIONS or module.partition(".")[0] != "numpy":
        return False
    return module in _COMPUTING or rules.lookup(found) is not None


def _has_internal(module: str) -> bool:
    """Return whether a module of pyop's own has functions that are called by nodes."""
    return module.startswith(_WITH_RULES) or any(path.rpartition(".")[0] == module for path in _INTERNAL)


def _is_internal(found: Any) -> bool:
    """Return whether this is one of them, by where it was defined, not by the path that led to it."""
    if not isinstance(found, FunctionType):
        return False
    from .. import functions as rules

    if f"{found.__module__}.{found.__qualname__}" in _INTERNAL:
        return True
    return found.__module__.startswith(_WITH_RULES) and rules.lookup(found) is not None


@lru_cache(maxsize=256)
def _is_own(name: str) -> bool:
    """Return whether a module is the caller's own code: not of the standard library, not an installed package."""
    if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__":
        return False
    if name.partition(".")[0] == "pyop":
        return False
    path = getattr(sys.modules[name], "__file__", None)
    if path is None:
        return name == "__main__"
    path = os.path.realpath(path)
    if {"site-packages", "dist-packages"} & set(path.split(os.sep)):  # the user's, the system's, other environments'
        return False
    installed = {sysconfig.get_path(key) for key in ("purelib", "platlib", "stdlib", "platstdlib")}
    return not any(path.startswith(os.path.realpath(place) + os.sep) for place in installed if place)
