"""Read the graphs inside a node of a model, as in `If` and `Loop`: the tensors that they read and define."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["bound_names", "copied", "free_names", "inner_graphs", "rename_tensors", "subgraphs"]


def copied(proto: Any) -> Any:
    """Return a copy of a message: a part of one keeps all of it alive."""
    made = type(proto)()
    made.CopyFrom(proto)
    return made


def subgraphs(node: Any) -> list[Any]:
    """Return the graphs among the attributes of a node."""
    graphs = []
    for attribute in node.attribute:
        if attribute.HasField("g"):
            graphs.append(attribute.g)
        graphs.extend(attribute.graphs)
    return graphs


def inner_graphs(node: Any) -> Iterator[Any]:
    """Yield the graphs inside a node, at any depth."""
    for graph in subgraphs(node):
        yield graph
        for inner in graph.node:
            yield from inner_graphs(inner)


def _own_names(graph: Any) -> set[str]:
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    return own | {sparse.values.name for sparse in graph.sparse_initializer}


def free_names(node: Any) -> set[str]:
    """Return the names that the graphs inside a node read from the graph around it."""
    free: set[str] = set()
    for graph in subgraphs(node):
        own = _own_names(graph)
        for inner in graph.node:
            free |= ({name for name in inner.input if name} | free_names(inner)) - own
            own |= set(inner.output)
        free |= {info.name for info in graph.output} - own
    return free


def bound_names(node: Any) -> set[str]:
    """Return the names that the graphs inside a node define."""
    bound: set[str] = set()
    for graph in inner_graphs(node):
        bound |= _own_names(graph) | {name for inner in graph.node for name in inner.output if name}
    return bound


def rename_tensors(node: Any, names: Mapping[str, str], inner: Mapping[str, str]) -> None:
    """Rename the tensors of a node: those that it and the graphs inside it read from the graph around it.

    `inner` renames those that the graphs inside it define.
    """
    node.input[:] = [names.get(name, name) for name in node.input]
    for graph in subgraphs(node):
        own = _own_names(graph)
        known = {name: new for name, new in names.items() if name not in own}
        known |= {name: inner[name] for name in own if name in inner}
        sparse = [tensor.values for tensor in graph.sparse_initializer]
        for item in (*graph.input, *graph.initializer, *sparse):
            item.name = inner.get(item.name, item.name)
        for part in graph.node:
            rename_tensors(part, known, inner)
            for name in part.output:
                known.pop(name, None)
                if name in inner:
                    known[name] = inner[name]
            part.output[:] = [inner.get(name, name) for name in part.output]
        for info in graph.value_info:
            info.name = inner.get(info.name, info.name)
        for info in graph.output:
            info.name = known.get(info.name, info.name)
