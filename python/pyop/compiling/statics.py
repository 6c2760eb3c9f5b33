"""What a compiled function takes for the same static value."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["static_key"]


def static_key(value: Any) -> Any:
    """Equal for values that no function can tell apart, where ``==`` alone does not say: 1, 1.0, True; 0.0, -0.0."""
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
