"""Describe the kind of items of a list that a loop holds as arrays, and note it for a further trace."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core import Value
from ..graph.counter import is_counter
from ..graph.symbolic_number import is_number
from .alternatives import NOTHING, is_alternative, parts_of
from .numbers import DTYPES

__all__ = ["TEXT", "Either", "Kind", "Mixed", "OfKind", "Separate", "dtype_of", "is_known", "kind_of", "mixed"]

TEXT = "text"
"""The kind of items that are one of a few texts or None: their array holds numbers that say which."""


class Separate(NamedTuple):
    """Note that the items that a list has before a loop are of another kind than those that the loop appends."""

    loop: Any
    name: str
    kind: Any


class OfKind(NamedTuple):
    """Note of which kind the items are that an empty list gets in a loop: one was read before that was known."""

    loop: Any
    name: str
    kind: Any


class Mixed(NamedTuple):
    """Note that the items of a list are Python numbers at first, which a loop replaces by scalars."""

    loop: Any
    name: str
    kind: Any


class Either(NamedTuple):
    """Stand for items that are Python numbers or scalars of NumPy; an array of truths says which of them are."""

    number: type
    dtype: str


class Kind(NamedTuple):
    """Describe the items of a list by its columns.

    These are a type of Python's numbers, the name of a dtype of NumPy's scalars, `TEXT`, or an `Either` and bool; of
    rows, which are tuples or lists, several.
    """

    columns: tuple[Any, ...]
    row: type | None = None

    @property
    def either(self) -> Either | None:
        return self.columns[0] if type(self.columns[0]) is Either else None

    def holds(self, other: Kind) -> bool:
        """Return whether items of another kind may be among these."""
        either = self.either
        return self == other or (
            either is not None and other.row is None and other.columns in ((either.number,), (either.dtype,))
        )


_PAIRS = {(float, "<f8"), (int, "<f8"), (int, "<i8")}


def mixed(a: Kind | None, b: Kind | None) -> Kind | None:
    """Return the kind of items that are of these two; None if there is none."""
    if a is None or b is None or a.row or b.row or len(a.columns) + len(b.columns) > 2:
        return None
    pair = a.columns + b.columns
    found = next((x for x in (pair, pair[::-1]) if x in _PAIRS), None)
    return None if found is None else Kind((Either(*found), bool))


def kind_of(item: Any) -> Kind | None:
    """Return of which kind an item is; None if a list of such is none that a loop may hold."""
    if type(item) in (tuple, list):
        columns = tuple(map(_scalar_kind, item))
        return Kind(columns, type(item)) if columns and None not in columns else None
    column = _scalar_kind(item)
    return None if column is None else Kind((column,))


def _scalar_kind(x: Any) -> Any:
    if is_alternative(x):
        return TEXT if parts_of(x)[1] is NOTHING else None
    kind = int if is_counter(x) else x._kind if is_number(x) else type(x)
    if kind in DTYPES:
        return None if type(x) is int and abs(x) >= 1 << 62 else kind
    scalar = x._is_scalar if type(x) is Value else issubclass(kind, np.generic)
    return x.dtype.str if scalar and x.dtype is not None and x.dtype.kind in "biufc" else None


def is_known(item: Any) -> bool:
    """Return whether an item holds nothing symbolic."""
    if type(item) in (tuple, list):
        return all(map(is_known, item))
    return not (type(item) is Value or is_number(item) or is_counter(item))


def dtype_of(column: Any) -> np.dtype[Any]:
    """Return the dtype of the array of such items."""
    if type(column) is Either:
        return np.dtype(column.dtype)
    return DTYPES[column] if isinstance(column, type) else np.dtype(np.int64 if column == TEXT else column)
