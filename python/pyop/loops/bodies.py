"""Copy bodies of loops and branches into other bodies, which their derivatives are made of."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dim import Dim
from ..declare.spec import Spec
from ..gradients.adjoints import put
from ..gradients.unbroadcast import _fit_like, broadcast_like, number_of
from ..graph.graph import Graph
from ..graph.node_call import add, call_of, declared_spec, record_of

__all__ = ["called", "copied", "counters_of", "input_like", "is_fixed", "needed", "new_counter", "place"]
__all__ += ["shapes_read", "trip_count"]


_NOTHING: dict[Any, Any] = {}


def copied(
    source: Graph, target: Graph, results: Sequence[Value], known: dict[int, Value], instead: Any = _NOTHING
) -> list[Value]:
    """Write the nodes that `results` need into another graph, and return their copies there.

    `known` has the Values to begin with, by their keys in `source`, and is added to. `instead` has what a node reads in
    the place of another Value, by the number of the node and the key.
    """
    for owner in source._kept:
        target._keep(owner)
    for index in needed(source, results, known, instead):
        node = source[index]

        def found(reads: int, output: int, index: int = index) -> Value:
            key = source._value(reads, output)._key
            return instead[index, key] if (index, key) in instead else known[key]

        made = add(target, record_of(node), found).outputs
        for old, new in zip(node.outputs, made, strict=True):
            known.setdefault(old._key, new)
    for name, value in counters_of(source).items():
        if value._key in known:
            number = known[value._key]
            number = number if number.output_index == 0 else number + 0
            target._counters[name] = number.node.index
    return [known[value._key] for value in results]


def needed(graph: Graph, results: Iterable[Value], known: Any, instead: Any = _NOTHING) -> list[int]:
    """Return the numbers of the nodes that `results` need and that are not known, in order."""
    waiting = list(results)
    found: set[int] = set()
    while waiting:
        value = waiting.pop()
        if value._key in known or value.node.index in found:
            continue
        found.add(value.node.index)
        index = value.node.index
        waiting += [read for read in graph[index].inputs if (index, read._key) not in instead]
    return sorted(found)


def counters_of(graph: Graph) -> dict[str, Value]:
    """Return the Values that are numbers of iterations, by their names among the sizes in a graph."""
    found = {name: graph._value(index, 0) for name, index in graph._counters.items()}
    for node in graph.nodes:
        carriers = (call_of(node).carriers or {}) if node.kind == "py" else {}
        found.update({name: value for name, (value, axis) in carriers.items() if axis < 0})
    return found


def new_counter(graph: Graph, taken: Iterable[Graph]) -> Value:
    """Add an input for the number of the iteration. Its name among the sizes is that of no counter in `taken`."""
    names = {name for other in taken for name in counters_of(other)}
    k = 0
    while f"p{k}" in names:
        k += 1
    number: Value = graph._add_input(Spec(np.dtype(np.int64), ()), "counter", True)
    graph._counters[f"p{k}"] = number.node.index
    return number


def place(number: Value) -> Dim:
    """Return the size that stands for the number of the iteration, to index by."""
    graph: Any = number.graph
    return Dim(next(name for name, index in graph._counters.items() if index == number.node.index))


def input_like(graph: Graph, value: Value, name: str = "") -> Value:
    """Add an input that stands for `value`, which is of another graph."""
    stem = name or value.node.name.rstrip("0123456789").rstrip("_") or "input"
    made: Value = graph._add_input(declared_spec(value), stem, bool(value._is_scalar))
    return made


def is_fixed(value: Value, graph: Graph, carried: int) -> bool:
    """Return whether dtype and shape are known, and the same in all iterations; the body carries `carried` arrays."""
    if value.dtype is None or value.dtype.kind not in "biufc" or value.shape is None or None in value.shape:
        return False
    names = {name for size in value.shape if isinstance(size, Dim) for name in size.names}
    if not names:
        return True
    constant = {given._key for given in graph.inputs[carried + 1 :]}
    counters = counters_of(graph)
    return all(name not in counters or counters[name]._key in constant for name in names)


def called(graph: Any, function: Any, inputs: Sequence[Any], likes: Sequence[Value]) -> list[Value]:
    """Add the node of a loop or branch, and return its results, which are as `likes`."""
    if not likes:
        return []
    specs = [declared_spec(value) for value in likes]
    scalar = all(value._is_scalar for value in likes)
    node = graph._add_call(function, tuple(inputs), "loop", specs=specs, lends=False, scalar=scalar)
    pairs = zip(node._results, likes, strict=True)
    return [made[()] if like._is_scalar and not made._is_scalar else made for made, like in pairs]


def shapes_read(node: Any) -> set[int]:
    """Return the keys of the inputs of which a node reads only the shape."""
    call = call_of(node)
    places = _OF_SHAPES.get(call.function, ()) if isinstance(call.function, Hashable) else ()
    keys = [call.args[k]._key for k in places if k < len(call.args) and type(call.args[k]) is Value]
    inputs = [value._key for value in node.inputs]
    return {key for key in keys if inputs.count(key) == 1}


# The functions that read the shapes of some arguments alone: which these are.
_OF_SHAPES: dict[Any, tuple[int, ...]] = {
    np.zeros_like: (0,),
    np.ones_like: (0,),
    put: (1,),
    broadcast_like: (1,),
    _fit_like: (1, 2),
}


# --- numbers


def trip_count(lower: Any, upper: Any, step: int) -> Any:
    """Return how many iterations there are: an int where that is known, else a Value."""
    first, end = number_of(lower), number_of(upper)
    if first is not None and end is not None:
        return len(range(first, end, step))
    away = upper - lower if step > 0 else lower - upper
    size = abs(step)
    count = away if size == 1 else (away + (size - 1)) // size
    return np.maximum(count, np.int64(0))
