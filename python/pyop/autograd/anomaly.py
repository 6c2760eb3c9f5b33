"""Find the place where a backward pass goes wrong."""

from __future__ import annotations

from .. import _core
from ..interrupts import entered_as_a_whole

__all__ = ["detect_anomaly"]


@entered_as_a_whole
class detect_anomaly(_core.Mode):
    """Remember where every node was made, and look for NaN in what backward returns.

    While it is on, an error in backward carries the stack of the forward call as a note, a gradient with a NaN is an
    error that names the Function, and saved arrays of any size are watched for changes that were made through NumPy.
    Slow: meant for searching.

    Parameters
    ----------
    check_nan : bool
        Whether to look for NaN.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> x = pyop.Tensor(np.array([0.0]), requires_grad=True)
    >>> class Broken(pyop.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 1
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * np.nan
    >>> with detect_anomaly():
    ...     Broken.apply(x).backward()
    Traceback (most recent call last):
    RuntimeError: BrokenBackward returned nan in its gradient 0 ...
    """

    __slots__ = ()

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(anomaly=True, check_nan=check_nan)
