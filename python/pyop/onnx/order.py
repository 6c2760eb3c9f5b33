"""Order calls with effects: in a model the order is given by which node reads which, and by nothing else.

A runtime may run two nodes that do not read each other in any order. So each call with effects reads the one before:
one of its tensors goes through a Reshape to its own shape, to which a zero is added that comes from that call.
"""

from __future__ import annotations

from .._core import Node
from .builder import ModelBuilder
from .standard import Operand

__all__ = ["Order"]


class Order:
    """Track which call with effects each node comes after."""

    def __init__(self, builder: ModelBuilder) -> None:
        self.builder = builder
        self.latest: int | None = None  # the call with effects that was written last
        self.result = ""  # a tensor that it gives
        self.after: dict[int, int] = {}  # for each node the latest such call that must have run before it

    def before(self, node: Node, inputs: list[Operand]) -> list[Operand]:
        """Return the inputs of a call, of which one depends on the call with effects before it, if none does anyway."""
        if not node.stateful or self.latest is None or self._reads(node) == self.latest or not inputs:
            return inputs
        return [self.depend(inputs[0], self.builder.fresh(f"{inputs[0].name}_after")), *inputs[1:]]

    def written(self, node: Node, result: str) -> None:
        """Take note of a call, once it is in the model."""
        if node.stateful and node.outputs:
            self.latest, self.result = node.index, result
            self.after[node.index] = node.index
        else:
            reads = self._reads(node)
            if reads is not None:
                self.after[node.index] = reads

    def _reads(self, node: Node) -> int | None:
        return max((self.after[v.node.index] for v in node.inputs if v.node.index in self.after), default=None)

    def depend(self, tensor: Operand, name: str) -> Operand:
        """Return the same tensor under another name, there once the latest call with effects is done."""
        builder = self.builder

        def node(op_type: str, inputs: list[str], output: str) -> str:
            builder.add(op_type, inputs, [output], f"order/{op_type}")
            return output

        told = node("Size", [self.result], builder.fresh("order/size"))
        zero = node("Sub", [told, told], builder.fresh("order/zero"))
        shape = node("Shape", [tensor.name], builder.fresh("order/shape"))
        node("Reshape", [tensor.name, node("Add", [shape, zero], builder.fresh("order/same_shape"))], name)
        return Operand(name, tensor.dtype, tensor.shape)
