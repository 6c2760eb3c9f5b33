"""Differentiate a Python function at its arguments, of any kind, and make rules of such derivatives.

The arguments are Values, whose graph receives the derivative, or arrays, on which the function runs at once. So this
module uses both engines, and a function whose rule is another function (`composite`) needs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from .._tree import flatten
from ..gradients import table
from ..gradients.table import NoRule, Pullback, Rule, name_of
from ..gradients.unbroadcast import shape_of
from . import eager
from .forward import forward
from .marker import open_value
from .reverse import backward

__all__ = ["Composite", "composite", "outer_of", "pullback_of", "push_forward"]


def pullback_of(
    f: Callable[..., Any], argnums: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[Any], tuple[Any, ...]]:
    """Return the pullback of the function itself, as `table.Rule.vjp`."""
    leaves = table.leaves(args, kwargs)
    if not any(isinstance(leaf, Value) for leaf in leaves):
        return eager.pullback_of(f, argnums, args, kwargs)

    def pullback(ct: Any) -> tuple[Any, ...]:
        opened = _open(leaves, argnums)
        outputs, _ = flatten(table.of_leaves(f, argnums, args, kwargs)(*opened))
        cts = ct if isinstance(ct, (tuple, list)) else (ct,)
        pairs = [(y, c) for y, c in zip(outputs, cts, strict=True) if isinstance(y, Value)]
        return tuple(backward([y for y, _ in pairs], [c for _, c in pairs], opened))

    return pullback


def push_forward(f: Callable[..., Any], argnums: Any, tangents: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """Return the tangents of the function itself, as `table.Rule.jvp`."""
    leaves = table.leaves(args, kwargs)
    if not any(isinstance(leaf, Value) for leaf in (*leaves, *tangents)):
        return eager.push_forward(f, argnums, tangents, args, kwargs)
    opened = _open(leaves, argnums, tangents)
    outputs, structure = flatten(table.of_leaves(f, argnums, args, kwargs)(*opened))
    known = [k for k, y in enumerate(outputs) if isinstance(y, Value)]
    full: list[Any] = [None] * len(outputs)
    for k, t in zip(known, forward([outputs[k] for k in known], opened, tangents), strict=True):
        full[k] = t
    return full[0] if structure.is_leaf else tuple(full)


def _open(leaves: list[Any], argnums: tuple[int, ...], others: tuple[Any, ...] = ()) -> list[Value]:
    graph = next(leaf for leaf in (*leaves, *others) if isinstance(leaf, Value)).graph
    return [open_value(graph, leaves[k], k) for k in argnums]


# --- rules


class Composite(Rule):
    """Differentiate a function by another one that computes the same and calls only functions with rules."""

    def __init__(self, func: Any, made_of: Callable[..., Any]) -> None:
        super().__init__(func)
        self.made_of = made_of
        self._parameters: tuple[str, ...] | None = None

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        if isinstance(parameter, int):
            if isinstance(self.func, np.ufunc):
                return "array"
            if self._parameters is None:
                self._parameters = _positional(self.made_of)
            if not self._parameters:
                return ""
            parameter = self._parameters[min(parameter, len(self._parameters) - 1)]
        return "array" if parameter in _ARRAYS else "arrays" if parameter in _SEQUENCES else ""

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        self._check_call(args, kwargs)
        return pullback_of(self.made_of, argnums, args, kwargs)

    def _check_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not kwargs:
            return
        try:
            inspect.signature(self.made_of).bind(*args, **kwargs)
        except TypeError as error:
            name = name_of(self.func)
            raise NoRule(
                f"{name}({', '.join(f'{key}=...' for key in kwargs)}) has no gradient rule for these arguments "
                f"({error}): leave out what its rule does not know, or give it one of your own with "
                f"pyop.defvjp({name}, ...)"
            ) from error

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check_call(args, kwargs)
        return push_forward(self.made_of, argnums, tangents, args, kwargs)


# What functions that are made of others call what they compute with.
_ARRAYS = frozenset(("a", "b", "f", "m", "p", "q", "v", "x", "y", "x1", "x2", "xp", "fp", "ary", "arr", "values"))
_ARRAYS |= {"default", "fill_value", "left", "right", "start", "stop", "to_begin", "to_end", "append", "prepend"}
_ARRAYS |= {"weights", "varargs"}
_SEQUENCES = frozenset(("arrays", "choicelist", "choices"))


def _positional(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple([p.name for p in parameters if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD])


def composite(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a function, made of functions with rules, as the rule of `functions`."""

    def register(made_of: Callable[..., Any]) -> Callable[..., Any]:
        for func in functions:
            table.add(Composite(func, made_of))
        return made_of

    return register


def outer_of(ufunc: Any) -> Rule:
    """Return the rule of a ufunc's method ``outer``: the ufunc itself on arrays with more axes."""

    def outer(a: Any, b: Any, **kwargs: Any) -> Any:
        b = np.asarray(b) if isinstance(b, (list, tuple)) else b
        more = len(shape_of(b) or ())
        return ufunc(np.expand_dims(a, tuple(range(-more, 0))) if more else a, b, **kwargs)

    return Composite((ufunc, "outer"), outer)


table.set_outer_rule(outer_of)
