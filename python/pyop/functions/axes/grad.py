"""Differentiate functions that exchange, add and drop axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import movement, reshape_like
from ...gradients.rule import linear


def _transpose(ct: Any, ans: Any, a: Any, axes: Any = None) -> Any:
    if axes is None:
        return np.transpose(ct)
    return np.transpose(ct, tuple(int(k) for k in np.argsort([axis % len(axes) for axis in axes])))


linear(np.transpose, _transpose)
linear(np.matrix_transpose, lambda ct, ans, x: np.matrix_transpose(ct), ("x",))
if hasattr(np.linalg, "matrix_transpose"):
    linear(np.linalg.matrix_transpose, lambda ct, ans, x: np.matrix_transpose(ct), ("x",))
linear(np.swapaxes, lambda ct, ans, a, axis1, axis2: np.swapaxes(ct, axis1, axis2))
linear(np.moveaxis, lambda ct, ans, a, source, destination: np.moveaxis(ct, destination, source))
movement(np.rollaxis, names=("a",))
linear(np.expand_dims, lambda ct, ans, a, axis: np.squeeze(ct, axis=axis))
linear(np.squeeze, lambda ct, ans, a, axis=None: reshape_like(ct, a))
