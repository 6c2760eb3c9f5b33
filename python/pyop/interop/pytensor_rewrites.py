"""Register rewrites for ops of pyop with PyTensor's compiler: writes in place, unread gradients, batches, numba.

They are registered when the module is imported, for Ops of pyop alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.compile import optdb
from pytensor.graph.basic import Apply
from pytensor.graph.replace import _vectorize_node
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.tensor.blockwise import vectorize_node_fallback
from pytensor.tensor.rewriting.basic import register_specialize

from .pytensor_op import PyopOp

__all__: list[str] = []


@node_rewriter([PyopOp], inplace=True)
def _write_in_place(fgraph: Any, node: Apply) -> Any:
    """Write into arguments of ``mutates=`` uncopied if nobody reads them later; PyTensor reverts it otherwise."""
    op: PyopOp = node.op
    if op.in_place or op.path or not any(each.written for each in op.hooks.inputs):
        return False
    return Apply(
        PyopOp(op.pyop_op, op.statics, in_place=True), node.inputs, [each.type() for each in node.outputs]
    ).outputs


optdb.register("pyop_write_in_place", in2out(_write_in_place), "fast_run", "inplace", position=70.2)


@register_specialize
@node_rewriter([PyopOp])
def _pyop_needs(fgraph: Any, node: Apply) -> Any:
    """Compute only the gradients that are read, by a rule that takes ``needs=``."""
    op: PyopOp = node.op
    if not op.path or op.path[-1][0] != "vjp":
        return False
    used = [bool(fgraph.clients.get(each)) for each in node.outputs]
    if all(used) or not any(used):
        return False
    _, needs, n_out = op.path[-1]
    read = iter(used)
    narrow = tuple(need and next(read) for need in needs)
    made = PyopOp(op.pyop_op, op.statics, (*op.path[:-1], ("vjp", narrow, n_out))).make_node(*node.inputs).outputs
    return dict(zip([each for each, is_used in zip(node.outputs, used, strict=True) if is_used], made, strict=True))


@_vectorize_node.register(PyopOp)
def _batched(op: PyopOp, node: Apply, *inputs: Any) -> Any:
    """Return a batched call: ops declared as gufuncs loop by themselves, the others in a Blockwise."""
    if op.hooks.gufunc and not op.path:
        front = {x.type.ndim - len(each.spec.shape or ()) for x, each in zip(node.inputs, op.hooks.inputs, strict=True)}
        # Else new dimensions would come to stand over loops of another argument.
        if len(front) == 1:
            return op.make_node(*inputs)
    return vectorize_node_fallback(op, node, *inputs)


def _register_with_numba() -> None:
    """Register ops with PyTensor's numba backend, which would call them in Python with a useless warning."""
    try:
        import numba
        from pytensor.link.numba.dispatch.basic import get_numba_type, numba_funcify, numba_njit
    except ImportError:
        return

    @numba_funcify.register(PyopOp)
    def _in_python(op: PyopOp, node: Apply, **kwargs: Any) -> Any:
        types = [get_numba_type(each.type) for each in node.outputs]
        kind = types[0] if len(types) == 1 else numba.types.Tuple(types)

        def call(inputs: Any) -> Any:
            storage: list[list[Any]] = [[None] for _ in types]
            op.perform(node, [np.asarray(x) for x in inputs], storage)
            results = tuple([cell[0] for cell in storage])
            return results[0] if len(results) == 1 else results

        @numba_njit
        def perform(*inputs: Any) -> Any:
            with numba.objmode(ret=kind):
                ret = call(inputs)
            return ret  # noqa: RET504  # numba hands it out of the block by its name

        return perform


_register_with_numba()
