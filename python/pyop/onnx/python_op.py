"""Run PythonOp and PythonOpGrad nodes of a loaded model.

The context that a PythonOp returns is an int64 array of shape ``[1]``. Its memory belongs to the `Context`, so what
forward kept lives as long as the run holds the array, and no table of contexts exists that could leak. A number that no
forward call has returned is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto

from .._core import Contract, InputError, Op, OutputError
from .._tree import flatten
from ..declare.spec import Spec
from ..gradients.saved import collect_if_any
from .attributes import Backward, Forward, Port
from .boxes import box
from .callee import static_names
from .registry import Implementation, Table

__all__ = ["Context", "GradientCall", "PythonCall", "call_again", "gradient_entries"]

_numbers = itertools.count(1)


def _number() -> np.ndarray[Any, Any]:
    number = np.array([next(_numbers)], np.int64)
    number.flags.writeable = False
    return number


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Context:
    """Hold what a forward call leaves for its gradient.

    Attributes
    ----------
    inputs : tuple
        The arguments of the call, arrays and constants.
    outputs : tuple
        What it returned.
    needs_input_grad : tuple of bool
        One for each argument.
    saved : object
        What it kept with `pyop.saved`, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from pyop.onnx import Context
    >>> ctx = Context(inputs=(np.ones(2),), needs_input_grad=(True,))
    >>> ctx.needs_input_grad, ctx.saved
    ((True,), None)
    """

    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    saved: Any = None
    _state: str = "inference"
    _function_context: Any = None
    _keywords: tuple[str, ...] = ()
    _number: np.ndarray[Any, Any] = field(default_factory=_number)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._number.__array_interface__

    def array(self) -> np.ndarray[Any, Any]:
        """Return the array that stands for the call, and owns it."""
        return np.asarray(self)

    def drop(self) -> None:
        """Release everything: a context serves once."""
        self._state = "used"
        self._function_context = self.saved = None
        self.inputs = self.outputs = ()


def context_of(array: Any, label: str) -> Context:
    """Return the context behind an array; InputError if there is none, it was used, or the call was of inference."""
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    number = int(np.ravel(array)[0]) if np.size(array) == 1 and array.dtype.kind in "iu" else array
    if not isinstance(owner, Context):
        raise InputError(
            f"{label}: No context registered for {number!r:.80}: no forward call of this run returned it, or one that "
            "ran for inference (training_mode=0) and kept nothing"
        )
    if owner._state == "used":
        raise InputError(f"{label}: No context registered for {number}: a context serves once, and this one has served")
    if owner._state == "inference":
        raise InputError(
            f"{label}: No context registered for {number}: the PythonOp ran for inference (training_mode=0) and kept "
            "nothing"
        )
    return owner


class _Node:
    """Find the function, and check arrays against the node's declaration: the base of both kinds of nodes."""

    def __init__(self, declared: Forward | Backward, table: Table, home: Any = None, node: Any = None) -> None:
        self.table = table
        self.name = name = declared.name
        self.label = declared.label
        self.__name__ = self.__qualname__ = name.rpartition(".")[2] or name
        self.home = home  # the model and the node, where there are such
        self.node = node

    def __reduce__(self) -> Any:
        return call_again, (self.home, self.node.SerializeToString())

    def accepted(self, k: int, array: Any, port: Port) -> np.ndarray[Any, Any]:
        dtype = port.dtype
        if type(array) is np.ndarray and array.ndim == port.rank and array.dtype == dtype:
            return array
        if dtype is None and array.ndim == port.rank and array.dtype.kind in "OUTS":
            return np.asarray(array, object)
        raise InputError(f"input {k} of {self.label} is {array.dtype} of rank {array.ndim}, but it declares {port}")

    def result(self, what: str, value: Any, port: Port, call: str) -> np.ndarray[Any, Any]:
        """Return one result as the array that was declared."""
        if value is None:
            return box(None)
        array = value if type(value) is np.ndarray else np.asarray(value)
        dtype = port.dtype
        all_text = array.dtype == object and all(isinstance(item, str | bytes) for item in array.flat)
        if dtype is None and (array.dtype.kind in "UTS" or all_text):
            array = np.asarray(array, object)
            dtype = array.dtype
        if array.ndim != port.rank or (array.dtype != dtype and array.dtype.newbyteorder("=") != dtype):
            raise OutputError(
                f"{what} of {self.label} is {array.dtype} of rank {array.ndim}, but it declares {port}: "
                f"{call} {self.name!r:.200} must return what is declared, nothing is cast"
            )
        return np.asarray(array, dtype)


