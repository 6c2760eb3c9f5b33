"""Convert Values where twins call NumPy's types: ``np.uint32(x)`` is a cast, where NumPy would ask for numbers.

``np.ndarray(shape)`` makes an array as ``np.empty`` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Value
from .made import made_of
from .twins import StandIn, called_instead, graph_under_twins

__all__: list[str] = []


class _Cast:
    __slots__ = ("dtype", "original")

    def __init__(self, original: type) -> None:
        self.original = original
        self.dtype = np.dtype(original)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        x = args[0] if len(args) == 1 and not kwargs else None
        if type(x) is not Value or not self._converts(x) or graph_under_twins() is None:
            return self.original(*args, **kwargs)
        if x.dtype == self.dtype and (x.ndim or x._is_scalar):
            return x
        made = x.astype(self.dtype)
        return made if x.ndim or x._is_scalar else made[()]

    def _converts(self, x: Any) -> bool:
        known = x.dtype is not None and x.ndim is not None and x._is_scalar is not None
        return known and x.dtype.kind in "biufc" and (x.dtype.kind != "c" or self.dtype.kind == "c")


def _empty(*args: Any, **kwargs: Any) -> Any:
    if len(args) > 2 or not kwargs.keys() <= {"shape", "dtype", "order"} or graph_under_twins() is None:
        return np.ndarray(*args, **kwargs)  # of memory that somebody has
    return _as_empty(*args, **kwargs)


_as_empty = made_of(np.empty)
called_instead(np.ndarray, StandIn(np.ndarray, _empty))
for _kind in {np.dtype(code).type for code in np.typecodes["AllInteger"] + "?efdFD"}:
    called_instead(_kind, StandIn(_kind, _Cast(_kind)))
