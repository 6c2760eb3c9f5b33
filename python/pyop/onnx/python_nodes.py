"""Calls of Python functions as PythonOp, gradients of ops as PythonOpGrad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .._core import Node
from ..declare.contracts import OutMode
from ..declare.references import op_of_function
from ..declare.spec import Spec
from ..gradients.op_calls import Backward
from ..graph.in_place import InPlace
from ..graph.node_call import NodeCall, call_of
from .attributes import DOMAIN, KEYWORDS
from .callee import Callee, declared_statics, write_callee
from .python_op import has_flat_results
from .registry import path_of
from .standard import NotStandard, Operand
from .standard.ufuncs import loop_dtypes

if TYPE_CHECKING:
    from .exporting import Writer

__all__ = ["forward_of", "write"]

_INT64 = range(-(2**63), 2**63)


def write(w: Writer, node: Node, call: NodeCall, inputs: list[Operand], reason: str) -> None:
    """One node that calls Python.

    Parameters
    ----------
    w : Writer
    node : Node
    call : NodeCall
    inputs : list of Operand
        Of the node, in its order.
    reason : str
        Why no standard operator was taken; for errors.

    Raises
    ------
    ValueError
        PythonOp cannot express the call.
    """
    _Call(w, node, call, inputs, reason).write()


class _Call:
    def __init__(self, w: Writer, node: Node, call: NodeCall, inputs: list[Operand], reason: str) -> None:
        self.w = w
        self.node = node
        self.call = call
        self.inputs = inputs
        self.reason = reason
        self.told: tuple[str, ...] | None = None  # names of the last arguments, which nothing else would tell

    def fail(self, problem: str) -> NoReturn:
        raise ValueError(
            f"node {self.node.name!r} (created at {self.node.origin}) cannot be exported as a PythonOp: "
            f"{problem}{self.reason}"
        )

    def write(self) -> None:
        if isinstance(self.call.function, Backward):
            self.gradient(self.call.function)
        elif self.w.dialect == "extensions":
            from .extensions import write_extension

            write_extension(self)
        else:
            self.python_op()

    # --- names

    def name_of(self, function: Any) -> str:
        """The name under which a function is found again."""
        w = self.w
        given: str | None = w.given_names.get(function) if _hashable(function) else None
        if given is None:
            given = path_of(function)
            if given is not None and w.dialect == "name":
                given = getattr(function, "__name__", given)
        if given is None and isinstance(function, InPlace):
            self.fail(
                f"it is an augmented assignment ({function.method}) of dtypes that no operator computes with; write "
                "y = y + z.astype(y.dtype) instead of y += z, or graph.save(path), which keeps any"
            )
        if given is None and type(function).__module__.startswith("pyop.gradients."):
            self.fail(
                "it is part of a derivative by tangents, by a Jacobian or by differences, and PythonOpGrad has "
                "gradients by @op.vjp alone; graph.save(path) keeps any"
            )
        if given is None:
            self.fail(
                f"{function!r:.200} has no import path; give it a name with export(..., names={{function: name}})"
            )
        known = w.functions.setdefault(given, function)
        if known is not function and known != function and getattr(known, "__wrapped__", None) is not function:
            self.fail(
                f"two functions are called {given!r}: {known!r:.100} and {function!r:.100}; give them names with "
                "export(..., names={function: name})"
            )
        return given

    def callee(self, function: Any, tensors: list[Operand]) -> str:
        """The name for the node: of the function, and what must not get lost beside it."""
        name = self.name_of(function)
        try:
            return write_callee(Callee(name, self.told, self.takes_bytes(tensors)))
        except ValueError as error:
            self.fail(f"{error}; give it another with export(..., names={{function: name}})")

    def function(self) -> Any:
        """The function that a name is to lead to: of an op that saves residuals, the user's own."""
        gradient = _saving(self.node)
        return self.call.function if gradient is None else gradient.fn

    # --- arguments

    def arguments(self) -> tuple[list[Any], tuple[str, ...]]:
        """Positional arguments, those by keyword last, and their names."""
        beside = self.beside_the_function()
        if beside is not None and not op_of_function(self.function()):
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
        return [*args, *kwargs.values()], tuple(kwargs)

    def statics(self, given: dict[str, Any]) -> dict[str, Any]:
        """Static arguments of an op: all, with defaults, or those that were given, by names that the node tells."""
        assert self.node.contract is not None
        inputs = self.node.contract.signature.inputs
        every, implied = declared_statics(self.function(), given, None if inputs is None else len(inputs))
        for name, value in every.items():
            if name not in given and self.why_no_constant(name, value) is not None:
                every, implied = given, False
                break
        self.told = None if implied or not every else tuple(every)
        return every

    def beside_the_function(self) -> str | None:
        """What the op does that its function alone does not."""
        contract = self.node.contract
        if contract is None:
            return None
        if contract._parts[2] == OutMode.REQUIRED:
            return "passes arrays for the results (out=)"
        cores = contract.signature.inputs or () if contract.signature.gufunc else ()
        loops = any(value.ndim != core.ndim for value, core in zip(self.node.inputs, cores, strict=False))
        return "loops over leading axes" if loops else None

    def takes_bytes(self, tensors: list[Operand]) -> bool:
        """Whether the function takes text as bytes, as those of the py_func family do."""
        contract = self.node.contract
        return contract is not None and contract._parts[3] and any(tensor.dtype.kind in "OUST" for tensor in tensors)

    def with_arrays(self, ufunc: np.ufunc, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Numbers that are no constants of a PythonOp as arrays, of the dtype in which the ufunc computes with them."""
        if all(isinstance(x, Operand | int) for x in args):
            return args
        try:
            loop = loop_dtypes(ufunc, args)
        except NotStandard:
            return args
        return tuple(
            Operand(self.w.initializer(np.asarray(x, dtype), f"{self.node.name}/constant"), dtype, ())
            if isinstance(x, float | complex | np.generic)
            else x
            for x, dtype in zip(args, loop, strict=False)
        )

    def port(self, what: str, operand: Operand) -> tuple[int, int]:
        if operand.dtype is None:
            self.fail(f"the dtype of {what} is not known: declare it")
        if operand.shape is None or any(size is Ellipsis for size in operand.shape):
            self.fail(f"the rank of {what} is not known: declare its shape, with _ for sizes that vary")
        contract = self.node.contract
        if operand.dtype.kind == "O" and (contract is None or not contract._parts[3]):
            self.fail(f"{what} has dtype object, and ONNX has no objects")
        return self.w.code(operand.dtype, f"{what} of node {self.node.name!r}"), len(operand.shape)

    def attributes(self, arguments: list[Any], names: tuple[str, ...]) -> tuple[dict[str, Any], list[Operand]]:
        """The attributes that say what the arguments are, and the tensors among them."""
        tensors: list[Operand] = []
        convention = ""
        constants: dict[str, list[Any]] = {}
        for k, argument in enumerate(arguments):
            if isinstance(argument, Operand):
                tensors.append(argument)
                convention += "d"
            else:
                label = (
                    f"argument {k}"
                    if k < len(arguments) - len(names)
                    else (f"argument {names[k - len(arguments) + len(names)]}=")
                )
                self.constant(label, argument, k, constants)
                convention += "c"
        if not tensors:
            self.fail("it takes no array, and a PythonOp has at least one")
        ports = [self.port(f"input {k}", tensor) for k, tensor in enumerate(tensors)]
        found: dict[str, Any] = {
            "input_convention": convention,
            "input_tensor_types": [code for code, _ in ports],
            "input_tensor_ranks": [rank for _, rank in ports],
            **constants,
        }
        return found, tensors

    def constant(self, label: str, value: Any, position: int, found: dict[str, list[Any]]) -> None:
        problem = self.why_no_constant(label, value)
        if problem is not None:
            self.fail(problem)
        if type(value) is tuple:
            family = type(value[0]).__name__ if value else "int"
            buffer = found.setdefault(f"input_{family}_tuples", [])
            found.setdefault(f"input_{family}_tuple_positions", []).append(position)
            found.setdefault(f"input_{family}_tuple_begins", []).append(len(buffer))
            buffer += [int(item) for item in value] if family == "bool" else value
        else:
            family = type(value).__name__
            found.setdefault(f"input_{family}_scalars", []).append(int(value) if family == "bool" else value)
            found.setdefault(f"input_{family}_scalar_positions", []).append(position)

    def why_no_constant(self, label: str, value: Any) -> str | None:
        """Why a PythonOp cannot hold a value; None if it can."""
        items = value if type(value) is tuple else (value,)
        kinds = {type(item) for item in items}
        if len(kinds) > 1 or not kinds <= {bool, int, float}:
            return (
                f"{label} is {type(value).__name__} {value!r:.80}, an object: PythonOp has bool, int and float "
                "constants, and tuples of one of these; graph.save(path) keeps any"
            )
        return next((problem for item in items if (problem := self.why_not_exact(label, item)) is not None), None)

    def why_not_exact(self, label: str, value: float) -> str | None:
        if type(value) is bool and self.w.dialect == "name":
            return f"{label} is {value!r}, and the dialect 'name' has no bool"
        if type(value) is int and value not in _INT64:
            return f"{label} is {value}, which int64 cannot hold"
        if type(value) is float and self.w.dialect != "extensions":
            with np.errstate(over="ignore"):
                narrow = float(np.float32(value))
            if narrow != value and value == value:
                return (
                    f"{label} is {value!r}, which float32 cannot hold (it would become {narrow!r}): pass it as "
                    "an array, or save the graph with graph.save(path)"
                )
        return None

    # --- nodes

    def results(self) -> list[Operand]:
        """What the function returns: the residuals that a node gives out beside it stay in its context."""
        outputs = [self.w.operand(value) for value in self.node.outputs]
        return outputs if _saving(self.node) is None else outputs[:-1]

    def python_op(self, again: bool = False) -> str:
        """The node; once more, if a further gradient needs a context of its own. The name of the context."""
        w, node = self.w, self.node
        arguments, names = self.arguments()
        attributes, tensors = self.attributes(arguments, names)
        outputs = self.results()
        gradient = _saving(node)
        hint = f"{w.names[node.index, 0] if outputs else node.name}_ctx"
        context = w.fresh(hint) if gradient is None or again else w.operand(node.outputs[-1]).name
        if again:
            outputs = [Operand(w.fresh(f"{output.name}_again"), output.dtype, output.shape) for output in outputs]
        if not outputs:
            self.fail("it returns nothing, and a PythonOp has at least one result")
        if node.contract is not None and not has_flat_results(node.contract) and not op_of_function(self.function()):
            self.fail("its results stand in containers, which only an op that has an import path can take apart")
        if not again:
            w.contexts[node.index] = context
        ports = [self.port(f"output {k}", output) for k, output in enumerate(outputs)]
        attributes |= {
            w.dialect: self.callee(self.function(), tensors),
            "output_tensor_types": [code for code, _ in ports],
            "output_tensor_ranks": [rank for _, rank in ports],
            "input_requires_grads": self.requires_grads(arguments),
            "training_mode": int(gradient is not None or _has_gradient(w, node)),
        }
        if node.contract is not None and node.contract.mutates:
            if w.dialect == "func_name":
                attributes["tensor_reuse_map"] = [-1, *self.reused(node.contract.mutates, tensors, outputs)]
            else:
                attributes["inplace"] = 1
        made = _node(
            "PythonOp",
            [t.name for t in tensors],
            [context, *(o.name for o in outputs)],
            w.node_name(node.name),
            attributes,
        )
        if names and self.told is None:
            made.metadata_props.add(key=KEYWORDS, value=",".join(names))
        w.nodes.append(made)
        w.uses_extension = True
        # Nothing is said of the context: shape inference has it as of rank 0, and runtimes warn of what they find.
        w.untold.add(context)
        if again:
            w.value_infos += [w.value_info(o.name, Spec(o.dtype, o.shape), o.name) for o in outputs]
        return context

    def reused(self, mutates: int, tensors: list[Operand], outputs: list[Operand]) -> list[int]:
        """For each result the argument in whose memory it is: of one that is written into, the only one like it."""
        found = [-1] * len(outputs)
        for k, tensor in enumerate(tensors):
            if not mutates >> k & 1:
                continue
            alike = [
                j
                for j, output in enumerate(outputs)
                if found[j] < 0 and (output.dtype, output.shape) == (tensor.dtype, tensor.shape)
            ]
            if len(alike) != 1 or None in (tensor.shape or ()):
                self.fail(
                    f"it writes into input {k} (mutates=), which the dialect 'func_name' can say of a result in its "
                    f"memory only, and {len(alike)} results have its dtype and shape; the dialect 'name' can say it"
                )
            found[alike[0]] = k
        return found

    def requires_grads(self, arguments: list[Any]) -> list[int]:
        if not (_saving(self.node) or _has_gradient(self.w, self.node)):
            return [0] * len(arguments)
        return [int(isinstance(a, Operand) and a.dtype is not None and a.dtype.kind in "fc") for a in arguments]

    def gradient(self, backward: Backward) -> None:
        w, node = self.w, self.node
        if w.dialect == "extensions":
            self.fail("onnxruntime-extensions have no gradients")
        forward = forward_of(w, node)
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
        arguments, _ = call.arguments()
        name = call.callee(backward.gradient.fn, given)
        tensors = [a for a in arguments if isinstance(a, Operand)]
        convention = "".join("d" if isinstance(a, Operand) else "c" for a in arguments)
        cotangents = self.inputs[: backward.n_out]
        results = dict(zip(backward.argnums, (w.operand(v) for v in node.outputs), strict=True))
        outs, required, types = [], [], []
        for k, tensor in enumerate(tensors):
            result = results.get(k)
            required.append(int(result is not None))
            if result is None:
                result = Operand(w.fresh(f"{w.names[node.index, 0]}_unused"), tensor.dtype, tensor.shape)
                w.value_infos.append(w.value_info(result.name, Spec(tensor.dtype, tensor.shape), result.name))
            outs.append(result.name)
            types.append(self.port(f"output {k}", result))
        ports = [self.port(f"cotangent {k}", ct) for k, ct in enumerate(cotangents)]
        attributes = {
            w.dialect: name,
            "output_convention": convention,
            "input_tensor_types": [code for code, _ in ports],
            "input_tensor_ranks": [rank for _, rank in ports],
            "output_tensor_types": [code for code, _ in types],
            "output_tensor_ranks": [rank for _, rank in types],
            "output_tensor_requires_grads": required,
        }
        read = [context, *(ct.name for ct in cotangents)]
        w.nodes.append(_node("PythonOpGrad", read, outs, w.node_name(node.name), attributes))


def _hashable(function: Any) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


def _saving(node: Node) -> Any:
    """The gradient of an op whose node also returns residuals; None for any other node."""
    gradient = None if node.contract is None else node.contract.gradient
    saving = None if gradient is None else gradient.saving
    return gradient if saving is not None and node.contract is saving[1] else None


def _has_gradient(w: Writer, node: Node) -> bool:
    """Whether a gradient node of the graph belongs to this call."""
    return node.index in w.differentiated


def forward_of(w: Writer, node: Node) -> Node | None:
    """The call that a gradient node belongs to; None for other nodes."""
    return w.calls_of_gradients.get(node.index)


def _node(op_type: str, inputs: list[str], outputs: list[str], name: str, attributes: dict[str, Any]) -> Any:
    from onnx import AttributeProto, helper

    made = helper.make_node(op_type, inputs, outputs, name=name, domain=DOMAIN)
    for key, value in attributes.items():
        kind = None
        if isinstance(value, list):
            kind = (
                AttributeProto.FLOATS
                if key.startswith("input_float_") and key.endswith("s") and not key.endswith(("positions", "begins"))
                else AttributeProto.INTS
            )
        made.attribute.append(helper.make_attribute(key, value, attr_type=kind))
    return made
