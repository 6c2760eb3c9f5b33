"""Differentiate functions of diagonals and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import movement
from ...gradients.rule import linear, nondifferentiable
from ...gradients.unbroadcast import unbroadcast
from ...transforms.composite import composite

linear(np.tril, lambda ct, ans, m, k=0: unbroadcast(np.tril(ct, k), m), ("m",))
linear(np.triu, lambda ct, ans, m, k=0: unbroadcast(np.triu(ct, k), m), ("m",))
movement(np.diag, names=("v",))
movement(np.diagflat, names=("v",))
movement(np.diagonal, names=("a",))


@composite(np.trace)
def _trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


if hasattr(np.linalg, "diagonal"):
    composite(np.linalg.trace)(lambda x, *, offset=0, dtype=None: np.sum(np.diagonal(x, offset, -2, -1), axis=-1))
    composite(np.linalg.diagonal)(lambda x, *, offset=0: np.diagonal(x, offset, -2, -1))
nondifferentiable(np.tril_indices_from, np.triu_indices_from)
