"""Call ops on Tensors: on their arrays, with all checks of such a call, and recorded with the ops' own rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import _core
from .._core import FunctionClass, Op, Tensor
from .._tree import flatten, leaf_types, map_leaves
from ..gradients import saved, table
from ..gradients.table import NoRule
from ..refusals import noting, refusal
from . import recording
from .batch_calls import one_by_one
from .batched import EXAMPLES, level_of

__all__ = ["call_op", "call_rule", "class_of_arrays"]

_classes: dict[str, FunctionClass] = {}
_classes_of_arrays: dict[str, FunctionClass] = {}


def call_op(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op with Tensors, or examples under vmap, among its arguments."""
    if op.spec.cast != "no":
        args, kwargs = _cast(op, args, kwargs)
    gradient: Any = op.contract.gradient
    if gradient is not None and gradient.of_arrays and not kwargs:
        made = class_of_arrays(op.name)._call(op, args, gradient.rule)
        if made is not None:
            return made
    if not leaf_types((args, kwargs)).isdisjoint(EXAMPLES):
        return one_by_one(op, args, kwargs, level_of((args, kwargs)))
    if kwargs:
        args, kwargs = _by_position(op, args, kwargs)
        _check_keywords(op, kwargs)
    leaves, tree = flatten(args)
    arrays = tree.unflatten([x.numpy() if type(x) is Tensor else x for x in leaves])
    if not recording.followed(leaves):
        return _wrapped(_core.call_quietly(op, arrays, kwargs))
    rule: table.Rule | None = table.lookup(op.__wrapped__) if gradient is None else gradient.rule
    if rule is None:
        result = _core.call_quietly(op, arrays, kwargs)
        if not any(recording.may_vary(x) for x in flatten(result)[0]):
            return _wrapped(result)
        with noting(NoRule):
            table.missing_of_op(op.name, op.contract)
    assert rule is not None
    if gradient is not None and gradient.saves:
        result, residuals = saved.collect(
            gradient.fn, op.name, arrays, kwargs, lambda *a, **k: _core.call_quietly(op, a, k)
        )
        rule = _WithContext(rule, saved.Context(residuals).array())
    else:
        result = _core.call_quietly(op, arrays, kwargs)
    outputs, structure = flatten(result)
    made = _recorded(op.name, rule, args, kwargs, leaves + flatten(list(kwargs.values()))[0], outputs)
    return made[0] if structure.is_leaf else structure.unflatten(made)


def _cast(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with recorded ones cast as the op declares; their gradients are cast back."""
    if kwargs:
        args, kwargs = _by_position(op, args, kwargs)
    leaves, tree = flatten(args)
    for k, x in enumerate(leaves):
        if type(x) is Tensor or type(x) in EXAMPLES:
            to = op.spec.cast_to(k, x.dtype)
            leaves[k] = x if to is None else x.astype(to)
    return tree.unflatten(leaves), kwargs


def class_of_arrays(name: str) -> FunctionClass:
    """Return the class of nodes, by name, for ops of arrays that return one array."""
    function = _classes_of_arrays.get(name)
    if function is None:
        function = _classes_of_arrays[name] = recording.class_of(name, _backward)
    return function


def _check_keywords(op: Op, kwargs: dict[str, Any]) -> None:
    """Raise for arguments that would be lost in a recorded call: ``out=``, and Tensors in static arguments."""
    if kwargs.get("out") is not None:
        raise refusal(f"out= of op {op.name!r} is not recorded: leave it out, or pass arrays (t.numpy())")
    for name, static in kwargs.items():
        if any(type(x) is Tensor and x._watched for x in flatten(static)[0]):
            raise refusal(
                f"{name}= of op {op.name!r} is static, a constant of the call, and no gradient goes to it: declare it "
                f"as an input, with a spec, or pass pyop.stop_gradient({name}) as a number"
            )


def call_rule(function: Callable[..., Any], arrays: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the callable of an op's rule (`transforms/op_calls.py`) with Tensors among its arguments."""
    result = function(*_arrays(arrays), **kwargs)
    try:
        rule = table.lookup(function) or _Refusing(NoRule(f"{function.__name__} has no gradient rule"))
    except NoRule as error:
        rule = _Refusing(error)  # its derivative may never be asked for
    several = isinstance(result, (tuple, list))
    made = _recorded(
        function.__name__, rule, arrays, kwargs, table.leaves(arrays, kwargs), list(result) if several else [result]
    )
    return tuple(made) if several else made[0]


def _backward(ctx: Any, ct: Any) -> Any:
    """Compute gradients as `recording.backward`, directly for an op that was called with Tensors alone."""
    rule, kept, positions, *_ = ctx.call
    if type(ct) is not np.ndarray or len(kept) != len(positions) or False in ctx.needs_input_grad:
        return recording.backward(ctx, ct)
    *inputs, _ = ctx.saved_tensors
    return rule.gradient.backward_for_all(len(inputs))(ct, *inputs)


class _WithContext(table.Rule):
    """Combine the rule of an op with the residuals that one call has saved."""

    def __init__(self, rule: table.Rule, context: Any) -> None:
        super().__init__(rule.func)
        self.rule = rule
        self.context = context

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return self.rule.takes(parameter, args, kwargs)

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> table.Pullback:
        several = isinstance(ans, (tuple, list))
        pull = self.rule.vjp(argnums, (*(ans if several else (ans,)), self.context), args, kwargs)
        return lambda ct: pull((*ct, None) if several else (ct, None))

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.rule.jvp(argnums, tangents, ans, args, kwargs)


class _Refusing(table.Rule):
    """Stand for a missing rule, and raise when a derivative is asked for."""

    def __init__(self, error: NoRule) -> None:
        super().__init__(None)
        self.error = error

    def vjp(self, argnums: Any, ans: Any, args: Any, kwargs: Any) -> table.Pullback:
        raise self.error

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        raise self.error


def _by_position(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with arrays that were given by keyword in their positions."""
    names: Iterable[str] = op.parameters[len(args) :]
    rest = dict(kwargs)
    positional = list(args)
    for name in names:
        if name not in rest:
            break
        positional.append(rest.pop(name))
    return tuple(positional), rest


def _arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    arrays: tuple[Any, ...] = map_leaves(lambda x: x._numbers if type(x) is Tensor else x, args)
    return arrays


def _wrapped(result: Any) -> Any:
    return map_leaves(Tensor, result)


def _class_of(name: str) -> FunctionClass:
    function = _classes.get(name)
    if function is None:
        function = _classes[name] = recording.class_of(name)
    return function


def _recorded(
    name: str, rule: table.Rule, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], results: list[Any]
) -> list[Any]:
    """Return the results as Tensors, with their history and their tangents."""
    made = recording.followed_result(
        _class_of(name), rule, args, kwargs, leaves, tuple(results) if len(results) != 1 else results[0]
    )
    return list(made) if isinstance(made, (tuple, list)) else [made]
