"""Build pictures of graphs as they were written, of plans as they run, and of the ancestors of a Value."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from typing import Any

from .._core import Node, Plan, Value
from .._tree import flatten
from ..graph.cells import shown_place
from ..graph.explain import _spec, _words
from ..graph.graph import Graph
from ..graph.names import output_names
from ..graph.node_call import call_of, unwrapped
from ..loops.node import Branch, Loop
from .model import Box, Edge, Picture, shortened

__all__ = ["picture_of"]


def picture_of(what: Any, profile: Any = None) -> Picture:
    """Return the picture of a Graph, a Plan or a Value; `profile` adds times.

    >>> import pyop
    >>> from pyop.pictures.build import picture_of
    >>> [box.label for box in picture_of(pyop.trace(lambda x: x * 2.0, "float64[n]")).boxes]
    ['x', 'multiply', 'output']
    """
    times = {} if profile is None else {(row.name, row.where): row for row in profile.rows}
    if isinstance(what, Plan):
        return _of_plan(what, times)
    if isinstance(what, Value):
        return _of_nodes(f"{what.name} {what.spec}", _ancestors(what.node), [("output", what)], times)
    if not isinstance(what, Graph):
        raise TypeError(f"a picture is made of a Graph, a Plan or a Value, not of {type(what).__name__}")
    gone = {k for first, behind in what._absorbed for k in range(first, behind)}
    return _of_nodes(f"graph {what.name}", [n for n in what.nodes if n.index not in gone], _outputs(what), times)


def _ancestors(node: Node) -> list[Node]:
    nodes, pending = {node.index: node}, [node]
    while pending:
        for source in [value.node for value in pending.pop().inputs]:
            if source.index not in nodes:
                nodes[source.index] = source
                pending.append(source)
    return [nodes[k] for k in sorted(nodes)]


def _outputs(graph: Graph) -> list[tuple[str, Any]]:
    if graph._outputs is None:
        return []
    leaves, _ = graph._output_leaves()
    return list(zip(output_names(graph), leaves, strict=True))


def _of_nodes(title: str, nodes: list[Node], outputs: list[tuple[str, Any]], times: dict[Any, Any]) -> Picture:
    picture, owner, numbers = Picture(title), dict[int, int](), _numbers(nodes)
    for node in nodes:
        if _is_inline(node):
            continue
        owner[node.index] = len(picture.boxes)
        kind = {"input": "input", "constant": "constant"}.get(node.kind) or _kind(node, "node")
        box = _box([node], kind, [], times, numbers)
        box.inside = [(name, picture_of(body)) for name, body in _bodies(node)]
        picture.boxes.append(box)
    _connect(picture, owner, [(owner[n.index], n) for n in nodes if n.index in owner], outputs, numbers)
    return picture


def _of_plan(plan: Plan, times: dict[Any, Any]) -> Picture:
    facts, steps, disabled = plan._facts()
    graph = plan.graph
    nodes = [graph[k] for k in range(len(facts))]
    picture, owner = Picture(f"plan of graph {getattr(graph, 'name', 'graph')}"), dict[int, int]()
    members: list[list[Node]] = [[] for _ in steps]
    for node, (what, number, _) in zip(nodes, facts, strict=True):
        if what in ("native", "python"):
            members[number].append(node)
    needed = {value.node.index for step in members for node in step for value in node.inputs}
    outputs = _outputs(graph) if isinstance(graph, Graph) else []
    needed |= {x.node.index for _, x in outputs if isinstance(x, Value)}
    for node, (what, _, _) in zip(nodes, facts, strict=True):
        known = what in ("constant", "folded") and node.index in needed and not _is_inline(node)
        if known or what in ("input", "fed"):
            owner[node.index] = len(picture.boxes)
            picture.boxes.append(
                _box([node], "constant" if known else "input", [what] if what != "input" else [], {}, {})
            )
    work, numbers = [], _numbers(nodes)
    for k, step in enumerate(members):
        if not step:
            continue
        native = steps[k][0]
        words = [_words(node, *facts[node.index], nodes, {}, disabled)[0] for node in step]
        told = [text for text in words if text != "in the kernel of a node that reads it"]
        kind = "group" if len(step) > 1 else _kind(step[0], "native", told[0] if told else "") if native else "python"
        box = _box(step, kind, told, times, numbers)
        for node in step:
            owner[node.index] = len(picture.boxes)
            work.append((len(picture.boxes), node))
            box.inside += [(name, _body_plan(node, name, body, disabled)) for name, body in _bodies(node)]
        picture.boxes.append(box)
    for node, (what, number, _) in zip(nodes, facts, strict=True):  # in creation order: what these stand for has a box
        stands_for = number if what == "merged" else node.inputs[0].node.index if what == "gone" and node.inputs else -1
        if stands_for in owner:
            owner[node.index] = owner[stands_for]
    _connect(picture, owner, work, outputs, numbers)
    return picture


def _body_plan(node: Node, name: str, body: Graph, disabled: list[str]) -> Picture:
    plans = unwrapped(node.function).plans(tuple(disabled))
    return _of_plan(plans[1] if name == "otherwise" else plans[0], {})


def _bodies(node: Node) -> Iterator[tuple[str, Graph]]:
    function = unwrapped(node.function)
    if isinstance(function, Loop):
        yield "each iteration", function.body
    elif isinstance(function, Branch):
        yield "if true", function.yes
        yield "otherwise", function.no


def _kind(node: Node, other: str, text: str = "") -> str:
    function = unwrapped(node.function)
    if isinstance(function, Loop | Branch):
        return "loop" if isinstance(function, Loop) else "branch"
    if text == "view":
        return "view"
    if text.startswith("writes") or getattr(function, "__name__", "") == "store":
        return "update"
    return "python" if node.contract is not None else other


def _is_inline(node: Node) -> bool:
    """Return whether a node is a number that is written where it is read."""
    return node.kind == "constant" and node.outputs[0].shape == ()


def _box(nodes: list[Node], kind: str, details: list[str], times: dict[Any, Any], numbers: dict[int, str]) -> Box:
    last = nodes[-1]
    label = shortened(" ".join(node.name for node in nodes[:12]), 60) if len(nodes) > 1 else last.name
    file, _, line = last.origin.rpartition(":")
    source = linecache.getline(file, int(line)).strip() if line.isdecimal() else ""
    box = Box(label, kind, _spec(last), list(details), [], shown_place(last.origin), shortened(source, 200))
    for node in nodes:
        text = _call_text(node, numbers)
        if text:
            (box.members if len(nodes) > 1 else box.details).append(text)
    if times:
        from ..profiling.rows import name_of

        row = times.get((name_of(tuple(nodes)), shown_place(last.origin)))
        if row is not None:
            box.time, box.share = row.total_ns, row.share
    return box


def _call_text(node: Node, numbers: dict[int, str]) -> str:
    """Return the call of a node, with its inputs by name and its constants by value."""
    if node.kind != "py":
        return ""
    try:
        call = call_of(node, [_Name(numbers.get(value.node.index, value.name)) for value in node.inputs])
        parts = [repr(x) for x in call.args] + [f"{key}={x!r}" for key, x in call.kwargs.items()]
        return shortened(f"{node.name}({', '.join(parts)})", 160)
    except Exception:  # a repr of the user's
        return f"{node.name}(…)"


def _numbers(nodes: list[Node]) -> dict[int, str]:
    """Return the text of the numbers that are written where they are read, by node."""
    values = [node.outputs[0] for node in nodes if _is_inline(node)]
    if not values:
        return {}
    leaves, structure = flatten(values)
    arrays = values[0].graph._compile(leaves, structure, (), whole=False, threads=1)()
    return {value.node.index: shortened(repr(array.item())) for value, array in zip(values, arrays, strict=True)}


class _Name(str):
    """Represent text whose repr is itself."""

    __slots__ = ()
    __repr__ = str.__str__


def _connect(
    picture: Picture,
    owner: dict[int, int],
    work: Iterable[tuple[int, Node]],
    outputs: list[tuple[str, Any]],
    numbers: dict[int, str],
) -> None:
    edges: dict[tuple[int, int], list[str]] = {}
    for box, node in work:
        for value in node.inputs:
            source = owner.get(value.node.index, box)
            if source != box:
                edges.setdefault((source, box), []).append(str(value.spec))
    for name, leaf in outputs:
        node = leaf.node if isinstance(leaf, Value) else leaf
        spec = str(leaf.spec) if isinstance(leaf, Value) else ""
        details = [f"= {numbers[node.index]}"] if node.index in numbers else []
        if node.index in owner:
            edges.setdefault((owner[node.index], len(picture.boxes)), []).append(spec)
        picture.boxes.append(Box(name, "output", spec, details))
    picture.edges = [Edge(a, b, ", ".join(dict.fromkeys(labels))) for (a, b), labels in edges.items()]
