"""Load an ONNX model as a Graph. Nothing of the model runs here, and `trust` decides what is imported."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import ModelProto, SparseTensorProto, external_data_helper

from .._core import Value
from ..declare.spec import Spec
from . import native_axes  # noqa: F401  for its rules
from .attributes import DOMAIN, Port, node_label
from .elements import name_of, printable, spec_of, to_array
from .embedded import Embedded
from .loaded import LoadedGraph, ModelFacts
from .native import native_nodes
from .reference import Reference
from .registry import Table
from .sparse import to_dense
from .subgraphs import copied, free_names
from .trust import Trust

__all__ = ["load", "read_model"]


def load(
    model: Any,
    functions: Mapping[str, Any] | None = None,
    *,
    trust: str | None = None,
    modules: Iterable[str] = (),
    strict: bool = True,
    pointers: dict[int, Any] | None = None,
    overridable: Iterable[str] | bool = (),
) -> LoadedGraph:
    """Return a Graph of an ONNX model, with PythonOp nodes of either dialect among its operators.

    Parameters
    ----------
    model : onnx.ModelProto, bytes or path
    functions : mapping of str to callable, optional
        What the names in PythonOp nodes stand for: a function, a pair ``(forward, backward)``, an `Op` or a subclass
        of `Function`; see `register`. Names that are not here are looked up among the registered functions, then as
        import paths, when the node runs.
    trust : {None, "none", "imports", "pickles"}
        What names in the model can reach. By default, modules that the caller lists or that are imported already: of
        the latter only Ops, Functions, NumPy functions that pyop knows, and functions of the caller's own modules.
        ``"none"``: no import path is followed. ``"imports"``: every module is imported. ``"pickles"``: functions that
        are stored by value are unpickled too, which runs code of the model.
    modules : iterable of str
        Modules and packages that may be imported, and everything in them called.
    strict : bool
        Letters of ``input_convention`` that contradict the positions of the constants are an error; otherwise the
        positions count.
    pointers : dict of int to object, optional
        What the integers of ``input_pointer_scalars`` stand for.
    overridable : iterable of str, or bool
        Inputs for which the model has a default, an initializer of the same name, and which are to be inputs of the
        graph nevertheless; True for all of them. Their defaults are in ``graph.defaults``, to be passed to a plan; in
        ``graph.run`` they need not be fed. By default such an input is a constant, which only ``graph.run`` can feed.

    Returns
    -------
    Graph
        Its inputs and outputs have the names of the model; the outputs are a dict. A sequence or map is fed in a
        `box`; a missing result is None. Nodes can be added to it, and ``graph.output`` replaces its outputs; `export`
        and ``graph.save`` write it from its nodes.

    Raises
    ------
    ValueError
        Not a model, or a malformed one; the message names node and attribute.

    Examples
    --------
    >>> import numpy as np, pyop, pyop.onnx
    >>> g = pyop.trace(lambda x: np.exp(x) * 2.0, "float32[n]")
    >>> loaded = pyop.onnx.load(pyop.onnx.export(g))
    >>> loaded.compile()(x=np.zeros(2, np.float32))
    {'multiply': array([2., 2.], dtype=float32)}
    """
    proto = read_model(model)
    if isinstance(overridable, str):
        raise TypeError(f"overridable takes several names of inputs: overridable=[{overridable!r}]")
    wanted = overridable if isinstance(overridable, bool) else frozenset(overridable)
    table = Table(functions, Trust.make(trust, modules), Embedded.of(proto))
    bodies = list(map(copied, proto.functions))
    home = Reference({e.domain: e.version for e in proto.opset_import}, bodies, table, strict, pointers)
    return _Loader(proto, home, wanted).graph()


def read_model(model: Any, *, external: bool = True) -> Any:
    """Return the ModelProto of a path, bytes or itself, with external data; ValueError if it is none."""
    proto = model
    if isinstance(model, str | os.PathLike | bytes | bytearray | memoryview):
        path = os.fspath(model) if isinstance(model, str | os.PathLike) else None
        data: Any = model if path is None else Path(path).read_bytes()
        proto = ModelProto()
        try:
            proto.ParseFromString(bytes(data))
        except DecodeError as error:
            what = "the bytes are" if path is None else f"the file {path!r} is"
            raise ValueError(f"{what} no ONNX model: {printable(error)}") from None
        if path is not None and external:
            _load_external(proto, os.path.dirname(os.path.abspath(path)))
    elif not isinstance(model, ModelProto):
        raise TypeError(f"a model is an onnx.ModelProto, its bytes or a path, got {type(model).__name__} {model!r:.80}")
    if not proto.HasField("graph") or proto.ir_version < 1:
        raise ValueError("this is no ONNX model: it has no graph, or no ir_version")
    return proto


def _load_external(proto: Any, folder: str) -> None:
    try:
        external_data_helper.load_external_data_for_model(proto, folder)
    except Exception as error:
        # onnx has an exception type of its own for places outside the folder.
        told = "cannot be read" if isinstance(error, ValueError | OSError | RuntimeError) else "are refused"
        raise ValueError(f"the model keeps tensors in other files, which {told}: {printable(error)}") from error


class _Loader:
    def __init__(self, proto: Any, home: Reference, overridable: frozenset[str] | bool) -> None:
        self.proto = proto
        self.home = home
        self.overridable = overridable
        self.values: dict[str, Value] = {}
        self.producers: dict[str, str] = {}
        self.declared: dict[str, Any] = {}
        name = proto.graph.name
        self.made = LoadedGraph(name=re.sub(r"[^A-Za-z0-9_.]", "_", name)[:200].lstrip("_") or "graph")
        self.facts = self.made._facts = ModelFacts()

    def graph(self) -> LoadedGraph:
        g = self.proto.graph
        initializers: dict[str, Any] = {}
        for tensor in (*g.initializer, *g.sparse_initializer):
            name = _name_of(tensor)
            if name in initializers:
                raise ValueError(f"two initializers are called {name!r:.80}")
            initializers[name] = tensor
        for info in (*g.value_info, *g.output, *g.input):
            self.declared[info.name] = info.type
        for info in g.input:
            if info.name not in initializers or self._overridable(info.name):
                spec = spec_of(info.type, f"input {info.name!r:.80}") or Spec()
                self.define(info.name, self.made._add_input(spec, info.name or "input"), "an input")
        inputs = {info.name for info in g.input}
        for name, tensor in initializers.items():
            if name not in self.values:
                array = _array_of(tensor, name)
                self.define(name, self.made._add_constant(array, name or "constant"), "an initializer")
                if name in inputs:
                    self.facts.fixed[name] = self.values[name].node.index
            elif name in inputs and self._overridable(name):
                self.facts.defaults[self.values[name].name] = _array_of(tensor, name)
            else:
                self.define(name, self.values[name], "an initializer")
        self._check_overridable(inputs & initializers.keys())
        for node in g.node:
            self.node(copied(node))
        outputs: dict[str, Value] = {}
        for info in g.output:
            if info.name not in self.values:
                raise ValueError(f"output {info.name!r:.80} of the graph is computed by no node")
            self._check_output(info)
            outputs[info.name] = self.values[info.name]
        if outputs:
            self.made.output(outputs)
        for info in (*g.input, *g.output):
            value = self.values[info.name]
            if info.type.WhichOneof("value") is not None and (value.dtype is None or value.shape is None):
                self.facts.types.setdefault((value.node.index, value.output_index), copied(info.type))
        return self.made

    def _overridable(self, name: str) -> bool:
        return self.overridable if isinstance(self.overridable, bool) else name in self.overridable

    def _check_overridable(self, there: set[str]) -> None:
        if not isinstance(self.overridable, bool) and (unknown := self.overridable - there):
            raise ValueError(
                f"overridable: {sorted(unknown)!r:.200} are not inputs with an initializer as default; the model has "
                f"{sorted(there)!r:.200}"
            )

    # --- names

    def define(self, name: str, value: Value, producer: str) -> None:
        if name in self.values:
            raise ValueError(f"{producer} is called {name!r:.80}, and so is {self.producers[name]}")
        self.values[name] = value
        self.producers[name] = producer

    def inputs(self, names: Iterable[str], label: str) -> list[Value]:
        values = []
        for name in names:
            if name not in self.values:
                raise ValueError(
                    f"{label} reads {name!r:.80}, which is no input, no initializer and no result of a node before it"
                )
            values.append(self.values[name])
        return values

    # --- specs

    def _check_output(self, info: Any) -> None:
        spec = spec_of(info.type, f"output {info.name!r:.80}")
        value = self.values[info.name]
        if spec is None or spec.dtype is None or value.dtype is None or value.dtype == object:
            return
        if spec.dtype != value.dtype:
            raise ValueError(
                f"output {info.name!r:.80} of the graph is declared {spec.dtype}, but {self.producers[info.name]} "
                f"computes {value.dtype}"
            )

    # --- nodes

    def node(self, node: Any) -> None:
        label = node_label(node)
        if node.domain == DOMAIN and node.op_type in ("PythonOp", "PythonOpGrad"):
            return self.python_op(node) if node.op_type == "PythonOp" else self.python_op_grad(node)
        if node.domain == "" and node.op_type == "Constant" and len(node.output) == 1:
            return self.constant(node)
        if not any(node.output):
            raise ValueError(f"{label} has no outputs")
        made = self.native(node) if node.domain in ("", "ai.onnx") else None
        if made is None:
            made = self.reference(node, label)
        for name, value in zip([name for name in node.output if name], made, strict=True):
            self.define(name, value, label)
        return None

    def _name(self, node: Any) -> str:
        return node.name or node.op_type or "node"

    def _ports_match(self, label: str, values: list[Value], ports: Iterable[Port], names: Iterable[str]) -> None:
        for value, port, name in zip(values, ports, names, strict=True):
            dtype = value.dtype
            if dtype is None or port.dtype == dtype or (port.dtype is None and dtype.kind in "OUTS"):
                continue
            raise ValueError(
                f"{label}, attribute 'input_tensor_types': says {name_of(port.code)} of input {name!r:.80}, which is "
                f"{dtype}"
            )

    def python_op(self, node: Any) -> None:
        declared, table = self.home.call(node).declared, self.home.table
        values = self.inputs(node.input, declared.label)
        self._ports_match(declared.label, values, declared.inputs, node.input)
        if table.trust.level in ("imports", "pickles") or table.trust.modules:
            table.resolve_now(declared.name)
        results = [Spec(port.dtype, (None,) * port.rank) for port in declared.outputs]
        self._python(node, declared.label, values, [Spec(np.int64, (1,)), *results])

    def python_op_grad(self, node: Any) -> None:
        declared = self.home.call(node).declared
        given = [name for name in node.input if name]
        values = self.inputs(given, declared.label)
        ports = [port for port, name in zip(declared.inputs, list(node.input)[1:], strict=True) if name]
        self._ports_match(declared.label, values[1:], ports, given[1:])
        if values[0].dtype not in (None, np.dtype(np.int64)):
            raise ValueError(f"{declared.label}: the context, its first input, must be int64, not {values[0].dtype}")
        self._python(node, declared.label, values, [Spec() for _ in declared.outputs])

    def _python(self, node: Any, label: str, values: list[Value], specs: list[Spec]) -> None:
        call = self.home.one_result(self.home.call(node), len(specs))
        made = self.made._add_call(call, tuple(values), self._name(node), specs=specs, stateful=True)
        for name, value in zip(node.output, made.outputs, strict=True):
            if name:
                self.define(name, value, label)

    def constant(self, node: Any) -> None:
        label = node_label(node)
        if len(node.attribute) != 1 or len(node.input):
            raise ValueError(f"{label} must have one attribute, its value, and no inputs")
        (attribute,) = node.attribute
        if attribute.name not in _CONSTANTS:
            raise ValueError(f"{label} has the value {attribute.name!r:.80}, which cannot be loaded")
        array = _CONSTANTS[attribute.name](attribute, label)
        self.define(node.output[0], self.made._add_constant(np.asarray(array), self._name(node)), label)

    def native(self, node: Any) -> list[Value] | None:
        values = [self.values.get(name) if name else None for name in node.input]
        if any(value is None and name for value, name in zip(values, node.input, strict=True)):
            self.inputs([name for name in node.input if name], node_label(node))
        with self.made:
            return native_nodes(node, values, self.home.opsets[""])

    def reference(self, node: Any, label: str) -> list[Value]:
        # What a graph inside the node reads is an input as well.
        inner = sorted(free_names(node) & self.values.keys())
        names = tuple(dict.fromkeys([*(name for name in node.input if name), *inner]))
        values = self.inputs(names, label)
        specs = []
        for name in node.output:
            if not name:
                continue
            kind = self.declared.get(name)
            spec = None if kind is None else spec_of(kind, f"{name!r:.80}")
            # Only the dtype, which the call checks; what a model says of shapes is often out of date.
            specs.append(Spec() if spec is None else Spec(spec.dtype))
        fn = self.home.one_result(self.home.call(node, names, tuple(spec.dtype for spec in specs)), len(specs))
        stateful = self.home.stateful(node)
        made = self.made._add_call(fn, tuple(values), self._name(node), specs=specs, stateful=stateful)
        return list(made.outputs)


def _text(texts: Iterable[bytes], label: str) -> np.ndarray[Any, Any]:
    try:
        return np.array([bytes(text).decode("utf-8") for text in texts], object)
    except UnicodeDecodeError:
        raise ValueError(f"{label}: its text is not UTF-8") from None


# What a Constant is, by the name of its one attribute.
_CONSTANTS: dict[str, Callable[[Any, str], Any]] = {
    "value": lambda a, label: to_array(a.t, label),
    "value_int": lambda a, _: np.int64(a.i),
    "value_float": lambda a, _: np.float32(a.f),
    "value_ints": lambda a, _: np.array(a.ints, np.int64),
    "value_floats": lambda a, _: np.array(a.floats, np.float32),
    "value_string": lambda a, label: _text([a.s], label).reshape(()),
    "value_strings": lambda a, label: _text(a.strings, label),
    "sparse_value": lambda a, label: to_dense(a.sparse_tensor, label),
}


def _name_of(tensor: Any) -> str:
    return str(tensor.values.name if isinstance(tensor, SparseTensorProto) else tensor.name)


def _array_of(tensor: Any, name: str) -> np.ndarray[Any, Any]:
    what = f"initializer {name!r:.80}"
    return to_dense(tensor, what) if isinstance(tensor, SparseTensorProto) else to_array(tensor, what)
