"""The callables of gradient rules: what each is made with."""

from __future__ import annotations

from typing import Any

from ..gradients.differences import PullBack, PushForward
from ..graph.in_place import InPlace
from ..graph.symbolic_number import OnNumbers
from ..transforms.op_calls import Backward, Forward, JacobianOf

__all__ = ["ARGUMENTS"]

# The attributes that are the arguments of the constructor, in order.
ARGUMENTS: dict[Any, tuple[str, ...]] = {
    Backward: ("gradient", "argnums", "n_out", "n_in", "statics"),
    Forward: ("gradient", "n_in", "statics"),
    InPlace: ("method",),
    JacobianOf: ("gradient", "fn", "statics"),
    OnNumbers: ("fn", "numbers"),
    PullBack: ("fn", "name", "in_trees", "how", "argnums", "n_out", "statics"),
    PushForward: ("fn", "name", "in_trees", "how", "statics"),
}
