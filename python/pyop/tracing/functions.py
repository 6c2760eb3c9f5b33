"""Find the functions that a function is made of: itself, those in its closure, those of the user's that it names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from .._core import Op
from .code import facts
from .libraries import is_library
from .names import imported

__all__ = ["functions_of"]

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def functions_of(fn: Any) -> Iterator[FunctionType]:
    """Yield the function, and those that it names: in its closure, and in its module."""
    pending: list[Any] = [fn]
    seen: set[FunctionType] = set()
    while pending and len(seen) < 200:
        function = pending.pop()
        while not isinstance(function, (FunctionType, Op)):  # what an op calls is called with arrays
            inner = function.__func__ if type(function) is MethodType else _wrapped(function)
            if inner is None or inner is function:
                break
            function = inner
        if not isinstance(function, FunctionType) or function in seen or _asks_us(function):
            continue
        seen.add(function)
        ours = function.__code__.co_filename.startswith(_PACKAGE)  # what a transformation has made of a function
        if not ours:
            yield function
        for cell in function.__closure__ or ():
            try:
                pending.append(cell.cell_contents)
            except ValueError:
                continue
        if ours:
            continue
        module = function.__module__
        for name in facts(function.__code__).names:
            named = imported(function.__globals__.get(name))
            if isinstance(named, FunctionType) and (named.__module__ == module or not is_library(named)):
                pending.append(named)


def _wrapped(x: Any) -> Any:
    try:
        return getattr(x, "__wrapped__", None)
    except Exception:  # of an object that does not like to be looked at
        return None


def _asks_us(function: FunctionType) -> bool:
    """Return whether it is a function of NumPy or SciPy, which ask what stands for an array by their protocols."""
    return (function.__module__ or "").partition(".")[0] in ("numpy", "scipy")
