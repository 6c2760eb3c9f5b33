"""Define `store`, an array after ``x[key] = value``, or after such a write through views of it.

A write to a Value becomes a node that calls it (`pyop.graph.writes`): memory that was written is another value. It is
linear in the array and in what is written, and `written` extracts again what `store` has put in.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import functions
from .._core import Value, fill_up_call, take_over
from ..declare.dim import Dim
from ..declare.spec import Spec
from ..functions.indexing.spec import getitem
from . import table
from .rule import PerArgument, structural
from .table import NoRule, Pullback
from .unbroadcast import primitive, unbroadcast

__all__ = ["Views", "einsum_of", "memory_of", "picks_once", "seen", "store", "written"]

# The functions of which each makes a view of what the one before gives: the function, its arguments behind the array,
# its options, and which of its results is meant (-1: the one).
Views = tuple[tuple[Any, tuple[Any, ...], tuple[tuple[str, Any], ...], int], ...]


def memory_of(x: Any) -> Any:
    """Return `x` itself, to be written into, where a plan gives it away, else a copy that lies as it does."""
    return x if take_over(x) else np.array(x, order="K")


def seen(x: Any, views: Views) -> Any:
    """Return the part of `x` that these views show."""
    for function, arguments, options, which in views:
        if function is operator.getitem:
            arguments = (_as_integers(arguments[0]),)
        x = function(x, *arguments, **dict(options))
        x = x if which < 0 else x[which]
    return x


def _as_integers(key: Any) -> Any:
    """Return the index of a view with integers for arrays of no dimension, by which NumPy would copy."""
    if isinstance(key, tuple):
        return tuple(map(_as_integers, key))
    return key[()] if isinstance(key, np.ndarray) and key.ndim == 0 else key


def einsum_of(x: Any, subscripts: str) -> Any:
    """Return ``np.einsum(subscripts, x)``, as one of `Views`."""
    return np.einsum(subscripts, x)


@primitive(lambda x, value, key, views=(), scalar=False: x)
def store(x: Any, value: Any, key: Any, views: Views = (), scalar: bool = False) -> Any:
    """Return a copy of `x`, laid out as that is, in which ``[key]`` of a view of it is `value`.

    `scalar`: NumPy has a scalar there, which it converts by other rules than an array of no dimension.
    """
    x = memory_of(x)
    seen(x, views)[key] = value[()] if scalar and isinstance(value, np.ndarray) else value
    return x


fill_up_call("store", store)
functions.rule(einsum_of)(lambda x, subscripts: functions.infer(np.einsum, subscripts, x))


def _spec_of_written(x: Any, key: Any, views: Views) -> Spec:
    for function, arguments, options, which in (*views, (operator.getitem, (key,), (), -1)):
        rule = getitem if function is operator.getitem else functions.lookup(function)
        found: Any = Spec(x.dtype) if rule is None else rule(x, *arguments, **dict(options))
        x = found if which < 0 else found[which]
    return x if isinstance(x, Spec) else Spec()


@primitive(_spec_of_written)
def written(x: Any, key: Any, views: Views = ()) -> Any:
    """Return ``[key]`` of a view of `x`, with zeros for elements that `store` writes over again with a later one."""
    found = np.array(seen(x, views)[key])
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(item, np.ndarray) and item.dtype != bool for item in keys):
        places = np.full(np.shape(x), -1)
        numbers = np.arange(found.size).reshape(found.shape)
        there = seen(places, views)
        there[key] = numbers
        found = np.where(there[key] == numbers, found, np.zeros((), found.dtype))
    return found


def _check_elements(views: Views) -> None:
    """Raise NoRule where a view reads the bytes as other numbers."""
    for function, arguments, _, _ in views:
        if function is np.ndarray.view:
            raise NoRule(
                f"a write through x.view({arguments[0]}) has no gradient rule, as asked for at {Value._here()}: write "
                "into x itself, or into x.real and x.imag"
            )


def _by_array(t: Any, ans: Any, x: Any, value: Any, key: Any, views: Views = (), scalar: bool = False) -> Any:
    _check_elements(views)
    return store(t, 0.0, key, views, False)


def _forth(t: Any, ans: Any, x: Any, value: Any, key: Any, views: Views = (), scalar: bool = False) -> Any:
    _check_elements(views)
    return store(np.zeros_like(ans), t, key, views, scalar)


def _by_value(ct: Any, ans: Any, x: Any, value: Any, key: Any, views: Views = (), scalar: bool = False) -> Any:
    _check_elements(views)
    part = seen(ct, views)[key] if type(ct) is Value and picks_once(key) else written(ct, key, views)
    return unbroadcast(part, value)


def picks_once(key: Any) -> bool:
    """Whether an index is of integers and slices, which pick no element twice."""
    items = key if isinstance(key, tuple) else (key,)
    parts = [part for x in items for part in ((x.start, x.stop, x.step) if type(x) is slice else (x,))]
    return all(x is None or x is Ellipsis or type(x) in (int, Dim) for x in parts)


class _Store(PerArgument):
    """A write. Its adjoint reads the cotangent where it then becomes zero, in that order, so that a graph may write the
    zeros in place.
    """

    writes = True

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        pull = super().vjp(argnums, ans, args, kwargs)
        if type(ans) is not Value or argnums != (0, 1):
            return pull

        def pullback(ct: Any) -> tuple[Any, ...]:
            part, rest = self.pull_apart(ans, args, ct)
            return rest(), part

        return pullback

    def pull_apart(self, ans: Any, args: tuple[Any, ...], ct: Any) -> tuple[Any, Callable[[], Any]]:
        """Return the cotangent of what is written, and what makes that of the array when it is called."""
        by_value, by_array = (PerArgument.vjp(self, (k,), ans, args, {}) for k in (1, 0))
        (part,) = by_value(ct) if type(args[1]) is Value else (None,)
        if type(part) is Value and part.shape != () and part.node.function is operator.getitem:
            part = np.positive(part)  # a copy
        return part, lambda: by_array(ct)[0]


table.add(
    _Store(
        store,
        (_by_array, _by_value, *(None,) * 3),
        (_by_array, _forth, *(None,) * 3),
        ("x", "value", "key", "views", "scalar"),
    )
)
structural(
    written,
    (lambda ct, ans, x, key, views=(): store(np.zeros_like(x), ct, key, views, False), None, None),
    ("same", None, None),
    ("x", "key", "views"),
)
