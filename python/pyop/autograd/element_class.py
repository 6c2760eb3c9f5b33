"""Answer isinstance() for an element of an example under vmap."""

from __future__ import annotations

import sys
from typing import Any

from ..refusals import refusal

__all__ = ["AMBIGUOUS", "class_of_element"]

_BATCHES = ("pyop.autograd.batched", "pyop.autograd.batch_calls")
AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"


def class_of_element(dtype: Any) -> type:
    """Return the type of a scalar of this dtype.

    A refusal if it is not known, as of text and objects in graphs.
    """
    if dtype is None:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") in _BATCHES:
            frame = frame.f_back
        if frame is None or not frame.f_globals.get("__name__", "").startswith("pyop."):
            raise refusal(
                "the type of an element of this array is not known, as for text or objects: branch on it before "
                "the call, or in a pyop.op, which is called with arrays"
            )
    scalar_type: type = dtype.type
    return scalar_type
