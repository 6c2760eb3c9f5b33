"""Reductions along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fit import broadcast_like
from .rule import linear


def spread(ct: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    """A reduced array laid along the axes it was reduced over."""
    return broadcast_like(expanded(ct, axis, keepdims, a), a)


def expanded(ct: Any, axis: Any, keepdims: Any, a: Any) -> Any:
    """A reduced array with axes of one element where it was reduced."""
    if keepdims or axis is None:
        return ct
    axes = axis if isinstance(axis, tuple) else (axis,)
    return np.expand_dims(ct, axes)


# fmt: off
linear(np.sum, lambda ct, ans, a, axis=None, dtype=None, out=None, keepdims=False, **kw: spread(ct, a, axis, keepdims))
# fmt: on
