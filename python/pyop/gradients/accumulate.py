"""The derivative of a Python function at its arguments, whatever these are: Values, whose graph it is written into, or
arrays, on which it runs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import Value
from .._tree import flatten
from . import table
from .forward import forward
from .marker import open_value
from .reverse import backward

__all__ = ["pullback_of", "push_forward"]


def pullback_of(
    f: Callable[..., Any], argnums: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[Any], tuple[Any, ...]]:
    """As `table.Rule.vjp`, of the function itself."""
    leaves = table.leaves(args, kwargs)
    if any(isinstance(leaf, Value) for leaf in leaves):

        def symbolic(ct: Any) -> tuple[Any, ...]:
            opened = _open(leaves, argnums)
            outputs, _ = flatten(_call(f, args, kwargs, dict(zip(argnums, opened, strict=True))))
            cts = ct if isinstance(ct, (tuple, list)) else (ct,)
            pairs = [(y, c) for y, c in zip(outputs, cts, strict=True) if isinstance(y, Value)]
            return tuple(backward([y for y, _ in pairs], [c for _, c in pairs], opened))

        return symbolic

    from . import eager

    return eager.pullback_of(f, argnums, args, kwargs)


def push_forward(
    f: Callable[..., Any],
    argnums: tuple[int, ...],
    tangents: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """As `table.Rule.jvp`, of the function itself."""
    leaves = table.leaves(args, kwargs)
    if any(isinstance(leaf, Value) for leaf in (*leaves, *tangents)):
        opened = _open(leaves, argnums, tangents)
        result = _call(f, args, kwargs, dict(zip(argnums, opened, strict=True)))
        outputs, structure = flatten(result)
        known = [k for k, y in enumerate(outputs) if isinstance(y, Value)]
        found = forward([outputs[k] for k in known], opened, tangents)
        full: list[Any] = [None] * len(outputs)
        for k, t in zip(known, found, strict=True):
            full[k] = t
        return full[0] if structure.is_leaf else tuple(full)

    from . import eager

    return eager.push_forward(f, argnums, tangents, args, kwargs)


def _open(leaves: list[Any], argnums: tuple[int, ...], others: tuple[Any, ...] = ()) -> list[Value]:
    graph = next(leaf for leaf in (*leaves, *others) if isinstance(leaf, Value)).graph
    return [open_value(graph, leaves[k], k) for k in argnums]


def _call(f: Callable[..., Any], args: Any, kwargs: Any, new: dict[int, Any]) -> Any:
    new_args, new_kwargs = table.replaced(args, kwargs, new)
    return f(*new_args, **new_kwargs)
