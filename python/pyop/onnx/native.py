"""Operators of ONNX that are NumPy functions: their nodes run natively, and their specs are known.

Only where dtypes are known and NumPy's function gives the bits of the reference implementation; everything else is left
to that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from .elements import dtype_of
from .standard.ufuncs import LOGICAL, SIMPLE

__all__ = ["native_nodes"]

RULES: dict[str, Callable[[OnnxNode], Any]] = {}


def native(*op_types: str) -> Callable[[Callable[[OnnxNode], Any]], Callable[[OnnxNode], Any]]:
    """Register what makes the Value of an operator, or None where that is left to the reference implementation."""

    def register(rule: Callable[[OnnxNode], Any]) -> Callable[[OnnxNode], Any]:
        RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return register


_NUMBERS = frozenset("fiu")
_FLOATS = frozenset("f")
_INTEGERS = frozenset("iu")
_ANY = frozenset("fiub")

# Ufuncs that are operators of ONNX, but not these ones alone, or not to the bit of the reference implementation.
_NOT_ALONE = {
    *(np.fabs, np.isinf, np.matmul, np.maximum, np.minimum, np.positive, np.power, np.reciprocal, np.rint),
}
# Operators that are a ufunc of arrays of one dtype: the ufunc, and the kinds of dtype it is right for.
_UFUNCS: dict[str, tuple[Any, frozenset[str]]] = {
    **{op_type: (ufunc, frozenset(kinds)) for ufunc, (op_type, kinds) in SIMPLE.items() if ufunc not in _NOT_ALONE},
    **{LOGICAL[ufunc]: (ufunc, frozenset("b")) for ufunc in LOGICAL if ufunc.__name__.startswith("logical_")},
}


class OnnxNode:
    """A node of the model, its inputs as Values."""

    def __init__(self, node: Any, values: list[Any], version: int) -> None:
        self.node = node
        self.values = values
        self.version = version
        self.attributes = {a.name: a for a in node.attribute}
        self.plain = not any(a.ref_attr_name for a in node.attribute)

    def only(self, *names: str) -> bool:
        return self.plain and set(self.attributes) <= set(names)

    def ints(self, name: str) -> tuple[int, ...] | None:
        return tuple(self.attributes[name].ints) if name in self.attributes else None

    def known(self, k: int) -> Any:
        """A constant input, or None."""
        if k >= len(self.values) or self.values[k] is None or self.values[k].node.kind != "constant":
            return None
        return self.values[k].graph.run(self.values[k])

    def integer(self, name: str, default: int) -> int:
        """An attribute."""
        return int(self.attributes[name].i) if name in self.attributes else default

    def number(self, name: str, default: float) -> float:
        """An attribute."""
        return float(self.attributes[name].f) if name in self.attributes else default

    def same_numbers(self, kinds: frozenset[str] = _NUMBERS) -> bool:
        """Whether all inputs are of one dtype, one of these kinds, and of known ranks."""
        (dtype, *others) = {v.dtype for v in self.values}
        return not others and dtype.kind in kinds and all(v.ndim is not None for v in self.values)


def _is_foreign(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is of another package: some of eight bits look like floats."""
    return dtype.isbuiltin == 2


def native_nodes(node: Any, values: list[Value | None], version: int) -> list[Value] | None:
    """The results of an operator as nodes of NumPy functions; None if it is left to the reference implementation."""
    if len([name for name in node.output if name]) != 1 or len(node.output) != 1 or version < 7:
        return None
    rule = RULES.get(node.op_type)
    if rule is None or not values or any(v is None or v.dtype is None or _is_foreign(v.dtype) for v in values):
        return None
    found = rule(OnnxNode(node, values, version))
    return None if found is None else [found]


@native(*_UFUNCS)
def _ufunc(n: OnnxNode) -> Any:
    ufunc, kinds = _UFUNCS[n.node.op_type]
    if len(n.values) != ufunc.nin or not n.only() or len({v.dtype for v in n.values}) != 1:
        return None
    if n.values[0].dtype.kind not in kinds or any(v.shape is None for v in n.values):
        return None
    return ufunc(*n.values)


@native("Where")
def _where(n: OnnxNode) -> Any:
    if len(n.values) != 3:
        return None
    c, x, y = n.values
    if c.dtype != np.bool_ or x.dtype != y.dtype or x.dtype.kind not in _ANY or any(v.ndim is None for v in n.values):
        return None
    return np.where(c, x, y)


@native("Relu")
def _relu(n: OnnxNode) -> Any:
    if len(n.values) != 1:
        return None
    (x,) = n.values
    return np.maximum(x, x.dtype.type(0)) if n.only() and x.dtype.kind == "f" and x.ndim is not None else None


@native("Max", "Min")
def _extremum(n: OnnxNode) -> Any:
    if len(n.values) < 2 or not n.only() or not n.same_numbers():
        return None
    return functools.reduce(np.maximum if n.node.op_type == "Max" else np.minimum, n.values)


@native("Sum")
def _sum(n: OnnxNode) -> Any:
    # From zero on, of which the sum with -0.0 is another zero.
    return functools.reduce(np.add, n.values, 0) if n.only() and n.same_numbers() else None


@native("Mod")
def _mod(n: OnnxNode) -> Any:
    fmod = n.integer("fmod", 0)
    if len(n.values) != 2 or not n.only("fmod") or not n.same_numbers(_NUMBERS if fmod else _INTEGERS):
        return None
    return np.fmod(*n.values) if fmod else np.mod(*n.values)


@native("Clip")
def _clip(n: OnnxNode) -> Any:
    if n.version < 11 or len(n.values) != 3 or not n.only() or not n.same_numbers():
        return None
    return np.clip(*n.values) if n.values[1].ndim == n.values[2].ndim == 0 else None


@native("Cast")
def _cast(n: OnnxNode) -> Any:
    (x, *rest) = n.values
    if rest or "to" not in n.attributes or not n.only("to", "saturate", "round_mode"):
        return None
    try:
        dtype = dtype_of(n.integer("to", 0))
    except ValueError:
        return None
    if dtype is None or _is_foreign(dtype) or not {x.dtype.kind, dtype.kind} <= _ANY or x.ndim is None:
        return None
    return x.astype(dtype)


@native("Sigmoid")
def _sigmoid(n: OnnxNode) -> Any:
    if len(n.values) != 1 or not n.only() or not n.same_numbers(_FLOATS):
        return None
    (x,) = n.values
    e = np.exp(x)
    return np.where(x > 0, 1.0 / (1.0 + np.exp(-x)), e / (1.0 + e))
