"""Provide ``scipy.signal`` with `convolve` for Tensors and Values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as _signal

from ..declare.dims import add
from ..declare.spec import Spec
from ..functions.operand import one, operand, probe
from ..gradients.rule import structural
from ..gradients.table import NoRule
from ..gradients.unbroadcast import conj, shape_of
from ._mirror import mirrored, rest_of

__all__ = ["convolve"]

__getattr__ = rest_of(_signal)


def _specs(in1: Any, in2: Any, mode: Any = "full", method: Any = "auto") -> Spec:
    a, v = operand(in1), operand(in2)
    dtype = probe(_signal.convolve, one(a), one(v))
    if a.shape is None or v.shape is None or len(a.shape) != len(v.shape):
        return Spec(dtype, None)
    if any(size == 0 for size in (*a.shape, *v.shape)):
        return Spec(None, None)  # SciPy returns an empty array of one dimension
    if mode == "same":
        return Spec(dtype, a.shape)
    pairs = list(zip(a.shape, v.shape, strict=True))
    if mode == "full":
        return Spec(dtype, tuple([add(add(m, n), -1) for m, n in pairs]))
    return Spec(
        dtype,
        tuple([max(m, n) - min(m, n) + 1 if isinstance(m, int) and isinstance(n, int) else None for m, n in pairs]),
    )


def _laid_in(ct: Any, a: Any, v: Any, mode: Any) -> Any:
    """Return a cotangent of the full convolution: that of the part a mode keeps, with zeros around."""
    if mode == "full":
        return ct
    widths = []
    for m, n in zip(shape_of(a) or (), shape_of(v) or (), strict=True):
        if not isinstance(m, int) or not isinstance(n, int):
            raise NoRule(
                f"scipy.signal.convolve(mode={mode!r}) needs sizes that are numbers for a gradient: declare them in "
                'the specs of the inputs, or use mode="full"'
            )
        full = m + n - 1
        size, start = (m, (n - 1) // 2) if mode == "same" else (max(m, n) - min(m, n) + 1, min(m, n) - 1)
        widths.append((start, full - start - size))
    return np.pad(ct, widths) if widths else ct


def _correlated(ct: Any, a: Any, v: Any, other: Any, mode: Any, method: Any) -> Any:
    if any(size == 0 for size in (*(shape_of(a) or ()), *(shape_of(v) or ()))):
        return np.zeros_like(v if other is a else a)
    whole = _laid_in(ct, a, v, mode)
    return convolve(whole, conj(np.flip(other)), "valid", method)


# fmt: off
_CONVOLVE = "pyop.grad(lambda x: convolve(x, [1.0, 2.0]).sum())(np.ones(2))\narray([3., 3.])"
convolve = mirrored(_signal.convolve, __name__, _specs, example=_CONVOLVE)
structural(convolve,
           (lambda ct, ans, in1, in2, mode="full", method="auto": _correlated(ct, in1, in2, in2, mode, method),
            lambda ct, ans, in1, in2, mode="full", method="auto": _correlated(ct, in1, in2, in1, mode, method)),
           ("same", "same"), ("in1", "in2"))
# fmt: on
