"""Run compiled functions as they are written: `disable`, for debugging and for comparing."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from .._core import Disable
from .._tree import flatten
from ..declare.parameters import default_name
from ..interrupts import entered_as_a_whole

__all__ = ["disable", "result_into"]

F = TypeVar("F", bound=Callable[..., Any])


@entered_as_a_whole
class disable(Disable):
    """Run compiled functions plainly: as a context manager, or as a decorator.

    A function of `pyop.compile` then is the function that it was made of: it runs at every call, line by line, on the
    arrays that it is given, so that a debugger stops in it, ``print`` prints numbers and a comparison with the plan is
    one ``with``. Plans stay, for later calls. Graphs and Plans that were made by hand, and ops, are not concerned.

    It holds for the thread, or the task of asyncio, that enters it. The variable ``PYOP_DISABLE=1`` of the environment
    does the same for a whole process, from its start.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.compile
    ... def double(x):
    ...     print("doubling", x)
    ...     return x + x
    >>> with pyop.disable():
    ...     y = double(np.ones(2))
    doubling [1. 1.]
    >>> double.cache_info().plans
    0
    """

    __slots__ = ()

    def __call__(self, function: F) -> F:
        called = cast(Any, function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"disable cannot decorate {function.__qualname__}, a generator function, which runs while others ask "
                "for its items: write `with pyop.disable():` inside of it, between two yields"
            )
        wrapper: Callable[..., Any]
        if inspect.iscoroutinefunction(function):

            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with disable():
                    return await called(*args, **kwargs)

        else:

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with disable():
                    return called(*args, **kwargs)

        return cast(F, functools.wraps(function)(wrapper))


def result_into(fn: Any, result: Any, out: Any) -> Any:
    """Put what a function returned into the arrays of ``out=``, as a plan would have done, and return these."""
    name = default_name(fn)
    leaves, structure = flatten(result)
    targets = flatten(out)[0]
    if len(targets) != len(leaves):
        raise TypeError(f"{name}: out= has {len(targets)} arrays, and the result has {len(leaves)}")
    for leaf, target in zip(leaves, targets, strict=True):
        if type(target) is not np.ndarray or target.shape != np.shape(leaf) or target.dtype != np.asarray(leaf).dtype:
            raise TypeError(
                f"{name}: out= needs an array of the shape {np.shape(leaf)} and dtype {np.asarray(leaf).dtype}, as the "
                f"result has, and is {target!r:.60}"
            )
        np.copyto(target, leaf)
    return structure.unflatten(targets)
