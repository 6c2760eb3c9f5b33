"""Rehearse a write: run the function once on arrays of zeros.

So NumPy's errors are raised while the function is traced, which may catch them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Value
from ..declare.rebuild import replaced, walk
from .symbolic_number import is_number

__all__ = ["rehearse"]

_MOST = 1 << 22  # elements: what takes longer is left to the run
_kept: set[Any] = set()
# What fits is told by the elements.
_BY_ELEMENTS = frozenset((np.compress, np.extract, np.choose))


def rehearse(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what ``function(*args, **kwargs)`` raises going by dtypes and shapes.

    >>> import numpy as np, pyop
    >>> with pyop.Graph() as g:
    ...     x = g.input("int64[3]")
    >>> rehearse(np.copyto, (x, 0.5), {})
    Traceback (most recent call last):
    TypeError: Cannot cast scalar from dtype('float64') to dtype('int64') according to the rule 'same_kind'
    """
    values: list[Any] = [x for x in walk((args, kwargs)) if type(x) is Value]
    if function in _BY_ELEMENTS or any(x.dtype is None or x.shape is None for x in values):
        return
    known = all(type(n) is int for x in values for n in x.shape)
    if sum(math.prod([n if type(n) is int else 1 for n in x.shape]) for x in values) > _MOST:
        return
    key = _key_of(function, args, kwargs)
    if key is not None and key in _kept:
        return
    stand_ins: dict[int, Any] = {}

    def stand_in(x: Any) -> Any:
        if type(x) is Value:
            if id(x) not in stand_ins:
                made = np.zeros([n if type(n) is int else 3 for n in x.shape], x.dtype)  # type: ignore[union-attr]
                stand_ins[id(x)] = made[()] if x._is_scalar else made
            return stand_ins[id(x)]
        return x._kind(0) if is_number(x) else x

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*replaced(args, stand_in), **replaced(kwargs, stand_in))
        except TypeError:
            raise
        except Exception:
            if known:
                raise
            return  # a size that nobody knows may be right
    if key is not None and len(_kept) < 4096:
        _kept.add(key)


def _key_of(function: Any, args: Any, kwargs: Any) -> Any:
    try:
        key = (function, _spelled(args), _spelled(kwargs))
        hash(key)
    except TypeError:
        return None
    return key


def _spelled(x: Any) -> Any:
    if type(x) is Value:
        return (x.spec, x._is_scalar)
    if is_number(x):
        return x._kind
    if isinstance(x, (tuple, list)):
        return (type(x), *map(_spelled, x))
    if isinstance(x, dict):
        return tuple((key, _spelled(item)) for key, item in x.items())
    return (type(x), x)
