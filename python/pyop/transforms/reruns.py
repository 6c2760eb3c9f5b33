"""Loops that run but once, where their derivative runs them again.

In reverse mode a loop is run by a second one, which stores what the derivative needs, and has the same results. When
the derivative is made, what has been computed of the results of the first is written down again, of those of the
second: then nobody reads the first, unless something else does.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from .._core import Value
from ..graph.node_call import add, record_of

__all__ = ["note_rerun", "without_first_runs"]

_MOST = 5000  # nodes behind the first loop, of which some are written down again


def note_rerun(results: Sequence[Value], again: Sequence[Value]) -> None:
    """Note in their graph that a loop that was run again gives the same results."""
    found = {}
    for value, same in zip(results, again, strict=True):
        if bool(same._is_scalar) != bool(value._is_scalar) and same.node.function is operator.getitem:
            same = same.node.inputs[0]  # not taken out of its array
        if same.spec != value.spec or bool(same._is_scalar) != bool(value._is_scalar):
            return
        found[value.node.index, value.output_index] = same.node.index, same.output_index
    for place, other in found.items():
        results[0].graph._reruns.setdefault(place, other)


def without_first_runs(graph: Any, wanted: Sequence[Value], others: Sequence[Value] = ()) -> list[Value]:
    """Return the same Values, computed of what the second runs give; or themselves, where the first runs are read by
    `others`, or by what may be done but once.
    """
    first = min((node for node, _ in graph._reruns), default=len(graph))
    if len(graph) - first > _MOST:
        return list(wanted)
    instead = {graph._value(*place)._key: graph._value(*other) for place, other in graph._reruns.items()}
    changed = set(instead)
    for index in range(first, len(graph)):
        node = graph[index]
        if any(value._key in changed for value in node.inputs):
            if node.stateful:
                return list(wanted)
            changed.update(value._key for value in node.outputs)
    if any(value._key in changed for value in others):
        return list(wanted)
    made: dict[int, Value] = {}

    def known(key: int) -> bool:
        return key in made or key not in changed

    waiting = [value for value in reversed(wanted) if value._key in changed]
    while waiting:
        value = waiting[-1]
        if known(value._key):
            waiting.pop()
            continue
        same = instead.get(value._key)
        reads = value.node.inputs if same is None else [same]
        missing = [x for x in reads if not known(x._key)]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if same is not None:
            made[value._key] = made.get(same._key, same)
            continue
        _write_again(graph, value.node, made)
    return [made.get(value._key, value) for value in wanted]


def _write_again(graph: Any, node: Any, made: dict[int, Value]) -> None:
    def found(index: int, output: int) -> Value:
        value: Value = graph._value(index, output)
        return made.get(value._key, value)

    new = add(graph, record_of(node), found).outputs
    for old, value in zip(node.outputs, new, strict=True):
        made[old._key] = value
        if (node.index, old.output_index) in graph._numbers:
            graph._numbers.add((value.node.index, value.output_index))
