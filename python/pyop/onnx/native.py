"""Map operators of ONNX to NumPy functions: their nodes run natively, and their specs are known.

This is done only where dtypes are known and NumPy's function gives the bits of the reference implementation, which
evaluates everything else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from .elements import dtype_of
from .standard.ufuncs import LOGICAL, SIMPLE

__all__ = ["NUMBERS", "OnnxNode", "native", "native_nodes"]

NUMBERS = "fiu"
_ANY = "fiub"
_MANY = 2**31


Rule = Callable[["OnnxNode"], Any]
RULES: dict[str, Rule] = {}


def native(
    *op_types: str,
    inputs: int | tuple[int, int] = 1,
    attributes: str = "",
    kinds: str = "",
    alike: bool = False,
    since: int = 7,
) -> Callable[[Rule], Rule]:
    """Register what makes the Value of an operator, or None where that is left to the reference implementation.

    Parameters
    ----------
    op_types : str
    inputs : int or (int, int)
        How many there must be, at least and at most.
    attributes : str
        Those that there may be.
    kinds : str
        Of dtypes that the first input may have; any if empty.
    alike : bool
        All inputs must be of one dtype and of known ranks.
    since : int
        The first version of the operators that it serves.
    """
    least, most = (inputs, inputs) if isinstance(inputs, int) else inputs

    def register(make: Rule) -> Rule:
        def rule(n: OnnxNode) -> Any:
            known = n.plain and n.version >= since and n.attributes.keys() <= set(attributes.split())
            if not known or not least <= len(n.values) <= most:
                return None
            if kinds and n.values[0].dtype.kind not in kinds:
                return None
            if alike and (len({v.dtype for v in n.values}) != 1 or any(v.ndim is None for v in n.values)):
                return None
            return make(n)

        RULES.update(dict.fromkeys(op_types, rule))
        return make

    return register


class OnnxNode:
    """Hold a node of the model, with its inputs as Values."""

    def __init__(self, node: Any, values: list[Any], version: int) -> None:
        self.node = node
        self.values = values
        self.version = version
        self.attributes = {a.name: a for a in node.attribute}
        self.plain = not any(a.ref_attr_name for a in node.attribute)

    def ints(self, name: str) -> tuple[int, ...] | None:
        return tuple(self.attributes[name].ints) if name in self.attributes else None

    def known(self, k: int) -> Any:
        """Return a constant input, or None."""
        if k >= len(self.values) or self.values[k].node.kind != "constant":
            return None
        return self.values[k].graph.run(self.values[k])

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        return int(self.attributes[name].i) if name in self.attributes else default

    def number(self, name: str, default: float) -> float:
        """Return a float attribute."""
        return float(self.attributes[name].f) if name in self.attributes else default


def _is_foreign(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is of another package: some of eight bits look like floats."""
    return dtype.isbuiltin == 2


def native_nodes(node: Any, values: list[Value | None], version: int) -> list[Value] | None:
    """Return the results of an operator as nodes of NumPy functions; None where only the reference evaluates it."""
    rule = RULES.get(node.op_type)
    if rule is None or len(node.output) != 1 or not node.output[0] or not values:
        return None
    if any(v is None or v.dtype is None or _is_foreign(v.dtype) for v in values):
        return None
    value = rule(OnnxNode(node, values, version))
    return None if value is None else [value]


# Ufuncs that are operators of ONNX, but not these ones alone, or not to the bit of the reference implementation.
_NOT_ALONE = {
    *(np.fabs, np.isinf, np.matmul, np.maximum, np.minimum, np.positive, np.power, np.reciprocal, np.rint),
}
# Operators that are a ufunc of arrays of one dtype, and the kinds of dtype they are right for.
_UFUNCS: dict[str, tuple[Any, str]] = {
    **{op_type: (ufunc, kinds) for ufunc, (op_type, kinds) in SIMPLE.items() if ufunc not in _NOT_ALONE},
    **{LOGICAL[ufunc]: (ufunc, "b") for ufunc in LOGICAL if ufunc.__name__.startswith("logical_")},
}
for _op_type, (_ufunc, _kinds) in _UFUNCS.items():
    native(_op_type, inputs=_ufunc.nin, kinds=_kinds, alike=True)(lambda n, ufunc=_ufunc: ufunc(*n.values))  # type: ignore[misc]


@native("Where", inputs=3, kinds="b")
def _where(n: OnnxNode) -> Any:
    c, x, y = n.values
    if x.dtype != y.dtype or x.dtype.kind not in _ANY or any(v.ndim is None for v in n.values):
        return None
    return np.where(c, x, y)


@native("Relu", kinds="f", alike=True)
def _relu(n: OnnxNode) -> Any:
    (x,) = n.values
    return np.maximum(x, x.dtype.type(0))


@native("Max", "Min", inputs=(2, _MANY), kinds=NUMBERS, alike=True)
def _extremum(n: OnnxNode) -> Any:
    return functools.reduce(np.maximum if n.node.op_type == "Max" else np.minimum, n.values)


@native("Sum", inputs=(1, _MANY), kinds=NUMBERS, alike=True)
def _sum(n: OnnxNode) -> Any:
    # From zero on, of which the sum with -0.0 is another zero.
    return functools.reduce(np.add, n.values, 0)


@native("Mod", inputs=2, attributes="fmod", kinds=NUMBERS, alike=True)
def _mod(n: OnnxNode) -> Any:
    if n.integer("fmod", 0):
        return np.fmod(*n.values)
    return np.mod(*n.values) if n.values[0].dtype.kind != "f" else None


@native("Clip", inputs=3, kinds=NUMBERS, alike=True, since=11)
def _clip(n: OnnxNode) -> Any:
    return np.clip(*n.values) if n.values[1].ndim == n.values[2].ndim == 0 else None


@native("Cast", attributes="to saturate round_mode", kinds=_ANY, alike=True)
def _cast(n: OnnxNode) -> Any:
    try:
        dtype = dtype_of(n.integer("to", 0))
    except ValueError:
        return None
    if dtype is None or _is_foreign(dtype) or dtype.kind not in _ANY:
        return None
    return n.values[0].astype(dtype)


@native("Sigmoid", kinds="f", alike=True)
def _sigmoid(n: OnnxNode) -> Any:
    (x,) = n.values
    e = np.exp(x)
    return np.where(x > 0, 1.0 / (1.0 + np.exp(-x)), e / (1.0 + e))
