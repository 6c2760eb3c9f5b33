"""Cut a graph into tasks, with the reasons: `Graph.partition`.

Any order in which each node follows what it reads may be cut anywhere, and the pieces depend on each other in no
circle. The order here is depth first, which keeps branches together, so that cuts separate them. Cheap nodes are in no
piece: each that needs one computes it again, which costs less than to send it. Stateful nodes, with all that they
need, are one piece, in the order of the program.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
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
    """Hold nodes that would be one task.

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

    def shown(self) -> str:
        """Return the number of nodes, and their names."""
        return _shown(self.nodes)


@dataclass(frozen=True)
class Partition:
    """Hold the pieces of a graph, each behind those it reads. As text, a table.

    Attributes
    ----------
    graph : Graph
    pieces : tuple of Piece
    again : tuple of Node
        What is in no piece, since it costs next to nothing: each piece that needs it computes it again.
    measured : frozenset of Node
        Nodes whose cost a profile says. That of the others is an estimate.
    profiled : bool
        Whether there was a profile.
    """

    graph: Graph
    pieces: tuple[Piece, ...]
    again: tuple[Node, ...]
    measured: frozenset[Node]
    profiled: bool

    def __str__(self) -> str:
        lines = [f"{self.graph.name}: {len(self.pieces)} tasks, by {self._by()}"]
        for k, piece in enumerate(self.pieces):
            lines.append(f"  {k}: {piece.shown()}, {1e3 * piece.seconds:.3g} ms: {piece.why}")
        if self.again:
            lines.append(f"  in each that needs them: {_shown(self.again)}, which costs less than to send them")
        return "\n".join(lines)

    def _by(self) -> str:
        nodes = [*(node for piece in self.pieces for node in piece.nodes), *self.again]
        known = len(self.measured.intersection(nodes))
        if not self.profiled:
            return "estimated cost (there is no profile)"
        if known == 0:
            return "estimated cost (the profile has no call of these nodes)"
        return "measured cost" + (
            "" if known == len(nodes) else f" (estimated for {len(nodes) - known} of {len(nodes)} nodes)"
        )


def _shown(nodes: Sequence[Node]) -> str:
    names = [node.name for node in nodes]
    shown = ", ".join(names if len(names) < 5 else [*names[:2], "…", names[-1]])
    return f"{len(names)} nodes ({shown})" if names else "no nodes"


def partition(graph: Graph, *, profile: Any = None) -> Partition:
    """Return the pieces of the graph that would become tasks of `submit` and `to_dask`.

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
    lambda: 1 tasks, by estimated cost (there is no profile)
      0: 2 nodes (multiply, sum), 0.004 ms: all that is left
    """
    graph._check_no_writes("its pieces would write into copies; compile() it")
    leaves = [] if graph._outputs is None else graph._output_leaves()[0]
    absorbed = {k for first, behind in graph._absorbed for k in range(first, behind)}
    stateful = [node for node in graph.nodes if node.stateful and node.index not in absorbed]
    reads: _Reads = {}
    before: _Before = {}
    needed = _order([*(_node(leaf) for leaf in leaves), *stateful], reads, before)
    if any(graph[k].stateful for k in absorbed):  # within a body: nothing is known of the order
        stateful = needed
    if profile is not None and not hasattr(profile, "_sources"):
        raise TypeError(f"profile= takes the p of `with pyop.profile() as p:`, got {type(profile).__name__}")
    measured = {} if profile is None else _measured(needed, profile)
    cost = {n.index: measured[n.index] if n.index in measured else _estimate(n) for n in needed}
    first = {node.index for node in _order(stateful, reads, before)}
    cheap = _cheap(needed, before, cost, first)
    cuts: list[tuple[list[Node], bool, str]] = []
    if first:
        together = sorted((n for n in needed if n.index in first), key=lambda n: n.index)
        cuts.append((together, True, "stateful nodes and what they need, in order"))
    rest = [n for n in needed if n.index not in first and n.index not in cheap]
    cuts += [(nodes, False, why) for nodes, why in _cut(rest, before, cost)]
    if not any(not is_stateful for _, is_stateful, _ in cuts) and any(_node(x).index in cheap for x in leaves):
        cuts.append(([n for n in needed if n.index in cheap], False, "all that is left"))
    elif cuts and not cuts[-1][1]:
        wanted = {n.index for n in _order([_node(x) for x in leaves if _node(x).index in cheap], reads, before)} & cheap
        cuts[-1] = ([n for n in needed if n.index in wanted] + cuts[-1][0], *cuts[-1][1:])
    pieces = _joined(cuts, reads, leaves, cost)
    held = {node.index for piece in pieces for node in piece.nodes}
    again = tuple(node for node in needed if node.index not in held)
    known = frozenset(node for node in needed if node.index in measured)
    return Partition(graph, pieces, again, known, profile is not None)


# What each node reads, by its number: asked of the graph once, which takes longer than all else.
_Reads = dict[int, list[tuple[Value, Node]]]
_Before = dict[int, set[int]]  # the same as numbers, of nodes that are called


