"""Compose products, polynomials and linear algebra."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .parts import Checked, all_of, axis_in, is_double, is_float, is_value, part_of


@part_of(np.cross)
def _cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    if (axisa, axisb, axisc, axis) != (-1, -1, -1, None) or not is_float(a, b) or a.shape != b.shape:
        return NotImplemented
    if a.shape[-1] != 3:
        return NotImplemented
    (a0, a1, a2), (b0, b1, b2) = ([x[..., k] for k in range(3)] for x in (a, b))
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)


@part_of(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if not is_float(a, b):
        return NotImplemented
    of_a: list[Any]
    of_b: list[Any]
    if type(axes) is int:
        if not 0 <= axes <= min(a.ndim, b.ndim):
            return NotImplemented
        of_a, of_b = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        first, second = ([k] if type(k) is int else list(k) for k in axes)
        of_a, of_b = [axis_in(k, a.ndim) for k in first], [axis_in(k, b.ndim) for k in second]
    if None in of_a + of_b or [a.shape[k] for k in of_a] != [b.shape[k] for k in of_b]:
        return NotImplemented
    free_a, free_b = ([k for k in range(x.ndim) if k not in of] for x, of in ((a, of_a), (b, of_b)))
    size = prod(a.shape[k] for k in of_a)
    left = np.transpose(a, [*free_a, *of_a]).reshape(prod(a.shape[k] for k in free_a), size)
    right = np.transpose(b, [*of_b, *free_b]).reshape(size, prod(b.shape[k] for k in free_b))
    return np.dot(left, right).reshape([a.shape[k] for k in free_a] + [b.shape[k] for k in free_b])


@part_of(np.linalg.matrix_power)
def _matrix_power(a: Any, n: Any) -> Any:
    if not is_float(a) or type(n) is not int or not 2 <= n <= 64 or a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        return NotImplemented
    if n == 3:
        return np.matmul(np.matmul(a, a), a)
    square, result = a, None
    while True:
        n, bit = divmod(n, 2)
        if bit:
            result = square if result is None else np.matmul(result, square)
        if not n:
            return result
        square = np.matmul(square, square)


@part_of(np.convolve)
def _convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    if not is_double(a, v) or a.ndim != 1 or v.ndim != 1 or mode not in ("full", "same", "valid"):
        return NotImplemented
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    return np.correlate(a, v[::-1], mode) if v.shape[0] else NotImplemented


@part_of(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    if not is_double(x):
        return NotImplemented
    if is_value(p):
        if not is_double(p) or p.ndim != 1 or not 0 < p.shape[0] <= 32:
            return NotImplemented
        coefficients = [p[k] for k in range(p.shape[0])]
    else:
        numbers = np.asarray(p)
        if numbers.ndim != 1 or numbers.dtype.kind not in "if" or not 0 < numbers.size <= 32:
            return NotImplemented
        coefficients = list(numbers.astype(np.float64))
    y = np.zeros(x.shape)
    for coefficient in coefficients:
        y = x * y + coefficient
    return y


@part_of(np.linalg.cond)
def _cond(x: Any, p: Any = None) -> Any:
    if not is_double(x) or p is not None or x.ndim != 2 or 0 in x.shape:
        return NotImplemented
    values = np.linalg.svd(x, compute_uv=False)
    # NumPy divides without a warning, and then makes another number of what is none.
    return Checked(values[0] / values[-1], all_of(values[-1] > 0))