def call_again(home: Any, node: bytes, names: tuple[str, ...] = (), dtypes: tuple[Any, ...] = ()) -> Any:
    """Return the callable of a node of a model, for its pickle."""
    return home.call(NodeProto.FromString(node), names, dtypes)


def _call_again(home: Any, _op_type: str, node: bytes) -> Any:  # in pickles of earlier versions
    return call_again(home, node)


class PythonCall(_Node):
    """Run a PythonOp: its function on the node's tensors and constants, and a context."""

    def __init__(self, declared: Forward, table: Table, home: Any = None, node: Any = None) -> None:
        super().__init__(declared, table, home, node)
        self.declared = declared
        self._inputs = [(port.dtype, port.rank) for port in declared.inputs]
        self._dtype, self._rank = declared.outputs[0].dtype, declared.outputs[0].rank
        # Without constants, text and gradients, on one result: the short way.
        more = declared.written or declared.reused or declared.training or declared.keywords
        in_order = declared.tensor_at == tuple(range(len(self._inputs)))
        texts = any(dtype is None for dtype, _ in self._inputs)
        self._plain = not more and in_order and not texts and len(declared.outputs) == 1
        self._names: tuple[Implementation, tuple[str, ...]] | None = None  # of the last arguments of what was called

    def __call__(self, *tensors: Any) -> tuple[np.ndarray[Any, Any], ...]:
        implementation = self.table.find(self.name, self.label)
        if self._plain and implementation.plain:
            for (dtype, rank), x in zip(self._inputs, tensors, strict=True):
                if x.dtype != dtype or x.ndim != rank:
                    break
            else:
                value = implementation.forward(*tensors)
                if type(value) is not np.ndarray or value.dtype != self._dtype or value.ndim != self._rank:
                    value = self._only(value)
                return np.array((next(_numbers),)), value
        return self.run(implementation, tensors)[0]

    def _only(self, value: Any) -> np.ndarray[Any, Any]:
        """Return the only result of a call, in any container."""
        results = tuple(value) if isinstance(value, tuple | list) else (value,)
        self._check_count(results)
        return self.result("output 0", results[0], self.declared.outputs[0], "the function")

    def _check_count(self, results: tuple[Any, ...]) -> None:
        count = len(self.declared.outputs)
        if len(results) != count:
            raise OutputError(
                f"Output count mismatch for {self.label}: the function {self.name!r:.200} returned {len(results)} "
                f"results, but the node declares {count}"
            )

    def run(
        self, found: Implementation, tensors: Sequence[Any]
    ) -> tuple[tuple[np.ndarray[Any, Any], ...], dict[int, int]]:
        """Return the context and the results, and which of these lie in the memory of which input, as the node allows.

        The inputs that may be written are copied before.
        """
        declared = self.declared
        arrays = [self.accepted(k, x, port) for k, (x, port) in enumerate(zip(tensors, declared.inputs, strict=True))]
        for k in declared.written:
            arrays[k] = arrays[k].copy()
        if declared.text_as_bytes:
            arrays = [
                _as_bytes(x) if port.dtype is None else x for x, port in zip(arrays, declared.inputs, strict=True)
            ]
        elif found.op is not None and any(port.dtype is None for port in declared.inputs):
            arrays = _as_declared(found.op, arrays)
        arguments = tuple(
            constant if at is None else arrays[at]
            for at, constant in zip(declared.tensor_at, declared.constants, strict=True)
        )
        context = Context()
        keywords = self.keywords(found)
        cut = len(arguments) - len(keywords)
        if found.function is not None:
            results, saved = self._by_function(found.function, arguments, keywords, context, arrays)
        else:
            results, saved = self._by_call(found, arguments[:cut], dict(zip(keywords, arguments[cut:], strict=True)))
        self._check_count(results)
        outputs = tuple(
            self.result(f"output {k}", value, port, "the function")
            for k, (value, port) in enumerate(zip(results, declared.outputs, strict=True))
        )
        for k, j in declared.reused:
            if not _is_at(outputs[k], arrays[j]):
                raise OutputError(
                    f"output {k} of {self.label} is not in the memory of input {j}, which its tensor_reuse_map promises"
                )
        if declared.training:
            context._state, context._keywords = "waiting", keywords
            context.inputs, context.outputs, context.saved = arguments, outputs, saved
            context.needs_input_grad = declared.needs_grad
        reused = dict(declared.reused)
        for j in declared.written.difference(reused.values()):  # of `inplace`, which names no output
            reused |= dict([(k, j) for k, y in enumerate(outputs) if _is_in_place(y, arrays[j])][:1])
        return (context.array(), *outputs), reused

    def keywords(self, found: Implementation) -> tuple[str, ...]:
        """Return the names of the last arguments, by the node or else by the function; InputError if unknown."""
        if self.declared.keywords is not None:
            return self.declared.keywords
        if self._names is None or self._names[0] is not found:
            self._names = found, self._names_of(found)
        return self._names[1]

    def _names_of(self, found: Implementation) -> tuple[str, ...]:
        if found.function is not None:
            return ()
        op = found.op
        inputs = None if op is None else op.contract.signature.inputs
        constants = [at is None for at in self.declared.tensor_at]
        function = found.forward if op is None else op.__wrapped__
        try:
            return static_names(function, constants, op is not None, None if inputs is None else len(inputs))
        except ValueError as error:
            raise InputError(f"{self.label} calls {self.name!r:.200}: {error}") from None

    def _by_call(
        self, found: Implementation, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], Any]:
        if self.declared.training:
            result, saved = collect_if_any(found.forward, positional, named)
        else:
            result, saved = found.forward(*positional, **named), None
        if found.op is not None and not has_flat_results(found.op.contract):
            return tuple(flatten(result)[0]), saved
        if isinstance(result, list) and found.op is not None and isinstance(found.op.contract.signature.outputs, Spec):
            return (result,), saved  # one array, spelled as a list
        return tuple(result) if isinstance(result, tuple | list) else (result,), saved

    def _by_function(
        self, function: Any, arguments: tuple[Any, ...], keywords: tuple[str, ...], context: Context, arrays: list[Any]
    ) -> tuple[tuple[Any, ...], Any]:
        """Call a pyop.Function, with the context that it makes. `arrays` receives the arrays of its arguments."""
        from ..autograd import Tensor, enable_grad, no_grad

        cut = len(arguments) - len(keywords)
        if self.declared.training:
            with enable_grad():
                arguments = tuple(map(self._recorded, range(len(arguments)), arguments))
            for at, x in zip(self.declared.tensor_at, arguments, strict=True):
                if at is not None and type(x) is Tensor:
                    arrays[at] = x._numbers
        with enable_grad() if self.declared.training else no_grad():
            result = function.apply(*arguments[:cut], **dict(zip(keywords, arguments[cut:], strict=True)))
        results = result if isinstance(result, tuple) else (result,)
        for item in results:
            if isinstance(item, Tensor) and item.grad_fn is not None:
                context._function_context = item.grad_fn
        return tuple(item.numpy() if isinstance(item, Tensor) else item for item in results), None

    def _recorded(self, k: int, argument: Any) -> Any:
        """Return argument `k` as a Tensor if it needs a gradient; no leaf if written, as leaves may not be."""
        from ..autograd import Tensor

        if not self.declared.needs_grad[k] or not isinstance(argument, np.ndarray):
            return argument
        leaf = Tensor(argument, requires_grad=True)
        return leaf * 1 if self.declared.tensor_at[k] in self.declared.written else leaf


