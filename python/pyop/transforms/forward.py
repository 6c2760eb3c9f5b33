"""Forward accumulation on a graph: the tangents of Values become further nodes of the graph they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import Value
from ..gradients import table
from ..gradients.listed import push
from ..gradients.unbroadcast import broadcast_like, fit_dtype, shape_of
from .reverse import active_subgraph, call_of, carries, in_graph, refuse

__all__ = ["forward"]


def forward(outputs: Sequence[Value], inputs: Sequence[Value], tangents: Sequence[Any]) -> list[Any]:
    """Return the tangents of `outputs` for given ones of `inputs` (None for zero), as Values of the same graph.

    It is None for an output that does not depend on the inputs. NoRule for a function on the way without a gradient
    rule.
    """
    known = {value._key: in_graph(t, value) for value, t in zip(inputs, tangents, strict=True) if t is not None}
    for node in active_subgraph(outputs, inputs) if outputs else []:
        if not any(value._key in known for value in node.inputs):
            continue
        call = call_of(node)
        rule = table.lookup(call.function)
        results = node.outputs
        if rule is None:
            if any(map(carries, results)):
                refuse(node, call)
            continue
        if not rule.differentiable:
            continue
        leaves = table.leaves(call.args, call.kwargs)
        argnums = tuple([k for k, leaf in enumerate(leaves) if type(leaf) is Value and leaf._key in known])
        given = tuple([known[leaves[k]._key] for k in argnums])
        single = len(results) == 1 and not call.of_one
        moved = push(rule, argnums, given, call.packed(results), call.args, call.kwargs)
        for value, t in zip(results, (moved,) if single else moved or (None,) * len(results), strict=True):
            if t is not None and carries(value):
                t = t if shape_of(t) == shape_of(value) else broadcast_like(t, value)
                known[value._key] = fit_dtype(t, value)
    return [known.get(value._key) for value in outputs]
