"""Share arrays of other libraries without copies.

csrc/array/foreign/foreign.h lists what every entry point takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core

__all__ = ["from_dlpack"]


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """Return an ndarray over the memory of an array of another library.

    Parameters
    ----------
    x : object
        What has ``__dlpack__`` or ``__dlpack_c_exchange_api__``: arrays of torch, JAX, Arrow, CuPy, NumPy and others.
    device : "cpu", optional
        Ask the library to copy `x` to the CPU, should it be on another device.
    copy : bool, optional
        True: memory of its own. False: an error where the library gives a copy. None: a copy only where it must be.

    Returns
    -------
    ndarray
        Of the same dtype, shape and strides. It keeps the memory of `x` alive, and is read-only where `x` is, or where
        the library does not say that it is not. bfloat16 and float8 are dtypes of the package ml_dtypes.

    Raises
    ------
    BufferError
        `x` is on another device, its elements are of a dtype that NumPy has not, or ``copy=False`` cannot be had.
    TypeError
        `x` has no DLPack; or requires a gradient, which would be lost.
    ValueError
        Another device than "cpu" is asked for.

    Examples
    --------
    >>> import array, numpy as np, pyop
    >>> x = np.arange(6.0).reshape(2, 3)
    >>> y = pyop.from_dlpack(x[:, ::-1])
    >>> np.shares_memory(x, y), y.strides
    (True, (24, -8))
    """
    if device not in (None, "cpu"):
        raise ValueError(f"device={device!r}: an ndarray is on the CPU, so 'cpu' and None are all there is")
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"copy= is True, False or None, got {copy!r:.80}")
    return _core.from_dlpack(x, copy, device is not None)
