"""Build a model: names, operators, constants, and what is known of its tensors.

Each is an object of its own; `ModelBuilder` holds them and makes the ModelProto.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from onnx import ValueInfoProto, helper, numpy_helper, shape_inference

from .._core import __version__ as pyop_version
from ..declare.dims import Dim
from ..declare.spec import Spec
from .elements import STRING, code_of, spec_of
from .standard import OPSET
from .subgraphs import free_names

__all__ = ["IR_VERSION", "ModelBuilder", "Names", "Types", "element_type", "tensor_type", "typed"]

IR_VERSION = 10
_SMALL = 1024  # bytes of constants: larger ones tell inference nothing but their type


class Names:
    """Make names of one kind, each once."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def fresh(self, hint: str) -> str:
        """Return a name that nothing else has, `hint` if possible."""
        name, k = hint, 0
        while name in self.taken or not name:
            k += 1
            name = f"{hint}_{k}"
        self.taken.add(name)
        return name


class Types:
    """Hold what is known of the tensors of a model: by declaration, else by ONNX's inference."""

    def __init__(self, builder: ModelBuilder) -> None:
        self.builder = builder
        self.known: dict[str, Any] = {}  # onnx.TypeProto
        self._seen = 0  # how many nodes inference has gone through

    def declare(self, name: str, kind: Any) -> None:
        """Take note of the TypeProto of a tensor; None says nothing."""
        if kind is not None and not _is_complete(self.known.get(name)):
            self.known[name] = kind

    def of(self, name: str) -> Any:
        """Return the TypeProto of a tensor; None if nothing is known."""
        if not _is_complete(self.known.get(name)) and self._seen < len(self.builder.nodes):
            self._infer()
        return self.known.get(name)

    def dtype_and_shape(self, name: str) -> tuple[Any, tuple[Any, ...] | None]:
        """Return the dtype and the shape of a tensor; None for what is not known."""
        kind = self.of(name)
        try:
            spec = None if kind is None else spec_of(kind, "a tensor")
        except ValueError:
            spec = None
        return (None, None) if spec is None else (spec.dtype, spec.shape)

    def _infer(self) -> None:
        """Infer the types of the nodes that have been written since the last time."""
        b = self.builder
        nodes, self._seen = b.nodes[self._seen :], len(b.nodes)
        made = {name for node in nodes for name in node.output}
        read = {name for node in nodes for name in {*node.input, *free_names(node)}} - made
        constants = [tensor for tensor in b.initializers if tensor.name in read]
        for tensor in constants:
            self.declare(tensor.name, helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims)))
        graph = helper.make_graph(
            nodes,
            "g",
            self.infos(sorted(read & self.known.keys())),
            [],
            initializer=[tensor for tensor in constants if tensor.ByteSize() <= _SMALL],
            value_info=self.infos(sorted(made & self.known.keys())),
        )
        try:
            infos = shape_inference.infer_shapes(b.wrap(graph)).graph.value_info
        except Exception:  # of many types: something that it cannot read, or of more than 2 GB
            return
        for info in infos:
            self.declare(info.name, info.type)

    def infos(self, names: Iterable[str]) -> list[Any]:
        """Return the ValueInfoProto of each tensor."""
        return [ValueInfoProto(name=name, type=self.known.get(name)) for name in names]


class ModelBuilder:
    """Hold the parts of a model of some version of ONNX's operators."""

    def __init__(self, version: int = OPSET) -> None:
        self.fresh = Names().fresh  # gives names for tensors
        self.node_names = Names()
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.types = Types(self)
        self.untold: set[str] = set()  # tensors of which the model does not speak
        self.opsets = {"": version}
        self.functions: dict[tuple[str, str], Any] = {}
        self._shared: dict[Any, str] = {}

    def add(self, op_type: str, inputs: list[str], outputs: list[str], name: str, **more: Any) -> Any:
        """Add a node; its name is changed where another has it, as runtimes refuse two of one name."""
        made = helper.make_node(op_type, inputs, outputs, name=self.node_names.fresh(name), **more)
        self.nodes.append(made)
        return made

    def initializer(self, array: np.ndarray[Any, Any], hint: str) -> str:
        """Return the name of a constant, shared between equal ones."""
        shared = array.nbytes <= _SMALL and array.dtype != object
        key = (array.dtype, array.shape, array.tobytes()) if shared else None
        if key in self._shared:
            return self._shared[key]
        name = self.fresh(hint)
        self.constant(array, name)
        if key is not None:
            self._shared[key] = name
        return name

    def constant(self, array: np.ndarray[Any, Any], name: str) -> None:
        """Add a constant under a name."""
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))

    def drop_initializers(self, count: int) -> None:
        """Take back all but the first constants: nothing reads the others."""
        unused = {tensor.name for tensor in self.initializers[count:]}
        del self.initializers[count:]
        self._shared = {key: name for key, name in self._shared.items() if name not in unused}

    def wrap(self, graph: Any) -> Any:
        """Return the model of a graph."""
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        return helper.make_model(
            graph,
            opset_imports=opsets,
            functions=list(self.functions.values()),
            ir_version=max(IR_VERSION, helper.find_min_ir_version_for(opsets, ignore_unknown=True)),
            producer_name="pyop",
            producer_version=pyop_version,
        )

    def model(self, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        """Return the ModelProto, with these ValueInfoProtos of inputs and outputs."""
        ends = {info.name for info in (*inputs, *outputs)} | self.untold
        made = [name for node in self.nodes for name in node.output if name in self.types.known and name not in ends]
        graph = helper.make_graph(
            self.nodes, name, inputs, outputs, initializer=self.initializers, value_info=self.types.infos(made)
        )
        return self.wrap(graph)


def _is_complete(kind: Any) -> bool:
    if kind is None or kind.WhichOneof("value") != "tensor_type":
        return kind is not None
    return kind.tensor_type.elem_type != 0 and bool(kind.tensor_type.HasField("shape"))


def element_type(dtype: np.dtype[Any]) -> int:
    """Return the element type of a dtype, text for objects as in the py_func family; ValueError if ONNX has none."""
    return STRING if dtype.kind in "OS" else code_of(dtype)


def tensor_type(spec: Spec) -> Any:
    """Return the TypeProto of a spec; None where ONNX has no words for it."""
    if not isinstance(spec.dtype, np.dtype):
        return None
    try:
        return typed(element_type(spec.dtype), None if spec.ndim is None else spec.shape)
    except ValueError:
        return None


def typed(code: int, shape: Any) -> Any:
    """Return the TypeProto of an element type and a shape."""
    sizes = [size if isinstance(size, int) else str(size) if isinstance(size, Dim) else None for size in shape or ()]
    return helper.make_tensor_type_proto(code, None if shape is None else sizes)
