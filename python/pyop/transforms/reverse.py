"""Reverse accumulation on a graph: the cotangents of Values become further nodes of the graph they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from .._core import Node, Value
from ..containers import plain_array
from ..declare.dim import Dim
from ..gradients import table
from ..gradients.listed import pull
from ..gradients.scalar import Scalar
from ..gradients.signed import Signed, plain, total
from ..gradients.table import Rule
from ..gradients.unbroadcast import broadcast_like, dtype_of, fit_dtype, shape_of
from ..graph import node_call
from ..graph.node_call import NodeCall
from .parts import Parts, in_sum, part_of_sum

__all__ = ["active_subgraph", "backward", "call_of", "carries", "refuse"]


def call_of(node: Node) -> NodeCall:
    """Return the call of a node as the table of rules knows it: an op's function by its gradient."""
    return node_call.call_of(node, function=node.contract and node.contract.gradient)


def active_subgraph(outputs: Sequence[Value], inputs: Sequence[Value]) -> list[Node]:
    """Return the nodes on the paths from `inputs` to `outputs`, in creation order."""
    graph = outputs[0].graph
    starts = {value.node.index for value in inputs}
    stop = min(starts, default=0)
    above: set[int] = set()
    waiting = [value.node.index for value in outputs]
    while waiting:
        index = waiting.pop()
        if index in above or index < stop:
            continue
        above.add(index)
        if index not in starts:
            waiting += [value.node.index for value in graph[index].inputs]
    found: list[Node] = []
    below = set(starts)
    for index in sorted(above - starts):
        node = graph[index]
        if any(value.node.index in below for value in node.inputs):
            below.add(index)
            found.append(node)
    return found


def backward(
    outputs: Sequence[Value], cotangents: Sequence[Any], inputs: Sequence[Value], sums: Sequence[Any] | None = None
) -> list[Any]:
    """Return the cotangents of `inputs` for given ones of `outputs` (None for zero), as Values of the same graph.

    Nodes above the inputs do not matter. None comes back for an input that the outputs do not depend on. A function on
    the way without a gradient rule is an error.

    With `sums`, those of slices are added in place, as the body of a loop does; where one of them is given for an
    input, its cotangent is added to that.
    """
    in_place = sums is not None
    pending: dict[int, Any] = {v._key: x for v, x in zip(inputs, sums or (), strict=False) if x is not None}
    for output, seed in zip(outputs, cotangents, strict=True):
        if seed is not None:
            _accumulate(pending, output, in_graph(seed, output))
    wanted = {value._key for value in inputs}
    active = {value._key for value in inputs}
    nodes = active_subgraph(outputs, inputs) if outputs else []
    ways: list[tuple[Node, NodeCall, Rule | None]] = []
    for node in nodes:
        which = tuple(k for k, value in enumerate(node.inputs) if value._key in active)
        if not which:
            continue
        call = call_of(node)
        rule = table.lookup(call.function)
        if rule is not None and not rule.differentiable:
            continue
        carrying = [value._key for value in node.outputs if carries(value)]
        if carrying:
            ways.append((node, call, rule))
            active.update(carrying)
    for node, call, rule in reversed(ways):
        results = node.outputs
        found = [_made(pending.get(value._key)) for value in results]
        if all(ct is None for ct in found):
            continue
        if rule is None:
            refuse(node, call)
        leaves = table.leaves(call.args, call.kwargs)
        argnums = tuple([k for k, leaf in enumerate(leaves) if type(leaf) is Value and leaf._key in active])
        ans: Any = call.packed(results)
        parts: Any = _signed(rule, argnums, ans, call, found)
        if parts is not None:
            for k, part in zip(argnums, parts, strict=True):
                if part is not None:
                    _accumulate(pending, leaves[k], part)
            continue
        if in_place and rule.pull_onto is not None:
            cotangents = [_laid_out(plain(c), y) for c, y in zip(found, results, strict=True)]
            _pull_onto(pending, rule, argnums, call.args, results, cotangents)
            continue
        if in_place and rule.of_parts and type(found[0]) is Signed and shape_of(found[0].value) == shape_of(ans):
            part = part_of_sum(call, found[0], True)
            if part is not None:
                _accumulate(pending, part.like, part)
                continue
        cts = tuple(map(plain, found))
        ct: Any = call.packed(cts)
        if isinstance(ans, Value):
            rule = rule.narrow or rule
            if not rule.broadcasts and not rule.narrows:
                ct = _laid_out(ct, ans)
        else:
            ct = tuple([_laid_out(c, y) for c, y in zip(cts, results, strict=True)])
        if isinstance(ct, Scalar) and any(isinstance(arg, Dim) for arg in call.args):
            ct = ans.graph.constant(ct.array())  # sizes are numbers only beside Values
        part = part_of_sum(call, ct, in_place) if rule.of_parts else None
        if part is not None:
            _accumulate(pending, part.like, part)
            continue
        if in_place and rule.writes and argnums[0] == 0 and not call.kwargs:
            part, rest = rule.pull_apart(ans, call.args, ct)  # type: ignore[attr-defined]
            if part is not None and argnums[-1] == 1:
                _accumulate(pending, leaves[1], part)
            _accumulate(pending, leaves[0], Parts(leaves[0], [rest], True))
            continue
        parts = pull(rule, argnums, ans, call.args, call.kwargs)(_lent(ct))
        for k, part in zip(argnums, parts, strict=True):
            if part is not None:
                _accumulate(pending, leaves[k], part)
    return [
        _laid_out(plain(_made(pending.get(value._key))), value) if value._key in wanted else None for value in inputs
    ]


