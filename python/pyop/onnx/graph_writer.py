"""Write the nodes of a graph into a model under construction, as far as ONNX has operators for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core import Node, Value
from ..graph.graph import Graph
from ..graph.in_place import InPlace
from ..graph.node_call import NodeCall, declared_spec
from .builder import ModelBuilder, tensor_type
from .standard import Emitter, NotStandard, Operand, emit, has_rule
from .standard.numbers import with_strong_arrays

__all__ = ["GraphWriter"]


class GraphWriter:
    """Write nodes of a graph into a model under construction."""

    def __init__(self, graph: Graph, builder: ModelBuilder) -> None:
        self.graph = graph
        self.builder = builder
        self.names: dict[tuple[int, int], str] = {}  # of the tensor of each Value

    def name_values(self, wanted: dict[tuple[int, int], str]) -> None:
        """Choose the names of all tensors: those that are wanted first."""
        own = {(node.index, k): value.name for node in self.graph.nodes for k, value in enumerate(node.outputs)}
        for place, name in (wanted | {place: name for place, name in own.items() if place not in wanted}).items():
            self.names[place] = self.builder.fresh(name)

    def name(self, value: Value) -> str:
        """Return the name of the tensor of a Value."""
        return self.names[value.node.index, value.output_index]

    def operand(self, value: Value) -> Operand:
        """Return the tensor of a Value."""
        name, dtype, shape = self.name(value), declared_spec(value).dtype, value.shape
        if dtype is None or shape is None:
            known = self.builder.types.dtype_and_shape(name)
            dtype, shape = known[0] if dtype is None else dtype, known[1] if shape is None else shape
        return Operand(name, dtype, shape)

    def constant(self, node: Node) -> None:
        """Write a constant as an initializer of its name; ValueError if ONNX has no such tensors."""
        array = self.graph.run(node.outputs[0])
        name = self.names[node.index, 0]
        if array.dtype.kind in "OUST":
            array = _texts(array, f"constant {name!r}")
        elif array.dtype.kind not in "biufc" and tensor_type(declared_spec(node.outputs[0])) is None:
            raise ValueError(f"constant {name!r} cannot be exported: ONNX has no element type for {array.dtype}")
        self.builder.constant(array, name)

    def describe(self, node: Node) -> None:
        """Declare what is known of results: ONNX infers nothing of a PythonOp, and less of the rest than pyop knows."""
        for value in node.outputs:
            self.builder.types.declare(self.name(value), tensor_type(declared_spec(value)))

    def standard(self, node: Node, call: NodeCall) -> bool:
        """Write a call as operators, if there is a rule, and say whether; NotStandard if they cannot do this call."""
        call, weak = with_strong_arrays(_computed(call))
        if node.contract is not None or not has_rule(call.function):
            return False
        before = len(self.builder.initializers)
        outputs = [self.operand(value) for value in node.outputs]
        emitter = Emitter(self.builder, self.names[node.index, 0], call.carriers or {}, tuple(outputs))
        try:
            call = weak(emitter, call)
            results = emit(emitter, call.function, call.args, call.kwargs)
            if len(results) != len(outputs):
                raise NotStandard(f"{len(results)} results where the node has {len(outputs)}")
            _give_out(emitter, results, outputs)
        except NotStandard:
            self.builder.drop_initializers(before)
            raise
        self.builder.nodes += emitter.nodes
        return True


def _give_out(emitter: Emitter, results: list[Operand], outputs: list[Operand]) -> None:
    """Rename the results of operators to the outputs."""
    final: dict[str, str] = {}
    for result, output in zip(results, outputs, strict=True):
        if output.dtype is not None:
            result = emitter.cast(result, output.dtype)
        if result.name in final or not any(result.name in made.output for made in emitter.nodes):
            result = emitter.add("Identity", result)
        final[result.name] = output.name
    for made in emitter.nodes:
        made.output[:] = [final.get(name, name) for name in made.output]
        made.input[:] = [final.get(name, name) for name in made.input]


def _computed(call: NodeCall) -> NodeCall:
    """Return the call of the operator for an augmented assignment, if that gives its bits.

    Results are cast to the dtype of their node.
    """
    dtypes = [x.dtype for x in call.args if isinstance(x, Operand)]
    known = all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes)
    return replace(call, function=call.function.ufunc) if known and isinstance(call.function, InPlace) else call


def _texts(array: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    items = array.ravel().tolist()
    for item in items:
        if not isinstance(item, str | bytes):
            raise ValueError(f"{what} holds {type(item).__name__} {item!r:.80}, which is no text: ONNX has no objects")
    made = np.empty(len(items), object)
    made[:] = items
    return made.reshape(array.shape)
