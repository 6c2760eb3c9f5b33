"""Record Python's `math` in lifted code: ``math.exp(t)`` of a number or scalar that the trace does not know.

CPython calls the C library, and so does the plan: each function is a ufunc of the library's own, tried out against
`math` before its first use. So is CPython's own algorithm of `math.hypot` (csrc/array/native/python_math.h). Where
`math` raises, the library raises a floating-point flag; plans with such calls run with flags as errors, and on one the
function itself runs.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .._core import NativeCode, NativeKernel, Value, hypot_address
from ..gradients.table import same_rule
from ..graph.counter import is_counter
from ..graph.deciding import recorded_loop
from ..graph.number_operators import call_in_python, set_power
from ..graph.symbolic_number import Number, is_number
from .twins import graph_under_twins, stand_in

__all__ = ["as_float", "nearest", "of_library", "places_of"]

# Functions of floats for which CPython calls the function of this name in the C library.
_OF_ONE = (
    "acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 erf erfc expm1 log log10 log1p log2 sin sinh sqrt tan tanh"
)
_IN_PYTHON = "gamma lgamma"  # by algorithms of CPython's own
_SCALAR = 2  # enum pyop_kernel_kind of <pyop/kernel.h>
_OF_TWO = "atan2 copysign fmod pow remainder"
_HYPOT = {"hypot": 2, "hypot3": 3}
_DEGREES = math.pi / 180.0
_IN_NUMPY = {f"a{name}": f"arc{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")} | {
    "pow": "power"
}
_TRIED = np.concatenate([np.linspace(-4.0, 4.0, 41), np.geomspace(1e-300, 1e300, 40), -np.geomspace(1e-20, 1e20, 20)])


def as_float(x: Any) -> Value | float | None:
    """Return what a function of `math` makes of its argument, as a scalar of float64; None where that is not known."""
    if is_counter(x):
        x = x.number()
    if is_number(x):
        value = x._value if x._kind in (float, int, bool) else None
    elif type(x) is Value:
        known = x.shape == () and x.dtype is not None and x.dtype.kind in "biuf" and x.dtype.char != "g"
        value = x if known else None
    else:
        exact = type(x) is float or (type(x) in (int, bool) and abs(x) < 1 << 53)
        return float(x) if exact else None
    if value is None or value.dtype == np.float64:
        return value
    made: Value = value.astype(np.float64)
    return made


@cache
def _function(name: str, count: int) -> Any:
    """Return a function of the C library as a ufunc; None where it is not there, or computes otherwise than `math`."""
    others = np.roll(_TRIED, 7)
    original = getattr(math, name)
    tried = list(zip(*(_TRIED, others)[:count], strict=True))
    ufunc = of_library(name, (np.float64,) * (count + 1), original, tried)
    _note_rule(name, ufunc)
    return ufunc


def _note_rule(name: str, ufunc: Any) -> None:
    """Differentiate a function as NumPy's of the same meaning."""
    if ufunc is not None and (in_numpy := getattr(np, _IN_NUMPY.get(name, name), None)) is not None:
        same_rule(ufunc, in_numpy)


@cache
def _hypot_of(name: str) -> Any:
    """Return CPython's own `math.hypot` of so many numbers as a ufunc; None where it computes otherwise."""
    count = _HYPOT[name]
    numbers = [np.concatenate([_TRIED, np.sin(np.arange(4000.0) * (k + 1))]) for k in range(count)]
    tried = list(zip(*[np.roll(x, 7 * k).tolist() for k, x in enumerate(numbers)], strict=True))
    address = hypot_address(count, sys.version_info >= (3, 12))
    ufunc = of_library(name, (np.float64,) * (count + 1), math.hypot, tried, address)
    _note_rule(name, ufunc)
    return ufunc


def of_library(
    name: str, types: tuple[Any, ...], original: Callable[..., Any], tried: list[tuple[Any, ...]], address: Any = None
) -> Any:
    """Return a function of the C library, or one at an address, as a ufunc.

    Return None where it is not there, or gives for what is tried other results than `original`.
    """
    try:
        library = ctypes.CDLL(None)
        if address is None:
            address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        code = NativeCode(
            function=address,
            kind=_SCALAR,
            types=tuple(map(np.dtype, types)),
            n_in=len(types) - 1,
            cores="",
            name=f"c_{name}",
            owner=(library,),
            gil=False,
            raises=False,
            data=0,
        )
        kernel = NativeKernel(
            code=code, source="a function of the C library", parameters=("x", "y", "z")[: len(types) - 1]
        )
    except (OSError, AttributeError, TypeError, ValueError):
        return None
    ufunc = kernel.ufunc
    globals()[f"c_{name}"] = ufunc  # where a pickle finds it
    with np.errstate(all="ignore"):
        found = ufunc(*map(np.array, zip(*tried, strict=True))).tolist()
    for given, result in zip(tried, found, strict=True):
        try:
            wanted = original(*given)
        except (ValueError, OverflowError):
            continue
        if wanted != result and wanted == wanted:
            return None
    return ufunc


