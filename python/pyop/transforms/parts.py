"""Cotangents of an array that was sliced, in a graph: one sum of what all slices give, made when it is asked for.

Nodes that compute what is put into the slices then stand side by side, and become one group; and the sum is one step
(csrc/plan/steps/put_sum.cpp). It has the bits of the sum of single arrays, one after the other.

In the body of a loop each slice is added to the sum where it lies (`in_place`): an iteration that touches a few
elements makes no array.
"""

from __future__ import annotations

from math import prod
from types import FunctionType
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dim import Dim
from ..gradients.adjoints import MOST_PARTS, is_basic, put
from ..gradients.extents import extents_of, same_shape
from ..gradients.scalar import Scalar
from ..gradients.signed import Signed, plain, total
from ..gradients.store import store
from ..gradients.unbroadcast import broadcast_like
from ..graph.node_call import NodeCall
from ..graph.sizes import apply

__all__ = ["Parts", "in_sum", "part_of_sum"]

_Part = tuple[Value, Any]  # a cotangent, and the key where it belongs
_FEW = 8  # elements of an array that is put together of single numbers
_SMALL = 64  # elements of an array whose sums of parts are best computed in one step


class Parts:
    """A sum of cotangents of one Value: parts of it, by their keys, and whole ones; `in_place` also functions that make
    these, called as late as can be, so that what they read is read no more.
    """

    __slots__ = ("in_place", "like", "terms")

    def __init__(self, like: Value, terms: list[Any], in_place: bool = False) -> None:
        self.like = like
        self.terms = terms
        self.in_place = in_place

    def plus(self, term: Any, before: bool = False) -> Parts:
        """Return the sum with one more, which may be a `Parts` itself, at its end or at its beginning."""
        terms = term.terms if type(term) is Parts else [term]
        return Parts(self.like, terms + self.terms if before else self.terms + terms, self.in_place)

    def made(self) -> Any:
        """Return it as nodes of the graph."""
        if self.in_place:
            return self._stored(*self._added_up())
        whole: Any = None
        waiting: list[_Part] = []
        for term in self.terms:
            if type(term) is not tuple:
                whole = term if whole is None and not waiting else total(self._with(whole, waiting), term)
                waiting = []
            elif whole is None and len(waiting) == 1 and _same_key(waiting[0][1], term[1]):
                waiting = [(waiting[0][0] + term[0], term[1])]
            else:
                waiting.append(term)
                if len(waiting) == MOST_PARTS - 1:
                    whole, waiting = self._with(whole, waiting), []
        return self._with(whole, waiting)

    def _added_up(self) -> tuple[Any, list[tuple[Any, Any]]]:
        """Return the sum of what is whole, and the parts."""
        whole: Any = None
        parts = []
        for term in self.terms:
            if type(term) is tuple:
                parts.append(term)
            else:
                term = term() if isinstance(term, FunctionType) else term  # of an array that was written
                whole = term if whole is None else total(whole, term)
        if whole is None:
            shape = self.like.shape
            if shape is not None and len(shape) == 1 and type(shape[0]) is int and shape[0] <= _FEW:
                single = self._by_element(parts, shape[0])
                if single is not None:
                    return single, []
            sizes = [size for size in shape or () if type(size) is int]
            known = shape is not None and len(sizes) == len(shape) and prod(sizes) <= _SMALL
            if known and all(map(_is_known, _items(key)) for _, key in parts):
                return self._summed([(plain(ct), key) for ct, key in parts]), []
            (first, key), *parts = parts
            return put(plain(first), self.like, key), parts
        whole = plain(whole)
        if not parts or type(whole) not in (Value, Scalar):
            return whole, parts
        if type(whole) is Scalar:
            whole = self.like.graph.constant(whole.array())
        return whole if _fills(whole, self.like) else broadcast_like(whole, self.like), parts

    def _by_element(self, parts: list[tuple[Any, Any]], n: int) -> Any:
        """Return the parts of an array of `n` elements, put together of sums of single numbers, if they are that."""
        sums: list[Any] = [None] * n
        for ct, key in parts:
            items = _items(key)
            if len(items) != 1 or type(items[0]) is not int or not -n <= items[0] < n:
                return None
            k = items[0] % n
            sums[k] = ct if sums[k] is None else total(sums[k], ct)
        zero = self.like.graph.constant(np.zeros((), self.like.dtype))
        return np.stack([zero if x is None else plain(x) for x in sums])

    def _summed(self, parts: list[_Part]) -> Any:
        whole = None
        for start in range(0, len(parts), MOST_PARTS - 1):
            whole = self._with(whole, parts[start : start + MOST_PARTS - 1])
        return whole

    def _stored(self, whole: Any, parts: list[tuple[Any, Any]]) -> Any:
        """Return the sum of the whole and parts, each added where it belongs."""
        for ct, key in parts:
            if type(whole) is not Value or whole.dtype != self.like.dtype:
                whole = total(whole, put(plain(ct), self.like, key))
                continue
            now = total(whole[key], ct)
            scalar = bool(now._is_scalar)
            whole = apply(store, (whole, now, key, (), scalar), {}, whole.spec, name="store", scalar=False)
        return whole

    def _with(self, whole: Any, parts: list[_Part]) -> Any:
        if not parts:
            return whole
        whole = plain(whole) if type(whole) is Signed and not whole.negated else whole
        if type(whole) is Value and whole.dtype == parts[0][0].dtype and _fills(whole, self.like):
            parts = [(whole, Ellipsis), *parts]
            whole = None
        (first, key), *rest = parts
        if whole is None:
            return put(first, self.like, key, *[x for part in rest for x in part])
        for ct, key in parts:
            whole = total(whole, put(ct, self.like, key))
        return whole


def part_of_sum(call: NodeCall, ct: Any, in_place: bool) -> Parts | None:
    """Return the cotangent of what was indexed, if it was by slices and integers.

    They are known, but `in_place`, where they may also be sizes, such as the number of an iteration.
    """
    if len(call.args) != 2 or call.kwargs or (call.carriers is not None and not in_place):
        return None
    x, key = call.args
    value = ct.value if type(ct) is Signed else ct
    if type(value) is not Value or type(x) is not Value or x.dtype is None or value.dtype != x.dtype or not x.shape:
        return None
    if x.dtype.kind not in ("fc" if in_place else "f"):
        return None
    items = _items(key)
    if not (all(map(_may_be_size, items)) if in_place else is_basic(key) and all(map(_is_known, items))):
        return None
    return Parts(x, [(ct, key)], True) if in_place else Parts(x, [(plain(ct), key)])


def _items(key: Any) -> tuple[Any, ...]:
    return key if type(key) is tuple else (key,)


def _is_known(item: Any) -> bool:
    if type(item) is slice:
        return all(bound is None or type(bound) is int for bound in (item.start, item.stop, item.step))
    return item is Ellipsis or type(item) is int


def _may_be_size(item: Any) -> bool:
    bounds = (item.start, item.stop, item.step) if type(item) is slice else (item,)
    return all(x is None or x is Ellipsis or type(x) in (int, Dim) for x in bounds)


def _same_key(a: Any, b: Any) -> bool:
    a, b = _items(a), _items(b)
    return len(a) == len(b) and all(map(_same_item, a, b))


def _same_item(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _fills(whole: Value, like: Value) -> bool:
    """Return whether a cotangent is not smaller than its array."""
    return same_shape(extents_of(whole), extents_of(like))


def in_sum(a: Any, b: Any) -> Any:
    """Return the sum of two cotangents, of which one is `Parts`."""
    return a.plus(b) if type(a) is Parts else b.plus(a, before=True)
