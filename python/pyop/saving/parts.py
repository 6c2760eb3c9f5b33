"""Take a graph apart: one record for each node, in creation order, from which the same graph is made again.

A field that a record lacks is lost in every copy: pickles, files and `put_into` use its fields. It holds the node's own
objects (functions, contracts, arrays); `pyop.saving.pickles` and `pyop.saving.files` write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .._tree import TreeDef
from ..graph.graph import Graph
from ..graph.node_call import Record, add, record_of

__all__ = ["Parts", "outputs_of", "parts_of", "put_into", "put_together", "set_origins"]

G = TypeVar("G", bound=Graph)


@dataclass(frozen=True)
class Parts:
    """Hold the parts of a graph."""

    name: str
    records: tuple[Record, ...]
    outputs: tuple[list[tuple[int, int | None]], TreeDef] | None
    writes: tuple[tuple[int, tuple[int, int]], ...] = ()
    absorbed: tuple[tuple[int, int], ...] = ()


def parts_of(graph: Graph) -> Parts:
    """Take a graph apart."""
    return Parts(graph.name, tuple(map(record_of, graph.nodes)), outputs_of(graph), graph._writes, graph._absorbed)


def outputs_of(graph: Graph) -> tuple[list[tuple[int, int | None]], TreeDef] | None:
    """Return which values are the outputs, and in what structure."""
    outputs = graph._outputs
    return None if outputs is None else (list(outputs[0]), outputs[1])


def put_together(parts: Parts) -> Graph:
    """Return the graph of the parts."""
    return put_into(Graph(name=parts.name), parts)


def put_into(graph: G, parts: Parts) -> G:
    """Put the parts into an empty graph, which may be of a subclass."""
    for record in parts.records:
        add(graph, record, graph._value)
    if parts.outputs is not None:
        graph._outputs = (list(parts.outputs[0]), parts.outputs[1])
    graph._writes = parts.writes
    graph._absorbed = parts.absorbed
    return graph


def set_origins(graph: G, origins: Mapping[str, Iterable[int]]) -> G:
    """Set the places where nodes were created: for each place, which nodes."""
    for origin, nodes in origins.items():
        for node in nodes:
            graph._set_origin(node, origin)
    return graph
