"""Explain a plan: `Plan.explain` tells what became of each line of the user's code."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import Node, Plan
from ..declare.parameters import default_name
from .cells import shown_file
from .graph import Graph
from .node_call import unwrapped
from .symbolic_number import OnNumbers

__all__ = ["Explanation", "Line", "NodeFate"]


@dataclass(frozen=True)
class NodeFate:
    """Describe what became of one node of the graph.

    Parameters
    ----------
    name : str
        Of the node.
    spec : str
        Dtype and shape of its outputs, as far as they were known.
    fate : str
        ``"native"``, ``"python"``, ``"merged"``, ``"folded"``, ``"constant"``, ``"pruned"``, ``"input"``, ``"fed"`` or
        ``"gone"``.
    text : str
        The same in words, with what runs and why.
    step : int or None
        Which step of the plan computes it, counted from 0.
    """

    name: str
    spec: str
    fate: str
    text: str
    step: int | None = None


@dataclass(frozen=True)
class Line:
    """Hold the nodes that one line of the source made.

    Parameters
    ----------
    file : str
    number : int
        0 if the place is unknown.
    source : str
        The text of the line; empty where it cannot be read.
    nodes : tuple of NodeFate
    """

    file: str
    number: int
    source: str
    nodes: tuple[NodeFate, ...]


@dataclass(frozen=True, repr=False)
class Explanation:
    """Describe what became of the code that a plan was made of; printed, it is a table by lines of the source.

    Parameters
    ----------
    summary : str
    lines : tuple of Line
        In the order in which the lines first made a node.
    scratch : int
        Bytes of scratch memory that one step uses at most.
    disabled : tuple of str
        The passes that were switched off.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> plan = pyop.trace(lambda x: x * 2.0 + x * 2.0, "float64[n]").compile()
    >>> [node.fate for line in plan.explain().lines for node in line.nodes]
    ['input', 'native', 'merged', 'native']
    """

    __module__ = "pyop"

    summary: str
    lines: tuple[Line, ...]
    scratch: int
    disabled: tuple[str, ...]

    @property
    def nodes(self) -> Iterator[NodeFate]:
        """Yield all nodes, line by line."""
        return (node for line in self.lines for node in line.nodes)

    def __str__(self) -> str:
        text = [self.summary]
        if self.disabled:
            text.append(f"switched off: {', '.join(self.disabled)}")
        every = list(self.nodes)
        names = max((len(node.name) for node in every), default=0)
        specs = min(max((len(node.spec) for node in every), default=0), 30)
        file = None
        for line in self.lines:
            if line.file != file:
                file = line.file
                text += ["", shown_file(file) or "(no source)"]
            text.append(f"{line.number or '':>5}  {line.source}".rstrip())
            text += [f"         {node.name:{names}}  {node.spec:{specs}}  {node.text}".rstrip() for node in line.nodes]
        return "\n".join(text)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .html import table

        rows = []
        for line in self.lines:
            place = f"{shown_file(line.file)}:{line.number}" if line.number else ""
            for k, node in enumerate(line.nodes):
                where = ("", "") if k else (place, line.source)
                rows.append((*where, node.name, node.spec, node.text))
        return table(self.summary, ("where", "source", "node", "spec", "what became of it"), rows)


def explain(self: Plan) -> Explanation:
    """Return what became of each line of the code.

    It tells what was merged, folded or left out, which native loop runs what together with what, and what still calls
    Python, and why.

    Returns
    -------
    Explanation
        Its `str` is a table; `lines` holds the same as data.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> def f(x):
    ...     y = x * 2.0
    ...     return np.sum(y), np.einsum("i,i", y, y)
    >>> print(pyop.trace(f, "float64[n]").compile().explain())  # doctest: +SKIP
    plan of graph 'f', 4 nodes: 3 steps, 2 native, 1 call of Python; 4 KiB of scratch
    ...
    """
    facts, steps, disabled = self._facts()
    graph = self.graph
    groups = _number_groups(steps)
    # Nodes of the graph that came after the plan are no part of it.
    nodes = [graph[k] for k in range(len(facts))]
    within = dict(_within(node for node, fact in zip(nodes, facts, strict=True) if fact[0] != "pruned"))
    by_line: dict[tuple[str, int], list[NodeFate]] = {}
    for node, (what, number, text) in zip(nodes, facts, strict=True):
        words, step = _words(node, what, number, text, nodes, groups, disabled)
        if what == "pruned" and (node.name, node.origin) in within:
            words = f"within {within[node.name, node.origin]}"
        file, _, line = node.origin.rpartition(":")
        place = (file, int(line)) if line.isdecimal() else ("", 0)
        by_line.setdefault(place, []).append(NodeFate(node.name, _spec(node), what, words, step))
    lines = tuple(
        Line(file, number, linecache.getline(file, number).strip(), tuple(fates))
        for (file, number), fates in by_line.items()
    )
    scratch = max((size for _, _, size in steps), default=0)
    return Explanation(_summary(self, len(facts), steps, scratch), lines, scratch, tuple(disabled))


def _within(nodes: Iterable[Node]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the nodes in loops and branches, by name and place, with the name of the outer node that runs them."""
    for node in nodes:
        function = unwrapped(node.function)
        for part in ("body", "yes", "no"):
            body = getattr(function, part, None)
            if isinstance(body, Graph):
                yield from (((inner.name, inner.origin), node.name) for inner in body.nodes)
                yield from _within(body.nodes)


