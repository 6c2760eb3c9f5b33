"""Write loops and branches as ONNX's `Loop` and `If`, with the bodies as graphs inside.

A body reads what stays the same from the graph around it. ONNX counts iterations from 0 and asks its condition for the
next iteration, pyop's Loop asks before each. So the condition is written twice, in front of the loop and at the end of
the body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from .._core import Node, Value
from ..graph.graph import Graph
from ..graph.node_call import declared_spec, unwrapped
from ..loops.node import Branch, Loop
from .builder import ModelBuilder, tensor_type
from .standard import Emitter, Operand

if TYPE_CHECKING:
    from .exporting import Exporter

__all__ = ["Inner", "is_control_flow", "write_control_flow"]

_INT = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)


class Inner(ModelBuilder):
    """Build the graph inside a node: names are those of the model, nodes and constants its own."""

    def __init__(self, outer: ModelBuilder) -> None:
        super().__init__(outer.opsets[""])
        self.fresh = outer.fresh
        self.node_names = outer.node_names
        self.opsets = outer.opsets
        self.functions = outer.functions

    def graph(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
        """Return the GraphProto. What it gives out is made in it, each under a name of its own."""
        made = {name for node in self.nodes for name in node.output}
        ends = []
        for output in outputs:
            if output not in made or output in ends:
                free = self.fresh(f"{output}_out")
                self.add("Identity", [output], [free], f"{free}/Identity")
                self.types.declare(free, self.types.of(output))
                output = free
            ends.append(output)
        infos = self.types.infos
        return helper.make_graph(self.nodes, name, infos(inputs), infos(ends), initializer=self.initializers)


def is_control_flow(node: Node) -> bool:
    """Return whether a node is a loop or a branch."""
    return isinstance(unwrapped(node.function), (Loop, Branch))


def write_control_flow(outer: Exporter, node: Node) -> None:
    """Write a loop or branch; ValueError where a part of it has effects, or ONNX has no words for what is in it."""
    if node.stateful:
        raise ValueError(
            f"node {node.name!r} (created at {node.origin}) cannot be exported: effects inside a loop or branch have "
            "no order in a model; compute what has effects before it"
        )
    function = unwrapped(node.function)
    try:
        if isinstance(function, Loop):
            _write_loop(outer, node, function)
        else:
            _write_branch(outer, node, function)
    except ValueError as error:
        kind = "loop" if isinstance(function, Loop) else "branch"
        raise ValueError(f"the {kind} {node.name!r} (created at {node.origin}) cannot be exported: {error}") from None


def _write_loop(outer: Exporter, node: Node, loop: Loop) -> None:
    lower, upper, *arrays = (outer.operand(value) for value in node.inputs)
    starts, constant = arrays[: loop.carried], arrays[loop.carried :]
    leaves = loop.body._output_leaves()[0]
    name = outer.name(node.outputs[0])
    step = _with(outer.builder, name)
    count = _trip_count(step, lower, upper, loop.step)
    truth = None
    if loop.conditional:
        truth = _part(outer, outer.builder, loop.body, [lower, *starts, *constant], leaves[-1:])[0]
    inner = Inner(outer.builder)
    number = Operand(inner.fresh(f"{name}/number"), _INT, ())
    goes_on = Operand(inner.fresh(f"{name}/goes_on"), _BOOL, ())
    now = [_declared(inner, f"{name}/carried", value) for value in loop.body.inputs[1 : loop.carried + 1]]
    for given in (number, goes_on):
        inner.types.declare(given.name, helper.make_tensor_type_proto(_CODES[given.dtype], ()))
    for given in (lower, *constant):
        inner.types.declare(given.name, outer.builder.types.of(given.name))
    i = _numbered(_with(inner, f"{name}/i"), number, lower, loop.step)
    made = _part(outer, inner, loop.body, [i, *now, *constant], leaves[: loop.carried])
    again = goes_on.name
    if loop.conditional:
        following = _numbered(_with(inner, f"{name}/next"), _after(inner, name, number), lower, loop.step)
        again = _part(outer, inner, loop.body, [following, *made, *constant], leaves[-1:])[0].name
    body = inner.graph(
        f"{name}/body", [number.name, goes_on.name, *(x.name for x in now)], [again, *(x.name for x in made)]
    )
    # Without a condition the reference implementation makes no iteration at all.
    begins = outer.builder.initializer(np.array(True), f"{name}/always") if truth is None else truth.name
    reads = [count.name, begins, *(x.name for x in starts)]
    outer.builder.add("Loop", reads, [outer.name(value) for value in node.outputs], node.name, body=body)


_CODES = {_INT: 7, _BOOL: 9}


def _write_branch(outer: Exporter, node: Node, branch: Branch) -> None:
    truth, *arrays = (outer.operand(value) for value in node.inputs)
    first = len(branch.yes.inputs)
    parts = {}
    for key, part, given in (
        ("then_branch", branch.yes, arrays[:first]),
        ("else_branch", branch.no, arrays[first:]),
    ):
        inner = Inner(outer.builder)
        for x in given:
            inner.types.declare(x.name, outer.builder.types.of(x.name))
        made = _part(outer, inner, part, given, part._output_leaves()[0])
        parts[key] = inner.graph(f"{outer.name(node.outputs[0])}/{key}", [], [x.name for x in made])
    outer.builder.add("If", [truth.name], [outer.name(value) for value in node.outputs], node.name, **parts)


def _part(outer: Exporter, builder: Any, part: Graph, given: Sequence[Operand], results: Sequence[Value]) -> Any:
    """Write the nodes of a body that `results` need, with tensors for its inputs; return the tensors of the results."""
    writer = outer.of_part(part, builder, results)
    return writer.written(given, results)


# --- numbers


def _with(builder: Any, base: str) -> Callable[..., Operand]:
    """Return a function that adds an operator."""

    def add(op_type: str, *inputs: Any, **attributes: Any) -> Operand:
        emitter = Emitter(builder, base, {}, ())
        operands = [x if isinstance(x, Operand) else emitter.constant(x, np.int64) for x in inputs]
        made = emitter.add(op_type, *operands, dtype=np.int64, **attributes)
        builder.nodes += emitter.nodes
        builder.types.declare(made.name, helper.make_tensor_type_proto(_CODES[_INT], ()))
        return Operand(made.name, _INT, ())

    return add


def _trip_count(add: Callable[..., Operand], lower: Operand, upper: Operand, step: int) -> Operand:
    away = add("Sub", upper, lower) if step > 0 else add("Sub", lower, upper)
    away = add("Max", away, 0)
    size = abs(step)
    if size == 1:
        return away
    whole = add("Div", away, size)
    rest = add("Min", add("Sub", away, add("Mul", whole, size)), 1)
    return add("Add", whole, rest)


def _numbered(add: Callable[..., Operand], number: Operand, lower: Operand, step: int) -> Operand:
    i = number if step == 1 else add("Mul", number, step)
    return add("Add", i, lower)


def _after(inner: Any, name: str, number: Operand) -> Operand:
    return _with(inner, f"{name}/after")("Add", number, 1)


def _declared(inner: Inner, hint: str, value: Value) -> Operand:
    spec = declared_spec(value)
    kind = tensor_type(spec)
    if kind is None:
        raise ValueError(f"what is carried is {spec}, for which ONNX has no type")
    name = inner.fresh(hint)
    inner.types.declare(name, kind)
    return Operand(name, spec.dtype, value.shape)
