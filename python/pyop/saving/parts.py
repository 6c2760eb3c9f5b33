"""A graph taken apart: one record a node, in creation order, from which the same graph is made again.

What a record leaves out every copy loses: pickles, files and `put_into` go by its fields. It holds the node's own
objects (functions, contracts, arrays). How they are written down is the business of `pyop.saving.pickles` and
`pyop.saving.files`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .._core import Contract, Node, Value
from .._tree import TreeDef
from ..graph import Graph
from ..spec import Spec

__all__ = ["Parts", "Record", "declared_spec", "parts_of", "put_into", "put_together"]

G = TypeVar("G", bound=Graph)


@dataclass(frozen=True)
class Record:
    """One node."""

    kind: str
    name: str
    specs: tuple[Spec, ...]
    array: Any = None
    fn: Any = None
    inputs: tuple[tuple[int, int], ...] = ()
    contract: Contract | None = None
    form: tuple[tuple[int, ...], tuple[Any, ...], tuple[str, ...] | None] | None = None
    stateful: bool = False
    lends: bool = True
    of_scalars: bool = False
    scalar: bool | None = None  # whether its results of no dimension are scalars
    origin: str | None = None  # where it was created; None: here


@dataclass(frozen=True)
class Parts:
    """A graph."""

    name: str
    records: tuple[Record, ...]
    outputs: tuple[list[tuple[int, int | None]], TreeDef] | None


def parts_of(graph: Graph) -> Parts:
    """Take a graph apart."""
    outputs = graph._outputs
    return Parts(
        graph.name,
        tuple(_record(graph, node) for node in graph.nodes),
        None if outputs is None else (list(outputs[0]), outputs[1]),
    )


def _record(graph: Graph, node: Node) -> Record:
    specs = tuple(declared_spec(value) for value in node.outputs)
    if node.kind == "constant":
        return Record("constant", node.name, specs, array=graph.run(node.outputs[0]), origin=node.origin)
    scalar = next((value._is_scalar for value in node.outputs if value.shape == () or value.shape is None), None)
    if node.kind == "input":
        return Record("input", node.name, specs, scalar=scalar, origin=node.origin)
    return Record(
        "py",
        node.name,
        specs,
        fn=node.function,
        inputs=tuple((value.node.index, value.output_index) for value in node.inputs),
        contract=node.contract,
        form=node._form,
        stateful=node.stateful,
        lends=node._lends,
        of_scalars=node._of_scalars,
        scalar=scalar,
        origin=node.origin,
    )


def declared_spec(value: Value) -> Spec:
    """The spec of a Value; of text of any length, which is no dtype, that it is text."""
    spec = value.spec
    return spec if value._text is None else Spec(np.dtype(value._text), spec.shape)


def put_together(parts: Parts) -> Graph:
    """The graph of the parts."""
    return put_into(Graph(name=parts.name), parts)


def put_into(graph: G, parts: Parts) -> G:
    """The parts in an empty graph, of a subclass perhaps."""
    for k, record in enumerate(parts.records):
        if record.kind == "input":
            graph._add_input(record.specs[0], record.name, bool(record.scalar))
        elif record.kind == "constant":
            graph._add_constant(record.array, record.name)
        else:
            order, statics, kwnames = record.form or (None, None, None)
            graph._add_call(
                record.fn,
                tuple(graph._value(node, output) for node, output in record.inputs),
                record.name,
                specs=record.specs,
                contract=record.contract,
                order=order,
                statics=statics,
                kwnames=kwnames,
                stateful=record.stateful,
                lends=record.lends,
                of_scalars=record.of_scalars,
                scalar=record.scalar,
            )
        if record.origin is not None:
            graph._set_origin(k, record.origin)
    if parts.outputs is not None:
        graph._outputs = (list(parts.outputs[0]), parts.outputs[1])
    return graph
