"""Apply NumPy's functions to Values: a call adds a node, or is answered from what is known of the Values.

``Value.__array_ufunc__`` and ``Value.__array_function__`` call `array_ufunc` and `array_function`. The specs of the
results come from `pyop.functions`. A function without a rule gives one Value of unknown dtype and shape.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from .. import functions as rules
from .._core import Value, watching
from .._tree import flatten
from ..containers import check_operands
from ..declare.dims import Dim, prod
from ..declare.rebuild import holds, replaced, walk
from ..declare.spec import Spec
from ..functions import surface
from ..refusals import refusal
from .composed import COMPOSED
from .counter import has_counters, with_sizes
from .deciding import value_decided
from .forms import is_scalar
from .sizes import apply
from .unknown import unknown_attribute
from .views import share

__all__ = ["ANSWERED", "NUMBERS", "TESTS", "array_function", "array_ufunc", "to_specs"]

NUMBERS: list[Any] = []
"""The class of the Python numbers that a plan knows (`symbolic_number`, which is above)."""


def to_specs(x: Any) -> Any:
    """Return the same arguments with a Spec in place of each Value."""
    return replaced(x, _to_spec)


def _to_spec(x: Any) -> Any:
    return x.spec if isinstance(x, Value) else x


def array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a ufunc, or one of its methods, to Values: add a node to the graph they belong to.

    >>> import numpy as np, pyop
    >>> with pyop.Graph() as g:
    ...     x = g.input("float64[n, 3]")
    >>> np.multiply(x, 2).shape, np.add.reduce(x, axis=1).ndim
    ((Dim('n'), 3), 1)
    """
    from ..functions import ufuncs  # on first use: `import pyop` stays light

    kinds = [*map(type, inputs)]
    if list in kinds or tuple in kinds:
        from .lists import with_arrays  # on first use

        made, options = with_arrays(getattr(ufunc, method, ufunc), inputs, kwargs)
        if made is not inputs:
            return getattr(ufunc, method)(*made, **options)
    check_operands(f"{_called(ufunc)} of a Value", inputs, kwargs)
    if any(_is_foreign(item) for item in inputs):
        return NotImplemented
    if not isinstance(ufunc, np.ufunc):
        from . import foreign_ufuncs

        if method != "__call__":
            raise TypeError(f"{method} of {ufunc!r} cannot be a node: it is not a NumPy ufunc")
        return foreign_ufuncs.call(ufunc, inputs, kwargs)
    if method == "at" or kwargs.get("out") is not None:
        _refuse_plain_out(ufunc, method, kwargs.get("out"))
        if method == "at":
            return Value._writes.ufunc_at(ufunc, inputs, kwargs)
        if any(not isinstance(item, (Value, np.ndarray, type(None))) for item in kwargs.get("out") or ()):
            raise TypeError("return arrays must be of ArrayType")
        if any(type(item) is Value for item in kwargs["out"]):
            return Value._writes.ufunc_with_out(ufunc, method, inputs, kwargs)
    specs = ufuncs.infer(ufunc, method, to_specs(inputs), to_specs(kwargs) if kwargs else kwargs)
    kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    return apply(_bound(ufunc, method), inputs, kwargs, specs, name=_ufunc_name(ufunc, method), scalar=True)


def _refuse_plain_out(ufunc: np.ufunc, method: str, out: Any) -> None:
    """Raise if ``out`` of a ufunc on Values is a plain array."""
    if any(issubclass(type(item), np.ndarray) for item in (out or ())):
        name = _ufunc_name(ufunc, method)
        said = (
            f"`a += value` (or another augmented assignment, or np.{name}(..., out=a)) at {Value._here()} writes "
            "Values into a plain array, which cannot hold values known only when the graph runs: write "
            "`a = a + value`, which makes a Value; a captured array can be returned, and written by the caller"
        )
        raise refusal(said)


