"""``np.array`` and its kin with Values in them, for twins: of nested lists, and of a Value itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dims import Dim, same
from ..declare.spec import Spec
from ..graph import calls
from ..graph.graph import Graph
from ..graph.symbolic_number import is_number
from ..graph.views import share_copy
from ..refusals import refusal
from .made import made_value
from .twins import graph_under_twins, stand_in

__all__ = ["array_of", "holds_values"]

_MOST_AXES = 64
_NUMBERS = (bool, int, float, complex)


def array_of(graph: Graph, items: Any, dtype: Any = None) -> Any:
    """``np.array(items, dtype)`` of nested lists or tuples with Values in them, with the dtype that NumPy finds.

    >>> import numpy as np, pyop
    >>> from pyop.tracing.literals import array_of
    >>> with pyop.Graph() as g:
    ...     x = g.input("float32[2]")
    >>> str(array_of(g, [[x[0], 1], [2, x[1]]]).spec)
    'float64[2,2]'
    """
    leaves = [*_leaves(items, ())]
    for _, leaf in leaves:
        if type(leaf) is Value and (leaf.dtype is None or leaf.shape is None or None in leaf.shape):
            raise refusal(
                f"np.array([...]) at {Value._here()} is given {leaf.name!r}, of which dtype or shape are not known: "
                "declare them, or put the parts together with np.stack"
            )
    sizes = {n for _, x in leaves if type(x) is Value for n in x.shape or () if isinstance(n, Dim)}
    if sizes and len({len(at) for at, _ in leaves}) > 1:
        raise refusal(
            f"np.array([...]) at {Value._here()} is given arrays of symbolic sizes and others: declare numbers for "
            "them, or put the parts together with np.stack"
        )
    # NumPy itself says what comes of it, given arrays of the same dtypes and shapes.
    found = np.array(_replaced(items, _sample), dtype=dtype)
    if found.dtype.kind not in "biufc":
        raise refusal(
            f"np.array([...]) at {Value._here()} makes an array of the dtype {found.dtype}, which has no place for "
            "what is known only when the graph runs: keep Values in a list"
        )
    if sizes and not all(_same_shape(leaves[0][1], leaf) for _, leaf in leaves[1:]):
        raise refusal(
            f"np.array([...]) at {Value._here()} is given arrays of different symbolic sizes: put them together with "
            "np.concatenate"
        )
    if all(_promotes(leaf, found.dtype) for _, leaf in leaves):
        return _stacked(items, found.dtype)
    whole = made_value(graph, np.zeros_like(found))
    for at, leaf in leaves:
        whole[at] = leaf
    return whole


def _leaves(x: Any, at: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    if type(x) in (list, tuple):
        if len(at) == _MOST_AXES:
            raise ValueError(
                f"np.array([...]) at {Value._here()} is given a list that is nested deeper than the {_MOST_AXES} axes "
                "that an array may have; does it contain itself?"
            )
        for k, item in enumerate(x):
            yield from _leaves(item, (*at, k))
    else:
        yield at, x


def _replaced(x: Any, by: Callable[[Any], Any]) -> Any:
    return [_replaced(item, by) for item in x] if type(x) in (list, tuple) else by(x)


def _sample(x: Any) -> Any:
    if is_number(x):
        return x._kind(1)
    if type(x) is not Value:
        return x
    known: Any = x
    if known._is_scalar:
        return known.dtype.type(0)
    return np.zeros([2 if isinstance(n, Dim) else n for n in known.shape], known.dtype)


def _same_shape(a: Any, b: Any) -> bool:
    shapes: Any = [x.shape if type(x) is Value else np.shape(x) for x in (a, b)]
    return len(shapes[0]) == len(shapes[1]) and all(same(m, n) for m, n in zip(*shapes, strict=True))


def _promotes(x: Any, dtype: np.dtype[Any]) -> bool:
    """Whether converting to the dtype is what promotion does, so that all spellings of it give the same."""
    if is_number(x):
        return np.can_cast(x._value.dtype, dtype)
    if type(x) is not Value or x._is_scalar is False:
        return True
    have: Any = x.dtype
    return np.can_cast(have, dtype)


def _stacked(x: Any, dtype: np.dtype[Any]) -> Any:
    if type(x) in (list, tuple):
        parts = [_stacked(item, dtype) for item in x]
        if any(type(part) is Value for part in parts):
            made = np.stack(parts)
            # np.array lays out by rows what np.stack lays out as its parts lie.
            return made if made.ndim is not None and made.ndim < 3 else made.copy()
        return np.array(parts, dtype)
    x = x._value if is_number(x) else x
    if type(x) is Value:
        return x if x.dtype == dtype else x.astype(dtype)
    return np.array(x, dtype)


def holds_values(x: Any) -> bool:
    """Return whether nested lists or tuples hold a Value; each is looked into once, since a list may hold itself."""
    waiting, seen = [x], set()
    while waiting:
        part = waiting.pop()
        if type(part) is not list and type(part) is not tuple:
            if type(part) is Value or is_number(part):
                return True
        elif id(part) not in seen:
            seen.add(id(part))
            waiting += part
    return False


def _array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: Any = False, ndmin: int = 0,
    like: Any = None,
) -> Any:  # fmt: skip
    graph = graph_under_twins()
    if graph is None or like is not None or not holds_values(object):
        options = {} if like is None else {"like": like}
        made = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **options)
        fresh = made is not object and made.base is None
        return made if graph is None or not fresh else made_value(graph, made)
    object = object._value if is_number(object) else object
    if type(object) is Value:
        made = _converted(object, dtype, order, copy)
    else:
        if copy is not None and not copy:
            return np.array([0.0], copy=False)  # NumPy's error
        made = array_of(graph, object, dtype)
        if order not in (None, "K", "A", "C"):
            made = np.copy(made, order)
    return made[(None,) * (ndmin - made.ndim)] if ndmin > made.ndim else made


def _converted(x: Any, dtype: Any, order: Any, copy: Any) -> Any:
    """``np.array`` of a Value: itself, where it is what is asked for and no copy is."""
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
    """As it is where it lies so, else a copy: nobody knows which until the graph runs."""
    made = calls.apply(np.asarray, (x,), {"order": order}, Spec(x.dtype, x.shape), name="asarray", scalar=False)
    share_copy(made, x)
    return made


def _asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    if graph_under_twins() is None or like is not None or device is not None or not holds_values(a):
        given = {"device": device, "copy": copy, "like": like}
        made = np.asarray(a, dtype, order, **{name: x for name, x in given.items() if x is not None})
        graph = graph_under_twins()
        return made if graph is None or made is a or made.base is not None else made_value(graph, made)
    return _array(a, dtype, copy=copy, order=order)


def _contiguous(original: Callable[..., Any], order: str) -> Callable[..., Any]:
    def contiguous(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
        graph = graph_under_twins()
        if graph is None or like is not None or not holds_values(a):
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
