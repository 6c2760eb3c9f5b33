"""Evaluate operators of ONNX by the NumPy implementations of the onnx package, one node at a time."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, ValueInfoProto, numpy_helper
from onnx import __version__ as onnx_version

from .._core import OutputError
from ..declare.rebuild import CallForOne
from .attributes import DOMAIN, node_label, read_backward, read_forward
from .boxes import box, unbox
from .elements import printable
from .python_op import GradientCall, PythonCall, call_again
from .registry import Table
from .sparse import to_dense
from .subgraphs import copied, inner_graphs, subgraphs

__all__ = ["Reference", "ReferenceCall"]

# Not the same twice, or not safe to compute before anybody asks.
_STATEFUL = {
    "Bernoulli", "Dropout", "If", "Loop", "Multinomial", "PythonOp", "PythonOpGrad", "RandomNormal", "RandomNormalLike",
    "RandomUniform", "RandomUniformLike", "Scan", "SequenceMap",
}  # fmt: skip


class Reference:
    """Make callables of nodes; one for each model.

    `functions` are the FunctionProtos of the model, `strict` and `pointers` are those of `load`.
    """

    def __init__(
        self, opsets: dict[str, int], functions: list[Any], table: Table, strict: bool, pointers: dict[int, Any] | None
    ) -> None:
        self.opsets = dict(opsets)
        self.opsets.setdefault("", 1)
        if "ai.onnx" in self.opsets:
            self.opsets[""] = self.opsets.pop("ai.onnx")
        self.opsets.setdefault(DOMAIN, 1)
        self.functions = functions
        self.table = table
        self.strict = strict
        self.pointers = pointers
        self.bodies = {(f.domain, f.name): f for f in functions}
        self._stateful: dict[tuple[str, str], bool] = {}

    def __reduce__(self) -> Any:
        functions = [body.SerializeToString() for body in self.functions]
        return _unpickled, (self.opsets, functions, self.table, self.strict, self.pointers)

    @cached_property
    def evaluator(self) -> Any:
        """Return the class of evaluators."""
        return _evaluator_class(self)

    @cached_property
    def function_evaluators(self) -> list[Any]:
        """Return an evaluator for each function of the model."""
        made: list[Any] = []
        for body in self.functions:
            try:
                made.append(self.evaluator(body, functions=list(made)))
            except Exception as error:
                raise ValueError(
                    f"function {body.domain!r:.80}:{body.name!r:.80} of the model cannot be loaded: "
                    f"{printable(error):.500}"
                ) from error
        return made

    def call(self, node: Any, names: tuple[str, ...] = (), dtypes: tuple[Any, ...] = ()) -> Any:
        """Return a callable for a node of the model, which returns a tuple of results.

        `names` are those of the inputs of the node of the graph in the model, `dtypes` those of its outputs; a PythonOp
        needs neither. ValueError if the node is malformed, or of an operator that onnx does not have.
        """
        if node.domain == DOMAIN and node.op_type == "PythonOp":
            return PythonCall(read_forward(node, self.strict, self.pointers), self.table, self, node)
        if node.domain == DOMAIN and node.op_type == "PythonOpGrad":
            return GradientCall(read_backward(node), self.table, self, node)
        return ReferenceCall(self, node, names, dtypes)

    @staticmethod
    def one_result(call: Any, count: int) -> Any:
        """Return the callable of a graph's node: with one result it returns that, not its container."""
        return CallForOne(call) if count == 1 else call

    def evaluate(self, node: Any, label: str) -> Any:
        """Return an evaluator of one node."""
        copy = copied(node)
        if copy.domain == "ai.onnx":
            copy.domain = ""
        _lay_out(copy, label)
        graph = GraphProto(name="node", node=[copy])
        graph.output.extend(ValueInfoProto(name=name) for name in node.output if name)
        try:
            return self.evaluator(graph, opsets=self.opsets, functions=self.function_evaluators)
        except Exception as error:
            if isinstance(error, ValueError) and "PythonOp" in str(error):
                raise
            what = f"{node.domain}:{node.op_type}" if node.domain else node.op_type
            raise ValueError(
                f"{label} cannot be loaded: onnx {onnx_version} has no implementation of {what!r:.80} for opset "
                f"{self.opsets.get(copy.domain)} with these attributes "
                f"({type(error).__name__}: {printable(error):.300})"
            ) from error

    def stateful(self, node: Any) -> bool:
        """Return whether a node, or one inside it, is stateful."""
        if node.op_type in _STATEFUL:
            return True
        key = (node.domain, node.op_type)
        if key in self.bodies:
            if key not in self._stateful:
                self._stateful[key] = True  # while it is looked at: a function that calls itself
                self._stateful[key] = any(map(self.stateful, self.bodies[key].node))
            return self._stateful[key]
        return any(self.stateful(inner) for graph in subgraphs(node) for inner in graph.node)


