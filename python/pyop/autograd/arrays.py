"""The arrays behind Tensors."""

from __future__ import annotations

from typing import Any

from .._core import Tensor
from ..declare.rebuild import replaced

__all__ = ["to_array", "to_arrays"]


def to_array(x: Any) -> Any:
    """Return the array of a Tensor, and anything else as it is."""
    return x._numbers if type(x) is Tensor else x


def to_arrays(x: Any) -> Any:
    """Return the same arguments with arrays in place of Tensors."""
    return replaced(x, to_array)
