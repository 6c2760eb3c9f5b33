"""From a Graph to an ONNX model: operators where ONNX has them, PythonOp for the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._core import GraphError, Node, Value
from .._core import __version__ as pyop_version
from ..declare.dims import Dim
from ..declare.spec import Spec
from ..graph.graph import Graph
from ..graph.in_place import InPlace
from ..graph.node_call import NodeCall, call_of, declared_spec
from . import reexport
from .elements import STRING, code_of
from .embedded import Embedded
from .held import HeldModel
from .inferred import Inferred
from .model_file import save_model
from .order import Order
from .pairs import calls_of_gradients
from .standard import OPSET, Emitter, NotStandard, Operand, emit, has_rule

__all__ = ["DIALECTS", "IR_VERSION", "OPSET", "Writer", "export"]

DIALECTS = ("func_name", "name", "extensions")
IR_VERSION = 10


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
    become PythonOpGrad. Nodes that `load` has read from a model are written as they were there, for the same opset if
    what was added to them allows it.

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
        Names for functions that have no import path.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ValueError
        Something that ONNX cannot express; the message names node and argument. Nothing is changed silently.

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
    writer = Writer(graph, dialect, dict(names or {}))
    writer.write()
    model = writer.model()
    writer.embedded().with_objects(writer.functions if embed else {}).add_to(model)
    if path is not None:
        save_model(model, path)
    return model


class Writer:
    """Collects the parts of a model.

    Parameters
    ----------
    graph : Graph
    dialect : str
    given_names : dict of callable to str
    """

    def __init__(self, graph: Graph, dialect: str, given_names: dict[Any, str]) -> None:
        self.graph = graph
        self.dialect = dialect
        self.given_names = given_names
        self.taken: set[str] = set()
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.value_infos: list[Any] = []
        self.outputs: list[Any] = []
        self.node_names: set[str] = set()
        self.order = Order(self)
        self.untold: set[str] = set()  # tensors that no type is declared for
        self.names: dict[tuple[int, int], str] = {}
        self.functions: dict[str, Any] = {}
        self.uses_extension = False
        self.extensions: dict[str, Any] = {}
        self._constants: dict[Any, str] = {}
        self.contexts: dict[int, str] = {}  # of the calls, by their index
        self.spent: set[str] = set()  # contexts that a gradient has taken
        self.calls_of_gradients = calls_of_gradients(graph)
        self.differentiated = {call.index for call in self.calls_of_gradients.values()}
        # What the graph was loaded with; which of `nodes` come from there; outputs whose type is to be inferred.
        self.held: HeldModel | None = getattr(graph, "_held", None)
        self.held_at: set[int] = set()
        self.inner_names: dict[str, str] = {}  # other names for tensors inside nodes
        self.untyped: dict[str, str] = {}
        self.inferred = None if self.held is None else Inferred(self)

    def embedded(self) -> Embedded:
        """What the loaded model stores by value, as it was: nothing is unpickled."""
        return Embedded() if self.held is None else self.held.home.table.embedded

    # --- names and tensors that rules ask for

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        name, k = hint, 0
        while name in self.taken or not name:
            k += 1
            name = f"{hint}_{k}"
        self.taken.add(name)
        return name

    def node_name(self, hint: str) -> str:
        """A name for a node: runtimes refuse two of one name, as of a call and its second gradient."""
        if not self.node_names and self.held is not None:
            self.node_names = {held.node.name for held in self.held.nodes.values()}
        name, k = hint, 0
        while name in self.node_names:
            k += 1
            name = f"{hint}_{k}"
        self.node_names.add(name)
        return name

    def initializer(self, array: np.ndarray[Any, Any], hint: str) -> str:
        """The name of a constant, shared between equal ones."""
        from onnx import numpy_helper

        key = (
            (array.dtype.str, array.shape, array.tobytes()) if array.nbytes <= 1024 and array.dtype != object else None
        )
        if key in self._constants:
            return self._constants[key]
        name = self.fresh(hint)
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        if key is not None:
            self._constants[key] = name
        return name

    def operand(self, value: Value) -> Operand:
        """A Value of the graph as a tensor."""
        name, dtype, shape = self.names[value.node.index, value.output_index], declared_spec(value).dtype, value.shape
        if self.inferred is not None and (dtype is None or shape is None):
            known = self.inferred.type_of(name)
            dtype, shape = known[0] if dtype is None else dtype, known[1] if shape is None else shape
        return Operand(name, dtype, shape)

    # --- the walk

    def write(self) -> None:
        """Everything that the outputs need, and every stateful node."""
        wanted = self._output_names()
        needed = self._needed()
        hints = {(value.node.index, 0): value.name for value in self.graph.inputs} | wanted
        if self.held is not None:
            # No name of the graph may also mean something inside a node. Those that the caller sees stay as they are.
            inside, seen = self.held.inner_names(), set(hints.values())
            self.taken |= inside | seen
            self.inner_names = {name: self.fresh(name) for name in sorted(inside & seen)}
            self.taken -= seen
            hints |= {place: name for place, name in self.held.names.items() if place not in hints}
        for key, name in hints.items():
            if key[0] in needed or self.graph[key[0]].kind == "input":
                self.names[key] = self.fresh(name)
        for node in self.graph.nodes:
            for k, value in enumerate(node.outputs):
                if (node.index, k) not in self.names:
                    self.names[node.index, k] = self.fresh(value.name)
        for node in self.graph.nodes:
            if node.index not in needed:
                continue
            if node.kind == "constant":
                self.constant(node)
            elif node.kind == "py":
                self.node(node)
        self._write_outputs()

    def _needed(self) -> set[int]:
        from . import python_nodes

        leaves = self.graph._output_leaves()[0] if self.graph._outputs is not None else []
        pending = [leaf.node.index if isinstance(leaf, Value) else leaf.index for leaf in leaves]
        pending += [node.index for node in self.graph.nodes if node.stateful]
        if not pending:
            raise GraphError(f"graph {self.graph.name!r} has no outputs to export: declare them with g.output(...)")
        needed: set[int] = set()
        while pending:
            index = pending.pop()
            if index not in needed:
                needed.add(index)
                node = self.graph[index]
                held = None if self.held is None else self.held.nodes.get(index)
                pending += [v.node.index for v in node.inputs] if held is None else [n for _, n, _ in held.places]
                # A gradient needs the context of its call, whether or not anybody reads what the call returns.
                forward = python_nodes.forward_of(self, node)
                pending += [forward.index] if forward is not None else []
        return needed

    def _output_places(self) -> list[tuple[Value, str]]:
        """The output Values and the names that they are to have; "" for their own."""
        if self.graph._outputs is None:
            return []
        leaves, structure = self.graph._output_leaves()
        tree = structure.unflatten(leaves)
        if type(tree) is dict and all(type(key) is str and isinstance(leaf, Value) for key, leaf in tree.items()):
            return [(leaf, key) for key, leaf in tree.items()]
        paths = structure.leaf_paths()
        found = []
        for leaf, path in zip(leaves, paths, strict=True):
            if not isinstance(leaf, Value):
                continue  # a Node that is to run: it is stateful, or runs for nothing
            keys = re.findall(r"\['([^']*)'\]|\[([^\]]*)\]|\.(\w+)", path)
            parts = [first or second or third for first, second, third in keys]
            named = any(not part.isdigit() for part in parts)
            found.append((leaf, ".".join(parts) if named else ""))
        return found

    def _output_names(self) -> dict[tuple[int, int], str]:
        wanted: dict[tuple[int, int], str] = {}
        for value, name in self._output_places():
            key = (value.node.index, value.output_index)
            if name and value.node.kind == "py" and key not in wanted:
                wanted[key] = name
        return wanted

    def _write_outputs(self) -> None:
        from onnx import helper

        used: set[str] = set()
        places = self._output_places()
        for value, wanted in places:
            name = self.names[value.node.index, value.output_index]
            given = value.node.kind != "py" and (self.held is None or wanted != name)  # a model may give out its input
            if given or name in used or (wanted and wanted != name):
                free = (
                    self.fresh(wanted or value.name) if wanted not in self.taken or not wanted else self.fresh(wanted)
                )
                self.nodes.append(helper.make_node("Identity", [name], [free], name=self.fresh(f"{free}/Identity")))
                name = free
            used.add(name)
            self.outputs.append(self.declared(name, value) or self._output(name, value))

    def declared(self, name: str, value: Value) -> Any:
        """The ValueInfo of a Value as the model had it that the graph was loaded from; None for any other."""
        from onnx import ValueInfoProto

        place = (value.node.index, value.output_index)
        kind = None if self.held is None else self.held.type_of(place)
        return None if kind is None else ValueInfoProto(name=name, type=kind)

    def _output(self, name: str, value: Value) -> Any:
        from onnx import ValueInfoProto

        what = f"output {name!r} of the graph"
        try:
            return self.interface(name, declared_spec(value), what)
        except ValueError as error:
            if self.held is None:
                raise
            self.untyped[name] = str(error)
            return ValueInfoProto(name=name)

    def interface(self, name: str, spec: Spec, what: str) -> Any:
        """The ValueInfo of an input or output of the graph, of which ONNX wants dtype and rank."""
        if not isinstance(spec.dtype, np.dtype) or spec.ndim is None:
            raise ValueError(
                f"{what} cannot be exported: its {'dtype' if not isinstance(spec.dtype, np.dtype) else 'rank'} is not "
                f"known ({spec}); declare it, with _ for sizes that vary"
            )
        return self.value_info(name, spec, what)

    def value_info(self, name: str, spec: Spec, what: str) -> Any:
        """The ValueInfo of a tensor."""
        from onnx import TensorProto, ValueInfoProto, helper

        dtype = spec.dtype
        code = TensorProto.UNDEFINED
        if isinstance(dtype, np.dtype):
            code = self.code(dtype, what)
        if code == TensorProto.UNDEFINED:
            return ValueInfoProto(name=name)
        if spec.ndim is None:
            return helper.make_tensor_value_info(name, code, None)
        return helper.make_tensor_value_info(name, code, [_dim(size) for size in spec.shape or ()])

    def code(self, dtype: np.dtype[Any], what: str) -> int:
        """The element type of a dtype; objects are text, as the py_func family has it."""
        if dtype.kind in "OS":
            return STRING
        try:
            return code_of(dtype)
        except ValueError as error:
            raise ValueError(f"{what} cannot be exported: {error}") from None

    def constant(self, node: Node) -> None:
        """An initializer under the name of the constant."""
        from onnx import numpy_helper

        array = self.graph.run(node.outputs[0])
        name = self.names[node.index, 0]
        if array.dtype.kind in "OUST":
            array = _texts(array, f"constant {name!r}")
        elif array.dtype.kind not in "biufc":
            self.code(array.dtype, f"constant {name!r}")
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))

    def node(self, node: Node) -> None:
        """One call: an operator if there is one, else a PythonOp."""
        from . import python_nodes

        held = None if self.held is None else self.held.nodes.get(node.index)
        if held is not None:
            reexport.write(self, node, held)
            self.order.written(node)
            self._describe(node)
            return
        inputs = self.order.before(node, [self.operand(value) for value in node.inputs])
        call = call_of(node, inputs)
        computed = _computed(call)
        reason = ""
        if node.contract is None and has_rule(computed.function):
            before = len(self.initializers)
            try:
                self._standard(node, computed)
            except NotStandard as error:
                unused = {tensor.name for tensor in self.initializers[before:]}
                del self.initializers[before:]
                self._constants = {key: name for key, name in self._constants.items() if name not in unused}
                reason = f" (the operators of ONNX cannot do it: {error})"
            else:
                self.order.written(node)
                self._describe(node)
                return
        python_nodes.write(self, node, call, inputs, reason)
        self.order.written(node)
        self._describe(node)

    def _standard(self, node: Node, call: NodeCall) -> None:
        outputs = tuple(self.operand(value) for value in node.outputs)
        emitter = Emitter(self, self.names[node.index, 0], call.carriers or {}, outputs)
        results = emit(emitter, call.function, call.args, call.kwargs)
        if len(results) != len(outputs):
            raise NotStandard(f"{len(results)} results where the node has {len(outputs)}")
        final: dict[str, str] = {}
        own = {name for made in emitter.nodes for name in made.output}
        for result, output in zip(results, outputs, strict=True):
            if output.dtype is not None:
                result = emitter.cast(result, output.dtype)
            if (
                result.name not in own | {name for made in emitter.nodes for name in made.output}
                or result.name in final
            ):
                result = emitter.add("Identity", result)
            final[result.name] = output.name
        for made in emitter.nodes:
            made.output[:] = [final.get(name, name) for name in made.output]
            made.input[:] = [final.get(name, name) for name in made.input]
        self.nodes += emitter.nodes

    def _describe(self, node: Node) -> None:
        # ONNX infers nothing about a PythonOp, and less than pyop knows about the rest.
        for value in node.outputs:
            name = self.names[node.index, value.output_index]
            declared = self.declared(name, value)
            if declared is not None:
                self.value_infos.append(declared)
            elif isinstance(value.dtype, np.dtype):
                self.value_infos.append(self.value_info(name, value.spec, f"{name!r}"))

    def model(self) -> Any:
        """The model of what was written."""
        from onnx import ModelProto, helper

        outputs = {info.name for info in self.outputs}
        inputs = []
        for value in self.graph.inputs:
            name = self.names[value.node.index, 0]
            declared = self.declared(name, value)
            inputs.append(declared or self.interface(name, declared_spec(value), f"input {value.name!r} of the graph"))
        bodies, opsets = self._versions()
        if self.held is not None:
            reexport.write_defaults(self, inputs)
        graph = helper.make_graph(
            self.nodes,
            self.graph.name,
            inputs,
            self.outputs,
            initializer=self.initializers,
            value_info=[info for info in self.value_infos if info.name not in outputs | self.untold],
        )
        made: ModelProto = helper.make_model(
            graph,
            opset_imports=opsets,
            functions=bodies,
            ir_version=IR_VERSION if self.held is None else reexport.ir_version(self, opsets, IR_VERSION),
            producer_name="pyop",
            producer_version=pyop_version,
        )
        if self.held is not None:
            helper.set_model_props(made, self.held.metadata)
            if self.untyped:
                reexport.complete(made, self.untyped)
        if self.extensions:
            import json

            made.metadata_props.add(key="pyop.extensions", value=json.dumps(self.extensions))
        return made

    def _versions(self) -> tuple[list[Any], list[Any]]:
        """The functions of the model, and the versions of all domains."""
        from onnx import helper

        versions = {"": OPSET}
        bodies: list[Any] = []
        if self.held is not None:
            bodies = reexport.functions(self)
            versions[""] = self.settle(bodies)
            own = self.held.home.opsets
            called = reexport.domains(self.nodes) | {body.domain for body in bodies}
            for body in bodies:
                called |= {entry.domain for entry in body.opset_import}
            versions |= {domain: own.get(domain, 1) for domain in sorted(called - {"", "ai.onnx"})}
        if self.uses_extension:
            versions.setdefault("ai.onnx.contrib" if self.dialect == "extensions" else "com.microsoft", 1)
        return bodies, [helper.make_opsetid(domain, version) for domain, version in versions.items()]

    def settle(self, bodies: list[Any]) -> int:
        """Bring the operators to one version; see `reexport.settle`."""
        return reexport.settle(self, bodies)


def _computed(call: NodeCall) -> NodeCall:
    """For an augmented assignment the operator, if one gives its bits: results are cast to the dtype of their node."""
    dtypes = [x.dtype for x in call.args if isinstance(x, Operand)]
    known = all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes)
    return replace(call, function=call.function.ufunc) if known and isinstance(call.function, InPlace) else call


def _dim(size: Any) -> int | str | None:
    if isinstance(size, int):
        return size
    return str(size) if isinstance(size, Dim) else None


def _texts(array: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    items = []
    for item in array.ravel().tolist():
        if not isinstance(item, str | bytes):
            raise ValueError(f"{what} holds {type(item).__name__} {item!r:.80}, which is no text: ONNX has no objects")
        items.append(item)
    made = np.empty(len(items), object)
    made[:] = items
    return made.reshape(array.shape)
