"""Operators of ONNX that are NumPy functions: their nodes run natively, and their specs are known.

Only where dtypes are known and NumPy's function gives the bits of the reference implementation; everything else is left
to that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value

__all__ = ["native_nodes"]

_NUMBERS = frozenset("fiu")
_FLOATS = frozenset("f")
_ANY = frozenset("fiub")

# Operators that are a ufunc of arrays of one dtype: the ufunc, and the kinds of dtype it is right for.
_UFUNCS: dict[str, tuple[Any, frozenset[str]]] = {
    "Abs": (np.absolute, _NUMBERS),
    "Add": (np.add, _NUMBERS),
    "And": (np.logical_and, frozenset("b")),
    "Ceil": (np.ceil, _FLOATS),
    "Cos": (np.cos, _FLOATS),
    "Cosh": (np.cosh, _FLOATS),
    "Div": (np.divide, _FLOATS),
    "Equal": (np.equal, _ANY),
    "Exp": (np.exp, _FLOATS),
    "Floor": (np.floor, _FLOATS),
    "Greater": (np.greater, _NUMBERS),
    "GreaterOrEqual": (np.greater_equal, _NUMBERS),
    "Less": (np.less, _NUMBERS),
    "LessOrEqual": (np.less_equal, _NUMBERS),
    "Log": (np.log, _FLOATS),
    "Mul": (np.multiply, _NUMBERS),
    "Neg": (np.negative, _NUMBERS - {"u"}),
    "Not": (np.logical_not, frozenset("b")),
    "Or": (np.logical_or, frozenset("b")),
    "Sin": (np.sin, _FLOATS),
    "Sinh": (np.sinh, _FLOATS),
    "Sqrt": (np.sqrt, _FLOATS),
    "Sub": (np.subtract, _NUMBERS),
    "Tan": (np.tan, _FLOATS),
    "Tanh": (np.tanh, _FLOATS),
    "Xor": (np.logical_xor, frozenset("b")),
}


class _Node:
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


def native_nodes(node: Any, values: list[Value | None], version: int) -> list[Value] | None:
    """The results of an operator as nodes of NumPy functions; None if it is left to the reference implementation."""
    if len([name for name in node.output if name]) != 1 or len(node.output) != 1 or version < 7:
        return None
    rule = _RULES.get(node.op_type)
    if rule is None or not values or any(v is None or v.dtype is None for v in values):
        return None
    found = rule(_Node(node, values, version))
    return None if found is None else [found]


def _ufunc(n: _Node) -> Any:
    ufunc, kinds = _UFUNCS[n.node.op_type]
    if len(n.values) != ufunc.nin or not n.only() or len({v.dtype for v in n.values}) != 1:
        return None
    if n.values[0].dtype.kind not in kinds or any(v.shape is None for v in n.values):
        return None
    return ufunc(*n.values)


def _identity(n: _Node) -> Any:
    return n.values[0] if len(n.values) == 1 and n.only() else None


def _transpose(n: _Node) -> Any:
    if len(n.values) != 1:
        return None
    (x,) = n.values
    axes = n.ints("perm")
    if not n.only("perm") or x.ndim is None or (axes is not None and sorted(axes) != list(range(x.ndim))):
        return None
    return np.transpose(x, axes)


def _reshape(n: _Node) -> Any:
    shape = n.known(1)
    if not n.only() or shape is None or shape.ndim != 1 or any(size == 0 or size < -1 for size in shape):
        return None
    x = n.values[0]
    if x.shape is None or list(shape).count(-1) > 1:
        return None
    if all(isinstance(size, int) for size in x.shape):
        have, want = math.prod(x.shape), abs(math.prod(map(int, shape)))
        if have % want if -1 in shape else have != want:
            return None
    return np.reshape(x, tuple(map(int, shape)))


def _matmul(n: _Node) -> Any:
    if len(n.values) != 2:
        return None
    x, y = n.values
    if x.dtype != y.dtype or x.dtype.kind != "f" or not x.ndim or not y.ndim:
        return None
    return np.matmul(x, y)


def _where(n: _Node) -> Any:
    if len(n.values) != 3:
        return None
    c, x, y = n.values
    if c.dtype != np.bool_ or x.dtype != y.dtype or x.dtype.kind not in _ANY or any(v.ndim is None for v in n.values):
        return None
    return np.where(c, x, y)


def _relu(n: _Node) -> Any:
    if len(n.values) != 1:
        return None
    (x,) = n.values
    return np.maximum(x, x.dtype.type(0)) if n.only() and x.dtype.kind == "f" and x.ndim is not None else None


_RULES: dict[str, Callable[[_Node], Any]] = dict.fromkeys(_UFUNCS, _ufunc) | {
    "Identity": _identity,
    "MatMul": _matmul,
    "Relu": _relu,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Where": _where,
}