@cache
def nearest() -> Any:
    """Return the C library's function that makes an int64 of a whole number, or raises a flag; None as `of_library`."""
    tried = [(x,) for x in (0.0, -0.0, 1.0, -7.0, 2.0**52, -(2.0**62))]
    return of_library("llrint", (np.float64, np.int64), int, tried)


def __getattr__(name: str) -> Any:
    """Return a function of the C library that a pickle names."""
    function = name.removeprefix("c_")
    if name == "c_llrint":
        found = nearest()
    elif function in _HYPOT:
        found = _hypot_of(function)
    elif name.startswith("c_") and function in (_OF_ONE + " " + _OF_TWO).split():
        found = _function(function, 2 if function in _OF_TWO.split() else 1)
    else:
        found = None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def _called(name: str, count: int) -> Callable[..., Any]:
    original = getattr(math, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        graph = graph_under_twins()
        if graph is None:
            return original(*args, **kwargs)
        made = None if kwargs or len(args) != count else _node(graph, name, args)
        return graph._twins.of_a_library(original)(*args, **kwargs) if made is None else made

    return call


def _node(graph: Any, name: str, args: tuple[Any, ...]) -> Any:
    """Return a call of the C library's function as a Number; None where it is `math` that has to be called."""
    if graph._deciding is None or not any(type(x) is Value or is_number(x) or is_counter(x) for x in args):
        return None
    values = [as_float(x) for x in args]
    if any(x is None for x in values):
        return None
    function = _hypot_of(name) if name in _HYPOT else _function(name, len(args))
    if function is None:
        return None
    graph._overflows = True  # a flag raises
    return Number(float, function(*values), places_of(graph, args))


def places_of(graph: Any, args: tuple[Any, ...]) -> frozenset[Any]:
    """Return who is asked for a number that is computed of these: arguments, and the loop that is recorded."""
    places = frozenset().union(*[x._places for x in args if is_number(x)])
    loop = recorded_loop(graph)
    return places if loop is None else places | loop.places()


def _fabs(x: Any) -> Any:
    graph = graph_under_twins()
    value = None if graph is None or graph._deciding is None else as_float(x)
    if type(value) is not Value:
        return math.fabs(x) if graph is None else graph._twins.of_a_library(math.fabs)(x)
    made: Any = np.absolute(value)
    return Number(float, made, places_of(graph, (x,)))


def _hypot(*args: Any) -> Any:
    graph = graph_under_twins()
    if graph is None:
        return math.hypot(*args)
    name = {2: "hypot", 3: "hypot3"}.get(len(args))
    made = None if name is None else _node(graph, name, args)
    return graph._twins.of_a_library(math.hypot)(*args) if made is None else made


def _scaled(original: Callable[[float], float], scale: float) -> Callable[[Any], Any]:
    """Return `original`, which multiplies by a number, for numbers that are not known."""

    def call(x: Any) -> Any:
        graph: Any = graph_under_twins()
        value = None if graph is None or graph._deciding is None else as_float(x)
        if type(value) is not Value:
            return original(x) if graph is None else graph._twins.of_a_library(original)(x)
        graph._overflows = True  # of which `math` says nothing
        return Number(float, value * scale, places_of(graph, (x,)))

    return call


def _power(a: Any, b: Any) -> Any:
    """Return ``a ** b`` of floats, at least one of them a Number; None where that is not known."""
    graph = graph_under_twins()
    return None if graph is None else _node(graph, "pow", (a, b))


def _called_in_python(original: Callable[..., float]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        graph = graph_under_twins()
        if graph is None:
            return original(*args, **kwargs)
        numbers = any(map(is_number, args)) and not kwargs
        if numbers and all((x._kind if is_number(x) else type(x)) in (float, int) for x in args):
            return call_in_python(original, *args)
        return graph._twins.of_a_library(original)(*args, **kwargs)

    return call


for _name in _IN_PYTHON.split():
    stand_in(getattr(math, _name), _called_in_python(getattr(math, _name)))
for _name in _OF_ONE.split():
    stand_in(getattr(math, _name), _called(_name, 1))
for _name in _OF_TWO.split():
    stand_in(getattr(math, _name), _called(_name, 2))
stand_in(math.fabs, _fabs)
stand_in(math.hypot, _hypot)
stand_in(math.radians, _scaled(math.radians, _DEGREES))
stand_in(math.degrees, _scaled(math.degrees, 180.0 / math.pi))
set_power(_power)
