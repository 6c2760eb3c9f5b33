"""Infer functions of sets: the number of remaining elements depends on the values, so sizes are unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.spec import Spec
from .. import rule
from ..forms import each
from ..operand import BOOL, INTP, Sample, Shape, one, operand, probe
from ..shape import axis_of, prod, replaced

_LINE = Spec(INTP, (None,))


@rule(np.unique)
def _unique(
    ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False, axis: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    part = operand(ar)
    shape: Shape = (None,)
    if axis is not None:
        shape = None if part.shape is None else replaced(part.shape, axis_of(axis, len(part.shape)), None)
    specs = [Spec(part.dtype, shape)]
    if return_index:
        specs.append(_LINE)
    if return_inverse:
        # Without an axis it has the shape of the input; with one, releases differ.
        specs.append(Spec(INTP, part.shape if axis is None else None))
    if return_counts:
        specs.append(_LINE)
    return tuple(specs) if len(specs) > 1 else specs[0]


@each(np.unique_all, np.unique_counts, np.unique_inverse)
def _unique_and_more(func: Any, x: Any, /) -> Any:
    part = operand(x)
    known = {"values": Spec(part.dtype, (None,)), "inverse_indices": Spec(INTP, part.shape)}
    container: Any = type(func(np.ones(1)))
    return container(*[known.get(name, _LINE) for name in container._fields])


@rule(np.unique_values)
def _unique_values(x: Any, /) -> Spec:
    return Spec(operand(x).dtype, (None,))


@rule("intersect1d")
def _intersect(ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    a, b = operand(ar1), operand(ar2)
    both = Spec(probe(np.intersect1d, one(a), one(b)), (None,))
    return (both, _LINE, _LINE) if return_indices else both


@rule("setdiff1d")
def _difference(ar1: Any, ar2: Any, assume_unique: Any = False) -> Spec:
    return Spec(operand(ar1).dtype, (None,))


@each("setxor1d", "union1d")
def _merged(func: Any, ar1: Any, ar2: Any, assume_unique: Any = False) -> Spec:
    a, b = operand(ar1), operand(ar2)
    return Spec(probe(func, Sample(a.dtype, (1,)), Sample(b.dtype, (1,))), (None,))


@rule("isin")
def _isin(element: Any, test_elements: Any, *args: Any, **options: Any) -> Spec:
    return Spec(BOOL, operand(element).shape)


@rule("in1d")
def _in1d(ar1: Any, ar2: Any, *args: Any, **options: Any) -> Spec:
    part = operand(ar1)
    return Spec(BOOL, (None if part.shape is None else prod(part.shape),))
