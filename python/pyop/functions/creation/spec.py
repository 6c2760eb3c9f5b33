"""Infer functions that make arrays like others, ranges between them, and grids over them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...declare.dims import Extent
from ...declare.spec import Spec
from .. import rule
from ..operand import DType, Shape, one, operand, probe
from ..shape import axis_of, broadcast, prod, shape_argument


@rule(np.zeros_like, np.ones_like)
def _like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, **options: Any) -> Spec:
    part = operand(a)
    result: DType | None = part.dtype if dtype is None else np.dtype(dtype)
    return Spec(result, part.shape if shape is None else shape_argument(shape))


@rule(np.full_like)
def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, **options: Any
) -> Spec:
    spec = _like(a, dtype, order, subok, shape)
    value = operand(fill_value).shape
    target = operand(spec).shape
    if value is not None and target is not None and broadcast(value, target) is not None and len(value) > len(target):
        raise ValueError(f"could not broadcast input array from shape {value} into shape {target}")
    return spec


@rule(np.empty_like)
def _empty_like(prototype: Any, /, *args: Any, **options: Any) -> Spec:
    return _like(prototype, *args, **options)


@rule(np.copy)
def _copy(a: Any, order: Any = "K", subok: Any = False) -> Spec:
    return operand(a).spec


@rule("astype")
def _astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Spec:
    return Spec(np.dtype(dtype), operand(x).shape)


@rule(np.linspace)
def _linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None, axis: Any = 0,
    **options: Any,
) -> Any:  # fmt: skip
    a, b = operand(start), operand(stop)
    inner = broadcast(a, b)
    spec = Spec(probe(np.linspace, one(a), one(b), 2, **_given(dtype)), _with_axis(inner, num, axis))
    if not retstep:
        return spec
    # Of one point there is no step: it is a bare NaN.
    exact = not isinstance(num, Spec) and operator.index(num) > (1 if endpoint else 0)
    return spec, Spec(probe(np.linspace, one(a), one(b), 2), inner) if exact else Spec()


def _given(dtype: Any) -> dict[str, Any]:
    return {} if dtype is None else {"dtype": np.dtype(dtype)}


def _with_axis(inner: Shape, num: Any, axis: Any) -> Shape:
    if inner is None:
        return None
    count: Extent = None
    if not isinstance(num, Spec):
        count = operator.index(num)
        if count < 0:
            raise ValueError(f"Number of samples, {count}, must be non-negative.")
    k = axis_of(axis, len(inner) + 1)
    return (*inner[:k], count, *inner[k:])


@rule(np.logspace)
def _logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None, axis: Any = 0
) -> Spec:
    a, b, c = operand(start), operand(stop), operand(base)
    result = probe(np.logspace, one(a), one(b), 2, base=one(c, 1 if c.shape else 0), **_given(dtype))
    return Spec(result, _with_axis(broadcast(a, b, c), num, axis))


@rule(np.geomspace)
def _geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Spec:
    a, b = operand(start), operand(stop)
    return Spec(probe(np.geomspace, one(a), one(b), 2, **_given(dtype)), _with_axis(broadcast(a, b), num, axis))


@rule(np.meshgrid)
def _meshgrid(*xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> tuple[Spec, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    parts = [operand(x) for x in xi]
    sizes: list[Extent] = [None if part.shape is None else prod(part.shape) for part in parts]
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[:2] = [1, 0]
    full = tuple(sizes[k] for k in order)
    return tuple(
        Spec(part.dtype, tuple(sizes[j] if j == k else 1 for j in order) if sparse else full)
        for k, part in enumerate(parts)
    )


@rule(np.vander)
def _vander(x: Any, N: Any = None, increasing: Any = False) -> Spec:
    part = operand(x)
    if part.ndim not in (None, 1):
        raise ValueError("x must be a one-dimensional array or sequence.")
    size = None if part.shape is None else part.shape[0]
    columns: Extent = size if N is None else (None if isinstance(N, Spec) else operator.index(N))
    return Spec(probe(np.vander, one(part)), (size, columns))
