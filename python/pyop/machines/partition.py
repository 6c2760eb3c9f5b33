"""`Graph.partition`: what of a graph would become a task, and why.

Any order in which each node comes behind what it reads may be cut anywhere, and the pieces depend on each other in no
circle. The order here is depth first, in which branches lie together, so that cuts leave branches apart. What is cheap
is in no piece: each that needs it computes it again, which costs less than to send it. Stateful nodes, with all that
they need, are one piece, in the order they were written.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import Node, Value
from ..graph.graph import Graph

__all__ = ["Partition", "Piece", "partition"]

OVERHEAD = 1e-3  # seconds that an engine takes for a task
WORTH = 10 * OVERHEAD
CHEAP = OVERHEAD / 10  # to be computed again rather than sent
PER_STEP, PER_BYTE, PER_CALL = 2e-6, 2e-10, 1e-3  # seconds of a step, of a byte of results, of a Python function


@dataclass(frozen=True)
class Piece:
    """Nodes that would be one task.

    Attributes
    ----------
    nodes : tuple of Node
    reads, gives : tuple of Value
        What comes from inputs and other pieces, and what these or the outputs need of it.
    seconds : float
        What its nodes cost.
    stateful : bool
    why : str
        Why it ends where it does.
    """

    nodes: tuple[Node, ...]
    reads: tuple[Value, ...]
    gives: tuple[Value, ...]
    seconds: float
    stateful: bool
    why: str


@dataclass(frozen=True)
class Partition:
    """The pieces of a graph, each behind those it reads. As text, a table."""

    graph: Graph
    pieces: tuple[Piece, ...]
    measured: bool

    def __str__(self) -> str:
        by = "measured" if self.measured else "estimated"
        lines = [f"{self.graph.name}: {len(self.pieces)} tasks, by {by} cost"]
        for k, piece in enumerate(self.pieces):
            names = [node.name for node in piece.nodes]
            shown = ", ".join(names if len(names) < 5 else [*names[:2], "…", names[-1]]) or "nothing"
            lines.append(f"  {k}: {len(names)} nodes ({shown}), {1e3 * piece.seconds:.3g} ms: {piece.why}")
        return "\n".join(lines)


def partition(graph: Graph, *, profile: Any = None) -> Partition:
    """Say which pieces of the graph would become tasks of `submit` and `to_dask`.

    Parameters
    ----------
    profile : Profile, optional
        Of calls of a plan of this graph: what its nodes cost. What is not in it is estimated.

    Returns
    -------
    Partition
        A piece is worth ten times what an engine takes for a task, but for the last one.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> print(pyop.trace(lambda x: np.sum(x * x), "float64[n]").partition())
    lambda: 1 tasks, by estimated cost
      0: 2 nodes (multiply, sum), 0.004 ms: all that is left
    """
    graph._check_no_writes("its pieces would write into copies; compile() it")
    leaves = [] if graph._outputs is None else graph._output_leaves()[0]
    absorbed = {k for first, behind in graph._absorbed for k in range(first, behind)}
    stateful = [node for node in graph.nodes if node.stateful and node.index not in absorbed]
    needed = _order([*(_node(leaf) for leaf in leaves), *stateful])
    if any(graph[k].stateful for k in absorbed):  # within a body: nothing is known of the order
        stateful = needed
    cost = _costs(needed, profile)
    first = {node.index for node in _order(stateful)}
    cheap = _cheap(needed, cost, first)
    cuts: list[tuple[list[Node], bool, str]] = []
    if first:
        together = sorted((n for n in needed if n.index in first), key=lambda n: n.index)
        cuts.append((together, True, "stateful nodes and what they need, in order"))
    rest = [n for n in needed if n.index not in first and n.index not in cheap]
    cuts += [(nodes, False, why) for nodes, why in _cut(rest, cost)]
    if not any(not is_stateful for _, is_stateful, _ in cuts) and any(_node(x).index in cheap for x in leaves):
        cuts.append(([n for n in needed if n.index in cheap], False, "all that is left"))
    elif cuts and not cuts[-1][1]:
        wanted = {n.index for n in _order([_node(x) for x in leaves if _node(x).index in cheap])} & cheap
        cuts[-1] = ([n for n in needed if n.index in wanted] + cuts[-1][0], *cuts[-1][1:])
    return Partition(graph, _joined(cuts, leaves, cost), profile is not None)


def _node(leaf: Value | Node) -> Node:
    return leaf if isinstance(leaf, Node) else leaf.node


def _order(sinks: Iterable[Node]) -> list[Node]:
    """What the sinks need, depth first, each node behind what it reads; no inputs and constants."""
    seen: set[int] = set()
    order: list[Node] = []
    stack = [(node, False) for node in sinks][::-1]
    while stack:
        node, read = stack.pop()
        if read:
            order.append(node)
        elif node.index not in seen and node.kind == "py":
            seen.add(node.index)
            stack.append((node, True))
            stack.extend((value.node, False) for value in node.inputs[::-1])
    return order


def _costs(nodes: list[Node], profile: Any) -> dict[int, float]:
    """Seconds, by the number of the node. Rows of a profile tell nodes of one line apart by their names."""
    measured: dict[tuple[str, str], float] = {}
    for row in () if profile is None else profile.rows:
        if row.kind in ("node", "native", "view", "group"):
            measured[row.where, row.name] = row.p50_ns / 1e9
    return {n.index: measured.get((n.origin, n.name), _estimate(n)) for n in nodes}


def _estimate(node: Node) -> float:
    module = getattr(node.function, "__module__", None) or ""
    if not isinstance(node.function, np.ufunc) and module.partition(".")[0] != "numpy":
        return PER_CALL
    size = 0
    for value in node._results:
        shape = () if value.shape is None else value.shape
        known = [n for n in shape if isinstance(n, int)]
        if len(known) == len(shape):
            size += 8 * math.prod(known)
    return PER_STEP + PER_BYTE * size


def _cheap(nodes: list[Node], cost: dict[int, float], but: set[int]) -> set[int]:
    """Nodes that cost next to nothing with all that they need."""
    whole: dict[int, float] = {}
    for node in nodes:
        before = {v.node.index for v in node.inputs if v.node.kind == "py"}
        known = node.index not in but and not before & but
        whole[node.index] = cost[node.index] + sum(whole[k] for k in before) if known else np.inf
    return {k for k, seconds in whole.items() if seconds <= CHEAP}


def _cut(nodes: list[Node], cost: dict[int, float]) -> list[tuple[list[Node], str]]:
    readers = Counter(k for node in nodes for k in {v.node.index for v in node.inputs})
    inside = {node.index for node in nodes}
    cuts: list[tuple[list[Node], str]] = []
    now: list[Node] = []
    held: set[int] = set()
    spent = 0.0
    for node in nodes:
        before = {v.node.index for v in node.inputs} & inside
        follows = bool(now) and now[-1].index in before and readers[now[-1].index] == 1 and before <= held
        if now and spent >= WORTH and not follows:
            cuts.append((now, f"worth {spent / OVERHEAD:.0f} overheads, and what comes next does not only follow"))
            now, held, spent = [], set(), 0.0
        now.append(node)
        held.add(node.index)
        spent += cost[node.index]
    return [*cuts, (now, "all that is left")] if now else cuts


def _joined(cuts: list[tuple[list[Node], bool, str]], leaves: list[Any], cost: dict[int, float]) -> tuple[Piece, ...]:
    """With what they give each other."""
    owner: dict[int, int] = {}
    for k, (nodes, _, _) in enumerate(cuts):
        for node in nodes:
            owner.setdefault(node.index, k)
    reads: list[dict[int, Value]] = [{} for _ in cuts]
    gives: list[dict[int, Value]] = [{} for _ in cuts]
    for k, (nodes, _, _) in enumerate(cuts):
        seen: set[int] = set()
        stack = [value for node in nodes for value in node.inputs]
        while stack:
            value = stack.pop()
            if value._key in seen or value.node.kind == "constant":
                continue
            seen.add(value._key)
            home = owner.get(value.node.index)
            if value.node.kind == "input" or (home is not None and home != k):
                reads[k][value._key] = value
                if home is not None:
                    gives[home][value._key] = value
            elif home is None:  # cheap: this piece computes it
                stack.extend(value.node.inputs)
    for leaf in leaves:
        if isinstance(leaf, Value) and leaf.node.index in owner:
            gives[owner[leaf.node.index]][leaf._key] = leaf
    return tuple(
        Piece(tuple(nodes), tuple(r.values()), tuple(g.values()), sum(cost[n.index] for n in nodes), is_stateful, why)
        for (nodes, is_stateful, why), r, g in zip(cuts, reads, gives, strict=True)
    )


partition.__qualname__ = "Graph.partition"
Graph.partition = partition  # type: ignore[method-assign, assignment]
