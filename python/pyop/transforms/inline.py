"""Call a Graph as a function: copy its nodes into the graph of the Values it is called with."""

from __future__ import annotations

from typing import Any

from .._core import Value
from .._tree import flatten
from ..autograd.batch_calls import one_by_one
from ..autograd.batched import is_batched, level_of
from ..containers import plain_array
from ..graph.graph import Graph
from ..graph.node_call import add, kept_nodes, record_of

__all__ = ["Inlined"]


class Inlined:
    """Compute what a graph with outputs computes, on arrays or on Values of another graph."""

    _pyop_graph = True

    def __init__(self, graph: Graph) -> None:
        if graph.outputs is None:
            raise TypeError(f"{graph!r} has no outputs to differentiate: declare them with graph.output(...)")
        graph._check_no_writes("return what it writes instead, `x = x.copy()` first")
        self.graph = graph
        self.__name__ = graph.name

    def __call__(self, *arrays: Any) -> Any:
        inputs = self.graph.inputs
        if len(arrays) != len(inputs):
            raise TypeError(f"graph {self.graph.name!r} takes {len(inputs)} arrays, got {len(arrays)}")
        if any(is_batched(a) for a in arrays):
            return one_by_one(self, arrays, {}, level_of(arrays))
        target = next((a.graph for a in arrays if isinstance(a, Value)), None)
        if target is None:
            return self.graph.run(feeds=dict(zip(inputs, arrays, strict=True)))
        new: dict[int, Any] = {}
        for value, array in zip(inputs, arrays, strict=True):
            new[value._key] = array if isinstance(array, Value) else target.constant(plain_array(array, "an argument"))

        def value_at(index: int, output: int) -> Any:
            return new[self.graph._value(index, output)._key]

        for node in (self.graph[k] for k in kept_nodes(self.graph)):
            if node.kind != "input":
                written = add(target, record_of(node), value_at)
                new.update({old._key: value for old, value in zip(node.outputs, written.outputs, strict=True)})
        leaves, structure = flatten(self.graph.outputs)
        return structure.unflatten([new[leaf._key] for leaf in leaves])
