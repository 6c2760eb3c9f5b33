"""Send arrays between pieces with their memory layout: NumPy's reductions follow it, and so do their bits.

Pickles keep the order of the axes only of arrays that are contiguous in C's or Fortran's order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Laid", "is_elementwise", "laid", "plain"]


class Laid:
    """Hold an array whose pickle keeps the order of its axes, their directions, and repeated elements."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __reduce__(self) -> Any:
        array = self.array
        repeated = tuple(n > 1 and step == 0 for n, step in zip(array.shape, array.strides, strict=True))
        backwards = tuple(slice(None, None, -1 if step < 0 else 1) for step in array.strides)
        once = array[tuple(slice(0, 1) if each else slice(None) for each in repeated)][backwards]
        axes = sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis))
        dense = np.ascontiguousarray(once.transpose(axes))
        return _laid, (dense, tuple(np.argsort(axes).tolist()), backwards, array.shape)


def _laid(dense: Any, axes: Any, backwards: Any, shape: Any) -> Laid:
    array = dense.transpose(axes)[backwards]
    return Laid(array if array.shape == shape else np.broadcast_to(array, shape))


def laid(x: Any) -> Any:
    """Return an array in the form to send."""
    return Laid(x) if type(x) is np.ndarray and not x.dtype.hasobject and not x.flags.forc else x


def plain(x: Any) -> Any:
    """Return the array that was sent."""
    return x.array if type(x) is Laid else x


def is_elementwise(node: Any) -> bool:
    """Return whether a node is a ufunc of arrays and numbers that makes an array of its own."""
    function, form = node.function, node._form
    plain = isinstance(function, np.ufunc) and function.signature is None and function.nout == 1 and not node.stateful
    if not plain or node.contract is not None:
        return False
    numbers = (type(None), bool, int, float, complex, np.generic)
    return form is None or (form[2] is None and all(isinstance(x, numbers) for x in form[1]))
