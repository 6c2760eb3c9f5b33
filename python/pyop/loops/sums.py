"""Sums of cotangents of which most are zero but at an index: each is added where it belongs, and nothing elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Value
from ..declare.dim import Dim
from ..gradients.adjoints import put
from ..gradients.store import store
from ..graph.node_call import call_of
from ..graph.sizes import apply

__all__ = ["added", "gathered"]


_Part = tuple[Value, Value, Any]  # a cotangent of an array, where it is zero but at an index


def gathered(ct: Value) -> Value:
    """The same sum, with those parts that are zero but at an index added there."""
    first, *more = sorted(_terms(ct), key=lambda term: type(term) is tuple)
    if not more:
        return ct
    whole: Value = put(*first) if isinstance(first, tuple) else first
    for term in more:
        whole = _plus(whole, term)
    return whole


def _terms(ct: Value) -> list[Value | _Part]:
    node = ct.node
    if node.kind == "py" and node.function is np.add and all(value.spec == ct.spec for value in node.inputs):
        return [part for value in node.inputs for part in _terms(value)]
    return _parts(ct) or [ct]


def _parts(ct: Value) -> list[Value | _Part]:
    """What a Value is the sum of, if `put` is called for it."""
    node = ct.node
    if node.kind != "py" or ct.dtype is None:
        return []
    call = call_of(node)
    if call.function is not put:
        return []
    first, like, key, *more = call.args
    parts = [(first, key), *zip(more[::2], more[1::2], strict=True)]
    if not all(_is_basic(key) and part.dtype == ct.dtype for part, key in parts):
        return []
    return [part if key is Ellipsis and part.spec == ct.spec else (part, like, key) for part, key in parts]


def _is_basic(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    parts = [part for x in items for part in ((x.start, x.stop, x.step) if type(x) is slice else (x,))]
    return all(x is None or x is Ellipsis or type(x) in (int, Dim) for x in parts)


def added(whole: Value, part: Value) -> Value:
    """The sum of both, with those terms of `part` that are zero but at an index added there."""
    for term in _terms(part):
        whole = _plus(whole, term)
    return whole


def _plus(whole: Value, term: Value | _Part) -> Value:
    if not isinstance(term, tuple):
        return whole + term
    ct, _, key = term
    now = whole[key] + ct
    scalar = bool(now._is_scalar)
    return apply(store, (whole, now, key, (), scalar), {}, whole.spec, name="store", scalar=False)  # type: ignore[no-any-return]
