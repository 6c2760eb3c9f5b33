"""Write calls of Python functions as PythonOp, and gradients of ops as PythonOpGrad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core import Node, Value
from ..declare.contracts import OutMode
from ..declare.references import op_of_function
from ..graph.graph import Graph
from ..graph.in_place import InPlace
from ..graph.node_call import NodeCall, call_of
from ..transforms.op_calls import Backward as GradientNode
from .attribute_writer import backward_attributes, forward_attributes, set_attributes, why_no_constant
from .attributes import DOMAIN, Backward, Forward, Port
from .builder import ModelBuilder, element_type, typed
from .callee import GivenNames, declared_statics
from .extensions import write_extension
from .pairs import calls_of_gradients
from .python_op import GradientCall, PythonCall, has_flat_results
from .registry import Table, path_of
from .standard import NotStandard, Operand
from .standard.ufuncs import loop_dtypes

__all__ = ["PythonNodes"]


class PythonNodes:
    """Hold the nodes of a model that call Python; `operand` returns the tensor of a Value."""

    def __init__(
        self,
        graph: Graph,
        builder: ModelBuilder,
        operand: Callable[[Value], Operand],
        dialect: str,
        given_names: GivenNames,
    ) -> None:
        self.builder = builder
        self.operand = operand
        self.dialect = dialect
        self.given_names = given_names
        self.functions: dict[str, Any] = {}  # by the names that nodes have
        self.extensions: dict[str, Any] = {}  # operators of onnxruntime-extensions, and what they stand for
        self.calls = calls_of_gradients(graph)  # of gradient nodes, by their index
        self.differentiated = {call.index for call in self.calls.values()}
        self.contexts: dict[int, str] = {}  # of the calls, by their index
        self.spent: set[str] = set()  # contexts that a gradient has taken

    def write(self, node: Node, call: NodeCall, inputs: list[Operand], reason: str) -> None:
        """Write one node, with these inputs in its order; a ValueError says that PythonOp cannot express the call.

        `reason` says why no standard operator was taken.
        """
        made = _Call(self, node, call, inputs, reason)
        if isinstance(call.function, PythonCall | GradientCall):
            made.again(call.function)
        elif isinstance(call.function, GradientNode):
            made.gradient(call.function)
        elif self.dialect == "extensions":
            write_extension(self, made)
        else:
            made.python_op()

    def add(self, op_type: str, attributes: dict[str, Any], inputs: list[str], outputs: list[Any], name: str) -> Any:
        """Add a node; `outputs` are Operands, or names of which nothing is said."""
        self.builder.opsets.setdefault(DOMAIN, 1)
        names = [output if isinstance(output, str) else output.name for output in outputs]
        made = self.builder.add(op_type, inputs, names, name, domain=DOMAIN)
        set_attributes(made, attributes)
        return made

    def remember(self, name: str, function: Any) -> str | None:
        """Take note of the function of a name; the other one that has it already, in words."""
        known = self.functions.setdefault(name, function)
        if known is function or known == function or getattr(known, "__wrapped__", None) is function:
            return None
        return (
            f"two functions are called {name!r}: {known!r:.100} and {function!r:.100}; give them names with "
            "export(..., names={function: name})"
        )

    def remember_read(self, name: str, table: Table) -> None:
        """Take note of the function of a node that was read, if it is known; ValueError if another one has the name."""
        known = table.known(name)
        problem = None if known is None else self.remember(name, known.given)
        if problem is not None:
            raise ValueError(problem)


class _Call:
    """Write one call as a node."""

    def __init__(self, w: PythonNodes, node: Node, call: NodeCall, inputs: list[Operand], reason: str) -> None:
        self.w = w
        self.node = node
        self.call = call
        self.inputs = inputs
        self.reason = reason
        self.names: tuple[str, ...] = ()  # of the last arguments
        self.told: tuple[str, ...] | None = None  # those that nothing else would tell

    def fail(self, problem: object) -> NoReturn:
        raise ValueError(
            f"node {self.node.name!r} (created at {self.node.origin}) cannot be exported as a PythonOp: "
            f"{problem}{self.reason}"
        )

    # --- names

    def name_of(self, function: Any) -> str:
        """Return the name under which a function is found again."""
        w = self.w
        given = w.given_names.of(function)
        if given is None:
            given = path_of(function)
            if given is not None and w.dialect == "name":
                given = getattr(function, "__name__", given)
        if given is None:
            self.fail(_why_no_name(function))
        problem = w.remember(given, function)
        if problem is not None:
            self.fail(problem)
        return given

    @property
    def function(self) -> Any:
        """Return the function that a name is to lead to: of an op that saves residuals, the user's own."""
        gradient = _saving(self.node)
        return self.call.function if gradient is None else gradient.fn

    # --- arguments

    def arguments(self) -> list[Any]:
        """Return positional arguments, those by keyword last."""
        beside = self.beside_the_function()
        if beside is not None and not op_of_function(self.function):
            self.fail(f"it {beside}, which only an op that has an import path does")
        if self.call.nested:
            self.fail("arrays stand inside containers among its arguments, and PythonOp has flat arguments only")
        args, kwargs = self.call.args, self.call.kwargs
        if self.node.contract is not None:
            kwargs = self.statics(kwargs)
        elif kwargs:
            self.told = tuple(kwargs)
        if isinstance(self.call.function, np.ufunc) and not self.call.kwargs:
            args = self.with_arrays(self.call.function, args)
        self.names = tuple(kwargs)
        return [*args, *kwargs.values()]

    def statics(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return static arguments of an op: all, with defaults, or the given ones, by names that the node tells."""
        assert self.node.contract is not None
        inputs = self.node.contract.signature.inputs
        every, implied = declared_statics(self.function, given, None if inputs is None else len(inputs))
        if any(name not in given and why_no_constant(name, x, self.w.dialect) is not None for name, x in every.items()):
            every, implied = given, False
        self.told = None if implied or not every else tuple(every)
        return every

    def beside_the_function(self) -> str | None:
        """Describe what the op does that its function alone does not, or return None."""
        contract = self.node.contract
        if contract is None:
            return None
        if contract._parts[2] == OutMode.REQUIRED:
            return "passes arrays for the results (out=)"
        cores = contract.signature.inputs or () if contract.signature.gufunc else ()
        loops = any(value.ndim != core.ndim for value, core in zip(self.node.inputs, cores, strict=False))
        return "loops over leading axes" if loops else None

    def takes_bytes(self, tensors: list[Operand]) -> bool:
        """Return whether the function takes text as bytes, as those of the py_func family do."""
        contract = self.node.contract
        return contract is not None and contract._parts[3] and any(tensor.dtype.kind in "OUST" for tensor in tensors)

    def with_arrays(self, ufunc: np.ufunc, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return arguments with non-constant numbers as arrays, of the dtype in which the ufunc computes with them."""
        if all(isinstance(x, Operand | int) for x in args):
            return args
        try:
            loop = loop_dtypes(ufunc, args)
        except NotStandard:
            return args
        return tuple(
            Operand(self.w.builder.initializer(np.asarray(x, dtype), f"{self.node.name}/constant"), dtype, ())
            if isinstance(x, float | complex | np.generic)
            else x
            for x, dtype in zip(args, loop, strict=False)
        )

    def port(self, what: str, operand: Operand) -> Port:
        if operand.dtype is None:
            self.fail(f"the dtype of {what} is not known: declare it")
        if operand.shape is None or any(size is Ellipsis for size in operand.shape):
            self.fail(f"the rank of {what} is not known: declare its shape, with _ for sizes that vary")
        contract = self.node.contract
        if operand.dtype.kind == "O" and (contract is None or not contract._parts[3]):
            self.fail(f"{what} has dtype object, and ONNX has no objects")
        try:
            return Port(element_type(operand.dtype), len(operand.shape))
        except ValueError as error:
            raise ValueError(f"{what} of node {self.node.name!r} cannot be exported: {error}") from None

    def ports(self, what: str, operands: list[Operand]) -> tuple[Port, ...]:
        return tuple(self.port(f"{what} {k}", operand) for k, operand in enumerate(operands))

    # --- nodes

    def results(self) -> list[Operand]:
        """Return the function's results; residuals that a node returns beside them stay in its context."""
        outputs = [self.w.operand(value) for value in self.node.outputs]
        outputs = outputs if _saving(self.node) is None else outputs[:-1]
        if not outputs:
            self.fail("it returns nothing, and a PythonOp has at least one result")
        return outputs

    def declared(self, outputs: list[Operand]) -> tuple[Forward, list[Operand]]:
        """Return the attributes of a PythonOp, and the tensors that it reads."""
        arguments = self.arguments()
        tensors = [x for x in arguments if isinstance(x, Operand)]
        for k, x in enumerate(arguments):
            label = k - len(arguments) + len(self.names)
            what = f"argument {k}" if label < 0 else f"argument {self.names[label]}="
            problem = None if isinstance(x, Operand) else why_no_constant(what, x, self.w.dialect)
            if problem is not None:
                self.fail(problem)
        if not tensors:
            self.fail("it takes no array, and a PythonOp has at least one")
        contract, count = self.node.contract, iter(range(len(tensors)))
        training = _saving(self.node) is not None or self.node.index in self.w.differentiated
        mutates = 0 if contract is None else contract.mutates
        made = Forward(
            label="",
            name=self.name_of(self.function),
            tensor_at=tuple(next(count) if isinstance(x, Operand) else None for x in arguments),
            constants=tuple(None if isinstance(x, Operand) else x for x in arguments),
            inputs=self.ports("input", tensors),
            outputs=self.ports("output", outputs),
            needs_grad=tuple(
                training and isinstance(x, Operand) and x.dtype is not None and x.dtype.kind in "fc" for x in arguments
            ),
            training=training,
            written=frozenset(k for k in range(len(tensors)) if mutates >> k & 1),
            reused=self.reused(mutates, tensors, outputs) if self.w.dialect == "func_name" else (),
            keywords=self.told,
            text_as_bytes=self.takes_bytes(tensors),
        )
        return made, tensors

    def python_op(self, again: bool = False) -> str:
        """Write the node, and return the name of its context.

        It is written once more, with `again`, if a further gradient needs a context of its own.
        """
        w, node, builder = self.w, self.node, self.w.builder
        outputs = self.results()
        declared, tensors = self.declared(outputs)
        gradient = _saving(node)
        saves = gradient is not None and not again
        context = w.operand(node.outputs[-1]).name if saves else builder.fresh(f"{w.operand(node.outputs[0]).name}_ctx")
        if again:
            outputs = [Operand(builder.fresh(f"{output.name}_again"), output.dtype, output.shape) for output in outputs]
            self.describe(outputs, declared.outputs)
        if node.contract is not None and not has_flat_results(node.contract) and not op_of_function(self.function):
            self.fail("its results stand in containers, which only an op that has an import path can take apart")
        if not again:
            w.contexts[node.index] = context
        # Nothing is said of the context: shape inference has it as of rank 0, and runtimes warn of what they find.
        builder.untold.add(context)
        w.add("PythonOp", self.attributes(declared), [t.name for t in tensors], [context, *outputs], node.name)
        return context

    def attributes(self, declared: Forward | Backward) -> dict[str, Any]:
        try:
            if isinstance(declared, Forward):
                return forward_attributes(declared, self.w.dialect)
            return backward_attributes(declared, self.w.dialect)
        except ValueError as error:
            self.fail(error)

    def describe(self, results: list[Operand], ports: tuple[Port, ...]) -> None:
        """Declare the types in the ports for tensors that are no Values of the graph, or less known there."""
        for result, port in zip(results, ports, strict=True):
            shape = (None,) * port.rank if result.shape is None else result.shape
            self.w.builder.types.declare(result.name, typed(port.code, shape))

    def reused(self, mutates: int, tensors: list[Operand], outputs: list[Operand]) -> tuple[tuple[int, int], ...]:
        """Return the results in the memory of an argument: for a written one, the only result like it."""
        reused: dict[int, int] = {}
        for k, tensor in enumerate(tensors):
            if not mutates >> k & 1:
                continue
            kind = tensor.dtype, tensor.shape
            alike = [j for j, out in enumerate(outputs) if j not in reused and (out.dtype, out.shape) == kind]
            if len(alike) != 1 or None in (tensor.shape or ()):
                self.fail(
                    f"it writes into input {k} (mutates=), which the dialect 'func_name' can say of a result in its "
                    f"memory only, and {len(alike)} results have its dtype and shape; the dialect 'name' can say it"
                )
            reused[alike[0]] = k
        return tuple(sorted(reused.items()))

    def gradient(self, backward: GradientNode) -> None:
        w, node = self.w, self.node
        if w.dialect == "extensions":
            self.fail("onnxruntime-extensions have no gradients")
        forward = w.calls.get(node.index)
        if forward is None or forward.index not in w.contexts:
            self.fail("its forward node is not in the graph")
        given = [w.operand(v) for v in forward.inputs]
        call = _Call(w, forward, call_of(forward, given), given, "")
        context = w.contexts[forward.index]
        if context in w.spent:
            # A context serves one gradient: for another the function is called again.
            if forward.stateful:
                self.fail("another gradient has taken the context of its call, which is stateful and runs once")
            context = call.python_op(again=True)
        w.spent.add(context)
        arguments = call.arguments()
        tensors = [a for a in arguments if isinstance(a, Operand)]
        cotangents = self.inputs[: backward.n_out]
        results = dict(zip(backward.argnums, (w.operand(v) for v in node.outputs), strict=True))
        name = self.w.operand(node.outputs[0]).name
        outs = [
            results.get(k) or Operand(w.builder.fresh(f"{name}_unused"), tensor.dtype, tensor.shape)
            for k, tensor in enumerate(tensors)
        ]
        declared = Backward(
            label="",
            name=call.name_of(backward.gradient.fn),
            convention="".join("d" if isinstance(a, Operand) else "c" for a in arguments),
            required=tuple(k in results for k in range(len(tensors))),
            inputs=self.ports("cotangent", cotangents),
            outputs=self.ports("output", outs),
            keywords=call.told,
            text_as_bytes=call.takes_bytes(given),
        )
        self.describe(outs, declared.outputs)
        read = [context, *(ct.name for ct in cotangents)]
        w.add("PythonOpGrad", self.attributes(declared), read, list(outs), node.name)

    def again(self, call: PythonCall | GradientCall) -> None:
        """Write a node that was read, as it was, in the dialect that is asked for."""
        w = self.w
        if w.dialect == "extensions":
            self.fail("it was read as one, and onnxruntime-extensions have operators of their own: use 'func_name'")
        outputs = [w.operand(value) for value in self.node.outputs]
        w.remember_read(call.name, call.table)
        attributes = self.attributes(call.declared)
        if isinstance(call, PythonCall):
            w.builder.untold.add(outputs[0].name)
            self.describe(outputs[1:], call.declared.outputs)
            w.add("PythonOp", attributes, [x.name for x in self.inputs], list(outputs), self.node.name)
        else:
            given = iter(self.inputs)
            read = [next(given).name, *("" if absent else next(given).name for absent in call.absent)]
            self.describe(outputs, call.declared.outputs)
            w.add("PythonOpGrad", attributes, read, list(outputs), self.node.name)


def _why_no_name(function: Any) -> str:
    if isinstance(function, InPlace):
        return (
            f"it is an augmented assignment ({function.method}) of dtypes that no operator computes with; write "
            "y = y + z.astype(y.dtype) instead of y += z, or graph.save(path), which keeps any"
        )
    if type(function).__module__.startswith(("pyop.gradients.", "pyop.transforms.")):
        return (
            "it is part of a derivative by tangents, by a Jacobian or by differences, and PythonOpGrad has gradients "
            "by @op.vjp alone; graph.save(path) keeps any"
        )
    return f"{function!r:.200} has no import path; give it a name with export(..., names={{function: name}})"


def _saving(node: Node) -> Any:
    """Return the gradient of an op whose node also returns residuals; None for any other node."""
    gradient = None if node.contract is None else node.contract.gradient
    saving = None if gradient is None else gradient.saving
    return gradient if saving is not None and node.contract is saving[1] else None
