"""Join Values for twins: ``np.r_[a, 1.0]`` and ``np.c_[a, b]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.lists import array_of, holds_values, is_symbolic
from ..graph.symbolic_number import is_number
from .made import made_value
from .twins import STAND_INS, graph_under_twins

__all__: list[str] = []

_KNOWN = (bool, int, float, complex, np.number, np.bool_)


class _Joined:
    """Put together what is in brackets as NumPy's object does: scalars and rows along one axis, or as columns."""

    __slots__ = ("_columns", "_original")

    def __init__(self, original: Any, columns: bool) -> None:
        self._original = original
        self._columns = columns

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        graph = graph_under_twins()
        items = key if isinstance(key, tuple) else (key,)
        if not any(holds_values(x) for x in items) or any(isinstance(x, str) for x in items):
            made = self._original[key]
            return made if graph is None or type(made) is not np.ndarray else made_value(graph, made)
        parts: list[Any] = []
        kinds: list[Any] = []
        for item in items:
            if isinstance(item, slice):
                part = self._original[item].ravel()
            elif isinstance(item, (list, tuple)) and holds_values(item):
                part = array_of(item)
            else:
                part = item._value if is_number(item) else item
            weak = is_number(item) or isinstance(item, _KNOWN)
            kinds.append(item._kind(1) if is_number(item) else item if weak else getattr(part, "dtype", part))
            parts.append(part if is_symbolic(part) or weak else np.asarray(part))
        wanted = np.result_type(*(x if isinstance(x, (*_KNOWN, np.dtype)) else np.asarray(x).dtype for x in kinds))
        return np.concatenate([self._shaped(x, wanted) for x in parts], axis=-1 if self._columns else 0)

    def _shaped(self, x: Any, dtype: Any) -> Any:
        x = x if is_symbolic(x) else np.asarray(x, dtype)
        x = x if x.dtype == dtype else x.astype(dtype)
        if self._columns:
            return x[..., None] if x.ndim == 1 else x.reshape(1, 1) if x.ndim == 0 else x
        return x if x.ndim else x[None]


for _original, _columns in ((np.r_, False), (np.c_, True)):
    STAND_INS[id(_original)] = _original, _Joined(_original, _columns)
