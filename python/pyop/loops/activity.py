"""Find the part of a loop's state that a derivative goes through.

It depends on the arguments that the derivative is taken by, and the results depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..gradients import table
from ..gradients.table import NoRule
from ..graph.cells import shown_place
from ..graph.graph import Graph
from ..transforms.reverse import call_of, carries

__all__ = ["Activity", "check_no_effects"]


def check_no_effects(*parts: Graph) -> None:
    """Raise where a derivative would do again what a body does beside computing."""
    for part in parts:
        for node in part.nodes:
            if node.stateful:
                raise NoRule(
                    f"a loop or branch whose body has effects (node {node.name!r}, created at "
                    f"{shown_place(node.origin)}) has no gradient rule, which runs the body again: compute what has "
                    "effects before it, and give it as an argument"
                )


class Activity:
    """Note how derivatives pass through one run of a body: which inputs reach which of the first `carried` outputs."""

    def __init__(self, body: Graph, carried: int) -> None:
        self.carried = carried
        self.inputs = body.inputs
        outputs = body._output_leaves()[0][:carried]
        reaching: dict[int, set[int]] = {value._key: {k} for k, value in enumerate(self.inputs) if carries(value)}
        for node in body.nodes:
            if node.kind != "py" or not _passes(node):
                continue
            found: set[int] = set().union(*(reaching.get(value._key, ()) for value in node.inputs))
            if found:
                reaching.update({value._key: found for value in node.outputs if carries(value)})
        self.reach: list[set[int]] = [reaching.get(value._key, set()) for value in outputs]

    def varied(self, starts: Iterable[int]) -> set[int]:
        """Return the inputs of the body that depend on these."""
        found = set(starts)
        while True:
            more = {j + 1 for j, reach in enumerate(self.reach) if reach & found} - found
            if not more:
                return found
            found |= more

    def useful(self, ends: Sequence[int]) -> set[int]:
        """Return the inputs of the body on which these of what is carried depend."""
        found = {j + 1 for j in ends}
        while True:
            more = set().union(*(self.reach[k - 1] for k in found if 1 <= k <= self.carried)) - found
            if not more:
                return found
            found |= more


def _passes(node: Any) -> bool:
    rule = table.lookup(call_of(node).function)
    return rule is None or rule.differentiable
