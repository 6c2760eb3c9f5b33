"""Differentiate values of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.table import NoRule
from ...gradients.unbroadcast import shape_of
from ...transforms.composite import composite


@composite(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    count = (shape_of(p) or (None,))[0]
    if not isinstance(count, int):
        raise NoRule("the gradient of np.polyval needs the number of coefficients when the graph is built: declare it")
    result = np.zeros_like(x)
    for k in range(count):
        result = result * x + p[k]
    return result
