"""Check and convert what a loop carries: a tree of arrays, whose leaves become Values of a graph."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .._core import Tensor, Value, graph_being_built
from .._tree import flatten
from ..declare.rebuild import walk
from ..graph.counter import is_counter
from ..graph.symbolic_number import is_number
from ..refusals import refusal
from .recording import Recording

__all__ = ["PEELED", "apart", "check_writes", "checked", "graph_of", "has_tensors", "own", "refuse_change"]
__all__ += ["same_specs", "value_of"]

PEELED = 3  # iterations that may have other dtypes than those behind them


def same_specs(before: list[Any], after: Any) -> bool:
    return all(
        b is not None and a.spec == b.spec and a._is_scalar == b._is_scalar and a.dtype is not None
        for a, b in zip(before, after, strict=True)
    )


def refuse_change(name: str, values: list[Any], after: Any, tree: Any) -> NoReturn:
    told = [
        f"{_told(a)} becomes {_told(b)}" for a, b in zip(values, after or (), strict=False) if not same_specs([a], [b])
    ]
    what = "; ".join(told) or "a Python number is carried, whose dtype is that of what it meets"
    raise TypeError(
        f"{name}: what is carried must have one dtype and shape in all iterations, but {what}: start with an array of "
        "the dtype and shape that the body returns (np.zeros(shape, dtype), np.float64(0.0))"
    )


def _told(value: Any) -> str:
    return "a Python number" if value is None else f"{value.spec}{' (a scalar)' if value._is_scalar else ''}"


def check_writes(recording: Recording, name: str) -> None:
    for handle in recording.written_before():
        raise refusal(
            f"the body of {name} writes into {handle.name!r}, which it was not given: make that a part of the state"
        )


def checked(tree: Any, state: Any, name: str) -> tuple[list[Any], Any]:
    leaves, found = flatten(state)
    if found != tree:
        raise TypeError(f"{name}: the state was {tree}, and the body returned {found}: return one of the same form")
    return leaves, state


def graph_of(x: Any) -> Any:
    for leaf in walk(x):
        if type(leaf) is Value:
            return leaf.graph
        if is_number(leaf):
            return leaf._value.graph
        if is_counter(leaf):
            return leaf._graph
    return graph_being_built()


def has_tensors(leaves: Any) -> bool:
    return any(issubclass(type(leaf), Tensor) for leaf in leaves)


def value_of(graph: Any, leaf: Any, weak: bool = False) -> Any:
    """Return a leaf as a Value; None for a Python number, which has no dtype of its own, unless `weak`."""
    if type(leaf) is Value:
        return leaf._apart()
    if issubclass(type(leaf), np.ndarray) or isinstance(leaf, np.generic):
        value = graph.constant(leaf)
        return value[()] if isinstance(leaf, np.generic) else value
    return graph.constant(leaf) if weak and not is_number(leaf) and not is_counter(leaf) else None


def own(leaf: Any) -> Any:
    """Return a leaf that a body may write into: of an array a copy."""
    return leaf.copy() if type(leaf) is np.ndarray else leaf


def apart(state: Any) -> Any:
    leaves, tree = flatten(state)
    return tree.unflatten([leaf.copy() if type(leaf) in (np.ndarray, Value) else leaf for leaf in leaves])
