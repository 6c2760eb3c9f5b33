"""Make arrays for twins: ``np.array`` and its kin of nested lists with Values in them, and of a Value itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from ..declare.spec import Spec
from ..graph import calls
from ..graph.lists import array_of, holds_values, is_growing
from ..graph.symbolic_number import is_number
from ..graph.views import share_copy
from ..refusals import refusal
from .made import made_value
from .twins import graph_under_twins, stand_in

__all__: list[str] = []


def _is_made_of(x: Any) -> bool:
    """Return whether an array is made of a list with what is symbolic, or of a Value or Number under trace."""
    if type(x) is Value or is_number(x):
        return graph_under_twins() is not None
    return is_growing(x) or (isinstance(x, (list, tuple, deque)) and holds_values([*x]))


def _array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: Any = False, ndmin: int = 0,
    like: Any = None,
) -> Any:  # fmt: skip
    graph = graph_under_twins()
    if like is not None or not _is_made_of(object):
        options = {} if like is None else {"like": like}
        made = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **options)
        fresh = made is not object and made.base is None
        return made if graph is None or not fresh else made_value(graph, made)
    object = object._value if is_number(object) else [*object] if type(object) is deque else object
    if type(object) is Value:
        made = _converted(object, dtype, order, copy)
    else:
        if copy is not None and not copy:
            return np.array([0.0], copy=False)  # NumPy's error
        made = array_of(object, dtype)
        if order not in (None, "K", "A", "C"):
            made = np.copy(made, order)
    return made[(None,) * (ndmin - made.ndim)] if ndmin > made.ndim else made


def _converted(x: Any, dtype: Any, order: Any, copy: Any) -> Any:
    """Return ``np.array`` of a Value: itself, where it is what is asked for and no copy is."""
    wanted = None if dtype is None else np.dtype(dtype)
    if x.dtype is None or x.ndim is None or (wanted is not None and wanted.kind not in "biufc"):
        raise refusal(
            f"np.array(x, dtype) at {Value._here()} of {x.name!r}: its dtype and dimensions must be known, and numbers "
            "are asked for; write x.astype(dtype)"
        )
    other = wanted is not None and wanted != x.dtype
    if copy:
        return x.astype(wanted, order=_order(order)) if other else np.copy(x, _order(order))
    if copy is not None and (other or x._is_scalar):
        np.array(np.zeros(1, np.int8)[0], dtype="f8", copy=False)  # NumPy's error
    if other:
        return x.astype(wanted, order=_order(order))
    if x._is_scalar:
        return np.copy(x)
    if order in (None, "K", "A") or (x.ndim == 0 and order == "C"):
        return x
    if copy is not None:
        raise refusal(
            f"np.array(x, copy=False, order={order!r}) at {Value._here()}: it depends on the memory whether NumPy "
            "makes a copy; leave copy away"
        )
    return _laid_out(x, order)


def _order(order: Any) -> Any:
    return "K" if order is None else order


def _laid_out(x: Any, order: str) -> Any:
    """Return it as it is where its memory has this order, else a copy: which of both is known when the graph runs."""
    made = calls.apply(np.asarray, (x,), {"order": order}, Spec(x.dtype, x.shape), name="asarray", scalar=False)
    share_copy(made, x)
    return made


def _asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    if like is not None or device is not None or not _is_made_of(a):
        given = {"device": device, "copy": copy, "like": like}
        made = np.asarray(a, dtype, order, **{name: x for name, x in given.items() if x is not None})
        graph = graph_under_twins()
        return made if graph is None or made is a or made.base is not None else made_value(graph, made)
    return _array(a, dtype, copy=copy, order=order)


def _contiguous(original: Callable[..., Any], order: str) -> Callable[..., Any]:
    def contiguous(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
        graph = graph_under_twins()
        if like is not None or not _is_made_of(a):
            options = {} if like is None else {"like": like}
            made = original(a, dtype, **options)
            return made if graph is None or made is a or made.base is not None else made_value(graph, made)
        return _array(a, dtype, copy=None, order=order, ndmin=1)

    return contiguous


stand_in(np.array, _array)
stand_in(np.asarray, _asarray)
stand_in(np.asanyarray, _asarray)
stand_in(np.ascontiguousarray, _contiguous(np.ascontiguousarray, "C"))
stand_in(np.asfortranarray, _contiguous(np.asfortranarray, "F"))
