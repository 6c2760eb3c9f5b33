"""Compile the functions of a differential equation into plans in the form that `csrc/ode/` calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core import Plan, Value
from ..compiling import front
from ..graph.graph import twinned
from ..graph.symbolic_number import is_number
from ..transforms.transforms import jacobian, jvp

__all__ = [
    "Described",
    "KeepsPlans",
    "NotHere",
    "compiled_jacobian",
    "derivative_of",
    "derived_jacobian_of",
    "described",
    "event_of",
    "jacobian_of",
]

_Function = Callable[..., Any]
# A plan, what each of its inputs is, and what makes the same for the path that other times and states need.
Described = tuple[Plan, tuple[str | bytes, ...], Callable[[float, bytes], Any]]


_MOST_SINGLE = 12  # variables, whose derivatives by each other are single numbers: a tape needs no Python


class NotHere(TypeError):
    """Report why SciPy is to integrate."""


class KeepsPlans:
    """Keep what `solve_ivp` compiles of a right-hand side, and of its other functions."""

    _f: _Function
    _options: dict[str, Any]
    _plans: dict[Any, Any]
    jac: Any


def _constant(x: Any, known: Any) -> Any:
    """Return the result of every call as computed by the call: `known` is one of its arguments."""
    return np.where(np.equal(known, known), x, x)


def _number(x: Any, t: Any) -> Any:
    """Return a float64 of no dimension that depends on the arguments."""
    if is_number(x):
        return np.multiply(x, 1.0)
    if not isinstance(x, Value):
        if not isinstance(x, int | float | np.bool_ | np.integer | np.floating | np.ndarray):
            raise NotHere(f"a {type(x).__name__} is among its results")
        return _constant(float(x), t)
    if x.node.kind == "constant":
        x = _constant(x, t)
    return _real(x)


def _real(x: Any) -> Any:
    if x.dtype is None or x.dtype.kind not in "biuf":
        raise NotHere(f"it returns {x.dtype}")
    return x if x.dtype == np.float64 else x.astype(np.float64)


def _rows(x: Any, shape: tuple[int, ...]) -> list[Any] | None:
    """Return the single numbers of a list, or a list of lists, of this shape, if it is one; else None."""
    if not isinstance(x, list | tuple) or len(x) != shape[0]:
        return None
    numbers = [*x]
    if len(shape) == 2:
        if not all(isinstance(row, list | tuple) and len(row) == shape[1] for row in x):
            return None
        numbers = [each for row in x for each in row]
    return numbers if all(np.shape(each) == () for each in numbers) else None


def _array(x: Any, shape: tuple[int, ...], t: Any) -> Any:
    """Return an array of these numbers, or a tuple of as many single ones."""
    numbers = _rows(x, shape)
    if numbers is not None:
        return tuple(_number(each, t) for each in numbers)
    if isinstance(x, list | tuple):
        x = np.stack([np.stack(row) if isinstance(row, list | tuple) else row for row in x])
    if shape[0] == 1 and np.shape(x) == ():
        return (_number(x, t),)
    if tuple(np.shape(x)) != shape:
        raise NotHere(f"it returns an array of shape {np.shape(x)}, where SciPy broadcasts: return {shape}")
    if not isinstance(x, Value):
        x = _constant(np.asarray(x, np.float64), t)
    elif x.node.kind == "constant":
        x = _constant(x, t)
    return _real(x)


def derivative_of(f: _Function) -> _Function:
    """Return `f(t, y, *args)` as a function of n numbers, float64."""

    def derivative(t: Any, y: Any, *args: Any) -> Any:
        return _array(twinned(f)(t, y, *args), (y.shape[0],), t)

    return derivative


def jacobian_of(f: _Function) -> _Function:
    """Return `f(t, y, *args)` as a function of n times n numbers, float64."""

    def jacobian(t: Any, y: Any, *args: Any) -> Any:
        return _array(twinned(f)(t, y, *args), (y.shape[0], y.shape[0]), t)

    return jacobian


def derived_jacobian_of(f: _Function) -> _Function:
    """Return the derivative by y of `f`, a right-hand side, in the form of `jacobian_of`."""
    form = derivative_of(f)
    by_arrays = jacobian_of(jacobian(form, 1, mode="forward"))

    def derived(t: Any, y: Any, *args: Any) -> Any:
        n = y.shape[0]
        if n > _MOST_SINGLE:
            return by_arrays(t, y, *args)
        columns = []
        for unit in np.eye(n):
            column = jvp(lambda y: form(t, y, *args), (y,), (unit,))[1]
            if not isinstance(column, tuple):
                return by_arrays(t, y, *args)
            columns.append(column)
        return tuple(_number(column[i], t) for i in range(n) for column in columns)

    return derived


def compiled_jacobian(f: _Function, options: dict[str, Any]) -> Any:
    """Return the compiled derivative by y of `f`, as SciPy calls it."""
    return front.compile(jacobian(derivative_of(f), 1, mode="forward"), **options)


def event_of(f: _Function) -> _Function:
    """Return `f(t, y, *args)` as a function of one number, float64."""

    def event(t: Any, y: Any, *args: Any) -> Any:
        number = twinned(f)(t, y, *args)
        if not is_number(number) and np.shape(number) != ():
            raise NotHere(f"an event returns an array of shape {np.shape(number)}")
        return _number(number, t)

    return event


def _plain(x: Any) -> bool:
    """Return whether it can be an input of a plan."""
    if type(x) is np.ndarray:
        return x.dtype.kind in "biufc" and x.dtype.isnative
    return type(x) in (int, float, complex) or (isinstance(x, np.generic) and x.dtype.kind in "biufc")


def described(
    form: Callable[[_Function], _Function],
    f: _Function,
    arguments: tuple[Any, ...],
    kept: dict[Any, Any] | None,
    options: dict[str, Any],
) -> Described:
    """Return the plan of `f` in this form, for a call with these arguments: t, y and more.

    `kept` has the plans that are compiled already.
    """
    t, y, *args = arguments
    try:
        key = form, f
        compiled = None if kept is None else kept.get(key)
        if not all(map(_plain, args)):
            fixed, kept, args = tuple(args), None, []
            compiled = front.compile(form(lambda t, y: twinned(f)(t, y, *fixed)), **options)
        elif compiled is None:
            compiled = front.compile(form(f), **options)
        plan = _of_call(compiled, t, y, args)
    except Exception as reason:
        name = getattr(f, "__name__", type(f).__name__)
        raise NotHere(f"{name} has no plan that can be called from C: {reason}") from reason
    if kept is not None:
        kept[key] = compiled
    return plan


def _of_call(compiled: Any, t: Any, y: Any, args: Sequence[Any]) -> Described:
    plan = compiled.plan_for(t, y, *args)
    inputs: list[str | bytes] = []
    for name, value in zip(plan.input_names, plan.graph.inputs, strict=True):
        if name in ("t", "y"):
            inputs.append(name)
        else:  # args.2 and so on
            given = args[int(name.partition(".")[2]) - 2]
            inputs.append(np.asarray(given).astype(value.dtype, casting="safe", order="C").tobytes())
    plan.capsule  # noqa: B018  an error where C cannot call it

    def again(t: float, y: bytes) -> Described:
        return _of_call(compiled, np.array(t), np.frombuffer(y), args)

    return plan, tuple(inputs), again
