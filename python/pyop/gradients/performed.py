"""Define `performed`: what memories hold after a function of NumPy's has written into parts of them.

A write to Values that is spelled as a call (``np.add(a, b, out=y[1:])``, ``y.sort()``, ``np.copyto(y, a)``) becomes a
node that calls it (`pyop.graph.writes_by_functions`). It runs that very function on copies of the memories, in which
the parts lie as they do in NumPy: so the bits, the errors and the warnings are those of NumPy's loops. The derivatives
are in functions/writing/grad.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import fill_up_call
from .store import Views, memory_of, seen
from .unbroadcast import primitive

__all__ = ["Place", "Places", "argument_at", "arguments_with", "attempted", "fill_flat", "performed", "set_flat"]

# Where an argument stands (a position or keyword, then positions in lists and tuples); of which memory it shows a part,
# and how; whether it is written. A memory of -1: an array of no dimension where NumPy has a scalar.
Place = tuple[tuple[Any, ...], int, Views, bool]
Places = tuple[Place, ...]


@primitive(lambda function, roots, args, kwargs, places: roots[0] if len(roots) == 1 else tuple(roots))
def performed(
    function: Callable[..., Any], roots: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], places: Places
) -> Any:
    """Return copies of `roots`, laid out as these are, after ``function(*args, **kwargs)`` has written into them.

    At `places` among the arguments stand parts of the copies. Where a plan gives a root away, it is written itself.
    """
    memories = [memory_of(root) for root in roots]
    given, options = arguments_with(args, kwargs, places, memories)
    function(*given, **options)
    return memories[0] if len(memories) == 1 else tuple(memories)


fill_up_call("performed", performed)


def arguments_with(
    args: Any, kwargs: dict[str, Any], places: Places, memories: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of the call, with the parts of `memories` in their places."""
    args, kwargs = list(args), dict(kwargs)
    for where, memory, views, _ in places:
        if memory < 0:
            given = argument_at(args, kwargs, where)
            put_argument(args, kwargs, where, given[()] if isinstance(given, np.ndarray) else given)
        else:
            put_argument(args, kwargs, where, seen(memories[memory], views))
    return args, kwargs


def argument_at(args: Any, kwargs: dict[str, Any], where: tuple[Any, ...]) -> Any:
    """Return the argument that stands there."""
    argument = args[where[0]] if isinstance(where[0], int) else kwargs[where[0]]
    for step in where[1:]:
        argument = argument[step]
    return argument


def put_argument(args: list[Any], kwargs: dict[str, Any], where: tuple[Any, ...], item: Any) -> None:
    """Put another argument there."""
    holder: Any = args if isinstance(where[0], int) else kwargs
    holder[where[0]] = _with(holder[where[0]], where[1:], item)


def _with(x: Any, path: tuple[Any, ...], item: Any) -> Any:
    if not path:
        return item
    items = list(x)
    items[path[0]] = _with(items[path[0]], path[1:], item)
    return type(x)(items)


def attempted(x: Any, function: Callable[..., Any], *args: Any) -> None:
    """Call ``function(x, *args)``, which is known to raise when it has written a part."""
    with np.errstate(all="ignore"), contextlib.suppress(Exception):
        function(x, *args)


def set_flat(x: Any, key: Any, value: Any) -> None:
    """Assign ``x.flat[key] = value``."""
    x.flat[key] = value


def fill_flat(x: Any, values: Any) -> None:
    """Assign ``x.flat = values``."""
    x.flat = values
