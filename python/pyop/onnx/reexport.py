"""Nodes of a loaded model, written into a model again as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .attributes import node_label, printable
from .callee import read_callee
from .held import HeldNode, is_python
from .inferred import infer
from .reference import inner_graphs, rename_tensors
from .standard import OPSET
from .versions import Converter, choose, fits

if TYPE_CHECKING:
    from .._core import Node
    from .exporting import Writer

__all__ = ["complete", "domains", "functions", "ir_version", "settle", "write", "write_defaults"]

# What one dialect of PythonOp says and the other cannot, with the value that says nothing.
_ONLY_IN: dict[str, dict[str, Any]] = {
    "func_name": {
        "tensor_reuse_map": -1,
        "bw_tensor_reuse_map": -1,
        "safe_run_mode": 1,
        "comment": None,
        "input_bool_scalars": (),
        "input_bool_scalar_positions": (),
        "input_bool_tuples": (),
        "input_bool_tuple_positions": (),
        "input_bool_tuple_begins": (),
    },
    "name": {"inplace": 0},
}


def write(w: Writer, node: Node, held: HeldNode) -> None:
    """A node of the model that a graph was loaded from.

    Raises
    ------
    ValueError
        The dialect cannot say what an attribute says; names both.
    """
    made = type(held.node)()
    made.CopyFrom(held.node)
    names = {name: w.names[index, k] for name, index, k in held.places}
    rename_tensors(made, names, w.inner_names)
    results = iter(w.names[node.index, value.output_index] for value in node.outputs)
    every = is_python(made)
    made.output[:] = [next(results) if name or every else "" for name in made.output]
    _speak(made, w)
    w.held_at.add(len(w.nodes))
    w.nodes.append(made)


def _speak(node: Any, w: Writer) -> None:
    """The dialect of the model, in the graphs inside the node too."""
    for graph in inner_graphs(node):
        for inner in graph.node:
            _translate(inner, w)
    _translate(node, w)


def _translate(node: Any, w: Writer) -> None:
    if not is_python(node):
        return
    if w.dialect == "extensions":
        raise ValueError(
            f"{node_label(node)} was read from a model, and cannot be exported for onnxruntime-extensions, which have "
            "operators of their own: use the dialect 'func_name' or 'name'"
        )
    other = "name" if w.dialect == "func_name" else "func_name"
    kept = []
    for attribute in node.attribute:
        if attribute.name == other:
            attribute.name = w.dialect
        elif attribute.name in _ONLY_IN[other]:
            _check_silent(node, attribute, _ONLY_IN[other][attribute.name], w.dialect)
            continue
        elif attribute.name == "output_tensor_requires_grads" and node.op_type == "PythonOp":
            continue  # of neither: it was dropped before the first of them, and nothing reads it
        if attribute.name == w.dialect:
            _name(attribute.s.decode("utf-8", "replace"), w)
        kept.append(attribute)
    kept = [type(attribute).FromString(attribute.SerializeToString()) for attribute in kept]
    del node.attribute[:]
    node.attribute.extend(kept)


def _check_silent(node: Any, attribute: Any, nothing: Any, dialect: str) -> None:
    from onnx import helper

    value = helper.get_attribute_value(attribute)
    items = list(value) if isinstance(value, list | tuple) else [value]
    if nothing is not None and any(item != nothing for item in items):
        raise ValueError(
            f"{node_label(node)}, attribute {attribute.name!r}: it is {value!r:.80}, which the dialect {dialect!r} "
            "cannot say; export in the other one"
        )


def _name(name: str, w: Writer) -> None:
    """Remember a function, for `embed`."""
    assert w.held is not None
    name = read_callee(name).path
    found = w.held.home.table.known(name)
    if found is None:
        return
    pair = (found.forward, found.backward) if found.backward is not None else found.forward
    function = found.op or found.function or pair
    known = w.functions.setdefault(name, function)
    if known is not function and known != function:
        raise ValueError(
            f"two functions are called {name!r}: {known!r:.100} and that of the loaded model, {function!r:.100}; give "
            "the former another name with export(..., names={function: name})"
        )


# --- what the model as a whole has


def functions(w: Writer) -> list[Any]:
    """The functions of the model that its nodes still call."""
    if w.held is None:
        return []
    bodies = w.held.home.bodies
    found: dict[tuple[str, str], Any] = {}
    pending = list(w.nodes)
    while pending:
        node = pending.pop()
        pending += [inner for graph in inner_graphs(node) for inner in graph.node]
        key = (node.domain, node.op_type)
        if key in bodies and key not in found:
            body = found[key] = type(bodies[key])()
            body.CopyFrom(bodies[key])
            for inner in body.node:
                _speak(inner, w)
            pending += list(body.node)
    return [found[key] for key in bodies if key in found]  # those that others call come first


def domains(nodes: Any) -> set[str]:
    """The domains of nodes, and of those inside them."""
    inside = (inner for node in nodes for graph in inner_graphs(node) for inner in graph.node)
    return {node.domain for node in (*nodes, *inside)}


def _version(body: Any, otherwise: int) -> int:
    found = [entry.version for entry in body.opset_import if entry.domain in ("", "ai.onnx")]
    return found[0] if found else otherwise


def settle(w: Writer, bodies: list[Any]) -> int:
    """Bring all nodes to one version of ONNX's operators, and say which.

    Raises
    ------
    ValueError
        There is none; names a node.
    """
    assert w.held is not None
    assert w.inferred is not None
    own = w.held.home.opsets[""]
    versions = [_version(body, own) for body in bodies]
    read = [(w.nodes[k], own) for k in sorted(w.held_at)]
    read += [(node, version) for body, version in zip(bodies, versions, strict=True) for node in body.node]
    version = choose(read, [node for k, node in enumerate(w.nodes) if k not in w.held_at])
    converter = Converter(version, w.fresh, w.inferred.proto_of)
    made: list[Any] = []
    for k, node in enumerate(w.nodes):
        if k in w.held_at:
            made += converter.convert(node, own)
        else:
            made += [node] if node.op_type == "Identity" else converter.convert(node, OPSET)
    w.nodes, w.held_at = made, set()
    for body, have in zip(bodies, versions, strict=True):
        for node in body.node:
            if not fits(node, have, version):
                raise ValueError(
                    f"{node_label(node)} of function {body.name!r:.80} cannot be exported: it is "
                    f"{printable(node.op_type)} of opset {have}, and other nodes of the graph need opset {version}"
                )
        for entry in body.opset_import:
            if entry.domain in ("", "ai.onnx"):
                entry.version = version
    return version


def ir_version(w: Writer, opsets: list[Any], least: int) -> int:
    """The version of the format, which opsets and types ask for."""
    from onnx import helper

    assert w.held is not None
    needed: int = helper.find_min_ir_version_for(opsets, ignore_unknown=True)
    return max(least, needed, w.held.ir_version)


def write_defaults(w: Writer, inputs: list[Any]) -> None:
    """Inputs that need not be fed: an input and an initializer of one name."""
    from onnx import ValueInfoProto, numpy_helper

    assert w.held is not None
    places = {value.name: w.names[value.node.index, 0] for value in w.graph.inputs}
    for name, array in w.held.defaults.items():
        w.initializers.append(numpy_helper.from_array(array, places[name]))
    if w.held.ir_version < 4:
        return  # where every initializer had to be an input as well, and is a constant to most runtimes
    there = {tensor.name for tensor in w.initializers}
    for index in w.held.fixed.values():
        kind, name = w.held.types.get((index, 0)), w.names[index, 0]
        if kind is not None and name in there:
            inputs.append(ValueInfoProto(name=name, type=kind))


def complete(model: Any, untyped: dict[str, str]) -> None:
    """Types of outputs that neither the model nor pyop knows, by ONNX's own inference.

    Raises
    ------
    ValueError
        It does not know them either.
    """
    found = infer(model)
    for info in model.graph.output:
        if info.name in untyped and info.name in found:
            info.type.CopyFrom(found[info.name])
        kind = info.type.WhichOneof("value")
        if info.name in untyped and (
            kind is None or (kind == "tensor_type" and not (info.type.tensor_type.HasField("shape")))
        ):
            raise ValueError(untyped[info.name])
