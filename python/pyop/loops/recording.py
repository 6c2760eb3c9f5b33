"""Record a stretch of a graph as the body of a loop.

The body is written down in the graph itself, once, with stand-ins for the number of the iteration and for what is
carried. What its results need is then copied into a graph of its own: Values from before are what stays the same in all
iterations. The nodes that were written down are left without a reader, and compiling leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from .._core import Value
from ..declare.dim import Dim
from ..declare.spec import Spec
from ..graph.counter import Counter
from ..graph.graph import Graph
from ..graph.node_call import add, declared_spec, record_of
from . import numbers  # noqa: F401  # what counters do
from .node import Loop

__all__ = ["Recording", "add_loop", "copied", "is_stand_in"]

_COUNT = Spec(np.dtype(np.int64), ())


def _stand_in() -> None:
    raise AssertionError("a stand-in of a loop's body is never computed")


class Recording:
    """Record the nodes of a graph from now on, with stand-ins for what they are given in each iteration."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.first = len(graph)
        self.written: list[Any] = []  # as Value._log_writes has it
        self._before: Any = None
        self._counter = ""
        self.names: dict[Any, str] = {}  # of numbers that are computed of counters
        self.facts: dict[Any, Any] = {}  # what is known of variables where a truth holds (loops/alternatives.py)
        self.closed = False
        self.end = 0  # behind the last of them; 0: not yet

    def __enter__(self) -> Self:
        self._before = Value._log_writes(self.written)
        return self

    def __exit__(self, *error: object) -> None:
        Value._log_writes(self._before)
        self.close()

    def close(self) -> None:
        """End the recording: what was recorded has no effects, and its counter means nothing behind it."""
        if self.closed:
            return
        self.closed = True
        self.graph._absorb(self.first)
        self.graph._absorbed += ((self.first, self.end or len(self.graph)),)
        self.graph._counters.pop(self._counter, None)

    def stand_in(self, spec: Spec, scalar: bool | None = False, name: str = "carried") -> Value:
        """Return a new Value of which only this is known."""
        made = self.graph._add_call(_stand_in, (), name, specs=(spec,), lends=False, scalar=scalar)
        value: Value = made._results[0]
        self.graph._known[value.node.index] = False
        return value

    def counter(self, needed: Callable[[], Any]) -> tuple[Any, Value]:
        """Return what stands for the number of the iteration, and its Value."""
        value = self.stand_in(_COUNT, True, "counter")
        name = self._counter = f"i{value.node.index}"
        self.graph._counters[name] = value.node.index
        size: Any = Dim(name)
        return Counter(size, self.graph, needed), value

    def written_before(self) -> list[Any]:
        """Return the handles of memory that is older than this, and was written."""
        return [handle for handle, node, _ in self.written if node < self.first]

    def body(self, given: Sequence[Value], results: Sequence[Value]) -> tuple[Graph, list[Value], bool]:
        """Return a graph that computes `results` from the stand-ins `given`.

        Return, too, the Values from before that it reads, which are its further inputs, and whether it has effects.
        """
        graph = self.graph
        self.end = len(graph)
        nodes = self._needed(results)
        made = Graph(name="body")
        for owner in graph._kept:
            made._keep(owner)
        copies = {
            value._key: made._add_input(declared_spec(value), value.node.name.partition("_")[0], bool(value._is_scalar))
            for value in given
        }
        constant: list[Value] = []
        for value in self._from_before(nodes, results, copies):
            if value.node.kind == "constant":
                copies[value._key] = copied(made, value.node, copies)[0]
            else:
                copies[value._key] = made._add_input(declared_spec(value), value.name, bool(value._is_scalar))
                constant.append(value)
        effects = False
        for index in nodes:
            node = graph[index]
            effects = effects or node.stateful
            for old, new in zip(node.outputs, copied(made, node, copies), strict=True):
                copies.setdefault(old._key, new)
        made.output([copies[value._key] for value in results])
        return made, constant, effects

    def _needed(self, results: Sequence[Value]) -> list[int]:
        waiting = [value.node.index for value in results]
        waiting += [index for index in range(self.first, len(self.graph)) if self.graph[index].stateful]
        found: set[int] = set()
        while waiting:
            index = waiting.pop()
            if index < self.first or index in found or self.graph[index].function is _stand_in:
                continue
            found.add(index)
            waiting += [value.node.index for value in self.graph[index].inputs]
        return sorted(found)

    def _from_before(self, nodes: Iterable[int], results: Sequence[Value], known: Any) -> list[Value]:
        found: dict[int, Value] = {}
        read = [value for index in nodes for value in self.graph[index].inputs]
        for value in (*read, *results):
            if value.node.index < self.first and value._key not in known:
                found.setdefault(value._key, value)
        return list(found.values())


def is_stand_in(node: Any) -> bool:
    """Return whether a node stands for what a body is given in each iteration."""
    return node.kind == "py" and node.function is _stand_in


def copied(graph: Graph, node: Any, copies: Any) -> tuple[Value, ...]:
    places = {(value.node.index, value.output_index): copies[value._key] for value in node.inputs}
    made = add(graph, record_of(node), lambda index, output: places[index, output])
    return made.outputs


def add_loop(
    recording: Recording,
    bounds: tuple[Any, Any, int],
    given: Sequence[Value],
    start: Sequence[Value],
    results: Sequence[Value],
    conditional: bool = False,
    checkpoint: bool = False,
) -> list[Value]:
    """Add the node of a loop to the graph, and return what it leaves behind. `given` are the stand-ins: the number of
    the iteration, and of what is carried; `start` is that at first, `results` after an iteration.
    """
    graph = recording.graph
    lower, upper, step = bounds
    body, constant, effects = recording.body(given, results)
    loop = Loop(body, len(start), step, conditional, checkpoint)
    scalars = [bool(value._is_scalar) for value in start]
    recording.close()  # what comes now is not part of it
    node = graph._add_call(
        loop,
        (_count(lower), _count(upper), *start, *constant),
        "loop",
        specs=[value.spec for value in given[1:]],
        stateful=effects,
        lends=False,
        scalar=all(scalars),
    )
    return [value[()] if scalar and not value._is_scalar else value for value, scalar in zip(node._results, scalars)]  # noqa: B905


def _count(number: Any) -> Any:
    return number if type(number) is Value else np.asarray(number, np.int64)
