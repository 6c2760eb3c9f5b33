"""Reverse accumulation on a graph: the cotangents of Values become further nodes of the graph they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from .._core import Node, Value
from ..containers import plain_array
from ..dim import Dim
from ..rebuild import CallForOne, CallOnTree, call_with_sizes
from . import table
from .fit import broadcast_like, dtype_of, fit_dtype, shape_of
from .listed import pull
from .scalar import Scalar
from .table import Rule

__all__ = ["Call", "backward", "call_of", "carries", "needed", "refuse", "rule_of"]


class Call:
    """One node as the call it makes: the function of NumPy, and its arguments with Values in them.

    Attributes
    ----------
    func : object
        The key of its rule.
    args, kwargs : tuple, dict
    leaves : list
        As `table.leaves` has them.
    of_one : bool
        The function returns a container of one array.
    """

    __slots__ = ("args", "func", "kwargs", "leaves", "of_one")

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], of_one: bool = False) -> None:
        self.func = func
        self.args = args
        self.kwargs = kwargs
        self.leaves = table.leaves(args, kwargs)
        self.of_one = of_one

    def packed(self, results: tuple[Any, ...]) -> Any:
        """Results, or what belongs to them, as the function returns them."""
        return results if len(results) != 1 or self.of_one else results[0]


def call_of(node: Node) -> Call:
    """What a node calls, with what wraps nested arguments and symbolic sizes taken off."""
    func: Any = node.function
    if node.contract is not None:
        func = node.contract.gradient or func
    values = node.inputs
    args: tuple[Any, ...] = values
    kwargs: dict[str, Any] = {}
    form = node._form
    if form is not None:
        order, statics, names = form
        items = [values[code] if code >= 0 else statics[~code] for code in order]
        if names:
            kwargs = dict(zip(names, items[-len(names) :], strict=True))
            items = items[: -len(names)]
        args = tuple(items)
    of_one = isinstance(func, CallForOne)
    if of_one:
        func = func.fn
    if isinstance(func, CallOnTree):
        given = iter(args)
        leaves = [next(given) if leaf is CallOnTree.ARRAY else leaf for leaf in func.leaves]
        args, kwargs = func.tree.unflatten(leaves)
        func = func.fn
    if func is call_with_sizes:
        func, args, kwargs = args[:3]
    return Call(func, args, kwargs, of_one)


def rule_of(node: Node, call: Call) -> Rule | None:
    """The gradient rule of what a node calls."""
    return table.lookup(call.func)


def needed(outputs: Sequence[Value], inputs: Sequence[Value]) -> list[Node]:
    """The nodes on the ways from `inputs` to `outputs`, in creation order."""
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


def backward(outputs: Sequence[Value], cotangents: Sequence[Any], inputs: Sequence[Value]) -> list[Any]:
    """The cotangents of `inputs` for given ones of `outputs`, as Values of the same graph.

    Parameters
    ----------
    outputs : sequence of Value
    cotangents : sequence of array or Value
        One for each output; None for zero.
    inputs : sequence of Value
        What to differentiate with respect to. Nodes above them do not matter.

    Returns
    -------
    list
        One for each input; None where the outputs do not depend on it.

    Raises
    ------
    NoRule
        A function on the way has no gradient rule.
    """
    pending: dict[int, Any] = {}
    for output, seed in zip(outputs, cotangents, strict=True):
        if seed is not None:
            _accumulate(pending, output, in_graph(seed, output))
    wanted = {value._key for value in inputs}
    active = {value._key for value in inputs}
    nodes = needed(outputs, inputs) if outputs else []
    ways: list[tuple[Node, Call, Rule | None]] = []
    for node in nodes:
        which = tuple(k for k, value in enumerate(node.inputs) if value._key in active)
        if not which:
            continue
        call = call_of(node)
        rule = rule_of(node, call)
        if rule is not None and not rule.differentiable:
            continue
        carrying = [value._key for value in node.outputs if carries(value)]
        if carrying:
            ways.append((node, call, rule))
            active.update(carrying)
    for node, call, rule in reversed(ways):
        results = node.outputs
        cts = tuple([pending.get(value._key) for value in results])
        if all(ct is None for ct in cts):
            continue
        if rule is None:
            refuse(node, call)
        argnums = tuple([k for k, leaf in enumerate(call.leaves) if type(leaf) is Value and leaf._key in active])
        ans: Any = call.packed(results)
        ct: Any = call.packed(cts)
        if isinstance(ans, Value):
            rule = rule.narrow or rule
            if not rule.broadcasts and not rule.narrows:
                ct = _laid_out(ct, ans)
        else:
            ct = tuple([_laid_out(c, y) for c, y in zip(cts, results, strict=True)])
        if isinstance(ct, Scalar) and any(isinstance(arg, Dim) for arg in call.args):
            ct = ans.graph.constant(ct.array())  # sizes are numbers only beside Values
        parts = pull(rule, argnums, ans, call.args, call.kwargs)(_lent(ct))
        for k, part in zip(argnums, parts, strict=True):
            if part is not None:
                _accumulate(pending, call.leaves[k], part)
    return [_laid_out(pending.get(value._key), value) if value._key in wanted else None for value in inputs]


def refuse(node: Node, call: Call) -> NoReturn:
    """Raise what a node without a rule gives."""
    if node.contract is None:
        table.missing(call.func, f" (in node {node.name!r}, created at {node.origin})")
    table.missing_of_op(node.name, node.contract, f" (created at {node.origin})")


def carries(value: Value) -> bool:
    """Whether a Value can have a derivative: it has, or may have, real or complex numbers."""
    return value.dtype is None or value.dtype.kind in "fcO"


def in_graph(x: Any, like: Value) -> Any:
    """A cotangent or tangent that is given as an array, as a constant of the graph: rules compute with Values."""
    return like.graph.constant(np.asarray(x)) if issubclass(type(x), (np.ndarray, np.generic, list, tuple)) else x


def _accumulate(pending: dict[int, Any], value: Value, ct: Any) -> None:
    before = pending.get(value._key)
    pending[value._key] = ct if before is None else before + ct


def _lent(ct: Any) -> Any:
    """The cotangent as a rule gets it: one that a user wrote may not change what others still read."""
    if type(ct) is Value:
        return ct._lent()
    return tuple(map(_lent, ct)) if type(ct) is tuple else ct


def _laid_out(ct: Any, value: Value) -> Any:
    """A cotangent in the shape of what it belongs to."""
    if ct is None or type(ct) is Value:
        return ct if ct is None or shape_of(ct) == shape_of(value) else broadcast_like(ct, value)
    if isinstance(ct, Scalar):
        ct = ct.array()
    ct = value.graph.constant(plain_array(ct, "a cotangent"))
    return ct if value.shape == () else broadcast_like(ct, value)


def ones_like(value: Value) -> Any:
    """The cotangent one, of a single real number."""
    dtype = dtype_of(value)
    if dtype is not None and dtype.kind == "f":
        return Scalar(1.0, dtype)
    return fit_dtype(np.ones(()), value)
