"""Match each gradient node of a graph to its call, which PythonOpGrad needs and the graph does not state."""

from __future__ import annotations

from typing import Any

from .._core import Node
from ..graph.graph import Graph
from ..graph.node_call import call_of
from ..transforms.op_calls import Backward

__all__ = ["calls_of_gradients"]


def calls_of_gradients(graph: Graph) -> dict[int, Node]:
    """Return the call of each gradient node, by the node's index.

    A gradient that reads residuals, or results, identifies its call that way. Any other belongs to some call of the
    same op on the same arguments. Of several, each is used once before one is used again, as a context serves one
    gradient.
    """
    calls: dict[Any, list[Node]] = {}
    call_of_gradient: dict[int, Node] = {}
    taken: set[int] = set()
    for node in graph.nodes:
        if node.kind != "py":
            continue
        backward = node.function
        if not isinstance(backward, Backward):
            gradient = None if node.contract is None else node.contract.gradient
            if gradient is not None:
                calls.setdefault((id(gradient), *(value._key for value in node.inputs)), []).append(node)
            continue
        call = _call_of(backward, node, calls, taken)
        if call is not None:
            call_of_gradient[node.index] = call
            taken.add(call.index)
    return call_of_gradient


def _call_of(backward: Backward, node: Node, calls: dict[Any, list[Node]], taken: set[int]) -> Node | None:
    inputs = node.inputs
    if backward.gradient.saves:
        return inputs[-1].node
    end = backward.n_out + backward.n_in
    own = inputs[backward.n_out : end]
    alike = [
        call
        for call in calls.get((id(backward.gradient), *(value._key for value in own)), ())
        if _same(call_of(call, [None] * len(call.inputs)).kwargs, backward.statics)
    ]
    if "out" in backward.gradient.vjp_wants:
        alike = [call for call in alike if call.outputs[0]._key == inputs[end]._key]
    return next((call for call in alike if call.index not in taken), alike[0] if alike else None)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two calls have the same static arguments: those of a gradient node are the objects of its call."""
    if one.keys() != other.keys():
        return False
    return all(one[key] is other[key] or _equal(one[key], other[key]) for key in one)


def _equal(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False
