"""Tell whether two traces of one function wrote down the same."""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

import numpy as np

from .._core import CallOnTree, GraphBase, Value, own_rules
from .._tree import flatten
from ..graph.symbolic_number import is_number

__all__ = ["same", "same_graphs"]

_DEPTH = 20


def same(a: Any, b: Any, depth: int = 0) -> bool:
    """Return whether no function can tell the objects apart, as far as one can see.

    `depth` is in how many containers they stand.

    >>> import numpy as np
    >>> from pyop.tracing.same import same
    >>> same([np.ones(2), {"k": 0.0}], [np.ones(2), {"k": 0.0}]), same(0.0, -0.0), same(1, True)
    (True, False, False)
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b) or depth > _DEPTH:
        return False
    if kind in (int, bool, str, bytes, complex, float):
        return repr(a) == repr(b) if kind in (complex, float) else bool(a == b)
    if issubclass(kind, (np.ndarray, np.generic)):
        return _same_arrays(np.asarray(a), np.asarray(b), depth)
    if issubclass(kind, (tuple, list)):
        return len(a) == len(b) and all(same(x, y, depth + 1) for x, y in zip(a, b, strict=True))
    if issubclass(kind, dict):
        return list(a) == list(b) and all(same(x, b[key], depth + 1) for key, x in a.items())
    if kind is slice:
        return same((a.start, a.stop, a.step), (b.start, b.stop, b.step), depth + 1)
    if kind is Value:
        return _place(a) == _place(b)
    if is_number(a):
        return a._kind is b._kind and same(a._value, b._value, depth + 1)
    if kind is FunctionType:
        parts = [(f.__code__, f.__defaults__, f.__kwdefaults__, f.__closure__) for f in (a, b)]
        return parts[0][0] == parts[1][0] and same(parts[0][1:], parts[1][1:], depth + 1)
    if kind is CellType:
        return same(a.cell_contents, b.cell_contents, depth + 1)
    if kind is CallOnTree:
        return same((a.fn, a.tree, a.leaves), (b.fn, b.tree, b.leaves), depth + 1)
    if own_rules(a) is not None:
        return False
    if any("__eq__" in vars(base) for base in kind.__mro__[:-1]):
        return _equal(a, b)
    found = [_attributes(x) for x in (a, b)]
    return found[0] is not None and found[1] is not None and same(found[0], found[1], depth + 1)


def _equal(a: Any, b: Any) -> bool:
    try:
        return (a == b) is True
    except Exception:
        return False


def _same_arrays(a: Any, b: Any, depth: int) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape or a.strides != b.strides:
        return False
    return same(a.tolist(), b.tolist(), depth + 1) if a.dtype.hasobject else bool(a.tobytes() == b.tobytes())


def _place(value: Value) -> tuple[int, int]:
    return value.node.index, value.output_index


def _attributes(x: Any) -> dict[str, Any] | None:
    """Return the attributes of an object by their names; None if it has neither slots nor a dict."""
    names = [name for kind in type(x).__mro__ for name in getattr(kind, "__slots__", ())]
    own = getattr(x, "__dict__", None)
    if not names and type(own) is not dict:
        return None
    return {**{name: getattr(x, name, None) for name in names if isinstance(name, str)}, **(own or {})}


def same_graphs(a: GraphBase, result_a: Any, b: GraphBase, result_b: Any) -> bool:
    """Return whether two graphs and what was returned from building them are the same, node by node."""
    leaves_a, tree_a = flatten(result_a)
    leaves_b, tree_b = flatten(result_b)
    if len(a) != len(b) or not _equal(tree_a, tree_b) or not all(map(same, leaves_a, leaves_b)):
        return False
    return all(_same_nodes(a[k], b[k]) for k in range(len(a)))


def _same_nodes(a: Any, b: Any) -> bool:
    if a.kind != b.kind or a.name != b.name or list(map(_place, a.inputs)) != list(map(_place, b.inputs)):
        return False
    if a.kind == "constant":
        return same(a.graph.run(a.outputs[0]), b.graph.run(b.outputs[0]))
    if a.kind == "input":
        return True
    return a.stateful == b.stateful and same(a.function, b.function) and same(a._form, b._form)
