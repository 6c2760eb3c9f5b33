"""Differentiate sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import reshape_like
from ...gradients.rule import nondifferentiable, structural


def _rank(a: Any, axis: int) -> Any:
    return np.argsort(np.argsort(a, axis=axis, kind="stable"), axis=axis, kind="stable")


def _ordered(t: Any, ans: Any, a: Any, axis: int) -> Any:
    """Return `t` moved as the elements of `a` were moved to give `ans`."""
    in_order = np.take_along_axis(t, np.argsort(a, axis=axis, kind="stable"), axis=axis)
    return np.take_along_axis(in_order, _rank(ans, axis), axis=axis)


def _flat(x: Any, axis: Any) -> Any:
    return np.ravel(x) if axis is None else x


def _back(ct: Any, ans: Any, a: Any, axis: Any) -> Any:
    k = -1 if axis is None else axis
    return reshape_like(_ordered(ct, _flat(a, axis), ans, k), a)


def _forth(t: Any, ans: Any, a: Any, axis: Any) -> Any:
    return _ordered(_flat(t, axis), ans, _flat(a, axis), -1 if axis is None else axis)


structural(
    np.sort,
    (lambda ct, ans, a, axis=-1, *args, **kw: _back(ct, ans, a, axis),),
    (lambda t, ans, a, axis=-1, *args, **kw: _forth(t, ans, a, axis),),
    ("a", "axis"),
)
structural(
    np.partition,
    (lambda ct, ans, a, kth, axis=-1, *args, **kw: _back(ct, ans, a, axis), None),
    (lambda t, ans, a, kth, axis=-1, *args, **kw: _forth(t, ans, a, axis), None),
    ("a", "kth", "axis"),
)
nondifferentiable(np.argsort, np.argpartition, np.lexsort, np.searchsorted)
