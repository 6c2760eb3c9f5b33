"""List functions of NumPy that return an array that they are given, or a view, so that no write is lost.

`share` tells the Values that a call has made whose memory they show. All other functions make arrays of their own;
tests/silence/test_views.py asks NumPy about every function that has a rule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._core import Value
from .._tree import flatten
from ..declare.rebuild import walk
from .forms import found

__all__ = ["share", "share_copy"]

_VIEWS = found(
    *("reshape", "ravel", "transpose", "permute_dims", "matrix_transpose", "linalg.matrix_transpose", "swapaxes"),
    *("moveaxis", "rollaxis", "squeeze", "expand_dims", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays"),
    *("split", "array_split", "hsplit", "vsplit", "dsplit", "unstack", "flip", "fliplr", "flipud", "rot90"),
    *("real", "imag", "real_if_close", "trim_zeros", "ix_", "apply_over_axes", "polyder", "polyint", "diff"),
    *("linalg.matrix_power",),
) | {np.ndarray.view}
# Of these NumPy makes a view of whatever memory; the others copy what does not lie so.
_CERTAIN = found(
    *("transpose", "permute_dims", "matrix_transpose", "linalg.matrix_transpose", "swapaxes", "moveaxis", "rollaxis"),
    *("squeeze", "expand_dims", "atleast_1d", "atleast_2d", "atleast_3d", "split", "array_split", "hsplit", "vsplit"),
    *("dsplit", "unstack", "flip", "fliplr", "flipud", "rot90", "broadcast_to", "diagonal", "linalg.diagonal"),
    "lib.stride_tricks.sliding_window_view",
) | {np.ndarray.view}
# Of these it goes by the memory alone whether NumPy makes a view or a copy, which a plan does too.
_VIEWS_OR_COPIES = found("reshape", "ravel")
_READ_ONLY = found("broadcast_to", "diagonal", "linalg.diagonal", "diag", "lib.stride_tricks.sliding_window_view")


def share(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], made: Any, known: bool = True
) -> None:
    """Set whose memory the results of a call (`made`) show.

    Where `func` is not known they may show any of its arguments.

    >>> import numpy as np, pyop
    >>> with pyop.Graph() as g:
    ...     x = g.input("float64[3]")
    >>> y = x * 2
    >>> v = np.real_if_close(y)
    >>> y += 1
    Traceback (most recent call last):
    TypeError: `+=` at ...
    """
    if not known:
        bases = list(_arrays((args, kwargs)))
        for value in flatten(made)[0]:
            value._may_show(tuple(bases), False)
        return
    read_only = func in _READ_ONLY
    if not (read_only or func in _VIEWS or _is_view(func, args, kwargs)):
        return
    bases = list(_arrays((args, kwargs) if func is not operator.getitem else args[0]))
    if func is np.diag and bases and bases[0].ndim == 1:
        return  # a matrix of its own
    captured = any(not isinstance(base, Value) for base in bases)
    for value in flatten(made)[0]:
        if value._is_scalar:
            continue
        if captured or len(bases) > 1:
            value._may_show(tuple(bases), captured)
        elif bases:
            certain = _is_certain(func, args, bases[0])
            if certain or func not in _VIEWS_OR_COPIES or not value._show_or_copy(bases[0]):
                value._show(bases[0], read_only, certain)
        if func is np.imag and (value.dtype is None or bases[0].dtype is None or bases[0].dtype.kind != "c"):
            value._set_read_only()


def share_copy(made: Any, x: Any) -> None:
    """Mark a new Value as another one or a copy of it, depending on the memory layout."""
    if not made._show_or_copy(x):
        made._show(x, False, False)


def _is_view(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the call gives a view, for a function where that depends on the arguments."""
    if func is operator.getitem:
        return is_basic(args[1])
    if func is np.ndarray.astype:
        return len(args) > 5 and not args[5]
    if func is getattr(np, "astype", None):
        return not kwargs.get("copy", True)
    if func is np.meshgrid:
        return not kwargs.get("copy", True)
    if func is np.einsum:
        return sum(isinstance(x, (Value, np.ndarray)) for x in args) == 1 and _keeps_labels(args) is not False
    return False


def _keeps_labels(args: tuple[Any, ...]) -> bool | None:
    """Return whether np.einsum of one array sums nothing and so gives a view; None if that is not known."""
    if len(args) != 2 or type(args[0]) is not str or "." in args[0]:
        return None
    given, arrow, wanted = args[0].replace(" ", "").partition("->")
    wanted = wanted if arrow else "".join(label for label in given if given.count(label) == 1)
    return set(given) == set(wanted)


def _is_certain(func: Any, args: tuple[Any, ...], base: Value) -> bool:
    """Return whether NumPy gives a view there whatever memory it is of."""
    if func is operator.getitem:
        keys = args[1] if isinstance(args[1], tuple) else (args[1],)
        return not any(
            type(key) is Value and (key.shape is None or key.dtype is None or key._is_scalar is None) for key in keys
        )
    kind = "" if base.dtype is None else base.dtype.kind
    if func in (np.real, np.imag):
        return kind == "c" or (func is np.real and kind in tuple("biuf"))
    if func is np.diag:
        return base.ndim == 2
    if func is np.einsum:
        return bool(_keeps_labels(args))
    return func in _CERTAIN


def is_basic(key: Any) -> bool:
    """Return whether indexing by this key gives a view: nothing in it selects elements one by one."""
    for item in key if isinstance(key, tuple) else (key,):
        if type(item) is Value:
            if item.shape is None or item.dtype is None:
                continue  # it may be an integer
            if item.shape != () or item.dtype.kind == "b" or item._is_scalar is False:
                return False
        elif isinstance(item, list):
            return all(isinstance(name, str) for name in item) and bool(item)
        elif isinstance(item, (bool, np.bool_, tuple, np.ndarray)):
            return False  # an array of no dimension selects an element, too, where an integer gives a view
    return True


def _arrays(x: Any) -> Iterator[Any]:
    """Yield the Values and arrays in nested containers."""
    return (leaf for leaf in walk(x) if type(leaf) is Value or isinstance(leaf, np.ndarray))
