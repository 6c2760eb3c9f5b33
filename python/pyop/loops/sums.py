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


def gathered(ct: Value) -> Value:
    """The same sum, with those parts that are zero but at an index added there."""
    first, *more = sorted(_terms(ct), key=_is_put)
    for part in more:
        first = added(first, part)
    return first


def _terms(ct: Value) -> list[Value]:
    node = ct.node
    if node.kind == "py" and node.function is np.add and all(value.spec == ct.spec for value in node.inputs):
        return [part for value in node.inputs for part in _terms(value)]
    return [ct]


def _is_put(ct: Value) -> bool:
    node = ct.node
    if node.kind != "py" or ct.dtype is None:
        return False
    call = call_of(node)
    return call.function is put and _is_basic(call.args[2]) and call.args[0].dtype == ct.dtype


def _is_basic(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    parts = [part for x in items for part in ((x.start, x.stop, x.step) if type(x) is slice else (x,))]
    return all(x is None or x is Ellipsis or type(x) in (int, Dim) for x in parts)


def added(whole: Value, part: Value) -> Value:
    """The sum of both, with those terms of `part` that are zero but at an index added there."""
    for term in _terms(part):
        if _is_put(term):
            ct, _, key = call_of(term.node).args
            now = whole[key] + ct
            scalar = bool(now._is_scalar)
            whole = apply(store, (whole, now, key, (), scalar), {}, whole.spec, name="store", scalar=False)
        else:
            whole = whole + term
    return whole
