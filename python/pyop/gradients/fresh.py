"""Define `fresh`, an array that a function makes of nothing it was given.

The contents of such an array are known beforehand, but it is made to be written, or to be the caller's. So a node
makes it anew in each run; a constant would have to be copied, or kept however large it is. It is neither computed
beforehand nor merged (csrc/graph/passes).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import fill_up_call
from ..declare.spec import Spec
from .rule import structural
from .unbroadcast import primitive, unbroadcast

__all__ = ["fresh"]


@primitive(lambda item, shape=None: item if shape is None else Spec(item.dtype, shape))
def fresh(item: Any, shape: tuple[Any, ...] | None = None) -> Any:
    """Return an array of this shape full of one element, or a copy of an array that lies as it does."""
    return np.array(item, order="K") if shape is None else np.full(shape, item)


fill_up_call("fresh", fresh)
structural(
    fresh,
    (lambda ct, ans, item, shape=None: unbroadcast(ct, item), None),
    (lambda t, ans, item, shape=None: fresh(t, shape), None),
    ("item", "shape"),
)
