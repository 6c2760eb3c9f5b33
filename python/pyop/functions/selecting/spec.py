"""Infer functions that choose elements by conditions: where, select, choose, compress."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..forms import shaped
from ..indexing.spec import nonzero
from ..operand import Sizes, one, operand, probe
from ..shape import axis_of, broadcast, replaced


@rule(np.where)
def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    test = operand(condition)
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    a, b = operand(x), operand(y)
    dtype = probe(np.where, True, one(a), one(b))
    return Spec(dtype, broadcast(test, a, b))


@rule(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Spec:
    index = operand(a)
    if isinstance(choices, (list, tuple)):
        parts = [operand(item) for item in choices]
        dtype = probe(np.choose, 0, tuple(one(part) for part in parts))
        return Spec(dtype, broadcast(index, *parts))
    part = operand(choices)
    if part.shape is None:
        return Spec(part.dtype, None)
    if not part.shape:
        raise ValueError("Need at least one array to choose from")
    return Spec(part.dtype, broadcast(index.shape, part.shape[1:]))


@rule(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Spec:
    if isinstance(condlist, Spec) or isinstance(choicelist, Spec):
        return Spec()
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    tests, parts = [operand(item) for item in condlist], [operand(item) for item in choicelist]
    for i, test in enumerate(tests):
        if test.kind and test.kind != "b":
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    dtype = probe(np.select, (True,) * len(parts), tuple(one(part) for part in parts), one(default))
    return Spec(dtype, broadcast(*tests, *parts, operand(default).shape))


@rule(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Spec:
    return operand(x).spec


@rule("compress")
def _compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Spec:
    part, test = operand(a), operand(condition)
    if test.ndim is not None and test.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    count = _true(condition)
    if axis is None:
        return Spec(part.dtype, (count,))
    if part.shape is None:
        return part.spec
    shape = part.shape or (1,)
    return Spec(part.dtype, replaced(shape, axis_of(axis, len(shape)), count))


@rule(np.extract)
def _extract(condition: Any, arr: Any) -> Spec:
    return Spec(operand(arr).dtype, (_true(condition),))


def _true(condition: Any) -> Extent:
    return None if isinstance(condition, Spec) else int(np.count_nonzero(condition))


@shaped(np.trim_zeros)
def _trim_zeros(filt: Sizes, trim: Any = "fb", axis: Any = None) -> Sizes:
    return (None,) * len(filt)
