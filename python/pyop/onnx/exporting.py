"""Export a Graph as an ONNX model: operators where ONNX has them, PythonOp for the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._core import GraphError, Node, Value
from ..atomic_file import write_file
from ..graph.deciding import check_one_path
from ..graph.graph import Graph
from ..graph.node_call import call_of, declared_spec, unwrapped
from ..loops.bodies import needed
from .builder import IR_VERSION, ModelBuilder, element_type, tensor_type
from .callee import GivenNames
from .control_flow import is_control_flow, write_control_flow
from .embedded import Embedded
from .graph_writer import GraphWriter
from .loaded import LoadedGraph
from .order import Order
from .pairs import calls_of_gradients
from .python_nodes import PythonNodes
from .python_op import GradientCall, PythonCall
from .read_nodes import fits, version_for, write_read_node
from .reference import ReferenceCall
from .standard import OPSET, NotStandard, Operand

__all__ = ["DIALECTS", "IR_VERSION", "OPSET", "Exporter", "export"]

DIALECTS = ("func_name", "name", "extensions")


def export(
    graph: Graph,
    path: Any = None,
    dialect: str = "func_name",
    *,
    embed: bool = False,
    names: Mapping[Callable[..., Any], str] | None = None,
) -> Any:
    """Write a graph as an ONNX model.

    NumPy functions become standard operators where there are such, so that a graph of them runs in any ONNX runtime.
    Every other function becomes a PythonOp of the domain ``com.microsoft``, under its import path; gradients of ops
    become PythonOpGrad. Operators that `load` has read and that are no NumPy functions are written as they were read.

    Parameters
    ----------
    graph : Graph
        With outputs, or with stateful nodes.
    path : path, optional
        Where to write the model.
    dialect : {"func_name", "name", "extensions"}
        The attributes of ONNX Runtime since 1.16; those before, with bare names of functions; or operators of the
        domain ``ai.onnx.contrib``, which onnxruntime runs with onnxruntime-extensions, see `register_extensions`.
    embed : bool
        Store functions by value, with cloudpickle, in the metadata. Who loads them must trust the model with
        ``trust="pickles"``.
    names : mapping of callable to str, optional
        Names for functions, or ops, that have no import path.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ValueError
        Something that ONNX cannot express; the message names node and argument. Nothing is changed silently. Also for
        a key of `names` that no PythonOp of the model calls.

    Examples
    --------
    >>> import numpy as np, pyop, pyop.onnx
    >>> g = pyop.trace(lambda x: np.sum(np.tanh(x)), "float32[n]")
    >>> model = pyop.onnx.export(g)
    >>> [node.op_type for node in model.graph.node], model.graph.output[0].name
    (['Tanh', 'ReduceSum'], 'sum')
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect is one of {', '.join(map(repr, DIALECTS))}, not {dialect!r:.80}")
    if not isinstance(graph, Graph):
        raise TypeError(
            f"export takes a Graph, got {type(graph).__name__} {graph!r:.80}; trace a function with pyop.trace"
        )
    check_one_path(graph, f"graph {graph.name!r} cannot be exported")
    exporter = Exporter(graph, dialect, given_names := GivenNames(names))
    model = exporter.model()
    given_names.check_all_read()
    exporter.embedded().with_objects(exporter.python.functions if embed else {}).add_to(model)
    if path is not None:
        write_file(path, model.SerializeToString())
    return model


