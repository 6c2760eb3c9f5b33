"""Write nodes that were read from a model into another unchanged: operators that pyop has no function for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from onnx import GraphProto, checker, defs, helper, version_converter

from ..graph.node_call import unwrapped
from .attribute_writer import speak
from .attributes import node_label
from .builder import ModelBuilder
from .elements import printable
from .reference import ReferenceCall
from .standard import OPSET
from .subgraphs import bound_names, copied, free_names, inner_graphs, rename_tensors, subgraphs

__all__ = ["fits", "version_for", "write_read_node"]


@lru_cache(maxsize=4096)
def _means_the_same(op_type: str, have: int, want: int) -> bool:
    """Return whether an operator of one version is written the same way, and means the same, in another."""
    try:
        a, b = defs.get_schema(op_type, have), defs.get_schema(op_type, want)
    except defs.SchemaError:
        return not defs.has(op_type)
    if a.since_version == b.since_version:
        return True
    if have > want or b.deprecated or _ports(a) != _ports(b):
        return False
    # Later versions have more types, never fewer, and a constant may be given in more ways.
    old, new = _attributes(a), _attributes(b)
    return old.items() <= new.items() and (op_type == "Constant" or not new.keys() - old.keys() - _OF_NEW_TYPES)


_OF_NEW_TYPES = {"saturate", "round_mode"}  # of casts to element types that came with them


def _ports(schema: Any) -> Any:
    return [[(port.type_str, port.option, port.is_homogeneous) for port in x] for x in (schema.inputs, schema.outputs)]


def _attributes(schema: Any) -> dict[str, tuple[Any, bool, bytes]]:
    items = schema.attributes.items()
    return {name: (item.type, item.required, item.default_value.SerializeToString()) for name, item in items}


def fits(node: Any, have: int, want: int) -> bool:
    """Return whether a node of one version of ONNX's operators can stand in a model of another, with what is inside."""
    inside = [inner for graph in inner_graphs(node) for inner in graph.node]
    return all(_means_the_same(part.op_type, have, want) for part in (node, *inside) if part.domain in ("", "ai.onnx"))


def version_for(functions: Iterable[Any]) -> int:
    """Return the version of ONNX's operators for a model with these functions of nodes; older ones are converted."""
    calls = [call for call in map(unwrapped, functions) if isinstance(call, ReferenceCall)]
    versions = [call.home.opsets[""] for call in calls]
    fit = all(own <= OPSET or fits(call.node, own, OPSET) for call, own in zip(calls, versions, strict=True))
    return OPSET if fit else max(versions)


def _converted(builder: ModelBuilder, node: Any, have: int) -> list[Any]:
    """Return a node of an older version as nodes of the model's, by the onnx package; ValueError if that fails."""
    want = builder.opsets[""]
    if fits(node, have, want):
        return [node]
    outside = {*node.input, *node.output, *free_names(node)} - {""}
    graph = GraphProto(name="node", node=[node])
    graph.input.extend(builder.types.infos(sorted(outside - set(node.output))))
    graph.output.extend(builder.types.infos(name for name in node.output if name))
    try:
        if subgraphs(node) and not _means_the_same(node.op_type, have, want):
            raise ValueError("it has graphs inside")
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", have)], ir_version=10)
        made = version_converter.convert_version(model, want).graph
        new = {name: builder.fresh(name) for part in made.node for name in part.output if name not in outside}
        new |= {tensor.name: builder.fresh(tensor.name) for tensor in made.initializer}
        context = checker.C.CheckerContext()
        context.ir_version, context.opset_imports = 10, {"": want}
        for part in made.node:
            _complete(part, len(node.output), have)
            rename_tensors(part, new, {})
            part.output[:] = [new.get(name, name) for name in part.output]
            part.name = part.name or node.name
            if not subgraphs(part):  # which read what is outside
                checker.check_node(part, context)
    except Exception as error:  # the converter's own types, and RuntimeError of its assertions
        raise ValueError(
            f"{node_label(node)} cannot be exported: it is {printable(node.op_type)} of opset {have}, other nodes of "
            f"the graph need opset {want}, and the onnx package does not convert it "
            f"({type(error).__name__}: {str(error).strip():.200}); write it in NumPy's functions, or graph.save(path) "
            "keeps it"
        ) from None
    for tensor in made.initializer:
        tensor.name = new[tensor.name]
    builder.initializers += made.initializer
    return list(made.node)


