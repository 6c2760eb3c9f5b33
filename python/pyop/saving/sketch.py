"""Write the readable part of a saved graph: a model that other tools can show.

NumPy functions are written as ONNX's operators where these exist, every other call as an operator of the domain
``pyop``. Reading uses the description beside it.
"""

from __future__ import annotations

from typing import Any

from .._core import Node
from ..graph.graph import Graph
from ..graph.node_call import call_of
from ..onnx.builder import ModelBuilder
from ..onnx.graph_writer import GraphWriter
from ..onnx.standard import NotStandard

__all__ = ["Sketch"]


class Sketch(GraphWriter):
    """Write every node of a graph for display."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, ModelBuilder())
        self.builder.opsets["pyop"] = 1

    def model(self) -> Any:
        """Return the model."""
        builder, infos = self.builder, self.builder.types.infos
        self.name_values({(value.node.index, 0): value.name for value in self.graph.inputs})
        for node in self.graph.nodes:
            self.describe(node)
            if node.kind == "constant" and self.graph.run(node.outputs[0]).dtype.kind in "biufc":
                self.constant(node)
            elif node.kind == "py" and not self._as_operators(node):
                name = getattr(node.function, "__name__", type(node.function).__name__)
                reads, gives = map(self.name, node.inputs), map(self.name, node.outputs)
                builder.add(name, list(reads), list(gives), node.name, domain="pyop")
        leaves = self.graph._output_leaves()[0] if self.graph._outputs is not None else []
        outputs = dict.fromkeys(self.name(leaf) for leaf in leaves if not isinstance(leaf, Node))
        return builder.model(self.graph.name, infos(map(self.name, self.graph.inputs)), infos(outputs))

    def _as_operators(self, node: Node) -> bool:
        try:
            return self.standard(node, call_of(node, [self.operand(value) for value in node.inputs]))
        except NotStandard:
            return False