class Exporter(GraphWriter):
    """Write every node of a graph, or raise."""

    def __init__(self, graph: Graph, dialect: str, given_names: GivenNames) -> None:
        self.needed = _needed(graph)
        functions = [graph[index].function for index in self.needed]
        super().__init__(graph, ModelBuilder(version_for(functions)))
        self.python = PythonNodes(graph, self.builder, self.operand, dialect, given_names)
        self.order = Order(self.builder)

    def model(self) -> Any:
        """Write everything that the outputs need, and every stateful node; return the model."""
        builder = self.builder
        wanted = {(value.node.index, 0): value.name for value in self.graph.inputs}
        for value, name in _output_places(self.graph):
            if name and value.node.kind == "py":
                wanted.setdefault((value.node.index, value.output_index), name)
        self.name_values(wanted)
        defaults = self.graph.defaults if isinstance(self.graph, LoadedGraph) else {}
        for value in self.graph.inputs:
            self.declare(self.name(value), value)
            if value.name in defaults:
                builder.constant(defaults[value.name], self.name(value))
        for index in sorted(self.needed):
            if self.graph[index].kind == "constant":
                self.constant(self.graph[index])
            elif self.graph[index].kind == "py":
                self.node(self.graph[index])
        inputs = [self.interface(self.name(x), x, f"input {x.name!r} of the graph") for x in self.graph.inputs]
        made = builder.model(self.graph.name, inputs, self.outputs())
        if self.python.extensions:
            made.metadata_props.add(key="pyop.extensions", value=json.dumps(self.python.extensions))
        return made

    def of_part(self, part: Graph, builder: ModelBuilder, results: Sequence[Value]) -> _Part:
        """Return a writer of a part of a loop or branch, into the graph inside its node."""
        return _Part(self, part, builder, results)

    def node(self, node: Node) -> None:
        """Write one call: as the operator it was read as, as operators if there are some, else as a PythonOp."""
        if is_control_flow(node):
            write_control_flow(self, node)
            self.describe(node)
            return
        call = call_of(node, [self.operand(value) for value in node.inputs])
        before = len(self.builder.nodes)
        if isinstance(call.function, ReferenceCall):
            names = [operand.name for operand in call.inputs], [self.name(value) for value in node.outputs]
            write_read_node(self.builder, call.function, *names, self.python.dialect, self.python.remember_read)
        elif isinstance(call.function, PythonCall | GradientCall):
            self.python.write(node, call, list(call.inputs), "")
        else:
            self._write_call(node)
            self._check_version(before)
        self.describe(node)
        if node.outputs:
            self.order.written(node, self.python.contexts.get(node.index, self.name(node.outputs[0])))

    def _write_call(self, node: Node) -> None:
        inputs = self.order.before(node, [self.operand(value) for value in node.inputs])
        call, reason = call_of(node, inputs), ""
        try:
            if self.standard(node, call):
                return
        except NotStandard as error:
            reason = f" (the operators of ONNX cannot do it: {error})"
        self.python.write(node, call, inputs, reason)

    def _check_version(self, before: int) -> None:
        """Raise ValueError for operators that mean something else in the version that nodes which were read need."""
        version = self.builder.opsets[""]
        for made in self.builder.nodes[before:]:
            if version != OPSET and not fits(made, OPSET, version):
                raise ValueError(
                    f"node {made.name!r:.80} cannot be exported: it is {made.op_type} of opset {OPSET}, which has "
                    f"another meaning in opset {version}, that of nodes which were read from a model; convert that "
                    f"model first: onnx.version_converter.convert_version(model, {OPSET})"
                )

    def outputs(self) -> list[Any]:
        """Return the ValueInfos of the outputs."""
        builder, used, infos = self.builder, set(), []
        for value, wanted in _output_places(self.graph):
            name = self.name(value)
            given = value.node.kind != "py" and wanted != name  # a model may give out its input
            if given or name in used or (wanted and wanted != name):
                free = builder.fresh(wanted or value.name)
                builder.add("Identity", [name], [free], f"{free}/Identity")
                builder.types.declare(free, builder.types.of(name))
                name = free
            used.add(name)
            infos.append(self.interface(name, value, f"output {name!r} of the graph"))
        return infos

    def interface(self, name: str, value: Value, what: str) -> Any:
        """Return the ValueInfo of an input or output of the graph, of which ONNX wants dtype and rank."""
        self.declare(name, value)
        spec, kind = declared_spec(value), self.builder.types.of(name)
        if isinstance(spec.dtype, np.dtype) and spec.ndim is not None:
            try:
                element_type(spec.dtype)
            except ValueError as error:
                raise ValueError(f"{what} cannot be exported: {error}") from None
        elif kind is None or (kind.WhichOneof("value") == "tensor_type" and not kind.tensor_type.HasField("shape")):
            raise ValueError(
                f"{what} cannot be exported: its {'rank' if isinstance(spec.dtype, np.dtype) else 'dtype'} is not "
                f"known ({spec}); declare it, with _ for sizes that vary"
            )
        return self.builder.types.infos([name])[0]

    def declare(self, name: str, value: Value) -> None:
        """Declare what is known of an input or output."""
        if isinstance(self.graph, LoadedGraph):
            self.builder.types.declare(name, self.graph.type_of(value))
        self.builder.types.declare(name, tensor_type(declared_spec(value)))

    def embedded(self) -> Embedded:
        """Return what models that nodes were read from store by value, as it was: nothing is unpickled."""
        tables = {}
        for index in self.needed:
            call = unwrapped(self.graph[index].function)
            if isinstance(call, ReferenceCall | PythonCall | GradientCall):
                tables[id(call.home.table)] = call.home.table
        return Embedded(pickle for table in tables.values() for pickle in table.embedded.pickles)


