"""Export writes: memory after ``x[key] = value``, and what loops leave for their derivatives."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...gradients.room import room
from ...gradients.store import Views, store, written
from ...onnx.standard import Emitter, NotStandard, Operand, emit, standard
from ...onnx.standard.ufuncs import truth
from ..adjoints.onnx import numbers
from ..creation.onnx import filling
from ..indexing.onnx import getitem, is_array


def _seen(e: Emitter, x: Operand, views: Views) -> Operand:
    """Return the part that these views show."""
    for function, arguments, options, which in views:
        if function is operator.getitem:
            x = getitem(e, x, arguments[0])
            continue
        results = emit(e, function, (x, *arguments), dict(options))
        if which < 0 and len(results) != 1:
            raise NotStandard(f"a view by {function!r:.80}")
        x = results[max(which, 0)]
    return x


def _picks_once(e: Emitter, key: Any) -> bool:
    """Return whether an index picks no element twice; ONNX leaves open which value is then the last."""
    arrays = [e.operand(item) for item in (key if isinstance(key, tuple) else (key,)) if is_array(item)]
    return all(array.dtype == np.bool_ or array.shape == () for array in arrays)


def _cast(e: Emitter, value: Any, dtype: Any) -> Operand:
    x = e.operand(value)
    if x.dtype is not None and x.dtype.kind == "f" and dtype.kind in "iu":
        raise NotStandard(f"a write of {x.dtype} into {dtype}, which NumPy and ONNX round by rules of their own")
    return truth(e, x) if dtype.kind == "b" else e.cast(x, dtype)


@standard(store)
def _store(e: Emitter, x: Any, value: Any, key: Any, views: Any = (), scalar: Any = False) -> Operand:
    whole = e.of_kind(x, "biuf", "a write into an array")
    item = _cast(e, value, whole.dtype)
    if key is Ellipsis and not views:
        return e.add("Expand", item, e.shape(whole))
    if not _picks_once(e, key):
        raise NotStandard("a write by an array of places, which may name one twice")
    places = getitem(e, _seen(e, numbers(e, whole, 0), views), key)
    flat = e.ints([-1])
    given = e.add("Reshape", e.add("Expand", item, e.shape(places)), flat)
    made = e.add("ScatterElements", e.add("Reshape", whole, flat), e.add("Reshape", places, flat), given, axis=0)
    return e.add("Reshape", made, e.shape(whole), allowzero=1)


@standard(written)
def _written(e: Emitter, x: Any, key: Any, views: Any = ()) -> Operand:
    if not _picks_once(e, key):
        raise NotStandard("what was written by an array of places, which may name one twice")
    return getitem(e, _seen(e, e.operand(x), views), key)


@standard(room)
def _room(e: Emitter, count: Any, dtype: Any, shape: Any, known: Any) -> Operand:
    kind = np.dtype(dtype)
    if kind.kind not in "biuf":
        raise NotStandard(f"an array of {kind}")
    first = e.add("Reshape", e.operand(count), e.ints([1]))
    sizes = e.add("Concat", first, e.ints(shape), axis=0) if shape else first
    return e.add("ConstantOfShape", sizes, dtype=kind, value=filling(kind, 0))