def array_function(
    func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Apply a function of NumPy to Values: add a node, or answer from shapes and dtypes where they are enough.

    It returns Values in the container that NumPy would return arrays in, or a plain Python object.

    >>> import numpy as np, pyop
    >>> with pyop.Graph() as g:
    ...     x = g.input("float32[n, 3]")
    >>> str(np.mean(x, axis=0).spec), np.shape(x)
    ('float32[3]', (Dim('n'), 3))
    """
    check_operands(f"{_name(func)} of a Value", args, kwargs)
    if not all(issubclass(kind, (Value, np.ndarray)) for kind in types):
        return NotImplemented
    if has_counters(args, kwargs):
        return with_sizes(array_function, func, types, args, kwargs)
    kinds = [*map(type, args)]
    if list in kinds or tuple in kinds:
        from .lists import with_arrays_of_numbers  # on first use

        args, kwargs = with_arrays_of_numbers(func, args, kwargs)
    refused = _REFUSED.get(func)
    if refused is not None:
        raise refusal(f"{_name(func)} {refused}")
    answer = ANSWERED.get(func)
    if answer is not None:
        return answer(func, *args, **kwargs)
    if func in surface.WRITERS:
        return Value._writes.write_by(func, args, kwargs)
    out = _out_of(func, args, kwargs)
    if out is not None and (type(out) is Value or (type(out) is tuple and type(out[0]) is Value)):
        return Value._writes.call_with_out(func, args, kwargs, out)
    if kwargs.get("overwrite_input"):
        said = f"{_name(func)}(overwrite_input=True) writes into its argument, and a Value is immutable: leave it away"
        raise refusal(said)
    composed = COMPOSED.get(func)
    if composed is not None:
        result = composed(*args, **kwargs)
        if result is not NotImplemented:
            return result
    rule = rules.lookup(func)
    if rule is None:
        if kwargs.get("out") is not None:
            rules.refuse_out()
        specs: Any = Spec()
    else:
        specs = rule(*to_specs(args), **to_specs(kwargs))
    if not holds((args, kwargs), Value):
        raise refusal(
            f"{_name(func)}(like=...) of a Value: call it without like= and use the array in the graph as it is"
        )
    if any(holds((args, kwargs), kind) for kind in NUMBERS):
        next(x for x in walk((args, kwargs)) if type(x) in NUMBERS)._needed()  # by the function, when it runs
    name = _name(func).removeprefix("np.")
    scalar = is_scalar(func, args, kwargs)
    if isinstance(specs, (tuple, list)) and not all(isinstance(spec, Spec) for spec in specs):
        made = apply(_leaves_of, (func, args, kwargs), {}, specs, name=name, scalar=scalar)
    else:
        made = apply(func, args, kwargs, specs, name=name, scalar=scalar)
    share(func, args, kwargs, made, rule is not None)
    return _bool_of(func, made) if func in TESTS else made


def _out_of(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the ``out`` of a call, given by keyword or by position; None if it has none."""
    if "out" in kwargs or not any(type(x) is Value for x in args[1:]):
        return kwargs.get("out")
    at = position_of_out(func)
    return None if at is None or len(args) <= at else args[at]


@lru_cache(maxsize=512)
def position_of_out(func: Callable[..., Any]) -> int | None:
    """Return the position of the argument ``out`` of a NumPy function; None if it cannot be given by position."""
    import inspect

    try:
        parameters = list(inspect.signature(func).parameters.values())
    except (ValueError, TypeError):
        return {np.concatenate: 2, np.dot: 2}.get(func)
    positions = [k for k, p in enumerate(parameters) if p.name == "out" and p.kind is not p.KEYWORD_ONLY]
    return positions[0] if positions and parameters[0].kind is not parameters[0].VAR_POSITIONAL else None


def _leaves_of(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the results of a function as a flat tuple, for the node."""
    return tuple(flatten(func(*args, **kwargs))[0])


def _is_foreign(x: Any) -> bool:
    """Return whether an operand of another library takes part in ufuncs by its own ``__array_ufunc__``."""
    return not issubclass(type(x), (Value, Dim, np.ndarray, np.generic)) and hasattr(type(x), "__array_ufunc__")


@lru_cache(maxsize=1024)
def _bound(ufunc: np.ufunc, method: str) -> Any:
    # One object for each method, so that equal nodes are seen to have the same callable.
    return ufunc if method == "__call__" else getattr(ufunc, method)


def _called(ufunc: Any) -> str:
    return f"np.{ufunc.__name__}" if isinstance(ufunc, np.ufunc) else repr(ufunc)


def _ufunc_name(ufunc: np.ufunc, method: str) -> str:
    return ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"


@lru_cache(maxsize=1024)
def _name(func: Callable[..., Any]) -> str:
    module = getattr(func, "__module__", "") or ""
    prefix = module.removeprefix("numpy").lstrip(".")
    inner = f"{prefix}." if prefix in ("linalg", "fft") else ""
    return f"np.{inner}{getattr(func, '__name__', repr(func))}"


# --- what NumPy answers with a bool of Python's

TESTS = (np.allclose, np.array_equal, np.array_equiv)
"""NumPy's functions that return Python's True or False, which `is`, isinstance() and an index tell from any Value."""


def _bool_of(func: Any, made: Value) -> Any:
    """Return the bool of the traced call, as a decision; the Value where a graph is made by hand."""
    truth = value_decided(made, "t")
    if truth is not NotImplemented:
        return truth
    if watching():
        write = "np.all(np.isclose(a, b))" if func is np.allclose else "np.all(a == b)"
        raise refusal(
            f"{_name(func)} at {Value._here()} returns Python's True or False, from the contents of arrays, which are "
            f"not known while this graph is made: write {write}, or use pyop.compile, which has a plan for each outcome"
        )
    return made


# --- answered at once


def _unknown(func: Callable[..., Any], what: str, a: Any) -> NoReturn:
    from .cells import shown_place

    raise refusal(
        f"{_name(func)} of a Value whose {what} is not known when the graph is built (node {a.node.name!r}, created "
        f"at {shown_place(a.node.origin)}): declare it in the spec of the input, or do this inside a pyop.op, which is "
        "called with arrays"
    )


def _shape(func: Any, a: Any) -> tuple[Any, ...]:
    shape: tuple[Any, ...] | None = a.shape
    if shape is None:
        _unknown(func, "shape", a)
    return shape


_STAND_INS = ("pyop.tracing.made", "pyop.tracing.twins")  # for the user's own call


def _shape_asked(func: Any, a: Any) -> tuple[Any, ...]:
    shape = _shape(func, a)
    asking = sys._getframe(2)
    while asking.f_globals.get("__name__", "").startswith(_STAND_INS) and asking.f_back is not None:
        asking = asking.f_back
    inside = asking.f_globals.get("__name__", "").startswith("pyop.")
    return shape if inside or not watching() else unknown_attribute(a, "shape", shape)


def _ndim(func: Any, a: Any) -> int:
    return len(_shape(func, a))


def _size(func: Any, a: Any, axis: Any = None) -> int | Dim:
    shape = _shape(func, a)
    if axis is not None:
        axes = axis if isinstance(axis, tuple) else (axis,)
        shape = tuple(shape[operator.index(k)] for k in axes)
    size = prod(shape)
    if size is None:
        _unknown(func, "size", a)
    return size


def _dtype(func: Any, a: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] | None = a.dtype
    if dtype is None:
        _unknown(func, "dtype", a)
    return dtype


def _of_dtypes(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function that looks at dtypes alone, which takes a dtype as well as an array."""
    return func(*(_dtype(func, arg) if isinstance(arg, Value) else arg for arg in args), **kwargs)


def _min_scalar_type(func: Any, a: Any) -> np.dtype[Any]:
    if _ndim(func, a) == 0:
        raise refusal(
            "np.min_scalar_type of a single number looks at its value, which a Value has only when its graph runs"
        )
    return _dtype(func, a)


def _of_stand_ins(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function that looks at dtype and shape alone, on stand-ins that take no memory."""
    return func(*(_stand_in(func, arg) for arg in args), **kwargs)


def _stand_in(func: Any, a: Any) -> Any:
    if not isinstance(a, Value):
        return a
    shape = _shape(func, a)
    if not all(isinstance(size, int) for size in shape):
        _unknown(func, "shape", a)
    return np.broadcast_to(np.empty((), _dtype(func, a)), shape)


def _by_dtype(func: Any, *args: Any) -> Any:
    return func(*(np.empty(0, _dtype(func, arg)) if isinstance(arg, Value) else arg for arg in args))


ANSWERED: dict[Any, Callable[..., Any]] = {
    np.shape: _shape_asked,
    np.ndim: _ndim,
    np.size: _size,
    np.result_type: _of_dtypes,
    np.can_cast: _of_dtypes,
    np.min_scalar_type: _min_scalar_type,
    np.common_type: _by_dtype,
    np.iscomplexobj: _by_dtype,
    np.isrealobj: _by_dtype,
    np.tril_indices_from: _of_stand_ins,
    np.triu_indices_from: _of_stand_ins,
    np.diag_indices_from: _of_stand_ins,
    np.einsum_path: _of_stand_ins,
}

# --- refused

_FILES = (
    "needs numbers, which a Value has only when its graph runs: save what g.run(...) or a compiled plan returns, "
    "or do it inside a pyop.op with stateful=True"
)
_TEXT = (
    "needs numbers, which a Value has only when its graph runs: print what g.run(...) returns, "
    "or str(value) to see what is known"
)
_MEMORY = "asks about memory, and a Value has none until its graph runs: call it on the arrays that g.run(...) returns"

_REFUSED: dict[Any, str] = {
    **dict.fromkeys(surface.SAVERS, _FILES),
    **dict.fromkeys(surface.PRINTERS, _TEXT),
    **dict.fromkeys(surface.ASK_MEMORY, _MEMORY),
}