def _number_groups(steps: list[tuple[bool, int, int]]) -> dict[int, tuple[int, int]]:
    """Map each step that fuses several nodes to the number of its group and the count of its nodes."""
    fused = [k for k, (native, members, _) in enumerate(steps) if native and members > 1]
    return {k: (number, steps[k][1]) for number, k in enumerate(fused, 1)}


def _words(
    node: Node,
    what: str,
    number: int,
    text: str | None,
    nodes: list[Node],
    groups: dict[int, tuple[int, int]],
    disabled: list[str],
) -> tuple[str, int | None]:
    if what == "native":
        runs = text or "in the kernel of a node that reads it"
        if number in groups:
            group, members = groups[number]
            return f"group #{group} of {members}: {runs}", number
        return runs, number
    if what == "python":
        return f"calls Python: {_why(node, disabled)}", number
    if what == "merged":
        other = nodes[number]
        where = "" if other.origin == node.origin else f" of line {other.origin.rpartition(':')[2]}"
        return f"the same as {other.name}{where}: computed once", None
    return {
        "input": "input",
        "fed": "given by the caller",
        "constant": "constant",
        "folded": "computed when the plan was made",
        "pruned": "not needed",
        "gone": "not computed: what reads it takes what it was made of",
    }[what], None


def _why(node: Node, disabled: list[str]) -> str:
    """Return why a node is no native step."""
    function = unwrapped(node.function)
    if isinstance(function, OnNumbers):
        return f"{_name(unwrapped(function.fn))} of a Python number, converted as Python and NumPy do"
    name = _name(function)
    if node.contract is not None or not _is_numpy(function):
        return f"{name} is a Python function{', with side effects' if node.stateful else ''}"
    if "loops" in disabled:
        return f"{name}, native loops being switched off"
    for value in (*node.inputs, *node.outputs):
        if value.dtype is None:
            return f"{name}, the dtype of {value.name!r} not being known when the plan was made"
        if value.dtype.kind in "OSUVMmT":
            return f"{name}, for elements of dtype {value.dtype}"
        if value.shape is None:
            return f"{name}, the rank of {value.name!r} not being known when the plan was made"
    return f"{name}, called as it is"


def _name(function: Any) -> str:
    if getattr(function, "__objclass__", None) is np.ndarray:
        return f"ndarray.{default_name(function)}"
    prefix = "np." if _is_numpy(function) and hasattr(np, getattr(function, "__name__", "")) else ""
    return prefix + default_name(function)


def _is_numpy(function: Any) -> bool:
    if isinstance(function, np.ufunc) or isinstance(getattr(function, "__self__", None), np.ufunc):
        return True
    if getattr(function, "__objclass__", None) is np.ndarray:
        return True
    return (getattr(function, "__module__", None) or "").partition(".")[0] in ("numpy", "operator", "_operator", "pyop")


def _spec(node: Node) -> str:
    specs = [str(value.spec) for value in node.outputs]
    return specs[0] if len(specs) == 1 else f"({', '.join(specs)})"


def _summary(plan: Plan, n_nodes: int, steps: list[tuple[bool, int, int]], scratch: int) -> str:
    native = sum(is_native for is_native, _, _ in steps)
    python = len(steps) - native
    name = getattr(plan.graph, "name", "graph")
    text = f"plan of graph {name!r}, {n_nodes} node{'s' * (n_nodes != 1)}: {len(steps)} step{'s' * (len(steps) != 1)}"
    text += f", {native} native, {python} call{'s' * (python != 1)} of Python"
    report = plan.report()
    in_place, copies = report["updates_in_place"], report["copies"]
    if in_place or copies:
        text += f"; {in_place} update{'s' * (in_place != 1)} in place, {copies} into copies"
    if scratch:
        text += f"; {-(-scratch // 1024)} KiB of scratch"
    if plan.threads > 1:
        text += f"; {plan.threads} threads"
    return text


# The type itself comes from the core, without this (`__init__.py`).
setattr(Plan, "explain", explain)  # noqa: B010
