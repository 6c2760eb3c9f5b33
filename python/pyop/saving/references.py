"""Functions, contracts and gradient rules by reference: what op of what module they belong to."""

from __future__ import annotations

import sys
from typing import Any

from .._core import Contract, Op

__all__ = ["contract_of_op", "declared_by_op", "found_at", "op_of_contract", "op_of_function", "path_of_op"]


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


def op_of_function(fn: Any) -> Op | None:
    """The op that was declared with this function and took its name."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if not module or not name or "<" in name:
        return None
    found = found_at(f"{module}.{name}")
    return found if isinstance(found, Op) and found.__wrapped__ is fn else None


def op_of_contract(contract: Contract) -> tuple[Op, str] | None:
    """The op that a contract with rules belongs to, and which of its contracts it is; None if that is not known."""
    gradient = contract.gradient
    if gradient is None:
        return None
    op = op_of_function(gradient.fn)
    if op is None or op.contract.gradient is not gradient:
        return None
    return op, "saving" if gradient.saving is not None and contract is gradient.saving[1] else "contract"


def declared_by_op(fn: Any, contract: Contract | None) -> Op | None:
    """The op of a node, where the node's contract has rules of the op's and goes by reference."""
    op = op_of_function(getattr(fn, "fn", fn))
    if op is None or contract is None or op.contract is not contract:
        return None
    return op if contract.gradient is not None or contract._parts[4] is not None else None


def contract_of_op(op: Op, which: str) -> Contract:
    """The contract that `op_of_contract` has named."""
    gradient: Any = op.contract.gradient
    if which == "saving":
        if gradient is None or gradient.saving is None:
            raise ValueError(f"the gradient rule of op {op.name!r} took saved= when the graph was written, and not now")
        found: Contract = gradient.saving[1]
        return found
    return op.contract
