"""Sum cotangents of an array that was sliced, in a graph: one sum for all slices, made when it is needed.

The nodes for the slices then stand side by side and become one group, and the sum is one step
(csrc/plan/steps/put_sum.cpp). It has the bits of the sum of single arrays, one after the other.
"""

from __future__ import annotations

from typing import Any

from .._core import Value
from ..gradients.adjoints import MOST_PARTS, is_basic, put
from ..gradients.extents import extents_of, same_shape
from ..gradients.signed import Signed, plain, total
from ..graph.node_call import NodeCall

__all__ = ["Parts", "in_sum", "part_of_sum"]

_Part = tuple[Value, Any]  # a cotangent, and the key where it belongs


class Parts:
    """Sum cotangents of one Value: slices of it, by their keys, and whole ones."""

    __slots__ = ("like", "terms")

    def __init__(self, like: Value, terms: list[Any]) -> None:
        self.like = like
        self.terms = terms

    def plus(self, term: Any, before: bool = False) -> Parts:
        """Return the sum with one more, which may be a `Parts` itself, at its end or at its beginning."""
        terms = term.terms if type(term) is Parts else [term]
        return Parts(self.like, terms + self.terms if before else self.terms + terms)

    def made(self) -> Any:
        """Return it as nodes of the graph."""
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


def part_of_sum(call: NodeCall, ct: Any) -> Parts | None:
    """Return the cotangent of what was indexed, if it was by slices and integers that are known."""
    if len(call.args) != 2 or call.kwargs or call.carriers is not None:
        return None
    x, key = call.args
    if type(ct) is not Value or type(x) is not Value or x.dtype is None or x.dtype.kind != "f" or ct.dtype != x.dtype:
        return None
    if not x.shape or not is_basic(key) or not all(map(_is_known, key if type(key) is tuple else (key,))):
        return None
    return Parts(x, [(ct, key)])


def _is_known(item: Any) -> bool:
    if type(item) is slice:
        return all(bound is None or type(bound) is int for bound in (item.start, item.stop, item.step))
    return item is Ellipsis or type(item) is int


def _same_key(a: Any, b: Any) -> bool:
    a, b = (key if type(key) is tuple else (key,) for key in (a, b))
    return len(a) == len(b) and all(map(_same_item, a, b))


def _same_item(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _fills(whole: Value, like: Value) -> bool:
    """Return whether a cotangent is not smaller than its array."""
    return same_shape(extents_of(whole), extents_of(like))


def in_sum(a: Any, b: Any) -> Any:
    """Return the sum of two cotangents, of which one is `Parts`."""
    return a.plus(b) if type(a) is Parts else b.plus(a, before=True)
