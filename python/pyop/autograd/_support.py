"""Hold the rare and the general parts of autograd, which the core calls (up_calls.py)."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from .. import _core
from .._core import FunctionClass, Tensor
from .._tree import TreeDef, contains, flatten
from ..declare.rebuild import walk
from .linear import Cast, Sum, SumTo, cast, sum_to

__all__ = [
    *("add_hook", "add_tensors", "any_by_argument", "apply_general", "call_forward_tree", "check_nan"),
    *("check_none_hidden", "creation", "fit_gradient", "flatten_gradients", "set_tangents"),
]


# --- hooks


class RemovableHandle:
    """Remove a hook: the handle that registering a hook returns."""

    __slots__ = ("_hooks", "_id")
    _count = 0

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        RemovableHandle._count += 1
        self._id = RemovableHandle._count
        self._hooks = hooks
        hooks[self._id] = hook

    def remove(self) -> None:
        """Stop calling the hook. Removing it again does nothing."""
        self._hooks.pop(self._id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


add_hook = RemovableHandle


# --- gradients that do not fit as they are


def add_tensors(a: Any, b: Any) -> Any:
    """Return the sum of two gradients of a recorded backward pass."""
    return Sum.apply(a, b)


def fit_gradient(
    gradient: Any,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    tensors: bool,
    take_real: bool,
    what: str,
    name: str,
    index: int,
) -> Any:
    """Return a gradient in the shape and dtype of its array.

    RuntimeError if it is of another shape that broadcasting does not explain, or complex where the array is real.
    """
    if gradient.shape != shape:
        lead = gradient.ndim - len(shape)
        if lead < 0 or any(have != want != 1 for have, want in zip(gradient.shape[lead:], shape, strict=True)):
            raise RuntimeError(
                f"{what} of {name} returned an invalid gradient at index {index}: its shape is {gradient.shape}, "
                f"which does not broadcast from {shape}, the shape of its array"
            )
        gradient = SumTo.apply(gradient, shape) if tensors else sum_to(gradient, shape)
    if gradient.dtype != dtype:
        if gradient.dtype.kind == "c" and dtype.kind != "c" and not take_real:
            raise RuntimeError(
                f"{what} of {name} returned an invalid gradient at index {index}: it is complex ({gradient.dtype}), "
                f"and its array is real ({dtype}): return its real part"
            )
        if gradient.dtype.kind not in "biufc":
            raise TypeError(
                f"{what} of {name} returned an invalid gradient at index {index}: its dtype is {gradient.dtype}"
            )
        gradient = Cast.apply(gradient, dtype) if tensors else cast(gradient, dtype)
    elif not tensors and gradient.dtype is not dtype:
        gradient = np.asarray(gradient).view(dtype) if gradient.dtype.isnative else gradient.astype(dtype)
    return gradient


# --- calls that are not plain


def apply_general(function: FunctionClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Function with keywords, or with containers of Tensors among its arguments."""
    if kwargs:
        args, kwargs = function._bind(args, kwargs)
        for name, value in kwargs.items():
            if isinstance(value, Tensor) or contains(value, Tensor):
                raise TypeError(
                    f"{function.name}.apply: '{name}' is keyword-only, and such arguments are constants: "
                    "pass a Tensor by position"
                )
    if any(not isinstance(arg, Tensor) and contains(arg, Tensor) for arg in args):
        leaves, tree = flatten(args)
        return function._flat(tuple(leaves), kwargs or None, tree)
    return function._flat(args, kwargs or None, None)


def check_none_hidden(name: str, container: Any) -> None:
    """Raise TypeError for a recorded Tensor inside a container that is passed on whole: its history would be lost."""
    if any(type(x) is Tensor and x._watched for x in walk(container)):
        raise TypeError(
            f"{name}.apply: a Tensor that requires a gradient stands in a {type(container).__name__}, and only tuples, "
            "lists, dicts, named tuples and dataclasses are looked into: pass list(x) or dict(x)"
        )


