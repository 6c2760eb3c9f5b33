"""Save nodes that were read from an ONNX model as they were there, and rebuild them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from onnx import FunctionProto, NodeProto

from ..onnx.attributes import DOMAIN
from ..onnx.callee import read_callee
from ..onnx.python_op import GradientCall, PythonCall
from ..onnx.reference import Reference, ReferenceCall
from ..onnx.registry import Table
from ..onnx.subgraphs import inner_graphs

__all__ = ["CALLS", "describe_model", "earlier_calls", "functions_of", "read_model", "read_node", "write_node"]

CALLS = (PythonCall, GradientCall, ReferenceCall)


def functions_of(call: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the functions that a node calls, as far as they are known: name, and what it stands for."""
    nodes = [call.node]
    if isinstance(call, ReferenceCall):
        nodes += [inner for body in call.home.functions for inner in body.node]
    for node in nodes:
        for part in (node, *(inner for graph in inner_graphs(node) for inner in graph.node)):
            for attribute in part.attribute if part.domain == DOMAIN else ():
                if attribute.name in ("func_name", "name"):
                    name = read_callee(attribute.s.decode("utf-8", "replace")).path
                    implementation = call.home.table.known(name)
                    if implementation is not None:
                        yield name, implementation.given


def write_node(homes: list[Reference], call: Any, write: Callable[[Any], Any]) -> Any:
    """Return the JSON of what a node calls; its model is put among `homes`."""
    if call.home not in homes:
        homes.append(call.home)
    plain = isinstance(call, ReferenceCall)
    names, dtypes = (list(call.names), list(map(write, call.dtypes))) if plain else ([], [])
    return [homes.index(call.home), _text(call.node), names, dtypes]


def read_node(homes: list[Reference], x: Any, read: Callable[[Any], Any]) -> Any:
    """Return what `write_node` has written."""
    number, text, names, dtypes = x
    return homes[int(number)].call(_proto(NodeProto, text), tuple(map(str, names)), tuple(map(read, dtypes)))


def describe_model(home: Reference, write: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the JSON of what a model has beside its nodes."""
    bodies = [_text(body) for body in home.functions]
    return {"opsets": home.opsets, "strict": home.strict, "functions": bodies, "pointers": write(home.pointers)}


def read_model(description: Any, table: Table, read: Callable[[Any], Any]) -> Reference:
    """Return what `describe_model` has described."""
    opsets = {str(domain): int(version) for domain, version in description["opsets"].items()}
    functions = [_proto(FunctionProto, text) for text in description["functions"]]
    return Reference(opsets, functions, table, bool(description["strict"]), read(description["pointers"]))


def earlier_calls(description: Any, home: Reference) -> dict[int, Callable[[tuple[Any, ...]], Any]]:
    """Return what makes the functions of nodes, given the dtypes of their results, in files of format 1.

    Those kept the nodes of the model in one list, by the index of the node of the graph.
    """

    def maker(text: str, names: tuple[str, ...]) -> Callable[[tuple[Any, ...]], Any]:
        return lambda dtypes: home.one_result(home.call(_proto(NodeProto, text), names, dtypes), len(dtypes))

    return {
        int(index): maker(text, tuple(str(name) for name, _, _ in places))
        for index, text, places, native in description["nodes"]
        if not native
    }


def _text(proto: Any) -> str:
    return base64.b85encode(proto.SerializeToString()).decode()


def _proto(kind: Any, text: str) -> Any:
    try:
        return kind.FromString(base64.b85decode(text))
    except DecodeError as error:
        raise ValueError(f"a {kind.__name__} of the description is malformed: {error}") from None
