"""Whether trees of arrays are equal to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyop._tree import flatten


def equal(a: Any, b: Any) -> bool:
    (found, tree), (wanted, other) = flatten(a), flatten(b)
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(found, wanted, strict=True)]
    return tree == other and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in pairs
    )
