"""Keep the residuals that an op saves of a call for its gradient rule.

In a graph an op whose rule asks for residuals returns one array more, the context: an int64 of shape ``[1]`` whose
memory belongs to the object that has the residuals. Whoever holds the array holds them; nobody else does. So a forward
call without a backward one leaves nothing behind, and there is no table of contexts to clear.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _core

__all__ = ["Context", "collect", "collecting", "residuals_of", "saved"]

_numbers = itertools.count(1)


class _Boxes(threading.local):
    innermost: Any = None


_boxes = _Boxes()
_NOTHING = object()


def saved(result: Any, /, *residuals: Any, **named: Any) -> Any:
    """Return from an op, and keep something for its gradient rule.

    Parameters
    ----------
    result : array or tree of array
        What the op returns.
    *residuals : object
        The rule's ``saved=`` is the one object, or the tuple of several.
    **named : object
        Instead: the attributes of the rule's ``saved=``.

    Returns
    -------
    array or tree of array
        `result`. When no gradient is asked for, the rest is dropped at once.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.op("float64[n] -> float64[n]")
    ... def root(x):
    ...     y = np.sqrt(x)
    ...     return pyop.saved(y, slope=0.5 / y)
    >>> @root.vjp
    ... def _(ct, x, *, saved):
    ...     return ct * saved.slope
    >>> root(np.array([4.0])), pyop.grad(lambda x: np.sum(root(x)))(np.array([4.0]))
    (array([2.]), array([0.25]))
    """
    box = _boxes.innermost
    # An op may call others that save something too.
    if box is not None and (box.code is None or sys._getframe(1).f_code is box.code):
        box.found = SimpleNamespace(**named) if named else residuals[0] if len(residuals) == 1 else residuals
    return result


class _Box:
    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.code = getattr(getattr(fn, "__func__", fn), "__code__", None)
        self.found: Any = _NOTHING


def collect(
    fn: Callable[..., Any], name: str, args: Any, kwargs: Any, call: Callable[..., Any] | None = None
) -> tuple[Any, Any]:
    """Return the result of a function and the residuals it saved; TypeError if it saved none.

    `call` is what to call where that is not the function itself.
    """
    box = _Box(fn)
    result = _core.call_with_attribute(_boxes, "innermost", box, call or fn, tuple(args), kwargs)
    if box.found is _NOTHING:
        raise TypeError(
            f"the gradient rule of op {name!r} takes saved=, but the op saved nothing: let it return "
            "pyop.saved(result, residuals)"
        )
    return result, box.found


def collect_if_any(fn: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the result of a function and its residuals, as `collect`; None for a function that saved nothing."""
    box = _Box(fn)
    result = _core.call_with_attribute(_boxes, "innermost", box, fn, tuple(args), kwargs)
    return result, None if box.found is _NOTHING else box.found


def collecting(fn: Callable[..., Any]) -> bool:
    """Return whether the residuals that this function saves are kept; otherwise it need not compute them."""
    box = _boxes.innermost
    return box is not None and box.fn is fn


class Context:
    """Own the residuals of one call, and the memory of the array that stands for them."""

    __slots__ = ("__weakref__", "_number", "residuals")

    def __init__(self, residuals: Any) -> None:
        self.residuals = residuals
        self._number = np.array([next(_numbers)], np.int64)
        self._number.flags.writeable = False

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._number.__array_interface__

    def array(self) -> np.ndarray[Any, Any]:
        """Return the array: a number by which people tell calls apart."""
        return np.asarray(self)


def residuals_of(context: Any, name: str) -> Any:
    """Return the residuals behind a context array; TypeError if it is none."""
    owner = context
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if not isinstance(owner, Context):
        raise TypeError(
            f"the context of op {name!r} is {context!r}, which no call has returned: feed the array of the forward "
            "node itself, not a number like it"
        )
    return owner.residuals