def call_forward_tree(
    forward: Callable[..., Any],
    setup_context: Callable[..., Any] | None,
    ctx: Any,
    tree: TreeDef,
    arrays: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
) -> Any:
    """Forward, with its containers put together again."""
    args = tree.unflatten(arrays)
    if setup_context is None:
        return forward(ctx, *args, **(kwargs or {}))
    result = forward(*args, **(kwargs or {}))
    setup_context(ctx, args, result)
    return result


def _subtrees(tree: TreeDef) -> list[tuple[int, Any]]:
    """Return, for each argument, the number of its leaves and the argument with None for each leaf."""
    numbered = tree.unflatten(range(tree.num_leaves))
    return [(len(flatten(argument)[0]), argument) for argument in numbered]


def flatten_gradients(tree: TreeDef, gradients: Any, name: str) -> tuple[Any, ...]:
    """Return one gradient for each leaf, from one container for each argument."""
    if not isinstance(gradients, tuple):
        gradients = (gradients,)
    arguments = _subtrees(tree)
    flat: list[Any] = []
    if len(gradients) < len(arguments) or any(g is not None for g in gradients[len(arguments) :]):
        raise RuntimeError(
            f"backward of {name} returned {len(gradients)} gradients, but forward took {len(arguments)} arguments "
            f"(expected {len(arguments)}, got {len(gradients)})"
        )
    for position, ((count, argument), gradient) in enumerate(zip(arguments, gradients, strict=False), 1):
        if gradient is None:
            flat += [None] * count
            continue
        try:
            flat += flatten(argument)[1].flatten_up_to(gradient)
        except (TypeError, ValueError) as error:
            raise RuntimeError(
                f"backward of {name} returned at position {position} another structure than the argument's: {error}"
            ) from error
    return tuple(flat)


def any_by_argument(tree: TreeDef, flags: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return, for each argument, whether one of its leaves has the flag."""
    flags_of, at = [], 0
    for count, _ in _subtrees(tree):
        flags_of.append(any(flags[at : at + count]))
        at += count
    return tuple(flags_of)


# --- looking for what goes wrong


def creation() -> dict[str, Any]:
    """Return what a node records of its creation under `detect_anomaly`: the traceback."""
    return {"traceback_": "".join(traceback.format_stack()[:-1])}


def check_nan(name: str, index: int, gradient: Any) -> None:
    """Raise under `detect_anomaly` if a gradient has a nan."""
    numbers = gradient.numpy() if isinstance(gradient, Tensor) else gradient
    if np.isnan(numbers).any():
        raise RuntimeError(f"{name} returned nan in its gradient {index} (shape {numbers.shape})")


# --- forward mode


def set_tangents(outputs: Any, tangents: Any, name: str, arguments: tuple[Any, ...]) -> None:
    """Put what a jvp returned on the outputs it belongs to."""
    several = isinstance(outputs, tuple)
    results = outputs if several else (outputs,)
    if not isinstance(tangents, tuple):
        tangents = (tangents,)
    if len(tangents) != len(results):
        raise RuntimeError(
            f"jvp of {name} returned {len(tangents)} tangents, but forward returned {len(results)} outputs "
            f"(expected {len(results)}, got {len(tangents)})"
        )
    checked = list(tangents)
    for k, (output, tangent) in enumerate(zip(results, tangents, strict=True)):
        if tangent is None:
            continue
        if not isinstance(output, Tensor) or output.dtype.kind not in "fc":
            raise RuntimeError(f"jvp of {name} returned a tangent for output {k}, which has none: return None")
        if not isinstance(tangent, Tensor):
            tangent = np.asarray(tangent)
        if tangent.shape != output.shape:
            raise RuntimeError(
                f"jvp of {name} returned for output {k} a tangent of shape {tangent.shape}, and the output is of shape "
                f"{output.shape}"
            )
        checked[k] = tangent
    _core.give_tangents(results, checked, arguments)
