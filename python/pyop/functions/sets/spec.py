"""Sets: how many elements are left depends on the values, so sizes are unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..operand import BOOL, INTP, Operand, Sample, Shape, one, operand, probe
from ..shape import axis_of, prod, replaced


def _inverse_shape(part: Operand, axis: Any) -> Shape:
    if axis is None:
        # NumPy 2.0 gave it the shape of the input, 2.1 too, and 2.0 with an axis something else again.
        return part.shape
    return None


@rule(np.unique)
def _unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: Any = True,
    sorted: Any = True,
) -> Any:
    part = operand(ar)
    shape: Shape = (None,)
    if axis is not None:
        shape = None if part.shape is None else replaced(part.shape, axis_of(axis, len(part.shape)), None)
    specs = [Spec(part.dtype, shape)]
    if return_index:
        specs.append(Spec(INTP, (None,)))
    if return_inverse:
        specs.append(Spec(INTP, _inverse_shape(part, axis)))
    if return_counts:
        specs.append(Spec(INTP, (None,)))
    return tuple(specs) if len(specs) > 1 else specs[0]


def _named(func: Any, *specs: Spec) -> Any:
    return type(func(np.ones(1)))(*specs)


@rule(np.unique_all)
def _unique_all(x: Any, /) -> Any:
    part = operand(x)
    line = Spec(INTP, (None,))
    return _named(np.unique_all, Spec(part.dtype, (None,)), line, Spec(INTP, part.shape), line)


@rule(np.unique_counts)
def _unique_counts(x: Any, /) -> Any:
    return _named(np.unique_counts, Spec(operand(x).dtype, (None,)), Spec(INTP, (None,)))


@rule(np.unique_inverse)
def _unique_inverse(x: Any, /) -> Any:
    part = operand(x)
    return _named(np.unique_inverse, Spec(part.dtype, (None,)), Spec(INTP, part.shape))


@rule(np.unique_values)
def _unique_values(x: Any, /) -> Spec:
    return Spec(operand(x).dtype, (None,))


@rule("intersect1d")
def _intersect(ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    a, b = operand(ar1), operand(ar2)
    both = Spec(probe(np.intersect1d, one(a), one(b)), (None,))
    return (both, Spec(INTP, (None,)), Spec(INTP, (None,))) if return_indices else both


@rule("setdiff1d")
def _difference(ar1: Any, ar2: Any, assume_unique: Any = False) -> Spec:
    return Spec(operand(ar1).dtype, (None,))


@rule("setxor1d")
def _symmetric_difference(ar1: Any, ar2: Any, assume_unique: Any = False) -> Spec:
    return _merged(np.setxor1d, ar1, ar2)


@rule("union1d")
def _union(ar1: Any, ar2: Any) -> Spec:
    return _merged(np.union1d, ar1, ar2)


def _merged(func: Any, ar1: Any, ar2: Any) -> Spec:
    a, b = operand(ar1), operand(ar2)
    return Spec(probe(func, Sample(a.dtype, (1,)), Sample(b.dtype, (1,))), (None,))


@rule("isin")
def _isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None
) -> Spec:
    return Spec(BOOL, operand(element).shape)


@rule("in1d")
def _in1d(ar1: Any, ar2: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None) -> Spec:
    part = operand(ar1)
    size: Extent = None if part.shape is None else prod(part.shape)
    return Spec(BOOL, (size,))