def _node(leaf: Value | Node) -> Node:
    return leaf if isinstance(leaf, Node) else leaf.node


def _order(sinks: Iterable[Node], reads: _Reads, before: _Before) -> list[Node]:
    """Return the nodes that the sinks need, depth first, each behind those it reads, without inputs and constants."""
    seen: set[int] = set()
    order: list[Node] = []
    stack = [(node, False) for node in sinks if node.kind == "py"][::-1]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        index = node.index
        if index in seen:
            continue
        seen.add(index)
        if index not in reads:
            reads[index] = [(value, value.node) for value in node.inputs]
            before[index] = {read.index for _, read in reads[index] if read.kind == "py"}
        stack.append((node, True))
        stack.extend((read, False) for _, read in reads[index][::-1] if read.index in before[index])
    return order


def _measured(nodes: list[Node], profile: Any) -> dict[int, float]:
    """Return the seconds of nodes that are in the profile, by number.

    A node is identified by its name and the place of its creation. A fused group has one time: its nodes share it in
    proportion to their estimates.
    """
    seconds: dict[tuple[str, str], float] = {}
    for row, source in zip(profile.rows, profile._sources, strict=True):
        if row.kind in ("node", "native", "view", "group"):
            parts = [_estimate(node) for node in source.nodes]
            for node, part in zip(source.nodes, parts, strict=True):
                seconds[node.origin, node.name] = row.p50_ns / 1e9 * part / sum(parts)
    measured = ((node.index, seconds.get((node.origin, node.name))) for node in nodes)
    return {index: each for index, each in measured if each is not None}


def _estimate(node: Node) -> float:
    function = node.function
    if (
        not isinstance(function, np.ufunc)
        and (getattr(function, "__module__", None) or "").partition(".")[0] != "numpy"
    ):
        return PER_CALL
    size = 0
    for value in node._results:
        shape = value.shape or ()
        fixed = [length for length in shape if type(length) is int]  # a Dim says that it is an int while traced
        if len(fixed) == len(shape):
            size += 8 * math.prod(fixed)
    return PER_STEP + PER_BYTE * size


def _cheap(nodes: list[Node], before: _Before, cost: dict[int, float], but: set[int]) -> set[int]:
    """Return the nodes that cost next to nothing with all that they need."""
    whole: dict[int, float] = {}
    for node in nodes:
        k = node.index
        whole[k] = np.inf if k in but else cost[k] + sum([whole[read] for read in before[k]])
    return {k for k, seconds in whole.items() if seconds <= CHEAP}


def _cut(nodes: list[Node], before: _Before, cost: dict[int, float]) -> list[tuple[list[Node], str]]:
    inside = {node.index for node in nodes}
    readers = Counter(k for each in inside for k in before[each])
    cuts: list[tuple[list[Node], str]] = []
    now: list[Node] = []
    held: set[int] = set()
    spent = 0.0
    for node in nodes:
        mine = before[node.index] & inside
        follows = bool(now) and now[-1].index in mine and readers[now[-1].index] == 1 and mine <= held
        if now and spent >= WORTH and not follows:
            cuts.append((now, f"worth {spent / OVERHEAD:.0f} overheads, and the next node does not only follow it"))
            now, held, spent = [], set(), 0.0
        now.append(node)
        held.add(node.index)
        spent += cost[node.index]
    return [*cuts, (now, "all that is left")] if now else cuts


def _joined(
    cuts: list[tuple[list[Node], bool, str]], reads: _Reads, leaves: list[Any], cost: dict[int, float]
) -> tuple[Piece, ...]:
    """Return the pieces with the values that they give each other."""
    owner: dict[int, int] = {}
    for k, (nodes, _, _) in enumerate(cuts):
        for node in nodes:
            owner.setdefault(node.index, k)
    asks: list[dict[int, Value]] = [{} for _ in cuts]
    gives: list[dict[int, Value]] = [{} for _ in cuts]
    for k, (nodes, _, _) in enumerate(cuts):
        seen: set[int] = set()
        stack = [each for node in nodes for each in reads[node.index]]
        while stack:
            value, node = stack.pop()
            home = owner.get(node.index)
            if home == k or node.kind == "constant" or value._key in seen:
                continue
            seen.add(value._key)
            if node.kind == "input" or home is not None:
                asks[k][value._key] = value
                if home is not None:
                    gives[home][value._key] = value
            else:  # cheap: this piece computes it
                stack.extend(reads[node.index])
    for leaf in leaves:
        if isinstance(leaf, Value) and leaf.node.index in owner:
            gives[owner[leaf.node.index]][leaf._key] = leaf
    return tuple(
        Piece(tuple(nodes), tuple(r.values()), tuple(g.values()), sum(cost[n.index] for n in nodes), is_stateful, why)
        for (nodes, is_stateful, why), r, g in zip(cuts, asks, gives, strict=True)
    )


partition.__qualname__ = "Graph.partition"
Graph.partition = partition  # type: ignore[method-assign, assignment]
