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


def same(a: Any, b: Any) -> bool:
    """Return whether two results are of the same types, with the same bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return repr(a) == repr(b)