class _Part(Exporter):
    """Write the nodes that some Values in the body of a loop or branch need."""

    def __init__(self, outer: Exporter, part: Graph, builder: ModelBuilder, results: Sequence[Value]) -> None:
        GraphWriter.__init__(self, part, builder)
        self.needed = set(needed(part, results, ()))
        python = self.python = PythonNodes(part, builder, self.operand, outer.python.dialect, outer.python.given_names)
        python.functions, python.extensions = outer.python.functions, outer.python.extensions
        self.order = Order(builder)

    def written(self, given: Sequence[Operand], results: Sequence[Value]) -> list[Operand]:
        """Write it for these inputs; return the tensors of the results."""
        inputs = self.graph.inputs
        self.names = {(value.node.index, 0): operand.name for value, operand in zip(inputs, given, strict=True)}
        for index in sorted(self.needed):
            node = self.graph[index]
            for k, value in enumerate(node.outputs):
                if node.kind != "input":
                    self.names[index, k] = self.builder.fresh(value.name)
            if node.kind == "constant":
                self.constant(node)
                self.describe(node)
            elif node.kind == "py":
                self.node(node)
        return [self.operand(value) for value in results]


def _needed(graph: Graph) -> set[int]:
    """Return the indices of the nodes that the outputs need, and of stateful ones."""
    graph._check_no_writes("a model has no arguments that it could change: return what is written, as a result")
    leaves = graph._output_leaves()[0] if graph._outputs is not None else []
    pending = [leaf.node.index if isinstance(leaf, Value) else leaf.index for leaf in leaves]
    pending += [node.index for node in graph.nodes if node.stateful]
    if not pending:
        raise GraphError(f"graph {graph.name!r} has no outputs to export: declare them with g.output(...)")
    # A gradient needs the context of its call, whether or not anybody reads what the call returns.
    calls = calls_of_gradients(graph)
    needed: set[int] = set()
    while pending:
        index = pending.pop()
        if index not in needed:
            needed.add(index)
            pending += [value.node.index for value in graph[index].inputs]
            pending += [calls[index].index] if index in calls else []
    return needed


def _output_places(graph: Graph) -> list[tuple[Value, str]]:
    """Return the output Values and the names that they are to have; "" for their own."""
    if graph._outputs is None:
        return []
    leaves, structure = graph._output_leaves()
    tree = structure.unflatten(leaves)
    if type(tree) is dict and all(type(key) is str and isinstance(leaf, Value) for key, leaf in tree.items()):
        return [(leaf, key) for key, leaf in tree.items()]
    paths = structure.leaf_paths()
    places = []
    for leaf, path in zip(leaves, paths, strict=True):
        if not isinstance(leaf, Value):
            continue  # a Node that is to run: it is stateful, or runs for nothing
        keys = re.findall(r"\['([^']*)'\]|\[([^\]]*)\]|\.(\w+)", path)
        parts = [first or second or third for first, second, third in keys]
        named = any(not part.isdigit() for part in parts)
        places.append((leaf, ".".join(parts) if named else ""))
    return places
