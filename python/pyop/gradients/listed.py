"""Differentiate by lists in place of arrays: ``np.hypot([a, b], y)``, ``[1.0, 2.0] * x``.

NumPy makes arrays of lists before it computes. A rule computes with arrays, so the derivative of such a call is that
of the call with the lists stacked. The cotangent of a stacked argument is split again for the leaves of the list.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Tensor, Value
from .._tree import flatten
from .scalar import Scalar
from .table import Pullback, Rule
from .unbroadcast import broadcast_like, fit_dtype, shape_of

__all__ = ["pull", "push", "stacked"]

_Leaf = tuple[int, tuple[int, ...]]  # which leaf of the settled call, and where in it


def pull(rule: Rule, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
    """Return cotangents as ``rule.vjp``, for arrays in any containers."""
    settled = _settle(rule, args, kwargs)
    if settled is None:
        return rule.vjp(argnums, ans, args, kwargs)
    args, kwargs, where, arrays = settled
    inner = tuple(dict.fromkeys([where[k][0] for k in argnums]))
    back = rule.vjp(inner, ans, args, kwargs)

    def pullback(ct: Any) -> tuple[Any, ...]:
        gradients = dict(zip(inner, back(ct), strict=True))
        return tuple([_part(gradients[where[k][0]], arrays.get(where[k][0]), where[k][1]) for k in argnums])

    return pullback


def push(rule: Rule, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return tangents as ``rule.jvp``, for arrays in any containers."""
    settled = _settle(rule, args, kwargs)
    if settled is None:
        return rule.jvp(argnums, tangents, ans, args, kwargs)
    args, kwargs, where, arrays = settled
    along: dict[int, Any] = {}
    inside: dict[int, dict[tuple[int, ...], Any]] = {}
    for k, t in zip(argnums, tangents, strict=True):
        leaf, path = where[k]
        if path:
            inside.setdefault(leaf, {})[path] = t
        else:
            along[leaf] = t
    for leaf, parts in inside.items():
        along[leaf] = fit_dtype(_tangent(arrays[leaf][1], parts, ()), arrays[leaf][0])
    inner = tuple(sorted(along))
    return rule.jvp(inner, tuple([along[k] for k in inner]), ans, args, kwargs)


def stacked(x: Any) -> Any:
    """Return the array that NumPy makes of a list; of one that holds Tensors or Values, by ``np.stack``."""
    if not isinstance(x, (tuple, list)):
        return x
    return np.stack([stacked(item) for item in x]) if _holds_symbols(x) else np.asarray(x)


def _holds_symbols(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_holds_symbols, x))
    return isinstance(x, (Tensor, Value))


def _settle(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the call with stacked arrays in place of lists, or None where there are no lists.

    It has the arguments, the new place of each leaf, and the stacked arrays with their leaves.
    """
    if not any(isinstance(x, (tuple, list)) for x in args) and not any(
        isinstance(x, (tuple, list)) for x in kwargs.values()
    ):
        return None
    where: list[_Leaf] = []
    arrays: dict[int, tuple[Any, Any]] = {}
    count = 0
    changed = False

    def keep(x: Any) -> Any:
        nonlocal count
        for _ in range(_count(x)):
            where.append((count, ()))
            count += 1
        return x

    def one(x: Any) -> Any:
        nonlocal count, changed
        if not isinstance(x, (tuple, list)) or not x:
            return keep(x)
        changed = True
        array = stacked(x)
        arrays[count] = (array, x)
        where.extend([(count, path) for path in _paths(x, ())])
        count += 1
        return array

    def settle(name: int | str, x: Any) -> Any:
        takes = rule.takes(name, args, kwargs)
        if takes == "array":
            return one(x)
        if takes == "arrays" and isinstance(x, (tuple, list)):
            return [one(item) for item in x]
        return keep(x)

    new_args = tuple([settle(k, x) for k, x in enumerate(args)])
    new_kwargs = {name: settle(name, x) for name, x in kwargs.items()}
    return (new_args, new_kwargs, where, arrays) if changed else None


def _count(x: Any) -> int:
    return len(flatten(x)[0]) if isinstance(x, (tuple, list, dict)) else 1


def _paths(x: Any, path: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not isinstance(x, (tuple, list)):
        return [path]
    return [place for k, item in enumerate(x) for place in _paths(item, (*path, k))]


def _part(ct: Any, array: Any, path: tuple[int, ...]) -> Any:
    """Return the cotangent of one leaf, of that of the stacked array."""
    if ct is None or not path:
        return ct
    if isinstance(ct, Scalar):
        ct = ct.array()
    leaf: Any = array[1]
    for k in path:
        leaf = leaf[k]
    whole = ct if shape_of(ct) == shape_of(array[0]) else broadcast_like(ct, array[0])
    return fit_dtype(whole[path], leaf)


def _tangent(x: Any, parts: dict[tuple[int, ...], Any], path: tuple[int, ...]) -> Any:
    if isinstance(x, (tuple, list)):
        return np.stack([_tangent(item, parts, (*path, k)) for k, item in enumerate(x)])
    return parts[path] if path in parts else np.zeros_like(x)