def _lay_out(node: Any, label: str) -> None:
    """Replace sparse initializers, which the evaluator does not support, by dense ones."""
    for graph in inner_graphs(node):
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            array = to_dense(sparse, f"initializer {name!r:.80} inside {label}")
            graph.initializer.append(numpy_helper.from_array(array, name))
        del graph.sparse_initializer[:]


class ReferenceCall:
    """Evaluate one node by the onnx package."""

    def __init__(self, home: Reference, node: Any, names: tuple[str, ...], dtypes: tuple[Any, ...]) -> None:
        self.home = home
        self.node = node
        self.names = names
        self.dtypes = dtypes
        self.label = node_label(node)
        self.evaluator = home.evaluate(node, self.label)
        self.__name__ = node.op_type

    def __reduce__(self) -> Any:
        return call_again, (self.home, self.node.SerializeToString(), self.names, self.dtypes)

    def __call__(self, *arrays: Any) -> tuple[np.ndarray[Any, Any], ...]:
        feeds = {name: unbox(array) for name, array in zip(self.names, arrays, strict=True)}
        results = self.evaluator.run(None, feeds)
        return tuple(self.checked(k, value) for k, value in enumerate(results))

    def checked(self, k: int, value: Any) -> np.ndarray[Any, Any]:
        """Return one result; OutputError if its dtype differs from the model's."""
        if not isinstance(value, np.ndarray | np.generic):
            return box(value)
        array = np.asarray(value)
        dtype = self.dtypes[k]
        if dtype is not None and array.dtype != dtype:
            raise OutputError(f"output {k} of {self.label} is {array.dtype}, but the model declares {dtype}")
        return array


def _unpickled(
    opsets: dict[str, int], functions: list[bytes], table: Table, strict: bool, pointers: dict[int, Any] | None
) -> Reference:
    return Reference(opsets, [FunctionProto.FromString(body) for body in functions], table, strict, pointers)


# In pickles of earlier versions.
First, _reference_again = CallForOne, call_again


def _evaluator_class(home: Reference) -> Any:
    """Return the reference evaluator with PythonOp among its operators, inside functions and subgraphs too."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class PythonOp(OpRun):  # type: ignore[misc]
        op_domain = DOMAIN

        def _load_attributes(self) -> None:
            self.has_linked_attribute = False
            self.attributes_names_: set[str] = set()
            self.call: Any = home.call(self.onnx_node)

        def _run(self, *arrays: Any) -> tuple[Any, ...]:
            results: tuple[Any, ...] = self.call(*(a for a in arrays if a is not None))
            return results

    class PythonOpGrad(PythonOp):
        pass

    class Evaluator(ReferenceEvaluator):  # type: ignore[misc]
        def __init__(self, proto: Any, *args: Any, new_ops: Any = None, **kwargs: Any) -> None:
            super().__init__(proto, *args, new_ops=[PythonOp, PythonOpGrad], **kwargs)

    return Evaluator
