"""What a graph keeps of the model that it was loaded from, so that it can be written back.

Every node of the model stays as it was: beside the node of the graph that does it, or that has its result where NumPy's
functions do. Inputs of a node are known by place, so that nothing depends on the names of the model.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from .attributes import DOMAIN, read_backward
from .reference import Reference, bound_names

__all__ = ["HeldModel", "HeldNode", "describe", "is_python", "read_description"]

Place = tuple[int, int]  # of a Value: its node and which output


@dataclass(frozen=True)
class HeldNode:
    """A node of the model."""

    node: Any  # onnx.NodeProto
    places: tuple[tuple[str, int, int], ...]  # where the tensors that it reads are, those of its subgraphs too
    native: bool  # done by NumPy's functions; otherwise the node of the graph has been made of this one


def is_python(node: Any) -> bool:
    """Whether a node is a PythonOp or a PythonOpGrad."""
    return node.domain == DOMAIN and node.op_type in ("PythonOp", "PythonOpGrad")


class HeldModel:
    """What is not in the nodes of a graph.

    Parameters
    ----------
    home : Reference
        Opsets and functions of the model.
    ir_version : int
    metadata : dict of str to str
    """

    def __init__(self, home: Reference, ir_version: int, metadata: dict[str, str]) -> None:
        self.home = home
        self.ir_version = ir_version
        self.metadata = metadata
        self.nodes: dict[int, HeldNode] = {}
        self.names: dict[Place, str] = {}  # of tensors
        self.types: dict[Place, Any] = {}  # onnx.TypeProto, as far as the model declares them
        self.defaults: dict[str, Any] = {}  # arrays of inputs that need not be fed
        self.fixed: dict[str, int] = {}  # inputs that became constants, and the index of the constant

    @staticmethod
    def outputs(held: HeldNode) -> list[str]:
        """The outputs of a node, in the order of those of the graph's node; "" for one without a name."""
        every = list(held.node.output)
        return every if is_python(held.node) else [name for name in every if name]

    def type_of(self, place: Place) -> Any:
        """The TypeProto of a Value, as the model declares it; None for none."""
        kind = self.types.get(place)
        held = self.nodes.get(place[0])
        if held is None or held.node.op_type != "PythonOpGrad" or held.node.domain != DOMAIN:
            return kind
        if kind is not None and kind.tensor_type.HasField("shape"):
            return kind
        from onnx import helper

        # The node itself says it, and ONNX infers nothing of it.
        port = read_backward(held.node).outputs[place[1]]
        return helper.make_tensor_type_proto(port.code, [None] * port.rank)

    def inner_names(self) -> set[str]:
        """Names that mean something inside a node."""
        return {name for held in self.nodes.values() for name in bound_names(held.node)}

    def call(self, index: int, dtypes: tuple[Any, ...]) -> Any:
        """What a node of the graph calls that has been made of one of the model."""
        held = self.nodes[index]
        return self.home.call(held.node, tuple(name for name, _, _ in held.places), dtypes)

    def check(self, outputs: list[int], inputs: list[tuple[Place, ...]]) -> None:
        """Hold what a file says against the graph.

        Parameters
        ----------
        outputs : list of int
            How many each node of the graph has.
        inputs : list of tuple of (int, int)
            Those of each node.

        Raises
        ------
        ValueError
            It is of another graph.
        """

        def there(node: int, output: int, before: int) -> bool:
            return 0 <= node < before and 0 <= output < outputs[node]

        for index, held in self.nodes.items():
            read = {name: (node, k) for name, node, k in held.places}
            places = tuple(read.values())
            if held.node.domain == DOMAIN and read.keys() >= set(filter(None, held.node.input)):
                places = tuple(read[name] for name in held.node.input if name)  # a tensor may be read twice
            good = 0 <= index < len(outputs) and all(there(node, k, index) for node, k in places)
            if not (good and len(self.outputs(held)) == outputs[index] and (held.native or places == inputs[index])):
                raise ValueError(f"node {index} of the ONNX model is not that of the graph")
        for node, output in (*self.types, *self.names, *((index, 0) for index in self.fixed.values())):
            if not there(node, output, len(outputs)):
                raise ValueError(f"node {node} of the graph has no output {output}, of which the description speaks")

    # --- as data

    def __reduce__(self) -> Any:
        return _unpickled, (self.home, self.description())

    def description(self) -> dict[str, Any]:
        """Everything but functions and the like, as JSON has it; arrays stay arrays."""
        return {
            "ir_version": self.ir_version,
            "metadata": self.metadata,
            "nodes": [
                [index, _text(held.node), [list(place) for place in held.places], held.native]
                for index, held in self.nodes.items()
            ],
            "names": [[*place, name] for place, name in self.names.items()],
            "types": [[*place, _text(kind)] for place, kind in self.types.items()],
            "defaults": dict(self.defaults),
            "fixed": self.fixed,
        }

    @classmethod
    def described(cls, home: Reference, description: dict[str, Any]) -> HeldModel:
        """The other way round.

        Raises
        ------
        ValueError
            The description is malformed.
        """
        from onnx import NodeProto, TypeProto

        metadata = {str(key): str(text) for key, text in description["metadata"].items()}
        made = cls(home, int(description["ir_version"]), metadata)
        for index, text, places, native in description["nodes"]:
            held = tuple((str(name), int(node), int(output)) for name, node, output in places)
            made.nodes[int(index)] = HeldNode(_proto(NodeProto, text), held, bool(native))
        made.names = {(int(node), int(output)): str(name) for node, output, name in description["names"]}
        for node, output, text in description["types"]:
            made.types[int(node), int(output)] = _proto(TypeProto, text)
        made.defaults = dict(description["defaults"])
        made.fixed = {str(name): int(index) for name, index in description["fixed"].items()}
        return made


def _text(proto: Any) -> str:
    return base64.b85encode(proto.SerializeToString()).decode()


def _proto(kind: Any, text: str) -> Any:
    from google.protobuf.message import DecodeError

    made = kind()
    try:
        made.ParseFromString(base64.b85decode(text))
    except DecodeError as error:
        raise ValueError(f"a {kind.__name__} of the description is malformed: {error}") from None
    return made


def _unpickled(home: Reference, description: dict[str, Any]) -> HeldModel:
    return HeldModel.described(home, description)


def describe(held: HeldModel, writer: Any) -> dict[str, Any]:
    """Everything in JSON; objects by `writer`, a `pyop.saving.values.Writer`."""
    home, found = held.home, held.description()
    found["defaults"] = writer.write(found["defaults"])
    found["opsets"], found["strict"] = home.opsets, home.strict
    found["functions"] = [_text(body) for body in home.functions]
    found["pointers"] = writer.write(home.pointers)
    return found


def read_description(description: Any, table: Any, reader: Any) -> HeldModel:
    """What `describe` has written.

    Raises
    ------
    ValueError
        It is malformed.
    """
    from onnx import FunctionProto

    try:
        opsets = {str(domain): int(version) for domain, version in description["opsets"].items()}
        functions = [_proto(FunctionProto, text) for text in description["functions"]]
        pointers = reader.read(description["pointers"])
        home = Reference(opsets, functions, table, bool(description["strict"]), pointers)
        return HeldModel.described(home, description | {"defaults": reader.read(description["defaults"])})
    except LookupError as error:
        if isinstance(error, KeyError | IndexError):
            raise ValueError(f"the description of the ONNX nodes is malformed: {error!r:.200}") from None
        raise
    except Exception as error:  # whatever a description that was tampered with runs into
        raise ValueError(f"the description of the ONNX nodes is malformed: {error!r:.300}") from error
