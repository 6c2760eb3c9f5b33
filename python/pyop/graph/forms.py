"""Distinguish NumPy's scalars from arrays of no dimension, where a Value has no dimension.

The two compute alike, but ``+=`` makes another scalar and writes into an array, ``isinstance`` tells them apart, and a
scalar's ``**`` is not that of an array. A function of NumPy returns scalars unless it is listed here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value

__all__ = ["found", "is_scalar", "pass_on"]

_NAMES = (
    *("copy", "broadcast_to", "broadcast_arrays", "roll", "pad", "where", "select", "piecewise", "cov", "cross"),
    *("expand_dims", "resize", "isin", "tensordot", "i0", "real_if_close", "apply_along_axis", "meshgrid"),
    *("zeros_like", "ones_like", "full_like", "empty_like"),
    *("linalg.tensordot", "linalg.tensorsolve", "linalg.cross", "unique", "unique_all", "unique_inverse"),
)
_OF_FFT = frozenset(("fftn", "ifftn", "fftshift", "ifftshift"))  # which NumPy imports when somebody asks for them
# Of these the array, or the scalar, that they are given.
_AS_GIVEN_NAMES = (
    *("transpose", "squeeze", "trim_zeros", "astype", "real", "imag", "moveaxis", "swapaxes", "reshape", "rollaxis"),
    *("matrix_transpose", "permute_dims"),
)


def found(*names: str) -> frozenset[Any]:
    """Return the functions of these names below ``numpy`` that the installed release has."""
    functions = set()
    for name in names:
        try:
            functions.add(operator.attrgetter(name)(np))
        except AttributeError:
            continue  # functions come with NumPy's releases
    return frozenset(functions)


_ARRAYS = found(*_NAMES)
_AS_GIVEN = {*found(*_AS_GIVEN_NAMES), np.ndarray.astype, np.ndarray.view}


def pass_on(func: Callable[..., Any]) -> None:
    """Register a function that returns a scalar for a scalar, and an array for an array."""
    _AS_GIVEN.add(func)


def is_scalar(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | None:
    """Return whether a function of NumPy returns a scalar where the result has no dimension; None if not known.

    >>> import numpy as np, pyop
    >>> with pyop.Graph() as g:
    ...     x = g.input("float64[3]")
    >>> x.sum()._is_scalar, x[0]._is_scalar, x[..., 0]._is_scalar, x.sum().copy()._is_scalar
    (True, True, False, True)
    """
    if func is operator.getitem:
        keys = args[1] if isinstance(args[1], tuple) else (args[1],)
        return not any(key is Ellipsis for key in keys)
    if func in _ARRAYS or (getattr(func, "__name__", "") in _OF_FFT and func.__module__ == "numpy.fft"):
        return False
    if func in _AS_GIVEN:
        given = args[0] if args else next(iter(kwargs.values()))
        if type(given) is Value:
            return given._is_scalar
        return None if isinstance(given, (tuple, list)) else not isinstance(given, np.ndarray)
    if func is np.einsum:
        return None if kwargs.get("optimize") else True  # optimised, some of it is a tensordot
    return True
