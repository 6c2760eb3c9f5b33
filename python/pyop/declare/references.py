"""Refer to functions, contracts and gradient rules by the op of a module that they belong to."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from .._core import Contract, Op

__all__ = ["by_path", "declared_by_op", "found_at", "op_of_function", "op_of_gradient", "own_attributes", "path_of_op"]

# What a module has that makes functions and classes from their parts: cloudpickle's of any version, dill's.
_BY_VALUE = ("_make_skeleton_class", "_make_skel_func", "_locate_function")


def found_at(path: str) -> Any:
    """Return the object at an import path in the modules already imported, or None."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:cut]))
        if module is None:
            continue
        target: Any = module
        for part in parts[cut:]:
            target = getattr(target, part, None)
        return target
    return None


def path_of_op(op: Op) -> str | None:
    """Return the import path that leads to an op, or None."""
    module, name = getattr(op, "__module__", None), getattr(op, "__qualname__", None)
    path = f"{module}.{name}"
    return path if module and name and found_at(path) is op else None


def by_path(x: Any) -> Any:
    """Return an object that a pickle may name by its import path; None for one that it must not.

    A definition of a script is missing in another process. pickle names it all the same. cloudpickle sends it along,
    but only functions and classes; it treats other objects as pickle does, so the pickler has to be looked up.
    """
    module = getattr(x, "__module__", None)
    return None if module is not None and _goes_by_value(module) else x


def _goes_by_value(module: str) -> bool:
    """Return whether the running pickler sends the definitions of a module along."""
    homes = _asking()
    if module == "__main__":
        return bool(homes)
    known = sys.modules.get(module)
    registries = (getattr(home, "_is_registered_pickle_by_value", None) for home in homes)
    return known is not None and any(has(known) for has in registries if has is not None)


def _asking() -> list[Any]:
    """Return the modules that define the running pickler, if it sends functions by value; else none.

    That is cloudpickle under any name (Ray and older joblib have their own copies), or dill. It is known by its
    attributes.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _package(frame) == "pyop":
        frame = frame.f_back
    asking = frame.f_locals.get("self")
    if not isinstance(asking, pickle.Pickler | pickle._Pickler):
        return []
    homes = [sys.modules.get(kind.__module__) for kind in type(asking).__mro__]
    return [home for home in homes if any(name in getattr(home, "__dict__", ()) for name in _BY_VALUE)]


def _package(frame: Any) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def own_attributes(x: Any) -> dict[str, Any] | None:
    """Return the attributes a user has set on an op or compiled function, as on any function; None if none."""
    return {name: value for name, value in vars(x).items() if not name.startswith("_")} or None


def op_of_function(fn: Any) -> Op | None:
    """Return the op that was declared with this function and took its name, or None."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if not module or not name or "<" in name:
        return None
    op = found_at(f"{module}.{name}")
    return op if isinstance(op, Op) and op.__wrapped__ is fn else None


def op_of_gradient(gradient: Any) -> Op | None:
    """Return the op that has these gradient rules, if its import path leads to it, or None."""
    op = op_of_function(gradient.fn)
    return op if op is not None and op.contract.gradient is gradient else None


def declared_by_op(fn: Any, contract: Contract | None) -> Op | None:
    """Return the op of a node whose contract has the op's rules and is pickled by reference, or None."""
    op = op_of_function(getattr(fn, "fn", fn))
    if op is None or contract is None or op.contract is not contract:
        return None
    return op if contract.gradient is not None or contract._parts[4] is not None else None
