"""What a compiled function returns: the arrays of its plan, and what the function put beside them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from .._core import Plan, Value
from .._tree import TreeDef, flatten
from ..dims import Dim
from ..graph import Graph
from ..sizes import apply
from ..spec import Spec
from .arguments import NUMBERS, STATIC_TYPES
from .number import is_number

__all__ = ["Apart", "Both", "declare_outputs"]


class _Finish:
    """Makes what the function returns of the arrays of its plan, where these are not all of it."""

    __slots__ = ("leaves", "structure")

    def __init__(self, leaves: list[tuple[str, Any]], structure: TreeDef) -> None:
        self.leaves = leaves
        self.structure = structure

    def __call__(self, arrays: tuple[Any, ...]) -> Any:
        given = iter(arrays)
        leaves: list[Any] = []
        for kind, value in self.leaves:
            if kind == "array":
                leaves.append(next(given))
            elif kind == "number":
                leaves.append(next(given).item())
            else:
                leaves.append(value.copy() if kind == "copy" else value)
        return self.structure.unflatten(leaves)


# What cannot be changed by whoever gets it.
_ATOMS = (*STATIC_TYPES, *NUMBERS, np.generic, np.dtype, type, Enum, range, slice)


def _second(array: Any, number: int) -> int:
    return number


def declare_outputs(graph: Graph, result: Any, name: str) -> _Finish | None:
    leaves, structure = flatten(result)
    if leaves and all(isinstance(leaf, Value) and leaf.node.kind != "constant" for leaf in leaves):
        graph.output(result)
        return None
    template: list[tuple[str, Any]] = []
    values = []
    for k, leaf in enumerate(leaves):
        if is_number(leaf):
            template.append(("number", None))
            values.append(leaf._value)
        elif isinstance(leaf, Dim):  # a named size is a number when the plan runs
            template.append(("number", None))
            values.append(apply(_second, (graph.inputs[0], leaf), {}, Spec(np.dtype(np.int64), ()), name="size"))
        elif isinstance(leaf, Value) and leaf.node.kind == "constant":
            template.append(("copy", graph.run(leaf)))
        elif isinstance(leaf, Value):
            template.append(("array", None))
            values.append(leaf)
        elif type(leaf) is np.ndarray:  # computed of nothing: the same every time, and the caller's own
            template.append(("copy", leaf.copy()))
        elif isinstance(leaf, _ATOMS):
            template.append(("as it is", leaf))
        else:
            raise TypeError(
                f"{name} returned {'' if structure.is_leaf else structure.leaf_paths()[k] + ', '}an object of type "
                f"{type(leaf).__name__}: what is compiled returns arrays, numbers, text or None, in tuples, lists, "
                "dicts, named tuples and dataclasses"
            )
    graph.output(tuple(values))
    return _Finish(template, structure)


class Both:
    """One after the other."""

    __slots__ = ("first", "second")

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def __call__(self, result: Any) -> Any:
        return self.second(self.first(result))


class Apart:
    """Copies what is one array in the result of a plan, equal nodes being merged, but two in that of the function."""

    __slots__ = ("keys",)

    def __init__(self, keys: list[int]) -> None:
        self.keys = keys

    @classmethod
    def make(cls, result: Any, plan: Plan) -> Apart | None:
        """None if every array of the result is as much an array of its own as in that of the function."""
        keys = [leaf._key for leaf in flatten(result)[0]]
        return cls(keys) if len(set(zip(keys, plan._places(), strict=True))) > len(set(plan._places())) else None

    def __call__(self, result: Any) -> Any:
        leaves, structure = flatten(result)
        first: dict[int, int] = {}
        shared = False
        for k, (leaf, key) in enumerate(zip(leaves, self.keys, strict=True)):
            if first.setdefault(id(leaf), key) != key:
                leaves[k] = leaf.copy()
                shared = True
        return structure.unflatten(leaves) if shared else result
