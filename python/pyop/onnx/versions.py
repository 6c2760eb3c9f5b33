"""Which version of ONNX's operators a model is written for, when its nodes are of several.

Nodes that were read from a model are of the version of that model, those that pyop writes of `OPSET`. A version is
looked for in which all of them mean the same as they are; failing that the older ones are converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from .attributes import node_label, printable
from .reference import subgraphs
from .standard import OPSET

__all__ = ["Converter", "choose", "fits"]


@lru_cache(maxsize=4096)
def _schema(op_type: str, version: int) -> Any:
    from onnx import defs

    try:
        return defs.get_schema(op_type, version)
    except defs.SchemaError:
        return None


@lru_cache(maxsize=4096)
def _same(op_type: str, have: int, want: int) -> bool:
    """Whether an operator of one version is written the same way, and means the same, in another."""
    a, b = _schema(op_type, have), _schema(op_type, want)
    if a is None or b is None:
        return a is b
    if a.since_version == b.since_version:
        return True
    # The same but for types: later versions have more of them, never fewer.
    return have < want and not b.deprecated and _form(a) == _form(b)


def _form(schema: Any) -> Any:
    def ports(items: Iterable[Any]) -> list[Any]:
        return [(port.type_str, port.option, port.is_homogeneous) for port in items]

    attributes = {
        name: (item.type, item.required, item.default_value.SerializeToString())
        for name, item in schema.attributes.items()
    }
    return ports(schema.inputs), ports(schema.outputs), attributes


def fits(node: Any, have: int, want: int) -> bool:
    """Whether a node written for one version can stand in a model of another, with the graphs inside it."""
    if node.domain in ("", "ai.onnx") and not _same(node.op_type, have, want):
        return False
    return all(fits(inner, have, want) for graph in subgraphs(node) for inner in graph.node)


def choose(read: Sequence[tuple[Any, int]], written: Sequence[Any]) -> int:
    """The version to write a model for.

    Parameters
    ----------
    read : sequence of (onnx.NodeProto, int)
        Nodes of a model and of its functions, each with its version.
    written : sequence of onnx.NodeProto
        Those of `OPSET`.

    Returns
    -------
    int
    """
    standard = [(node, version) for node, version in read if _is_standard(node)]
    if not standard:
        return OPSET
    own = max(version for _, version in standard)
    # ONNX's Identity is in every version, with more types in each.
    made = [node for node in written if node.domain == "" and node.op_type != "Identity"]
    for candidate in (own, OPSET):
        if all(fits(node, version, candidate) for node, version in standard) and all(
            fits(node, OPSET, candidate) for node in made
        ):
            return candidate
    return max(own, OPSET)


def _is_standard(node: Any) -> bool:
    if node.domain in ("", "ai.onnx"):
        return True
    return any(_is_standard(inner) for graph in subgraphs(node) for inner in graph.node)


class Converter:
    """Nodes of another version, by the onnx package.

    Parameters
    ----------
    version : int
        The one that is wanted.
    fresh : callable
        Gives a name that nothing has.
    type_of : callable
        Gives the onnx.TypeProto of a tensor, or None.
    """

    def __init__(self, version: int, fresh: Callable[[str], str], type_of: Callable[[str], Any]) -> None:
        self.version = version
        self.fresh = fresh
        self.type_of = type_of

    def convert(self, node: Any, have: int) -> list[Any]:
        """Nodes that do the same.

        Raises
        ------
        ValueError
            The onnx package cannot convert it; names the node.
        """
        if fits(node, have, self.version):
            return [node]
        if not subgraphs(node):
            return self._single(node, have)
        if node.domain in ("", "ai.onnx") and not _same(node.op_type, have, self.version):
            self._fail(node, have, "it has graphs inside")
        made = type(node)()
        made.CopyFrom(node)
        for graph in subgraphs(made):
            inside = [new for inner in graph.node for new in self.convert(inner, have)]
            del graph.node[:]
            graph.node.extend(inside)
        return [made]

    def _fail(self, node: Any, have: int, reason: str) -> None:
        raise ValueError(
            f"{node_label(node)} cannot be exported: it is {printable(node.op_type)} of opset {have}, other nodes of "
            f"the graph need opset {self.version}, and the onnx package does not convert it ({reason})"
        )

    def _single(self, node: Any, have: int) -> list[Any]:
        from onnx import GraphProto, ValueInfoProto, checker, helper, numpy_helper, version_converter

        graph = GraphProto(name="node", node=[node])
        for side, names in ((graph.input, node.input), (graph.output, node.output)):
            for name in dict.fromkeys(names):
                if name:
                    side.append(ValueInfoProto(name=name, type=self.type_of(name)))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", have)], ir_version=10)
        try:
            converted = version_converter.convert_version(model, self.version).graph
        except Exception as error:  # the converter's own types, and RuntimeError of its assertions
            self._fail(node, have, f"{type(error).__name__}: {error!s:.200}".replace("\n", " "))
        outside = {*node.input, *node.output}
        names = {name: self.fresh(name) for made in converted.node for name in made.output if name not in outside}
        names |= {tensor.name: self.fresh(tensor.name) for tensor in converted.initializer}
        found = []
        for tensor in converted.initializer:
            array = numpy_helper.to_array(tensor)
            found.append(helper.make_node("Constant", [], [names[tensor.name]], value=numpy_helper.from_array(array)))
        for made in converted.node:
            made.input[:] = [names.get(name, name) for name in made.input]
            made.output[:] = [names.get(name, name) for name in made.output]
            _complete(made, node, have, self.version)
            found.append(made)
        context = checker.C.CheckerContext()
        context.ir_version, context.opset_imports = 10, {"": self.version}
        for made in found:
            made.name = made.name or node.name
            try:
                checker.check_node(made, context)
            except checker.ValidationError as error:
                self._fail(node, have, f"what it makes is not valid: {error!s:.200}".replace("\n", " "))
        return found


def _complete(made: Any, node: Any, have: int, want: int) -> None:
    """What the converter leaves out."""
    from onnx import helper

    given = {attribute.name for attribute in made.attribute}
    if made.op_type == "Resize" and have < 11 and "coordinate_transformation_mode" not in given:
        # Before there were modes, there was this one.
        made.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
        made.attribute.append(helper.make_attribute("nearest_mode", "floor"))
    if made.op_type == "Split" and want >= 18 and len(made.input) < 2 and "num_outputs" not in given:
        made.attribute.append(helper.make_attribute("num_outputs", len(node.output)))
