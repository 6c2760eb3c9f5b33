"""Decide which static values are the same to a compiled function."""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .._core import CompiledFunction, Op

__all__ = ["is_dtype", "is_function", "static_key"]

_FUNCTIONS = (FunctionType, np.ufunc, type(np.sum), type, functools.partial, CompiledFunction, Op)


def is_function(x: Any) -> bool:
    """Return whether an argument is a function or a class, of which there is one: it is static by itself, and looked at
    in every call as what the function holds is.

    >>> import numpy as np
    >>> from pyop.compiling.statics import is_function
    >>> is_function(np.sin), is_function(len), is_function([].append)
    (True, True, False)
    """
    if type(x) is BuiltinFunctionType:
        return x.__self__ is None or isinstance(x.__self__, ModuleType)
    return isinstance(x, _FUNCTIONS)


def is_dtype(x: Any) -> bool:
    """Return whether an argument is a dtype of which all is known that equals it: it is static by itself."""
    return isinstance(x, np.dtype) and x.fields is None and x.metadata is None


def static_key(value: Any) -> Any:
    """Return a key, equal for values that no function can tell apart: it differs for 1, 1.0, True and for 0.0, -0.0."""
    kind = type(value)
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if kind is slice:
        return kind, static_key(value.start), static_key(value.stop), static_key(value.step)
    if isinstance(value, tuple):
        return kind, *map(static_key, value)
    if kind is frozenset:
        return kind, frozenset(map(static_key, value))
    return kind, value
