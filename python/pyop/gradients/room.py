"""Make an array for what the iterations of a loop leave for its derivative: `room`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..declare.spec import Spec
from .rule import nondifferentiable
from .unbroadcast import primitive

__all__ = ["room"]


def _spec_of_room(count: Any, dtype: Any, shape: Any, known: Any) -> Spec:
    return Spec(dtype, (known, *shape))


@primitive(_spec_of_room)
def room(count: Any, dtype: Any, shape: Any, known: Any) -> Any:
    """Return an array for what `count` iterations leave, each of this shape; all that is read of it is written before.
    `known` is the number of them, or None.
    """
    return np.empty((int(count), *shape), dtype)


nondifferentiable(room)
