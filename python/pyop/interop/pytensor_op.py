"""Define the Op of PyTensor that calls an op of pyop, and those that compute its derivatives.

An Op is identified by the pyop op, the static arguments and the derivative that it computes, so PyTensor merges equal
calls of stateless ops. An Op of a stateful one is equal to itself alone, and every node has one of its own.

Static shapes and `infer_shape` come from the declaration, which pyop checks at every call: a result of another shape or
dtype than the graph says never reaches PyTensor. Results never share memory with arguments, or with anything that the
function keeps, since PyTensor writes into its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from .derived import PullBack
from .hooks import Hooks
from .own_arrays import ALONE, own, unshared, writable_copy

__all__ = ["PyopOp"]

_CONTEXT = TensorType("int64", shape=(1,))


class PyopOp(Op):  # type: ignore[misc]  # where PyTensor is not installed
    """Call an op of pyop from PyTensor; `wrap` makes them.

    Parameters
    ----------
    op : pyop.Op
    statics : dict
        Static arguments.
    path : tuple
        Which derivative of it this computes: steps ``("vjp", needs, n_out)``, ``("jvp", argnums, n_out)``.
    in_place : bool
        The function writes into the arguments of ``mutates=`` themselves, and not into copies.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.interop.pytensor import PyopOp
    >>> isinstance(PyopOp(pyop.op(np.negative, "float64[n] -> float64[n]"), {}), PyopOp)
    True
    """

    def __init__(self, op: Any, statics: dict[str, Any], path: tuple[Any, ...] = (), in_place: bool = False) -> None:
        hooks = Hooks(op)
        for kind, which, n_out in path:
            hooks = Hooks(hooks.vjp_op(which, n_out) if kind == "vjp" else hooks.jvp_op(which, n_out))
        unknown = set(statics) - set(hooks.statics)
        if unknown:
            raise TypeError(
                f"op {op.name!r} has no static parameter {', '.join(sorted(unknown))}; it has {list(hooks.statics)}"
            )
        self.pyop_op = op
        self.hooks = hooks
        self.statics = statics
        self.path = path
        self._written = tuple(k for k, each in enumerate(hooks.inputs) if each.written)
        self._saves = hooks.saves
        # The forward op of a pullback that is handed a context, which PyTensor may have copied.
        pull = hooks.op.__wrapped__
        self._pull = pull if isinstance(pull, PullBack) and pull.hooks.saves else None
        self._plain = not (self._written and not in_place) and not self._saves and self._pull is None
        leaf = hooks.out_tree is not None and hooks.out_tree.is_leaf
        # The commonest calls, without lists: they are most of what a small call takes.
        self._direct: Any = hooks.op if self._plain and leaf and hooks.is_flat and not statics else None
        # The rule itself, which lends read-only and checks shapes as the op of the pullback does.
        self._rule = pull._of_arrays if self._direct is not None and isinstance(pull, PullBack) else None
        self._commonest = self._direct if self._rule is None else self._rule
        self._like = pull.n_out + pull.argnums[0] if self._rule is not None else 0
        self.in_place = in_place
        if in_place:
            # Of the first result: PyTensor asks which nodes destroy an input, and never what of it a result shows.
            self.destroy_map = {0: list(self._written)}
        key: Any = (op, path, in_place, tuple(sorted((name, type(v), v) for name, v in statics.items())))
        try:
            hash(key)
        except TypeError:  # of statics that do not hash: equal to itself alone
            key = None
        self._key = None if hooks.stateful else key

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is PyopOp and self._key is not None and self._key == other._key

    def __hash__(self) -> int:
        return object.__hash__(self) if self._key is None else hash(self._key)

    def __reduce__(self) -> Any:
        return PyopOp, (self.pyop_op, self.statics, self.path, self.in_place)

    def __str__(self) -> str:
        statics = ", ".join(f"{name}={value!r}" for name, value in self.statics.items())
        return f"{self.hooks.name}{{{statics}}}" if statics else self.hooks.name

    def __repr__(self) -> str:
        return f"<PyopOp {self}: {self.hooks.op.spec}>"

    # --- building graphs

    def __call__(self, *inputs: Any, return_list: bool = False, name: str | None = None, **statics: Any) -> Any:
        """Return variables of the results, in the containers that the op declares.

        Parameters
        ----------
        *inputs : variable, array, number, or the containers of these that the op takes
        return_list : bool, optional
            A flat list instead, as PyTensor's own Ops.
        name : str, optional
            Of the result.
        **statics : object
            Static arguments.
        """
        if statics:
            return PyopOp(self.pyop_op, self.statics | statics, self.path, self.in_place)(
                *inputs, return_list=return_list, name=name
            )
        hooks = self.hooks
        node = self.make_node(*self._flat(inputs))
        results = node.outputs[:-1] if self._saves else node.outputs
        if name is not None:
            for k, each in enumerate(results):
                each.name = name if len(results) == 1 else f"{name}_{k}"
        if return_list:
            return list(results)
        if hooks.out_tree is not None:
            return hooks.out_tree.unflatten(results)
        return results[0] if len(results) == 1 else list(results)

    def _flat(self, inputs: tuple[Any, ...]) -> list[Any]:
        tree = self.hooks.in_tree
        if len(inputs) == tree.num_leaves and all(isinstance(x, Variable) for x in inputs):
            return list(inputs)
        return tree.flatten_up_to(inputs)

    def make_node(self, *inputs: Any) -> Apply:
        """Return a node for one call, of flat arguments."""
        hooks = self.hooks
        if len(inputs) != len(hooks.inputs):
            raise TypeError(f"op {hooks.name!r} takes {len(hooks.inputs)} arrays, got {len(inputs)}")
        variables = [self._variable(k, x) for k, x in enumerate(inputs)]
        kinds = [(np.dtype(x.type.dtype), x.type.shape) for x in variables]
        try:
            specs = hooks.infer(kinds, self.statics)
        except (TypeError, ValueError) as error:
            error.add_note(self._advice(variables))
            raise
        outputs = [self._result(k, dtype, shape) for k, (dtype, shape) in enumerate(specs)]
        if self._saves:
            outputs.append(_CONTEXT())
        # Never merged: PyTensor merges nodes of equal Ops on the same inputs.
        op = PyopOp(*self.__reduce__()[1]) if hooks.stateful else self
        return Apply(op, variables, outputs)

    def _variable(self, k: int, x: Any) -> Any:
        declared = self.hooks.inputs[k]
        dtype = declared.spec.dtype
        if not isinstance(x, Variable):
            x = np.asarray(x, dtype) if _fits(x, dtype) else np.asarray(x)
            x = pt.constant(x)  # as_tensor_variable would take int8 for 1
        if isinstance(x.type, DisconnectedType) or not isinstance(x.type, TensorType):
            x = pt.as_tensor_variable(x)
        return x

    def _advice(self, variables: list[Any]) -> str:
        told = ", ".join(
            f"{declared.name}: {x.type.dtype}[{','.join('?' if n is None else str(n) for n in x.type.shape)}]"
            for declared, x in zip(self.hooks.inputs, variables, strict=True)
        )
        text = f"PyTensor calls op {self.hooks.name!r} with {told}"
        if any(d.spec.shape == () and x.type.shape == (1,) for d, x in zip(self.hooks.inputs, variables, strict=True)):
            text += (
                "\nPyMC hands numbers to a distribution as vectors of length 1: pass x[0], or declare the size, "
                "float64[_]"
            )
        return text

    def _result(self, k: int, dtype: Any, shape: Any) -> Variable:
        missing = "a dtype" if dtype is None else "the number of dimensions" if shape is None else None
        if missing:
            raise TypeError(
                f"result {k} of op {self.hooks.name!r} is declared without {missing}, which PyTensor asks for: declare "
                "it, 'float64[n] -> float64[n]'"
            )
        return TensorType(dtype.name, shape=tuple(n if type(n) is int else None for n in shape))()

    def infer_shape(self, fgraph: Any, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the sizes of the results as the declaration computes them."""
        kinds = [(np.dtype(x.type.dtype), shape) for x, shape in zip(node.inputs, shapes, strict=True)]
        specs = self.hooks.infer(kinds, self.statics, key=_size_key, broadcast=_broadcast)
        sizes = [
            tuple(Shape_i(axis)(out) if n is None else n for axis, n in enumerate(shape))
            for out, (_, shape) in zip(node.outputs, specs, strict=False)
        ]
        return [*sizes, (1,)] if self._saves else sizes

    # --- running them

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Call the op; the function's exception is raised unchanged."""
        call = self._commonest
        if call is not None:
            parts = (call(*inputs),)
            y = parts[0]
            if call is self._rule and not (type(y) is np.ndarray and y.dtype is inputs[self._like].dtype):
                del y
                assert self._direct is not None
                parts = (self._direct(*inputs),)
            elif type(y) is np.ndarray and y.base is None and y.flags.carray:
                del y  # of `unshared`, what is left for an array of its own memory
                if getrefcount(parts[0]) <= ALONE:
                    output_storage[0][0] = parts[0]
                    return
            else:
                del y
            output_storage[0][0] = parts[0] if unshared(parts, 0) else writable_copy(parts[0])
            return
        hooks = self.hooks
        if self._plain:
            outputs = own(hooks.call(inputs, self.statics))
        else:
            if self._written and not self.in_place:
                inputs = [writable_copy(x) if k in self._written else x for k, x in enumerate(inputs)]
            if self._pull is not None:
                pull, forward = self._pull, self._pull.hooks
                arguments = inputs[pull.n_out :][: pull.n_in]
                inputs = [*inputs[:-1], forward.context(inputs[-1][0], arguments, self.statics)]
            if self._saves:
                results, kept = hooks.forward(*inputs, **self.statics)
                context = kept.context
                del kept  # it holds the results
                outputs = [*own(results), context]
            else:
                outputs = own(hooks.call(inputs, self.statics))
        for cell, array in zip(output_storage, outputs, strict=True):
            cell[0] = array

    def do_constant_folding(self, fgraph: Any, node: Apply) -> bool:
        """Return whether PyTensor may fold constants: not for stateful ops, which always run, nor for contexts."""
        return not (self.hooks.stateful or self._saves or self._pull is not None)

    # --- derivatives

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return which inputs affect which outputs: floats affect floats."""
        outputs = [_is_float(x) for x in node.outputs]
        return [[_is_float(x) and out for out in outputs] for x in node.inputs]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the gradients by the op's rule."""
        hooks = self.hooks
        results = outputs[:-1] if self._saves else outputs
        refusal = self._no_gradient(results, inputs)
        if refusal is not None:
            return [
                grad_not_implemented(self, k, x, refusal) if _is_float(x) else disconnected_type()
                for k, x in enumerate(inputs)
            ]
        needs = tuple(_is_float(x) for x in inputs)
        op = PyopOp(self.pyop_op, self.statics, (*self.path, ("vjp", needs, len(results))))
        extra = [*(results if hooks.reads_results else ()), *outputs[len(results) :]]
        gradients = op.make_node(*map(_cotangent, cotangents, results), *inputs, *extra).outputs
        given = iter(gradients)
        return [next(given) if need else disconnected_type() for need in needs]

    def _no_gradient(self, results: Sequence[Any], inputs: Sequence[Any]) -> str | None:
        name = self.hooks.name
        if not self.hooks.differentiable:
            return f"op {name!r} has no rule for gradients: give it one with @{name}.vjp"
        if any(x.type.dtype.startswith("complex") for x in (*results, *inputs)):
            return "PyTensor and pyop have different conventions for gradients of complex numbers"
        return None

    def L_op(self, inputs: Sequence[Any], outputs: Sequence[Any], output_grads: Sequence[Any]) -> list[Any]:
        """Return the gradients as `pullback`, under the name that PyTensor before 3 calls."""
        return self.pullback(inputs, outputs, output_grads)

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Return the tangents of the results by the op's rule for forward mode."""
        hooks = self.hooks
        results = outputs[:-1] if self._saves else outputs
        which = tuple(k for k, t in enumerate(tangents) if t is not None and not isinstance(t.type, DisconnectedType))
        if not hooks.has_jvp or self._no_gradient(results, inputs):
            raise NotImplementedError(
                f"op {hooks.name!r} has no rule for forward mode: give it one with @{hooks.name}.jvp"
            )
        if not which:
            return [disconnected_type() for _ in outputs]
        op = PyopOp(self.pyop_op, self.statics, (*self.path, ("jvp", which, len(results))))
        output_tangents = op.make_node(*[_as(tangents[k], inputs[k]) for k in which], *inputs, *results).outputs
        return [*output_tangents, disconnected_type()] if self._saves else list(output_tangents)

    def R_op(self, inputs: Sequence[Any], eval_points: Any) -> list[Any]:
        """Return the tangents as `pushforward`, under the name that PyTensor before 3 calls."""
        if self.hooks.stateful:
            raise NotImplementedError(f"op {self.hooks.name!r} is stateful: for its tangents it would run once more")
        output_tangents = self.pushforward(inputs, self.make_node(*inputs).outputs, eval_points)
        return [None if isinstance(t.type, DisconnectedType) else t for t in output_tangents]


