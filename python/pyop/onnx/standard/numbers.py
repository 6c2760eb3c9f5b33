"""Convert Python numbers that the graph computes, such as the number of an iteration.

NumPy converts these to the dtype of the arrays beside them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph.node_call import NodeCall
from ...graph.symbolic_number import OnNumbers
from .emitter import Emitter, NotStandard, Operand

__all__ = ["with_strong_arrays"]

_UFUNCS: dict[Any, np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.true_divide,
    operator.neg: np.negative,
}
_UFUNCS |= {ufunc: ufunc for ufunc in _UFUNCS.values()}


def with_strong_arrays(call: NodeCall) -> tuple[NodeCall, Callable[[Emitter, NodeCall], NodeCall]]:
    """Return the call of the ufunc itself where Python numbers are among its arguments, and what converts these."""
    function = call.function
    if not isinstance(function, OnNumbers) or function.fn not in _UFUNCS:
        return call, lambda emitter, call: call
    numbers = function.numbers

    def convert(e: Emitter, call: NodeCall) -> NodeCall:
        others = {x.dtype for x, number in zip(call.args, numbers, strict=True) if number != 1 and _known(x)}
        if len(others) > 1:
            raise NotStandard("a number beside arrays of several dtypes")
        strong = next(iter(others), None)

        def one(x: Any, number: Any) -> Any:
            if number != 1 or strong is None or not isinstance(x, Operand) or x.dtype is None:
                return x
            fits = strong.kind in "fc" or (strong.kind in "iu" and x.dtype.kind in "iu")
            return e.cast(x, strong) if fits else x

        return replace(call, args=tuple(map(one, call.args, numbers)))

    return replace(call, function=_UFUNCS[function.fn]), convert


def _known(x: Any) -> bool:
    return isinstance(x, Operand) and x.dtype is not None