def refuse(node: Node, call: NodeCall) -> NoReturn:
    """Raise what a node without a rule gives."""
    if node.contract is None:
        table.missing(call.function, f" (in node {node.name!r}, created at {node.origin})")
    table.missing_of_op(node.name, node.contract, f" (created at {node.origin})")


def carries(value: Value) -> bool:
    """Return whether a Value can have a derivative: it has, or may have, real or complex numbers."""
    return value.dtype is None or value.dtype.kind in "fcO"


def in_graph(x: Any, like: Value) -> Any:
    """Return a cotangent or tangent that is an array as a constant of the graph: rules compute with Values."""
    return like.graph.constant(np.asarray(x)) if issubclass(type(x), (np.ndarray, np.generic, list, tuple)) else x


def _accumulate(pending: dict[int, Any], value: Value, ct: Any) -> None:
    before = pending.get(value._key)
    if before is not None:
        ct = in_sum(before, ct) if type(before) is Parts or type(ct) is Parts else total(before, ct)
    pending[value._key] = ct


def _pull_onto(
    pending: dict[int, Any], rule: Any, argnums: tuple[int, ...], args: Any, results: Any, cts: list[Any]
) -> None:
    """Add the cotangents of the arguments of a loop, which itself adds to those of what stays in it."""
    sums: dict[int, Value] = {}
    for k in argnums:
        value = args[k]
        if rule.adds_to(k) and all(args[j] is not value for j in sums):
            before = _laid_out(plain(_made(pending.get(value._key))), value)
            if before is not None and before.dtype == value.dtype:
                sums[k] = before
                del pending[value._key]
    found = rule.pull_onto(args, cts, set(argnums), results, sums)
    for k in argnums:
        if found[k] is not None:
            _accumulate(pending, args[k], found[k])


def _made(ct: Any) -> Any:
    """Return a cotangent, with its sum made if it was not yet."""
    return ct.made() if type(ct) is Parts else ct


def _signed(rule: Rule, argnums: tuple[int, ...], ans: Any, call: NodeCall, found: list[Any]) -> Any:
    """Return the cotangents of real numbers with their signs kept apart.

    It is None where the rule takes no sign.
    """
    if not rule.sign_symmetric or call.kwargs or any(isinstance(arg, (tuple, list, Dim)) for arg in call.args):
        return None
    ct = Signed.of(found[0])
    if ct is None or type(ans) is not Value or ans.dtype is None or ans.dtype.kind != "f":
        return None
    return rule.signed(argnums, ans, call.args, ct)  # type: ignore[attr-defined]


def _lent(ct: Any) -> Any:
    """Return the cotangent as a rule gets it: a user's rule may not change what others still read."""
    if type(ct) is Value:
        return ct._lent()
    return tuple(map(_lent, ct)) if type(ct) is tuple else ct


def _laid_out(ct: Any, value: Value) -> Any:
    """Return a cotangent in the shape of its array."""
    if ct is None or type(ct) is Value:
        return ct if ct is None or shape_of(ct) == shape_of(value) else broadcast_like(ct, value)
    if isinstance(ct, Scalar):
        ct = ct.array()
    ct = value.graph.constant(plain_array(ct, "a cotangent"))
    return ct if value.shape == () else broadcast_like(ct, value)


def ones_like(value: Value) -> Any:
    """Return the cotangent one, of a single real number."""
    dtype = dtype_of(value)
    if dtype is not None and dtype.kind == "f":
        return Scalar(1.0, dtype)
    return fit_dtype(np.ones(()), value)
