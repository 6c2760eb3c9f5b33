"""Make ``np.array`` of a list that a loop holds as arrays (`growing`), with NumPy's dtype and shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.symbolic_number import Number
from .list_kinds import TEXT, dtype_of

__all__ = ["as_array"]


def as_array(items: Any, dtype: Any) -> Any:
    """Return ``np.array(items, dtype)``."""
    kind = items.kind
    if kind is None or not items.columns or TEXT in kind.columns:
        items._needed()
    columns = [items.straight(column)[: items.length] for column in items.columns]
    if kind.row is None:
        made = _of_numbers(items, columns, dtype)
    elif items.prefix:
        items._needed()
    else:
        found = np.result_type(*map(dtype_of, kind.columns))
        made = np.stack([column.astype(found) for column in columns], axis=1).copy()
    wanted = made.dtype if dtype is None else np.dtype(dtype)
    if wanted.kind not in "biufc" or not np.can_cast(made.dtype, wanted, "safe"):
        items._needed()
    asked = kind.row is not None or (dtype is None and made.dtype != np.float64)
    if asked and not items.size() > 0:  # decided
        return np.array([], dtype)
    return made if wanted == made.dtype else made.astype(wanted)


def _of_numbers(items: Any, columns: list[Any], dtype: Any) -> Any:
    made = columns[0].copy()
    either = items.kind.either
    if dtype is None and either is not None and either.number is int and made.dtype != np.int64:
        numbers: Any = np.all(columns[1])
        if Number(bool, numbers[()], items.loop.places()):  # decided: NumPy makes ints of ints alone
            return made.astype(np.int64)
    if items.prefix:
        from ..graph.lists import array_of

        first = array_of(items.prefix)
        if first.ndim != 1 or first.dtype != made.dtype:
            items._needed()
        made = np.concatenate([first, made])
    return made
