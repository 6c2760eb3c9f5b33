"""Convert Tensors to arrays, and read the specs of anything that stands for an array."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._core import Tensor, Value
from ..declare.rebuild import replaced
from ..declare.spec import Spec
from ..refusals import refusal

__all__ = ["check_no_history", "spec_of", "to_array", "to_arrays"]


def to_array(x: Any) -> Any:
    """Return the array of a Tensor, and anything else as it is."""
    return x._numbers if type(x) is Tensor else x


def to_arrays(x: Any) -> Any:
    """Return the same arguments with arrays in place of Tensors."""
    return replaced(x, to_array)


def spec_of(x: Any) -> Spec:
    """Return what is known of an argument: a Value, a Tensor, an array or a number."""
    if isinstance(x, Value):
        spec: Spec = x.spec
        return spec
    return Spec.of(np.asarray(to_array(x)))


def check_no_history(where: str, leaves: Iterable[Any]) -> None:
    """Raise for recorded Tensors among the arguments of a call that becomes a node of a graph."""
    if any(type(x) is Tensor and x._watched for x in leaves):
        raise refusal(
            f"{where}a Tensor that requires a gradient cannot be part of a graph, which would lose its history: use "
            "t.detach() for a constant, or make it an input of the graph"
        )
