"""Differentiate functions that make arrays like others, ranges and grids, and conversions of dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients import table
from ...gradients.adjoints import reshape_like
from ...gradients.rule import linear, nondifferentiable, structural
from ...gradients.table import NoRule
from ...gradients.unbroadcast import fit_dtype, is_complex, shape_of
from ...transforms.composite import composite
from ..reshaping.grad import Each


def _astype(t: Any, ans: Any, x: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
    target = np.dtype(dtype)
    if target.kind not in "fc":
        return None
    return t.astype(target) if target.kind == "c" or is_complex(t) is False else np.real(t).astype(target)


structural(np.ndarray.astype, (lambda ct, ans, x, *args, **kw: ct,), (_astype,), ("x", "dtype"))
if hasattr(np, "astype"):
    structural(np.astype, (lambda ct, ans, x, *args, **kw: ct,), (_astype,), ("x", "dtype"))
linear(np.copy, lambda ct, ans, a, *args, **kw: ct)
nondifferentiable(np.zeros_like, np.ones_like, np.empty_like)


@composite(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    return np.ones_like(a, dtype) * fill_value


def _mesh_back(
    ct: Any, part: Any, k: int, args: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Any:
    axis = 1 - k if indexing == "xy" and k < 2 and len(args) > 1 else k
    summed = ct if sparse else np.sum(ct, axis=tuple(j for j in range(len(args)) if j != axis))
    return fit_dtype(reshape_like(summed, args[k]), args[k])


table.add(Each(np.meshgrid, _mesh_back))


@composite(np.vander)
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    size = np.shape(x)[0] if N is None else N
    powers = np.arange(size) if increasing else np.arange(size - 1, -1, -1)
    return x[:, None] ** powers


@composite(np.linspace)
def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
              axis: int = 0, **kw: Any) -> Any:  # fmt: skip
    if retstep:
        raise NoRule("np.linspace(retstep=True) has no gradient rule: compute the step yourself")
    steps = np.arange(num) / max(num - 1 if endpoint else num, 1)
    lead = np.reshape(steps, (num,) + (1,) * len(shape_of(start - stop) or ()))
    points = start + (stop - start) * lead
    return points if axis == 0 else np.moveaxis(points, 0, axis)


@composite(np.logspace)
def _logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None,
              axis: int = 0) -> Any:  # fmt: skip
    if shape_of(base) != ():
        raise NoRule("np.logspace has a gradient rule for one base: use base ** np.linspace(...) for several")
    return np.power(base, _linspace(start, stop, num, endpoint, axis=axis))
