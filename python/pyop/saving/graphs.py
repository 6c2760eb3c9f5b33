"""Take graphs inside graphs, the bodies of loops and branches, apart into writable parts, and rebuild them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from .._core import CallOnTree, Contract
from ..graph.graph import Graph
from ..graph.node_call import Record, kept_nodes, record_of
from ..loops.node import Branch, Loop
from .parts import Parts, parts_of, put_together

__all__ = [
    "branch_of",
    "call_problem",
    "graph_of",
    "graph_parts",
    "loop_of",
    "loop_parts",
    "without_absorbed",
]

_FIELDS = [field.name for field in fields(Record) if field.name != "origin"]


def graph_parts(graph: Graph) -> list[Any]:
    """Return the name, nodes and outputs of a graph."""
    parts = parts_of(graph)
    assert parts.outputs is not None
    records = [[getattr(record, name) for name in _FIELDS] for record in parts.records]
    return [parts.name, records, [list(place) for place in parts.outputs[0]], parts.outputs[1]]


def graph_of(name: Any, records: Any, places: Any, tree: Any) -> Graph:
    """Return the graph of these parts; ValueError where they do not fit together."""
    made: list[Record] = []
    for k, items in enumerate(records):
        record = Record(**dict(zip(_FIELDS, items, strict=True)))
        if record.kind not in ("input", "constant", "py"):
            raise ValueError(f"node {record.name!r:.80} is of the unknown kind {record.kind!r:.80}")
        if record.kind == "constant" and not isinstance(record.array, np.ndarray):
            raise ValueError(f"the constant {record.name!r:.80} is no array")
        if record.kind == "py":
            _check(record, k, made)
        made.append(record)
    outputs = [(int(node), int(output)) for node, output in places]
    for place in outputs:
        _check_place(place, len(made), made, "an output of the graph")
    if tree.num_leaves != len(outputs):
        raise ValueError(f"the outputs have {tree.num_leaves} places for {len(outputs)} results")
    return put_together(Parts(str(name), tuple(made), (outputs, tree)))  # type: ignore[arg-type]


def _check(record: Record, k: int, before: Sequence[Record]) -> None:
    if not callable(record.fn):
        raise ValueError(f"the function of node {record.name!r:.80} is {type(record.fn).__name__} {record.fn!r:.80}")
    for place in record.inputs:
        _check_place(place, k, before, f"what node {record.name!r:.80} reads")
    given = len(record.inputs) if record.form is None else len(record.form[0]) - len(record.form[2] or ())
    problem = call_problem(record.fn, record.contract, len(record.inputs), given, len(record.specs))
    if problem is not None:
        raise ValueError(f"node {record.name!r:.80} {problem}")


def _check_place(place: Any, k: int, before: Sequence[Record], what: str) -> None:
    node, output = place
    if not 0 <= node < k or not 0 <= output < len(before[node].specs):
        raise ValueError(f"{what} is of no node before it")


def call_problem(fn: Any, contract: Any, n_inputs: int, given: int, n_outputs: int) -> str | None:
    """Return what is wrong with the counts of a call's arguments and results, which the compiler relies on; or None."""
    if isinstance(contract, Contract) and contract._parts[4] is None and contract.n_outputs != n_outputs:
        return f"has {n_outputs} results, and its op declares {contract.n_outputs}"
    if isinstance(fn, np.ufunc) and contract is None and (given, n_outputs) != (fn.nin, fn.nout):
        return f"has {given} arguments and {n_outputs} results, and {fn.__name__} has {fn.nin} and {fn.nout}"
    if isinstance(fn, CallOnTree):
        count = sum(leaf is CallOnTree.ARRAY for leaf in fn.leaves)
        if (count, given) != (n_inputs, n_inputs):
            return f"has {n_inputs} inputs, and places for {count} among its arguments"
    if isinstance(fn, Loop) and (n_inputs != len(fn.body.inputs) + 1 or n_outputs != fn.carried):
        return f"is a loop of {len(fn.body.inputs)} inputs that carries {fn.carried} arrays, and has {n_inputs} inputs"
    if isinstance(fn, Branch):
        wanted = 1 + len(fn.yes.inputs) + len(fn.no.inputs), len(fn.yes._output_leaves()[0])
        if wanted != (n_inputs, n_outputs) or len(fn.no._output_leaves()[0]) != n_outputs:
            return f"has {n_inputs} inputs and {n_outputs} results, and its branches {wanted[0]} and {wanted[1]}"
    return None


def loop_parts(loop: Loop) -> list[Any]:
    """Return the body of a loop, and how it is run."""
    return [loop.body, loop.carried, loop.step, loop.conditional, loop.checkpoint]


def loop_of(body: Any, carried: Any, step: Any, conditional: Any, checkpoint: Any) -> Loop:
    """Return the loop of these parts; ValueError where they do not fit together."""
    _check_part(body)
    if type(carried) is not int or type(step) is not int or step == 0:
        raise ValueError(f"a loop that carries {carried!r:.80} arrays in steps of {step!r:.80}")
    if not 0 < carried < len(body.inputs) or len(body._output_leaves()[0]) != carried + bool(conditional):
        raise ValueError(f"the body of a loop that carries {carried} arrays does not take and return as many")
    return Loop(body, carried, step, bool(conditional), bool(checkpoint))


def branch_of(yes: Any, no: Any) -> Branch:
    """Return the branch of these parts."""
    _check_part(yes)
    _check_part(no)
    return Branch(yes, no)


def _check_part(part: Any) -> None:
    if type(part) is not Graph:
        raise ValueError(f"{part!r:.80} is no graph")


def without_absorbed(graph: Graph) -> Graph:
    """Return the graph without the nodes that have become bodies of loops, which nobody reads."""
    if not graph._absorbed:
        return graph
    new = {old: k for k, old in enumerate(kept_nodes(graph))}
    records = []
    for old in new:
        record = record_of(graph[old])
        inputs = tuple((new[node], output) for node, output in record.inputs)
        records.append(Record(**{**{name: getattr(record, name) for name in _FIELDS}, "inputs": inputs},
                              origin=record.origin))  # fmt: skip
    outputs = None
    if graph._outputs is not None:
        places, tree = graph._outputs
        outputs = ([(new[node], output) for node, output in places], tree)
    made = put_together(Parts(graph.name, tuple(records), outputs))
    for owner in graph._kept:
        made._keep(owner)
    return made
