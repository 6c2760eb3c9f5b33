"""The argument ``out`` of functions of NumPy, however it was given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["out_of"]


@lru_cache(maxsize=512)
def _place_of_out(function: Callable[..., Any]) -> int | None:
    """Which positional argument is ``out``."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = ["a", "b", "out"] if function in (np.dot, np.concatenate) else []
    return names.index("out") if "out" in names else None


def out_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "out" in kwargs or len(args) < 2:
        return kwargs.get("out")
    place = _place_of_out(function)
    return args[place] if place is not None and place < len(args) else None
