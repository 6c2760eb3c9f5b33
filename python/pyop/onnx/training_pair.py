"""Provide the functions that the training kernel of ONNX Runtime calls for a PythonOp: forward and backward.

That kernel lends its buffers and takes over the buffers of results. So results are contiguous, writable, and in memory
that nobody else has; they are copied, since the function may have kept them. Arrays kept for the gradient are copied,
since the buffers are used again.

The pairs have no state: any thread. A context belongs to one forward call, and serves one backward call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._core import InputError, OutputError
from .attributes import DOMAIN, Forward, read_forward
from .boxes import unbox
from .loading import read_model
from .python_op import Context, PythonCall, context_of, gradient_entries
from .registry import Table
from .trust import Trust

__all__ = ["AutogradFunction", "as_autograd_function"]


class AutogradFunction(NamedTuple):
    """Hold the functions behind a name in a model.

    Attributes
    ----------
    name : str
        ``func_name`` (or ``name``) of the nodes.
    forward : callable
        ``forward(*arguments)``, tensors and constants in their places; returns the context, None for inference, and the
        results.
    backward : callable
        ``backward(context, *gradients)``, with None for an absent gradient; returns an entry for each argument, None
        for constants and where there is no gradient.

    Examples
    --------
    >>> from pyop.onnx import AutogradFunction
    >>> AutogradFunction("double", lambda x: (None, x * 2), lambda context, g: (g * 2,)).backward(None, 3.0)
    (6.0,)
    """

    name: str
    forward: Callable[..., tuple[Any, ...]]
    backward: Callable[..., tuple[Any, ...]]


def as_autograd_function(
    model: Any, functions: Mapping[str, Any] | None = None, *, trust: str | None = None, modules: Iterable[str] = ()
) -> dict[str, AutogradFunction]:
    """Return the functions of a model's PythonOp nodes as ONNX Runtime's training kernel calls them.

    Results are arrays of the declared dtype and rank (bool as uint8, as the kernel has it), C-contiguous, writable, and
    in memory that no argument and no other result has. An output that ``tensor_reuse_map`` puts into an input is
    written into that input; so is one that the function returns in the memory of an input, where ``inplace`` is 1.

    Parameters
    ----------
    model : onnx.ModelProto, bytes or path
    functions, trust, modules
        As `load` has them.

    Returns
    -------
    dict of str to AutogradFunction
        By name. They have to be registered with the kernel under it.

    Raises
    ------
    ValueError
        The model has no PythonOp.

    Examples
    --------
    >>> import numpy as np, pyop, pyop.onnx
    >>> from onnx import TensorProto, helper
    >>> node = helper.make_node(
    ...     "PythonOp", ["x"], ["ctx", "y"], domain="com.microsoft", func_name="docs.double", input_convention="d",
    ...     input_tensor_types=[1], input_tensor_ranks=[1], output_tensor_types=[1], output_tensor_ranks=[1],
    ...     input_requires_grads=[1], training_mode=1)
    >>> x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    >>> model = helper.make_model(helper.make_graph([node], "g", [x], [y]))
    >>> pair = pyop.onnx.as_autograd_function(model, {"docs.double": (lambda x: x * 2, lambda ctx, g: g * 2)})
    >>> context, y = pair["docs.double"].forward(np.ones(2, np.float32))
    >>> pair["docs.double"].backward(context, y)
    (array([4., 4.], dtype=float32),)
    """
    table = Table(functions, Trust.make(trust, modules))
    calls: dict[str, list[PythonCall]] = {}
    for node in _nodes(read_model(model).graph):
        declared = read_forward(node)
        for port in (*declared.inputs, *declared.outputs):
            if port.dtype is None or port.dtype.kind not in "fiub":
                raise ValueError(
                    f"{declared.label} has a tensor of {port}, which the training kernel has no arrays for"
                )
        calls.setdefault(declared.name, []).append(PythonCall(declared, table))
    if not calls:
        raise ValueError("the model has no PythonOp: there are no functions that a training kernel could call")
    return {name: _Pair(name, several, table).functions for name, several in calls.items()}


def _nodes(graph: Any) -> Iterator[Any]:
    """Yield all PythonOp nodes, including those of bodies."""
    for node in graph.node:
        if node.domain == DOMAIN and node.op_type == "PythonOp":
            yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)


class _Pair:
    def __init__(self, name: str, calls: list[PythonCall], table: Table) -> None:
        self.name, self.calls, self.table = name, calls, table
        self.functions = AutogradFunction(name, self.forward, self.backward)

    def forward(self, *arguments: Any) -> tuple[Any, ...]:
        call = self._call(arguments)
        declared = call.declared
        lent = _tensors(declared, arguments)
        # A context outlives the buffers. Nothing else may be written by a function that has not said so.
        arrays = [x.copy() if declared.training else _read_only(x) for x in lent]
        (number, *results), into = call.run(self.table.find(call.name, call.label), arrays)
        outputs: list[Any] = []
        for k, y in enumerate(map(unbox, results)):
            if y is not None and k in into:
                target = lent[into[k]]
                if target.shape != y.shape or not target.flags.writeable:
                    raise OutputError(
                        f"output {k} of {call.label} is to be written into input {into[k]}, {target.dtype} of shape "
                        f"{target.shape}, which is read-only or of another shape than the result, {y.shape}"
                    )
                np.copyto(target, y, casting="equiv")
                outputs.append(arguments[declared.tensor_at.index(into[k])])
                continue
            outputs.append(_handed_over(y))
        context = context_of(number, call.label) if declared.training else None
        return (context, *outputs)

    def backward(self, context: Any, *gradients: Any) -> tuple[Any, ...]:
        label = f"the gradient of {self.name!r:.200}"
        if not isinstance(context, Context):
            raise InputError(
                f"{label} takes the context that forward has returned, got {type(context).__name__}: the PythonOp ran "
                "for inference (training_mode=0)"
            )
        arguments = context.inputs
        context_of(context.array(), label)  # whether it has served
        outputs = context.outputs
        if len(gradients) != len(outputs):
            raise InputError(f"{label} takes {len(outputs)} gradients, got {len(gradients)}")
        lent = [None if g is None else np.asarray(g) for g in gradients]
        for k, (g, y) in enumerate(zip(lent, outputs, strict=True)):
            if g is not None and (g.shape != y.shape or g.dtype != y.dtype):
                raise InputError(
                    f"{label}: gradient {k} is {g.dtype} of shape {g.shape}, result {k} {y.dtype} {y.shape}"
                )
        try:
            implementation = self.table.find(self.name, label)
            given = [None if g is None else _read_only(g) for g in lent]
            entries = gradient_entries(implementation, context, given, len(arguments), label, self.name)
        finally:
            context.drop()
        return tuple([self._entry(k, x, d) for k, (x, d) in enumerate(zip(arguments, entries, strict=True))])

    def _entry(self, k: int, argument: Any, entry: Any) -> Any:
        if entry is None or not isinstance(argument, np.ndarray):
            return None
        d = np.asarray(entry)
        if d.shape != argument.shape or d.dtype.newbyteorder("=") != argument.dtype.newbyteorder("="):
            raise OutputError(
                f"the gradient of {self.name!r:.200} returned {d.dtype} of shape {d.shape} for argument {k}, which is "
                f"{argument.dtype} of shape {argument.shape}: the kernel takes it for that"
            )
        return _handed_over(d)

    def _call(self, arguments: tuple[Any, ...]) -> PythonCall:
        """Return the node that declares such arguments, whose constants and dtypes may differ."""
        for call in self.calls:
            declared = call.declared
            if len(arguments) != len(declared.tensor_at):
                continue
            tensors = _tensors(declared, arguments)
            constants = [
                (a, c) for a, c, at in zip(arguments, declared.constants, declared.tensor_at, strict=True) if at is None
            ]
            if all(type(a) is type(c) and a == c for a, c in constants) and all(
                x.dtype == port.dtype and x.ndim == port.rank for x, port in zip(tensors, declared.inputs, strict=True)
            ):
                return call
        kinds = ", ".join(
            f"{x.dtype} of rank {x.ndim}" if hasattr(x, "dtype") and hasattr(x, "ndim") else f"{x!r:.40}"
            for x in arguments
        )
        raise InputError(
            f"no PythonOp of {self.name!r:.200} in the model takes ({kinds}); {self.calls[0].label} declares "
            f"({', '.join(map(str, self.calls[0].declared.inputs))}) and constants {self.calls[0].declared.constants}"
        )


def _tensors(declared: Forward, arguments: tuple[Any, ...]) -> list[Any]:
    """Return the tensors among the arguments, in the order of the node's inputs, with bool, sent as uint8, as bool."""
    tensors: list[Any] = [None] * len(declared.inputs)
    for argument, at in zip(arguments, declared.tensor_at, strict=True):
        if at is not None:
            x = np.asarray(argument)
            tensors[at] = x.view(np.bool_) if declared.inputs[at].dtype == np.bool_ and x.dtype == np.uint8 else x
    return tensors


def _read_only(x: Any) -> Any:
    view = x.view()
    view.flags.writeable = False
    return view


def _handed_over(y: Any) -> Any:
    """Return a result in memory of its own, as the kernel writes into it later."""
    if y is None:
        return None
    made = np.array(y, dtype=y.dtype.newbyteorder("="), order="C", subok=False)
    return made.view(np.uint8) if made.dtype == np.bool_ else made
