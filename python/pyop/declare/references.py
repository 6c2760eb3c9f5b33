"""Functions, contracts and gradient rules by reference: what op of what module they belong to."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from .._core import Contract, Op

__all__ = ["by_path", "declared_by_op", "found_at", "op_of_function", "op_of_gradient", "own_attributes", "path_of_op"]

# What a module has that makes functions and classes from their parts: cloudpickle's of any version, dill's.
_BY_VALUE = ("_make_skeleton_class", "_make_skel_func", "_locate_function")


def found_at(path: str) -> Any:
    """What stands at an import path in the modules that are imported; None if nothing does."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:cut]))
        if module is None:
            continue
        found: Any = module
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


def path_of_op(op: Op) -> str | None:
    """The import path that leads to an op; None if there is none."""
    module, name = getattr(op, "__module__", None), getattr(op, "__qualname__", None)
    path = f"{module}.{name}"
    return path if module and name and found_at(path) is op else None


def by_path(x: Any) -> Any:
    """An object that a pickle may name by its import path; None for one that it must not.

    What a script has defined is not there in another process. pickle names it all the same, cloudpickle sends it along,
    but only functions and classes; of other objects it asks no more than pickle does, so who asks has to be seen.
    """
    module = getattr(x, "__module__", None)
    return None if module is not None and _goes_by_value(module) else x


def _goes_by_value(module: str) -> bool:
    """Whether the pickler that asks sends what a module has defined along."""
    homes = _asking()
    if module == "__main__":
        return bool(homes)
    known = sys.modules.get(module)
    registries = (getattr(home, "_is_registered_pickle_by_value", None) for home in homes)
    return known is not None and any(has(known) for has in registries if has is not None)


def _asking() -> list[Any]:
    """The modules that define the pickler which asks, if it sends functions by value; none for another.

    That is cloudpickle under any name (Ray and older joblib have their own copies), or dill: known by what they have.
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
    """What a user has set on an op or compiled function, as on any function; None if nothing."""
    return {name: value for name, value in vars(x).items() if not name.startswith("_")} or None


def op_of_function(fn: Any) -> Op | None:
    """The op that was declared with this function and took its name."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if not module or not name or "<" in name:
        return None
    found = found_at(f"{module}.{name}")
    return found if isinstance(found, Op) and found.__wrapped__ is fn else None


def op_of_gradient(gradient: Any) -> Op | None:
    """The op that has these gradient rules, if its import path leads to it."""
    op = op_of_function(gradient.fn)
    return op if op is not None and op.contract.gradient is gradient else None


def declared_by_op(fn: Any, contract: Contract | None) -> Op | None:
    """The op of a node, where the node's contract has rules of the op's and goes by reference."""
    op = op_of_function(getattr(fn, "fn", fn))
    if op is None or contract is None or op.contract is not contract:
        return None
    return op if contract.gradient is not None or contract._parts[4] is not None else None
