"""Define `Loop` and `Branch`, which nodes of a graph call; their parts are graphs of their own.

The core knows them by their types and runs the parts without Python in between (csrc/plan/steps/loop.cpp, branch.cpp);
called, they do the same by plans.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._core import Plan, fill_up_call
from .._core import compile as compile_graph
from ..graph.graph import Graph

__all__ = ["Branch", "Loop", "loop_parts"]

_TUPLE, _SINGLE = 1, 0


class Loop:
    """Run a body for each number of a range, as long as the condition holds.

    It is called as ``loop(lower, upper, *carried, *constant)``.

    Parameters
    ----------
    body : Graph
        Its inputs are the number of the iteration, what is carried, and what stays. Its outputs are what is carried to
        the next iteration, and, behind that, whether there is one more (asked before each), if it is `conditional`.
    carried : int
        How many arrays one iteration hands to the next: they are the results.
    step : int
    conditional : bool
    checkpoint : bool
        The derivative in reverse mode stores some states only, and computes again what is between them.
    """

    __slots__ = ("__weakref__", "_plans", "body", "carried", "checkpoint", "conditional", "step")
    _pyop_loop = True  # for pyop.graph.deciding

    def __init__(
        self, body: Graph, carried: int, step: int = 1, conditional: bool = False, checkpoint: bool = False
    ) -> None:
        self.body = body
        self.carried = carried
        self.step = step
        self.conditional = conditional
        self.checkpoint = checkpoint
        self._plans: dict[Any, tuple[Plan, Plan | None]] = {}

    def plans(self, disable: Iterable[str], fast: bool = False) -> tuple[Plan, Plan | None]:
        """Return the plans of body and condition, compiled once for the same passes."""
        key = (tuple(disable), fast)
        found = self._plans.get(key)
        if found is None:
            leaves, _ = self.body._output_leaves()
            nodes = tuple(node for node in self.body.nodes if node.stateful)
            results = (*leaves[: self.carried], *nodes)
            feeds = self.body.inputs
            made = compile_graph(self.body, results, feeds, _TUPLE, None, False, key[0], 1, fast)
            test = None
            if self.conditional:
                test = compile_graph(self.body, (leaves[-1],), feeds, _SINGLE, None, False, key[0], 1, fast)
            found = self._plans[key] = made, test
        return found

    def __call__(self, lower: Any, upper: Any, *arrays: Any) -> Any:
        body, test = self.plans([name for name in Graph.passes() if name != "prune"])
        state, constant = list(arrays[: self.carried]), arrays[self.carried :]
        for i in range(int(lower), int(upper), self.step):
            number = np.asarray(i, np.int64)
            if test is not None and not test(number, *state, *constant):
                break
            state = list(body(number, *state, *constant)[: self.carried])
        return _own(state)

    @property
    def _pyop_gradient_rule(self) -> Any:
        from .rules import rule_of_loop

        return rule_of_loop(self)

    def parts(self, disable: tuple[str, ...], fast: bool) -> tuple[Plan, Plan | None, int, int]:
        """Return what csrc/plan/steps/loop.cpp asks for."""
        return (*self.plans(disable, fast), self.carried, self.step)

    def __eq__(self, other: object) -> bool:
        from ..tracing.same import same_graphs

        if type(other) is not Loop:
            return False
        if self is other:
            return True
        mine, theirs = ((x.carried, x.step, x.conditional, x.checkpoint) for x in (self, other))
        return mine == theirs and same_graphs(self.body, self.body._outputs, other.body, other.body._outputs)

    def __hash__(self) -> int:
        return hash((len(self.body), self.carried, self.step))

    def __repr__(self) -> str:
        return f"Loop of {len(self.body)} nodes"


class Branch:
    """Run one of two graphs on its inputs: ``branch(truth, *inputs of yes, *inputs of no)``.

    Parameters
    ----------
    yes, no : Graph
        With as many outputs, of the same specs.
    """

    __slots__ = ("__weakref__", "_plans", "no", "yes")

    def __init__(self, yes: Graph, no: Graph) -> None:
        self.yes = yes
        self.no = no
        self._plans: dict[Any, tuple[Plan, Plan]] = {}

    def plans(self, disable: Iterable[str], fast: bool = False) -> tuple[Plan, Plan]:
        """Return the plans of both parts, compiled once for the same passes."""
        key = (tuple(disable), fast)
        found = self._plans.get(key)
        if found is None:
            yes, no = (
                compile_graph(part, _results(part), part.inputs, _TUPLE, None, False, key[0], 1, fast)
                for part in (self.yes, self.no)
            )
            found = self._plans[key] = yes, no
        return found

    @property
    def _pyop_gradient_rule(self) -> Any:
        from .rules import rule_of_branch

        return rule_of_branch(self)

    parts = plans

    def __call__(self, truth: Any, *arrays: Any) -> Any:
        yes, no = self.plans([name for name in Graph.passes() if name != "prune"])
        first = len(self.yes.inputs)
        made = yes(*arrays[:first]) if truth else no(*arrays[first:])
        return _own(made[: len(self.yes._output_leaves()[0])])

    def __eq__(self, other: object) -> bool:
        from ..tracing.same import same_graphs

        return type(other) is Branch and all(
            same_graphs(a, a._outputs, b, b._outputs) for a, b in ((self.yes, other.yes), (self.no, other.no))
        )

    def __hash__(self) -> int:
        return hash((len(self.yes), len(self.no)))

    def __repr__(self) -> str:
        return f"Branch of {len(self.yes)} or {len(self.no)} nodes"


def _results(part: Graph) -> tuple[Any, ...]:
    return (*part._output_leaves()[0], *[node for node in part.nodes if node.stateful])


def _own(arrays: Iterable[Any]) -> Any:
    """Return the results of a node, in memory of their own."""
    results = tuple([np.array(x, order="K") for x in arrays])
    return results if len(results) != 1 else results[0]


def loop_parts(node: Any, disable: tuple[str, ...], fast: bool) -> tuple[Any, ...]:
    """Return what the core needs of a Loop or Branch, or of a composed node, given as its graph and number."""
    if type(node) is tuple:
        from ..graph.composed_nodes import composed_part

        graph, index = node
        return composed_part(graph, index, disable, fast)
    made: tuple[Any, ...] = node.parts(disable, fast)
    return made


fill_up_call("loop_class", Loop)
fill_up_call("branch_class", Branch)
