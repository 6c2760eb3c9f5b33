"""What ONNX's own inference says of tensors about which a loaded graph says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..declare.dims import Dim
from .elements import dtype_of
from .standard import OPSET

if TYPE_CHECKING:
    from .exporting import Writer

__all__ = ["Inferred", "infer"]

# Larger constants tell inference nothing but their type.
_SMALL = 1024


def infer(model: Any) -> dict[str, Any]:
    """The TypeProto of every tensor that inference finds something out about."""
    from onnx import shape_inference

    try:
        graph = shape_inference.infer_shapes(model).graph
    except Exception:  # of many types: a model that it cannot read, or of more than 2 GB
        graph = model.graph
    return {info.name: info.type for info in (*graph.value_info, *graph.output, *graph.input)}


class Inferred:
    """Types of the tensors of a model that is being written.

    Parameters
    ----------
    writer : Writer
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._types: dict[str, Any] = {}
        self._seen = -1

    def proto_of(self, name: str) -> Any:
        """The TypeProto of a tensor; None if nothing is known."""
        if name not in self._types and self._seen != len(self.writer.nodes):
            self._seen = len(self.writer.nodes)
            self._look()
        return self._types.get(name)

    def type_of(self, name: str) -> tuple[Any, tuple[Any, ...] | None]:
        """The dtype and the shape of a tensor; None for what is not known."""
        kind = self.proto_of(name)
        if kind is None or kind.WhichOneof("value") != "tensor_type":
            return None, None
        tensor = kind.tensor_type
        try:
            dtype = dtype_of(tensor.elem_type) if tensor.elem_type else None
        except ValueError:
            dtype = None
        return dtype, tuple(map(_size, tensor.shape.dim)) if tensor.HasField("shape") else None

    def _look(self) -> None:
        """Nodes of the model that was loaded, then those of pyop, each with its version of the operators."""
        from onnx import ValueInfoProto, helper

        w = self.writer
        assert w.held is not None
        inputs, small = [], []
        for value in w.graph.inputs:
            name = w.names[value.node.index, 0]
            inputs.append(w.declared(name, value) or w.value_info(name, value.spec, name))
        for tensor in w.initializers:
            if tensor.ByteSize() <= _SMALL:
                small.append(tensor)
            inputs.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        own = w.held.home.opsets
        for held, versions in ((True, own), (False, own | {"": OPSET})):
            nodes = [node for k, node in enumerate(w.nodes) if (k in w.held_at) == held]
            graph = helper.make_graph(nodes, "g", inputs, [], initializer=small, value_info=w.value_infos)
            opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
            types = infer(helper.make_model(graph, opset_imports=opsets, functions=w.held.home.functions))
            results = (name for node in nodes for name in node.output if name in types)
            inputs += [ValueInfoProto(name=name, type=types[name]) for name in results]
        self._types = {info.name: info.type for info in inputs}


def _size(dim: Any) -> int | Dim | None:
    from .loading import size_of

    return size_of(dim, "a tensor")