def _is_at(y: Any, x: Any) -> bool:
    return bool(y.__array_interface__["data"][0] == x.__array_interface__["data"][0])


def _is_in_place(y: Any, x: Any) -> bool:
    """Return whether a result is an input, written or not."""
    return y.dtype == x.dtype and y.shape == x.shape and y.strides == x.strides and _is_at(y, x)


def _as_declared(op: Op, arrays: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Return text, of one type in ONNX, as the arrays that an op declares: of str, of bytes or of StringDType."""
    specs = op.contract.signature.inputs
    if specs is None or len(specs) != len(arrays) or not all(isinstance(spec, Spec) for spec in specs):
        return arrays
    return [
        (_as_bytes(x) if kind == "S" else x).astype(spec.dtype)
        if x.dtype == object and isinstance(spec.dtype, np.dtype) and (kind := spec.dtype.kind) in "UST"
        else x
        for x, spec in zip(arrays, specs, strict=True)
    ]


def _as_bytes(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = np.empty(texts.size, object)
    made[:] = [text.encode() if isinstance(text, str) else text for text in texts.ravel()]
    return made.reshape(texts.shape)


def has_flat_results(contract: Contract) -> bool:
    """Return whether the results of an op are one array or a tuple of them, and not in another container."""
    outputs = contract.signature.outputs
    if outputs is None or isinstance(outputs, Spec):
        return True
    return isinstance(outputs, tuple | list) and all(isinstance(item, Spec) for item in outputs)


class GradientCall(_Node):
    """Run a PythonOpGrad: the backward of a function, on gradients."""

    def __init__(self, declared: Backward, table: Table, home: Any, node: Any) -> None:
        super().__init__(declared, table, home, node)
        self.declared = declared
        self.absent = tuple(not name for name in list(node.input)[1:])

    def __call__(self, context_array: Any, *arrays: Any) -> tuple[np.ndarray[Any, Any], ...]:
        declared = self.declared
        context = context_of(context_array, self.label)
        present = iter(arrays)
        gradients: list[Any] = []
        for k, (absent, port) in enumerate(zip(self.absent, declared.inputs, strict=True)):
            array = None if absent else next(present)
            gradients.append(None if array is None else self.accepted(k + 1, array, port))
        callee = self.table.find(self.name, self.label)
        try:
            entries = gradient_entries(callee, context, gradients, len(declared.convention), self.label, self.name)
        finally:
            context.drop()
        return tuple(
            box(None) if entry is None else self.result(f"output {k}", entries[entry], port, "the gradient of")
            for k, (entry, port) in enumerate(zip(declared.entry_of, declared.outputs, strict=True))
        )


def gradient_entries(
    found: Implementation, context: Context, gradients: list[Any], count: int, label: str, name: str
) -> list[Any]:
    """Return what the backward of a function returns for its `count` arguments, an entry each."""
    if found.function is not None:
        result = _function_backward(found.function, context, gradients, label)
    elif found.backward is not None:
        result = found.backward(context, *gradients)
    elif found.op is not None:
        return _op_backward(found.op, context, gradients, count)
    else:
        raise LookupError(
            f"{label} needs the gradient of {name!r:.200}, and the function was given without one: give "
            "a pair (forward, backward)"
        )
    entries = list(result) if isinstance(result, tuple | list) else [result]
    if len(entries) != count:
        raise OutputError(
            f"backward output count mismatch in {label}: {len(entries)} entries came back for {count} "
            "arguments, constants included"
        )
    return entries


def _function_backward(function: Any, context: Context, gradients: list[Any], label: str) -> Any:
    from ..autograd import no_grad

    inner = context._function_context
    if inner is None:
        raise InputError(
            f"{label}: forward of {function.__name__} ran for no argument that requires a gradient: "
            "input_requires_grads of the PythonOp says so"
        )
    if inner.materialize_grads:
        gradients = _present(gradients, context)
    with no_grad():
        return function.backward(inner, *gradients)


def _present(gradients: list[Any], context: Context) -> list[Any]:
    """Return gradients with zeros where one is absent."""
    return [np.zeros(y.shape, y.dtype) if g is None else g for g, y in zip(gradients, context.outputs, strict=True)]


def _op_backward(op: Op, context: Context, gradients: list[Any], count: int) -> list[Any]:
    """Return gradients by the rules of an op, which know no absent gradients."""
    gradient: Any = op.contract.gradient
    if gradient is None:
        raise LookupError(f"op {op.name!r} has no gradient rule: declare one with @{op.name}.vjp")
    n_in = count - len(context._keywords)
    inputs = context.inputs[:n_in]
    statics = dict(zip(context._keywords, context.inputs[n_in:], strict=True))
    argnums = tuple(k for k, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc")
    answer: Any = context.outputs
    if gradient.saves:
        from ..gradients.saved import Context as Residuals

        answer = (*answer, Residuals(context.saved).array())
    elif len(answer) == 1:
        answer = answer[0]
    pull = gradient.rule.vjp(argnums, answer, inputs, statics)
    raw_gradients = dict(zip(argnums, pull(tuple(_present(gradients, context))), strict=True))
    return [raw_gradients.get(k) for k in range(count)]
