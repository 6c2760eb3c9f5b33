"""Change Tensors in place where nothing is recorded; raise where the record could not follow."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from .._core import Tensor, Value
from .._tree import flatten
from ..functions import surface
from ..graph.cells import place_in
from ..refusals import refusal
from .arrays import to_arrays

__all__ = ["changing", "into", "method", "refuse_write", "setitem"]

_HERE = __name__.rpartition(".")[0].rpartition(".")[0] + "."

# What to write instead of a change of elements.
_REMEDY = (
    "compute a new array instead, with np.where, np.concatenate or np.stack (y = np.where(mask, v, y)), use a "
    "pyop.Function with mark_dirty, or do it under no_grad() if it is no part of what is differentiated"
)


def refuse_write(how: str, target: Tensor, other: Any) -> NoReturn:
    """Raise: ``target += other`` would be seen through another name, which the record does not know of.

    `how` is the operator as it is written; `other` may be None.
    """
    raise refusal(_text(how, target, other), RuntimeError)  # the traceback holds no arrays: these would be seen again


def _text(how: str, target: Tensor, other: Any) -> str:
    named = _names_of(target)
    name = next((name for name, value in named if value is target), "x")
    remedy = f"write '{name} = {name} {how[:-1]} b', which makes a new array"
    if isinstance(other, Value):
        why = "a Tensor cannot be changed in place by an array of a graph"
    elif type(other).__name__ in ("BatchedArray", "BatchedScalar"):
        why = "an array that is the same for all examples under vmap cannot be changed in place by one of them"
    elif target._argument or (not target._watched and target._guarded):
        why = (
            "this would change the caller's array, an argument of the function that is differentiated, and the change "
            "cannot be recorded"
        )
    else:
        seen = ", ".join(dict.fromkeys(other_name for other_name, value in named if value is not target))
        why = (
            f"{name} shares its memory with {f'{seen}, ' if seen else ''}another array or a view, and the record "
            "cannot follow a change that is seen through both"
        )
        remedy += ", and where the other one is to change too, make it of the new parts (np.concatenate, np.where)"
    return f"{name} {how} ... at {_line()}: {why}: {remedy}"


def _line() -> str:
    frame = next(_frames())
    return place_in(frame.f_code, frame.f_lineno)


def _names_of(target: Tensor) -> list[tuple[str, Any]]:
    """Return the names of a Tensor, and of other arrays and Tensors over its memory; innermost function first."""
    names: list[tuple[str, Any]] = []
    array = target._numbers
    for variables in _scopes():
        for name, value in variables:
            if value is target:
                names.append((name, value))
            elif type(value) in (Tensor, np.ndarray):
                other = value._numbers if type(value) is Tensor else value
                if np.may_share_memory(array, other):
                    names.append((f"'{name}'", value))
    return names


def _scopes() -> Iterator[list[tuple[str, Any]]]:
    """Yield the variables of the running functions that are not pyop's."""
    for frame in itertools.islice(_frames(), 3):
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            continue  # a module or the body of a class
        variables = frame.f_locals
        yield list(variables.items())
        if sys.version_info < (3, 13):
            variables.clear()  # a copy that the frame keeps: what it holds would be seen as in use again


def _frames() -> Iterator[FrameType]:
    """Yield the frames of the running functions that are not pyop's, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(_HERE):
            yield frame
        frame = frame.f_back


def _check(target: Any, involved: list[Any], what: str, kind: type[Exception], remedy: str = "") -> None:
    """Raise for a change of elements of `target` that the record would have to follow."""
    remedy = f"{remedy}; or {_REMEDY}" if remedy else _REMEDY
    if any(type(x) is Tensor and x._watched for x in involved):
        raise refusal(f"{what} changes an array in place, which is not recorded: {remedy}", kind)
    if type(target) is Tensor and target._guarded:
        raise refusal(
            f"{what} changes memory that something recorded shares (the caller's array, or a result that was "
            f"detached), which is not recorded: {remedy}, or change a copy",
            kind,
        )


def changing(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function that changes its first argument."""
    target = args[0] if args else next(iter(kwargs.values()))
    remedy = surface.WRITERS.get(function, "")
    _check(target, [*flatten((args, kwargs))[0]], f"np.{function.__qualname__}", TypeError, remedy)
    result = function(*to_arrays(args), **to_arrays(kwargs))
    if type(target) is Tensor:
        target._bump()
    return result


def into(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function with ``out=``: a change in place."""
    out = kwargs["out"]
    outs = out if isinstance(out, tuple) else (out,)
    for target in outs:
        _check(target, [*flatten(args)[0], *outs], "out= (or a += b, where a is an array: write a = a + b)", TypeError)
    function(*to_arrays(args), **to_arrays(kwargs))
    for x in outs:
        if type(x) is Tensor:
            x._bump()
    return out if len(outs) > 1 or not isinstance(out, tuple) else outs[0]


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """Assign ``x[key] = value``."""
    _check(x, [x, *flatten((value, key))[0]], "assigning to elements, x[k] = v,", RuntimeError)
    x._numbers[to_arrays(key)] = to_arrays(value)
    x._bump()


def method(name: str) -> Callable[..., None]:
    """Return a method of ndarray that works in place, for a Tensor that is not recorded; it counts as a change."""
    remedy = surface.SURFACE[name].remedy.format(x="x")

    def change(self: Tensor, *args: Any, **kwargs: Any) -> None:
        _check(self, [self, *flatten((args, kwargs))[0]], f"{name}()", RuntimeError, remedy)
        getattr(self._numbers, name)(*to_arrays(args), **to_arrays(kwargs))
        self._bump()

    change.__name__ = name
    change.__doc__ = f"As ``ndarray.{name}``, in place; not while it is recorded."
    return change
