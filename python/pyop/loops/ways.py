"""The ways through one iteration, which decides by the contents of arrays, as one: `Branch` nodes.

The iteration was written down once for each outcome of its decisions. Until two ways decide differently their nodes are
the same, one by one: those of the first stand for all. What comes behind becomes the parts of a `Branch`, whose inputs
are Values from before the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._core import Value
from ..graph.graph import Graph
from ..graph.node_call import declared_spec
from .node import Branch
from .recording import copied, is_stand_in
from .weak import Weak

__all__ = ["MOST_WAYS", "Decision", "Way", "joined"]

MOST_WAYS = 32


@dataclass(frozen=True)
class Decision:
    """A truth that was asked for, after so many nodes of its way."""

    value: Value
    after: int
    outcome: bool


@dataclass
class Way:
    """One way through an iteration: its nodes are those from `first` to `end`."""

    first: int
    end: int = 0
    taken: list[Decision] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)


def joined(graph: Graph, before: int, ways: Sequence[Way], depth: int = 0) -> list[Value]:
    """What an iteration makes, whichever way it goes; `before`: Values from there on are of the iteration."""
    first = ways[0]
    if len(ways) == 1:
        return first.results
    decision = first.taken[depth]
    parts = []
    for outcome in (True, False):
        group = [way for way in ways if way.taken[depth].outcome is outcome]
        parts.append((group[0], joined(graph, before, group, depth + 1)))
    (yes, made_yes), (no, made_no) = parts
    same = [
        _key(a, yes, first, decision) == _key(b, no, first, decision) for a, b in zip(made_yes, made_no, strict=True)
    ]
    if all(same):
        return made_yes
    halves = [
        _part(graph, before, way, [v for v, alike in zip(made, same, strict=True) if not alike], first, decision.after)
        for way, made in parts
    ]
    truth = decision.value if decision.value.dtype == np.bool_ else decision.value != 0
    chosen = [v for v, alike in zip(made_yes, same, strict=True) if not alike]
    node = graph._add_call(
        Branch(halves[0][0], halves[1][0]),
        (truth, *halves[0][1], *halves[1][1]),
        "branch",
        specs=[value.spec for value in chosen],
        lends=False,
        scalar=all(value._is_scalar for value in chosen),
    )
    graph._weak = graph._weak or Weak()
    graph._weak.note_branch(
        node._results[0].node.index,
        *[[v for v, alike in zip(a, same, strict=True) if not alike] for a in (made_yes, made_no)],
    )
    made = iter(zip(node._results, chosen, strict=True))
    results = []
    for value, alike in zip(made_yes, same, strict=True):
        if alike:
            results.append(value)
            continue
        new, old = next(made)
        results.append(new[()] if old._is_scalar and not new._is_scalar else new)
    return results


def _key(value: Value, way: Way, first: Way, decision: Decision) -> Any:
    """What is equal for Values from before a decision that are the same on two ways."""
    at = value.node.index
    if way.first <= at < way.first + decision.after:
        at += first.first - way.first
    elif way.first <= at < way.end and way is not first:
        return at, value.output_index, way.first
    return at, value.output_index


def _part(
    graph: Graph, before: int, way: Way, results: list[Value], first: Way, after: int
) -> tuple[Graph, list[Value]]:
    """What makes `results` behind a decision of a way, as a graph, and the Values that it reads."""

    def outside(value: Value) -> Value | None:
        """What an input of the part is, on the first way; None if it is computed in the part."""
        at = value.node.index
        if at < before or is_stand_in(graph[at]):
            return value
        if way.first <= at < way.first + after:
            return graph._value(at - way.first + first.first, value.output_index)
        return None

    made = Graph(name="part")
    for owner in graph._kept:
        made._keep(owner)
    waiting, found = list(results), set[int]()
    read: dict[int, Value] = {}
    while waiting:
        value = waiting.pop()
        if outside(value) is not None:
            read.setdefault(value._key, value)
        elif value.node.index not in found:
            found.add(value.node.index)
            waiting += value.node.inputs
    copies: dict[int, Value] = {}
    inputs: list[Value] = []
    for key, value in read.items():
        if value.node.kind == "constant":
            copies[key] = copied(made, value.node, copies)[0]
        else:
            copies[key] = made._add_input(
                declared_spec(value), value.node.name.partition("_")[0], bool(value._is_scalar)
            )
            before_it = outside(value)
            assert before_it is not None
            inputs.append(before_it)
    for index in sorted(found):
        node = graph[index]
        for old, new in zip(node.outputs, copied(made, node, copies), strict=True):
            copies.setdefault(old._key, new)
    made.output([copies[value._key] for value in results])
    return made, inputs
