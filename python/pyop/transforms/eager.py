"""Differentiate at concrete arrays: the function runs once, on Tensors, so its control flow sees numbers.

Inside another transformation, or where the caller passes Tensors, results are Tensors too, and the backward pass is
recorded: derivatives of derivatives come from the same code. `Eager.nested` is then true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._core import Op, Tensor, Value
from .._tree import flatten, leaf_types, map_leaves
from ..autograd.batch_calls import one_by_one
from ..autograd.batched import EXAMPLES, level_of
from ..autograd.forward import jvp as push_tensors
from ..autograd.linear import Alias
from ..autograd.op_calls import class_of_arrays
from ..containers import check_rules, plain_array
from ..gradients import table
from ..refusals import call_watched
from ..tracing.again import called
from .marker import check_has_gradient
from .opened import Argnums, Chosen, Opened, check_examples, check_like, without_gradient
from .pulled import pull_in_graph

__all__ = ["Eager", "pullback_of", "push_forward", "vjp_of_op"]


def _is_nested(kinds: set[type]) -> bool:
    """Return whether derivatives with arguments of these types may be differentiated again, by a surrounding one."""
    return Tensor in kinds or (_core.transformations_running() > 0 and _core.is_recording())


def _open(leaf: Any, k: int) -> Tensor:
    """Return a Tensor that stands for a leaf of argument `k` and for nothing else."""
    if type(leaf) is np.ndarray and leaf.dtype.kind in "fc":
        return Tensor(leaf, requires_grad=True)
    if type(leaf) is Tensor:
        check_has_gradient(leaf, k)
        alias: Tensor = Alias.apply(leaf)
        return alias if alias.requires_grad else alias.requires_grad_()
    array = plain_array(leaf, f"argument {k}")
    check_has_gradient(array, k)
    return _tensor(array, leaf, requires_grad=True)


def _bare(tree: Any) -> Any:
    """Return the tree with arrays in place of Tensors."""
    if type(tree) is Tensor:
        return tree.numpy()
    return map_leaves(lambda x: x.numpy() if type(x) is Tensor else x, tree)


class Eager(Opened):
    """Call ``f(*args, **kwargs)`` on Tensors, in place of the arrays to differentiate by.

    `nested` is true if the results stay recorded.
    """

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> None:
        self.nested = _is_nested(leaf_types((args, kwargs)))
        super().__init__(f, args, kwargs, argnums)
        # The caller's own Tensors, which the function has in its closure, may lead to the results, too.
        self.nested = self.nested or _core.depends_on_others(self.leaves, self.inputs)
        if self.nested:
            _core.note_opened(self.inputs)

    open = staticmethod(_open)

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, recorded, and return its result."""
        return called(lambda f: _core.call_recorded(f, args, kwargs, self.inputs), f, (args, kwargs))

    def out(self, tree: Any) -> Any:
        """Return the result for the caller: arrays, or Tensors where derivatives of it may be asked for."""
        return tree if self.nested else _bare(tree)

    def seed(self, value: Any) -> Any:
        """Return the cotangent one."""
        return np.ones((), value.dtype) if isinstance(value, Tensor) else None

    def pull(self, outputs: list[Any], cts: list[Any]) -> list[Any]:
        """Return one gradient for each input, in its shape: arrays of their own, or Tensors."""
        kinds = leaf_types(cts)
        if not kinds.isdisjoint(EXAMPLES):
            return list(one_by_one(lambda *cs: tuple(self.pull(outputs, list(cs))), tuple(cts), {}, level_of(cts)))
        if Value in kinds:
            return pull_in_graph(self, outputs, cts)
        return _core.pull(outputs, cts, self.inputs, self.nested or _is_nested(kinds), True)

    @staticmethod
    def push(outputs: list[Any], tangents: list[Any], inputs: list[Tensor]) -> list[Any]:
        """Return the tangents of outputs, as Tensors, for those of the inputs that they were computed from.

        The pullback is linear in its cotangent, and its own pullback is the push forward.
        """
        seeds = [Tensor(np.zeros(y.shape, y.dtype), requires_grad=y.dtype.kind in "fc") for y in outputs]
        _core.note_opened(seeds)

        def twice() -> list[Any]:
            return _core.pull(_core.pull(outputs, seeds, inputs, True, False), tangents, seeds, True, True)

        output_tangents: list[Any] = _core.call_recording(True, twice, (), {})
        return output_tangents

    def pullback(self, value: Any) -> Callable[[Any], Any]:
        """Return the pullback, as `Opened.pullback`."""
        _core.note_opened(self.inputs)  # functions of cotangents may be differentiated
        return super().pullback(value)

    @staticmethod
    def jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return value and tangent, as `pyop.jvp`: in one pass forward, or two backward inside another one forward."""
        return _jvp(f, primals, tangents)

    @staticmethod
    def jacobian_forward(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> Any:
        """Return the Jacobian, as ``pyop.jacobian(f, argnums, mode="forward")``.

        The function runs for each element of the arguments.
        """
        chosen = Chosen(args, argnums)
        inputs = [x if type(x) is Tensor else plain_array(x, "an argument") for x in chosen.inputs]

        def at(*xs: Any) -> Any:
            return f(*chosen.replaced(args, xs), **kwargs)

        def push(tangents: list[Any]) -> Any:
            return _jvp(at, tuple(inputs), tuple(tangents))[1]

        return chosen.forward_jacobian(inputs, push, lambda: f(*args, **kwargs))


def vjp_of_op(op: Op, primals: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Any]] | None:
    """Return `pyop.vjp` of an op at arrays, recorded only if more than one gradient of it is asked for.

    It returns None, and calls nothing, where the op has to be recorded from the start.
    """
    gradient: Any = op.contract.gradient
    if gradient is None or not gradient.of_arrays or _core.graph_being_built() is not None or op.spec.cast != "no":
        return None
    made = _core.plain_vjp(op, primals, gradient.backward_for_all(len(primals)))
    if made is None:
        return None
    value, pull = made
    if pull is None:
        call = _called_before(op, primals, value)
        return call.out(call.result), call.pullback(call.result)
    recorded: list[Callable[[Any], Any]] = []

    def pullback(ct: Any) -> Any:
        gradients: Any = pull(ct)
        if gradients is None:
            pull.check()
            if not recorded:
                call = _called_before(op, primals, value)
                recorded.append(call.pullback(call.result))
            gradients = recorded[0](ct)
        return gradients

    return value, pullback


def _called_before(op: Op, primals: tuple[Any, ...], value: Any) -> Eager:
    """Return the record of a call that was made already."""
    function = class_of_arrays(op.name)
    rule = op.contract.gradient.rule
    call = Eager(lambda *xs: function._call(op, xs, rule, value), primals, {}, tuple(range(len(primals))))
    call.nested = False
    return call


def _jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    nested = _is_nested(leaf_types((primals, tangents)))
    leaves, given = _pairs(primals, tangents)
    structure = flatten(primals)[1]
    shape: list[Any] = []

    def flat(*xs: Any) -> Any:
        full = iter(xs)
        args = structure.unflatten([x if t is None else next(full) for x, t in zip(leaves, given, strict=True)])
        result = called(lambda f: call_watched(f, args, {}), f, args)
        values, form = flatten(result)
        check_examples(values)
        shape[:] = [form, [type(y) is Tensor for y in values]]
        return tuple([y if type(y) is Tensor else Tensor(plain_array(y, "a result")) for y in values])

    which = [k for k, t in enumerate(given) if t is not None]
    moved = tuple([leaves[k] for k in which])
    along = tuple([given[k] for k in which])
    if _core.forward_running() or any(type(x) is Tensor and x._tangent is not None for x in leaves):
        values, pushed = _by_two_pullbacks(flat, moved, along)
    else:
        tensors = tuple([x if type(x) is Tensor else _tensor(np.asarray(x), x) for x in moved])
        before = [(k, x, x.tobytes()) for k, x in zip(which, moved, strict=True) if type(x) is np.ndarray]
        values, pushed = push_tensors(lambda *xs: _core.call_recorded(flat, xs, {}), tensors, along)
        for k, x, content in before:
            if x.tobytes() != content:  # by another name: reverse mode sees that where it has saved the array
                raise TypeError(
                    f"the function has written into the memory of primal {k} by another array over it, which no "
                    "tangent follows: pass a copy as one of them"
                )
    form = shape[0]
    nested = nested or _core.depends_on_others([*values, *pushed], [])

    def out(x: Any) -> Any:
        return x if nested or type(x) is not Tensor else x.numpy()

    return form.unflatten(list(map(out, values))), form.unflatten(list(map(out, pushed)))


def _tensor(array: Any, given: Any, requires_grad: bool = False) -> Tensor:
    """Return the Tensor of an array made of `given`; a scalar if that is no array."""
    made = Tensor(array, requires_grad=requires_grad)
    made._scalar = not isinstance(given, np.ndarray)
    return made


def _pairs(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    leaves: list[Any] = []
    given: list[Any] = []
    for primal, tangent in zip(primals, tangents, strict=True):
        all_leaves, tree = flatten(primal)
        parts = [None] * len(all_leaves) if tangent is None else tree.flatten_up_to(tangent)
        for k in without_gradient(all_leaves, tree):
            parts[k] = None
        for x, t in zip(all_leaves, parts, strict=True):
            check_rules("a primal", x)
            check_like("a tangent", t, x, "its argument")
        leaves += all_leaves
        given += parts
    return leaves, given


def _by_two_pullbacks(f: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    call = Eager(f, primals, {}, tuple(range(len(primals))))
    return call.result, tuple(call.push(call.leaves, list(tangents), call.inputs))


# --- for rules of functions that are made of others


def pullback_of(
    f: Callable[..., Any], argnums: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> table.Pullback:
    """Return the pullback of the function itself, as `table.Rule.vjp`."""
    leaves = table.leaves(args, kwargs)
    nested = any(type(leaf) is Tensor for leaf in leaves)
    opened = [_open(leaves[k], k) for k in argnums]
    _core.note_opened(opened)
    outputs = flatten(_core.call_recorded(table.of_leaves(f, argnums, args, kwargs), tuple(opened), {}))[0]

    def pullback(ct: Any) -> tuple[Any, ...]:
        cts = list(ct) if isinstance(ct, (tuple, list)) else [ct]
        again = nested or any(type(c) is Tensor for c in cts)
        return tuple(_core.pull(outputs, cts, opened, again, False))

    return pullback


def push_forward(f: Callable[..., Any], argnums: Any, tangents: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """Return the tangents of the function itself, as `table.Rule.jvp`."""
    leaves = table.leaves(args, kwargs)
    moved = _jvp(table.of_leaves(f, argnums, args, kwargs), tuple([leaves[k] for k in argnums]), tangents)[1]
    return moved if any(type(x) is Tensor for x in (*leaves, *tangents)) else _bare(moved)