def _complete(node: Any, n_outputs: int, have: int) -> None:
    """Write down what the converter leaves out."""
    told: dict[str, Any] = {}
    if node.op_type == "Resize" and have < 11:  # before there were modes, there was this one
        told = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif node.op_type == "Split" and len(node.input) < 2:
        told = {"num_outputs": n_outputs}
    given = {attribute.name for attribute in node.attribute}
    node.attribute.extend(helper.make_attribute(name, value) for name, value in told.items() if name not in given)


def called_functions(call: ReferenceCall) -> list[Any]:
    """Return the functions of its model that a node calls, those that others call first."""
    functions: dict[tuple[str, str], Any] = {}
    pending = [call.node]
    while pending:
        node = pending.pop()
        pending += [inner for graph in inner_graphs(node) for inner in graph.node]
        key = (node.domain, node.op_type)
        if key in call.home.bodies and key not in functions:
            functions[key] = call.home.bodies[key]
            pending += list(functions[key].node)
    return [functions[key] for key in call.home.bodies if key in functions]


def write_read_node(
    builder: ModelBuilder,
    call: ReferenceCall,
    inputs: list[str],
    outputs: list[str],
    dialect: str,
    known: Callable[[str, Any], None],
) -> None:
    """Write a node between tensors of the model, and the functions of its own model that it calls.

    `known` is told the name of the function of each PythonOp inside it, and where that is looked up. A ValueError says
    that the dialect cannot say what such a node says, or that another model has another function of the name.
    """
    made = copied(call.node)
    # What is bound inside gets names of its own, so that none means something outside as well.
    inner = {name: builder.fresh(name) for name in sorted(bound_names(made))}
    rename_tensors(made, dict(zip(call.names, inputs, strict=True)), inner)
    results = iter(outputs)
    made.output[:] = [next(results) if name else "" for name in made.output]
    if made.name:
        made.name = builder.node_names.fresh(made.name)
    domains = {made.domain, *(part.domain for graph in inner_graphs(made) for part in graph.node)}
    _speak(made, dialect, call, known)
    own = call.home.opsets[""]
    builder.nodes += _converted(builder, made, own)
    for body in map(copied, called_functions(call)):
        domains |= {body.domain, *(entry.domain for entry in body.opset_import)}
        have = next((entry.version for entry in body.opset_import if entry.domain in ("", "ai.onnx")), own)
        for node in body.node:
            if not fits(node, have, builder.opsets[""]):
                raise ValueError(
                    f"{node_label(node)} of function {body.name!r:.80} cannot be exported: it is of opset {have}, and "
                    f"other nodes of the graph need opset {builder.opsets['']}; load the model converted: "
                    "onnx.version_converter.convert_version(onnx.inliner.inline_local_functions(model), 20)"
                )
            _speak(node, dialect, call, known)
        for entry in body.opset_import:
            if entry.domain in ("", "ai.onnx"):
                entry.version = builder.opsets[""]
        if builder.functions.setdefault((body.domain, body.name), body) != body:
            raise ValueError(
                f"{node_label(made)} cannot be exported: it calls the function {body.domain}:{body.name} of its model, "
                "and another model in the graph has another one of this name"
            )
    for domain in sorted(domains - {"", "ai.onnx"}):
        version = call.home.opsets.get(domain, 1)
        if builder.opsets.setdefault(domain, version) != version:
            raise ValueError(
                f"{node_label(made)} cannot be exported: it is of version {version} of the domain {domain!r:.80}, and "
                f"other nodes of the graph are of version {builder.opsets[domain]}"
            )


def _speak(node: Any, dialect: str, call: ReferenceCall, known: Callable[[str, Any], None]) -> None:
    for part in (node, *(inner for graph in inner_graphs(node) for inner in graph.node)):
        name = speak(part, dialect, call.home.pointers)
        if name is not None:
            known(name, call.home.table)
