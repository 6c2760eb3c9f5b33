"""A node of a graph in words that do not depend on how the core keeps it: function, arguments, wrappers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core import CallOnTree, Node
from ..rebuild import CallForOne, CallOnTrees, call_with_sizes, unflatten_each

__all__ = ["Call", "call_of"]


@dataclass(frozen=True)
class Call:
    """``function(*args, **kwargs)``, with what the caller made of the node's inputs in the place of arrays."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    carriers: dict[str, tuple[Any, int]]  # where symbolic sizes among the arguments find their numbers
    nested: bool  # arrays stand inside containers


def call_of(node: Node, arrays: list[Any]) -> Call:
    """The call that a node makes, with `arrays` in the place of its inputs.

    Parameters
    ----------
    node : Node
    arrays : list
        One object an input.

    Returns
    -------
    Call
    """
    fn: Callable[..., Any] | None = node.function
    args, kwargs = _arguments(node, arrays)
    nested = False
    if isinstance(fn, CallForOne):
        fn = fn.fn
    if isinstance(fn, CallOnTree):
        given = iter(args)
        leaves = [next(given) if leaf is CallOnTree.ARRAY else leaf for leaf in fn.leaves]
        args, inner = fn.tree.unflatten(leaves)
        kwargs = {**inner, **kwargs}
        fn = fn.fn
        nested = any(_holds_arrays(x, arrays) for x in (*args, *kwargs.values()))
    elif isinstance(fn, CallOnTrees):
        args, fn = tuple(unflatten_each(fn.trees, args)), fn.fn
        nested = any(_holds_arrays(x, arrays) for x in args)
    carriers: dict[str, tuple[Any, int]] = {}
    if fn is call_with_sizes:
        fn, args, kwargs, carriers = args
        nested = True
    return Call(fn, tuple(args), dict(kwargs), carriers, nested)


def _holds_arrays(x: Any, arrays: list[Any]) -> bool:
    """Whether an argument is a container with arrays in it."""
    known = set(map(id, arrays))

    def holds(part: Any) -> bool:
        if id(part) in known:
            return True
        if isinstance(part, dict):
            return any(map(holds, part.values()))
        if isinstance(part, list | tuple):
            return any(map(holds, part))
        return any(holds(getattr(part, name)) for name in getattr(type(part), "__dataclass_fields__", ()))

    return id(x) not in known and holds(x)


def _arguments(node: Node, arrays: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if node._form is None:
        return tuple(arrays), {}
    order, statics, names = node._form
    everything = [arrays[code] if code >= 0 else statics[~code] for code in order]
    cut = len(everything) - len(names or ())
    return tuple(everything[:cut]), dict(zip(names or (), everything[cut:], strict=True))
