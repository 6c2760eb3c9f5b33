"""Read the argument ``out`` of functions of NumPy, given by keyword or by position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph.array_protocol import position_of_out

__all__ = ["out_of"]


def out_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "out" in kwargs or len(args) < 2:
        return kwargs.get("out")
    place = position_of_out(function)
    return args[place] if place is not None and place < len(args) else None
