"""Write loops by position: a body that is given which iteration it is, from 0 on, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import Value
from ..gradients.unbroadcast import number_of
from ..graph.graph import Graph
from ..graph.node_call import declared_spec
from .bodies import called, copied, input_like, new_counter

if TYPE_CHECKING:
    from .node import Loop

__all__ = ["by_position", "in_segments", "run_for_count"]


def run_for_count(graph: Any, loop: Loop, args: Sequence[Value]) -> Any:
    """Return how many iterations a loop with a condition has, by running it."""
    made = Graph(name="body")
    inputs = [input_like(made, value) for value in loop.body.inputs]
    done = made._add_input(declared_spec(inputs[0]), "count", True)
    known = {old._key: new for old, new in zip(loop.body.inputs, inputs, strict=True)}
    outputs = copied(loop.body, made, loop.body._output_leaves()[0], known)
    cut = loop.carried
    order = [*inputs[: cut + 1], done, *inputs[cut + 1 :]]
    body = Graph(name="body")
    known = {value._key: input_like(body, value) for value in order}
    results = copied(made, body, [*outputs[:cut], done + 1, outputs[-1]], known)
    body.output(results)
    zero = graph.constant(np.zeros((), np.int64))
    given = [*args[: cut + 2], zero, *args[cut + 2 :]]
    return called(graph, type(loop)(body, cut + 1, loop.step, True), given, [*args[2 : cut + 2], zero])[-1]


def by_position(loop: Loop, lower: Any) -> tuple[Graph, list[Value]]:
    """Return the body with the position, from 0 on, as its first input, and the Values that it reads in addition."""
    first = number_of(lower)
    leaves = loop.body._output_leaves()[0][: loop.carried]
    if first == 0 and loop.step == 1 and not loop.conditional:
        return loop.body, []
    made = Graph(name="body")
    position = new_counter(made, [loop.body])
    inputs = [input_like(made, value) for value in loop.body.inputs[1:]]
    more: list[Value] = []
    start: Any = first
    if first is None:
        start = input_like(made, lower, "lower")
        more = [lower]
    number: Any = position if loop.step == 1 else position * loop.step
    number = number if first == 0 else number + start
    known = {old._key: new for old, new in zip(loop.body.inputs, (number, *inputs), strict=True)}
    made.output(copied(loop.body, made, leaves, known))
    return made, more


def in_segments(kind: type[Loop], body: Graph, carried: int, count: Any) -> tuple[Graph, Any, list[Value]]:
    """Return a loop as a loop of loops: the body of the outer one, how often it runs, and what it reads besides."""
    made = Graph(name="body")
    segment = new_counter(made, [body])
    inputs = [input_like(made, value) for value in body.inputs[1:]]
    more: list[Value] = []
    if isinstance(count, int):
        size: Any = isqrt(count - 1) + 1
        times: Any = -(-count // size)
        inside: Any = (size, count)
    else:
        size = np.maximum(np.ceil(np.sqrt(count)).astype(np.int64), np.int64(1))
        times = (count + (size - 1)) // size
        more = [size, count]
        inside = tuple([input_like(made, value, "size") for value in more])
    first = segment * inside[0]
    behind = np.minimum(first + inside[0], inside[1])
    made.output(called(made, kind(body, carried), [first, behind, *inputs], inputs[:carried]))
    return made, times, more
