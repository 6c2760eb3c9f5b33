"""Operators of ONNX by the NumPy implementations of the onnx package, one node at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import OutputError
from .attributes import DOMAIN, read_backward, read_forward
from .boxes import box, unbox
from .python_op import GradientCall, PythonCall
from .registry import Table

__all__ = ["Reference", "ReferenceCall"]

# Not the same twice, or not safe to compute before anybody asks.
_STATEFUL = frozenset(
    (
        "Bernoulli",
        "Dropout",
        "If",
        "Loop",
        "Multinomial",
        "PythonOp",
        "PythonOpGrad",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Scan",
        "SequenceMap",
    )
)


class Reference:
    """Makes callables of nodes; one for each model."""

    def __init__(
        self, proto: Any, opsets: dict[str, int], table: Table, strict: bool, pointers: dict[int, Any] | None
    ) -> None:
        self.opsets = dict(opsets)
        self.opsets.setdefault("", 1)
        if "ai.onnx" in self.opsets:
            self.opsets[""] = self.opsets["ai.onnx"]
        self.opsets.setdefault(DOMAIN, 1)
        self.evaluator = _evaluator_class(table, strict, pointers)
        self.bodies = {(f.domain, f.name): f for f in proto.functions}
        self._functions: list[Any] | None = None
        self._stateful: dict[tuple[str, str], bool] = {}
        self.proto = proto

    def functions(self) -> list[Any]:
        """An evaluator for each function of the model."""
        if self._functions is None:
            made: list[Any] = []
            for body in self.proto.functions:
                try:
                    made.append(self.evaluator(body, functions=list(made)))
                except Exception as error:
                    raise ValueError(
                        f"function {body.domain!r:.80}:{body.name!r:.80} of the model cannot be loaded: {error!s:.500}"
                    ) from error
            self._functions = made
        return self._functions

    def call(self, node: Any, label: str, known: dict[str, Any]) -> tuple[list[str], ReferenceCall, bool]:
        """The names that a node reads, its callable, and whether it is stateful."""
        from onnx import GraphProto, NodeProto, ValueInfoProto

        names = list(dict.fromkeys([*(name for name in node.input if name), *(free_names(node) & known.keys())]))
        copy = NodeProto()
        copy.CopyFrom(node)
        if copy.domain == "ai.onnx":
            copy.domain = ""
        graph = GraphProto(name="node", node=[copy])
        graph.output.extend(ValueInfoProto(name=name) for name in node.output if name)
        try:
            evaluator = self.evaluator(graph, opsets=self.opsets, functions=self.functions())
        except Exception as error:
            if isinstance(error, ValueError) and "PythonOp" in str(error):
                raise
            what = f"{node.domain}:{node.op_type}" if node.domain else node.op_type
            raise ValueError(
                f"{label} cannot be loaded: onnx {_onnx_version()} has no implementation of {what!r:.80} for opset "
                f"{self.opsets.get(copy.domain)} with these attributes ({type(error).__name__}: {error!s:.300})"
            ) from error
        return names, ReferenceCall(evaluator, names, label, node.op_type), self.stateful(node)

    def stateful(self, node: Any) -> bool:
        """Whether a node, or one inside it, is."""
        if node.op_type in _STATEFUL:
            return True
        key = (node.domain, node.op_type)
        if key in self.bodies:
            if key not in self._stateful:
                self._stateful[key] = True  # while it is looked at: a function that calls itself
                self._stateful[key] = any(map(self.stateful, self.bodies[key].node))
            return self._stateful[key]
        return any(self.stateful(inner) for graph in subgraphs(node) for inner in graph.node)


def _onnx_version() -> str:
    import onnx

    return str(onnx.__version__)


def subgraphs(node: Any) -> list[Any]:
    """The graphs among the attributes of a node."""
    found = []
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found.append(attribute.g)
        found.extend(attribute.graphs)
    return found


def free_names(node: Any) -> set[str]:
    """What the graphs inside a node read of the graph around it."""
    free: set[str] = set()
    for graph in subgraphs(node):
        own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
        for inner in graph.node:
            free |= ({name for name in inner.input if name} | free_names(inner)) - own
            own |= set(inner.output)
        free |= {info.name for info in graph.output} - own
    return free


class ReferenceCall:
    """One node, evaluated by the onnx package."""

    def __init__(self, evaluator: Any, names: list[str], label: str, op_type: str) -> None:
        self.evaluator = evaluator
        self.names = names
        self.label = label
        self.__name__ = op_type
        self.dtypes: tuple[Any, ...] = ()

    def __call__(self, *arrays: Any) -> tuple[np.ndarray[Any, Any], ...]:
        feeds = {name: unbox(array) for name, array in zip(self.names, arrays, strict=True)}
        results = self.evaluator.run(None, feeds)
        return tuple(self.checked(k, value) for k, value in enumerate(results))

    def checked(self, k: int, value: Any) -> np.ndarray[Any, Any]:
        """One result, of the dtype that the model says."""
        if not isinstance(value, np.ndarray | np.generic):
            return box(value)
        array = np.asarray(value)
        dtype = self.dtypes[k]
        if dtype is not None and array.dtype != dtype:
            raise OutputError(f"output {k} of {self.label} is {array.dtype}, but the model declares {dtype}")
        return array


def _evaluator_class(table: Table, strict: bool, pointers: dict[int, Any] | None) -> Any:
    """The reference evaluator with PythonOp among its operators, inside functions and subgraphs too."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class PythonOp(OpRun):  # type: ignore[misc]
        op_domain = DOMAIN

        def _load_attributes(self) -> None:
            self.has_linked_attribute = False
            self.attributes_names_: set[str] = set()
            node = self.onnx_node
            self.call: Any
            if node.op_type == "PythonOp":
                self.call = PythonCall(read_forward(node, strict, pointers), table)
            else:
                self.call = GradientCall(read_backward(node), table)
                self.call.absent = tuple(not name for name in list(node.input)[1:])

        def _run(self, *arrays: Any) -> tuple[Any, ...]:
            results: tuple[Any, ...] = self.call(*(a for a in arrays if a is not None))
            return results

    class PythonOpGrad(PythonOp):
        pass

    class Evaluator(ReferenceEvaluator):  # type: ignore[misc]
        def __init__(self, proto: Any, *args: Any, new_ops: Any = None, **kwargs: Any) -> None:
            super().__init__(proto, *args, new_ops=[PythonOp, PythonOpGrad], **kwargs)

    return Evaluator
