"""Axes as operators of ONNX take them: not negative."""

from __future__ import annotations

from typing import Any

from .emitter import NotStandard, Operand


def axis_of(axis: Any, ndim: int) -> int:
    try:
        return int(axis) + ndim if int(axis) < 0 else int(axis)
    except TypeError:
        raise NotStandard(f"axis={axis!r:.80}") from None


def axes_of(x: Operand, axis: Any) -> list[int] | None:
    """Return the axes, not negative; None for all."""
    if axis is None:
        return None
    given = list(axis) if isinstance(axis, tuple) else [axis]
    try:
        return [int(k) % x.ndim for k in given]
    except (TypeError, ZeroDivisionError):
        raise NotStandard(f"axis={axis!r:.80}") from None
