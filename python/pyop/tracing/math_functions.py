"""Python's `math` in twins: ``math.exp(t)`` of a number that the trace does not know is a node that calls it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..graph.symbolic_number import call_in_python, is_number
from .twins import graph_under_twins, stand_in

__all__: list[str] = []

# Those that take floats and return one, or raise. exp2 and cbrt are of Python 3.11.
_OF_FLOATS = """
    acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2 expm1 fabs fmod gamma hypot
    lgamma log log10 log1p log2 pow radians remainder sin sinh sqrt tan tanh
"""
_KINDS = (float, int)


def _of_numbers(original: Callable[..., float]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        graph = graph_under_twins()
        if graph is None:
            return original(*args, **kwargs)
        numbers = any(map(is_number, args)) and not kwargs
        if numbers and all((x._kind if is_number(x) else type(x)) in _KINDS for x in args):
            return call_in_python(original, *args)
        return graph._twins.of_a_library(original)(*args, **kwargs)

    return call


for _name in _OF_FLOATS.split():
    stand_in(getattr(math, _name), _of_numbers(getattr(math, _name)))