def _is_float(x: Any) -> bool:
    return isinstance(x.type, TensorType) and x.type.dtype.startswith(("float", "complex"))


def _fits(x: Any, dtype: Any) -> bool:
    """Return whether a Python number takes the declared dtype, as one of its kind does."""
    return type(x) in (bool, int, float, complex) and isinstance(dtype, np.dtype) and np.result_type(dtype, x) == dtype


def _as(x: Any, like: Any) -> Any:
    return x if x.type.dtype == like.type.dtype else pt.cast(x, like.type.dtype)


def _cotangent(ct: Any, result: Any) -> Any:
    if isinstance(ct.type, DisconnectedType):
        return pt.zeros_like(result)
    return _as(ct, result) if _is_float(result) else ct


def _size_key(size: Any) -> Any:
    """Return an int for a size that is known; a variable is told from others by identity."""
    if isinstance(size, Constant):
        return int(size.data)
    return int(size) if isinstance(size, np.integer) else size


def _broadcast(*shapes: Any) -> tuple[Any, ...]:
    """Return sizes as NumPy broadcasts them, by those of the call where a size is not known."""
    rank = max(map(len, shapes), default=0)
    sizes: list[Any] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            have, known, new = sizes[axis], _size_key(sizes[axis]), _size_key(size)
            if have is size or (type(new) is int and new == 1):
                continue
            if type(known) is int:
                sizes[axis] = size if known == 1 else have
            elif type(new) is int:
                sizes[axis] = size
            else:
                sizes[axis] = pt.switch(pt.eq(have, 1), size, have)
    return tuple(sizes)


def is_variable(x: Any) -> bool:
    """Return whether this is an array of a PyTensor graph."""
    return isinstance(x, TensorVariable)
