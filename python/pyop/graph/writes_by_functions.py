"""Write into Values by calls: ``out=``, ``np.copyto``, ``np.put``, ``y.sort()``, ``ufunc.at``.

Where the call without ``out=`` gives the same numbers to the last bit, it is made and its result stored. All else
becomes a node that runs the function itself on a copy of the memory (`pyop.gradients.performed`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._core import Value
from ..declare.rebuild import walk
from ..functions import ufuncs
from ..gradients.performed import argument_at, attempted, fill_flat, performed, put_argument, set_flat
from ..refusals import refusal
from .array_protocol import position_of_out, to_specs
from .deciding import RunItself
from .rehearsal import rehearse
from .sizes import apply
from .symbolic_number import is_number, specialise
from .value_refusals import refuse_write
from .writes import checked_value, store_part, views_of, write

__all__ = ["byteswap", "call_with_out", "nan_to_num", "perform", "ufunc_at", "ufunc_with_out", "write_by"]

_KINDS = "biufc"
_REMEDY = "write `x[...] = ...` with the result of the function without out="
# NumPy's loops of these round alike, however the result lies and whatever it overwrites (of real numbers).
_ROUNDED_ALIKE = frozenset(
    (
        *(np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.absolute, np.fabs, np.sqrt),
        *(np.floor_divide, np.remainder, np.maximum, np.minimum, np.fmax, np.fmin, np.floor, np.ceil, np.trunc),
        *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isnan, np.isfinite),
        *(np.logical_and, np.logical_or, np.logical_xor, np.logical_not, np.invert, np.left_shift, np.right_shift),
        *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.square, np.copysign, np.signbit, np.isinf, np.rint),
        *(np.sign, np.conjugate),
    )
)
# These have written a part when they raise.
_IN_PART = frozenset((np.put, np.ndarray.put, set_flat))
# Of a scalar, which has no memory, these write into a copy that nobody sees.
_INTO_COPIES = frozenset((np.put, np.ndarray.put, set_flat, fill_flat))
# These look whether they may write only after they have seen that there is something to do, or never.
_LOOK_LATE = frozenset((np.copyto, np.round, np.around, np.ndarray.round, np.concatenate, np.stack))


def perform(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    written: Sequence[tuple[Any, ...]],
    operation: str,
) -> None:
    """Record ``function(*args, **kwargs)``, which writes into the arguments at the places `written`.

    NumPy's errors are raised, or a refusal where it is not known who would see the write.

    >>> import numpy as np, pyop
    >>> @pyop.compile
    ... def ordered(x):
    ...     y = x * 1.0
    ...     y[1:].sort()
    ...     return y
    >>> ordered(np.array([3.0, 2.0, 1.0]))
    array([3., 1., 2.])
    """
    args = tuple(args)
    targets = [argument_at(args, kwargs, where) for where in written]
    for target in targets:
        _check_target(target, operation)
    if any(map(is_number, walk((args, kwargs)))):
        specialise(args, kwargs)
    try:
        rehearse(function, args, kwargs)
    except Exception:
        if function in _IN_PART:
            perform(attempted, (args[0], function, *args[1:], *kwargs.values()), {}, written, operation)
        raise
    if function in _INTO_COPIES and all(target._is_scalar for target in targets):
        return
    for target in targets:
        _check_writable(target, function, operation)
    owners: list[Any] = []
    for target in targets:
        if not any(_same_memory(target, owner) for owner in owners):
            owners.append(target)
    roots = tuple([owner._root() for owner in owners])
    rest, options, places = list(args), dict(kwargs), []
    others = [where for where in (*_places(args), *_places(kwargs)) if where not in written]
    for where in (*written, *others):
        item = argument_at(args, kwargs, where)
        memory = next((k for k, owner in enumerate(owners) if _same_memory(item, owner)), -1)
        if memory >= 0:
            places.append((where, memory, views_of(item), where in written))
            put_argument(rest, options, where, None)
        elif item._is_scalar:
            places.append((where, -1, (), False))
        elif any(item._is_related(owner) for owner in owners):
            raise refuse_write(f"`{operation}`", f"where another argument may be a view of it: copy that; {_REMEDY}")
    _check_arguments((rest, options), operation)
    specs: Any = tuple(root.spec for root in roots)
    name = getattr(function, "__name__", "perform")
    call = (function, roots, tuple(rest), options, tuple(places))
    made = apply(performed, call, {}, specs[0] if len(specs) == 1 else specs, name=name, scalar=False)
    for owner, root in zip(owners, (made,) if len(roots) == 1 else made, strict=True):
        owner._write_root(root)


def _check_target(target: Any, operation: str) -> None:
    if target._is_scalar is None or target.dtype is None or target.ndim is None:
        raise refuse_write(f"`{operation}`", f"dtype and dimensions of what is written must be known; {_REMEDY}")
    if target.dtype.kind not in _KINDS:
        raise refuse_write(
            f"`{operation}`", f"it is of the dtype {target.dtype}, and only writes of numbers are followed; {_REMEDY}"
        )


def _check_writable(target: Any, function: Callable[..., Any], operation: str) -> None:
    try:
        target._check_writable(operation)
    except ValueError as error:
        if function not in _LOOK_LATE or target.graph._deciding is None:
            raise
        raise RunItself(f"{operation} of an array that is read-only", ()) from error


def _check_arguments(arguments: Any, operation: str) -> None:
    for item in walk(arguments):
        if isinstance(item, slice) and any(type(n) is Value for n in (item.start, item.stop, item.step)):
            raise refuse_write(f"`{operation}`", "where a slice has bounds that the graph computes: write `x[key] = y`")


def _same_memory(a: Any, b: Any) -> bool:
    return a is b or bool(a._shares_memory(b))


def _places(x: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of Values among nested arguments."""
    if type(x) is Value:
        yield path
    elif isinstance(x, (tuple, list, dict)):
        for step, item in x.items() if isinstance(x, dict) else enumerate(x):
            yield from _places(item, (*path, step))


# --- ufuncs


def ufunc_with_out(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc, or a method of one, with ``out=`` a Value or several."""
    out = kwargs["out"]
    outs = out if isinstance(out, tuple) else (out,)
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    operation = f"np.{name}(..., out=x)"
    if any(item is None for item in outs):
        raise refuse_write(f"`{operation}`", f"where one of out= is None: give an array for each result; {_REMEDY}")
    if method == "__call__" and len(outs) == 1 and not kwargs.keys() - {"out"} and _is_stored(ufunc, inputs, outs[0]):
        rehearse(ufunc, inputs, {"out": outs[0]})
        outs[0]._check_writable(operation)
        _write(outs[0], ufunc(*inputs), inputs)
    else:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        where = [("out", k) for k in range(len(outs))]
        perform(function, inputs, {**kwargs, "out": outs}, where, operation)
    return outs[0] if len(outs) == 1 else outs


def _is_stored(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any) -> bool:
    """Return whether to store the result of the call without ``out=``: that has the same bits, dtype and shape."""
    if len(inputs) != ufunc.nin or out._is_scalar is not False or out.shape is None:
        return False
    if ufunc not in _ROUNDED_ALIKE and not _runs_alike(ufunc, inputs, out):
        return False
    if any(is_number(x) for x in inputs):
        specialise(inputs)
    if out.dtype is None or out.dtype.kind not in "biuf" or out.dtype.itemsize > 8 or None in out.shape:
        return False
    dtypes = [to_specs(x).dtype if type(x) is Value else None for x in inputs]
    if any(dtype is not None and dtype.kind not in "biuf" for dtype in dtypes):
        return False
    return bool(ufuncs.infer(ufunc, "__call__", to_specs(inputs), {}) == out.spec)


def _runs_alike(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any) -> bool:
    """Return whether NumPy runs the same loop on the same elements for a new array.

    `out` is then whole, lies as a new array would, and is read whole if at all.
    """
    if ufunc.signature is not None or out._views():
        return False
    others = [x for x in inputs if x is not out]
    return all(np.ndim(x) < 2 or out.ndim < 2 for x in others) and not any(out._is_related(x) for x in others)


def _write(target: Any, made: Any, inputs: tuple[Any, ...]) -> None:
    # What lies otherwise than the target is not put in its place: what is computed later goes by that. Nor is a scalar,
    # which a ufunc makes of no dimension: it would be bound anew, and not written, from then on.
    alike = target.ndim < 2 or not any(np.ndim(x) > 1 and x is not target for x in inputs)
    if alike and target.ndim > 0 and not target._views():
        target._write_root(made)
    else:
        store_part(target, made)


def ufunc_at(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Apply ``ufunc.at(y, indices, b)``."""
    if type(inputs[0]) is not Value:
        said = (
            f"np.{ufunc.__name__}.at at {Value._here()} writes Values into a plain array: copy it into a symbolic one "
            "first, y = np.zeros_like(x, shape=...); y[...] = a"
        )
        raise refusal(said)
    operation = f"np.{ufunc.__name__}.at(x, ...)"
    try:
        perform(ufunc.at, inputs, kwargs, ((0,),), operation)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise refuse_write(
            f"`{operation}`", "`x` is read-only, which NumPy does not check here: write into what it is a view of"
        ) from None


# --- functions


def call_with_out(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """Call a function of NumPy with ``out=`` a Value."""
    if "out" in kwargs:
        where: Any = "out"
    else:
        where = position_of_out(function)
    if isinstance(out, tuple):
        if len(out) != 1 or where != "out":
            raise refuse_write(
                f"`np.{function.__name__}(..., out=x)`", f"where out= is a tuple: give the array; {_REMEDY}"
            )
        out, kwargs = out[0], {**kwargs, "out": out[0]}
    perform(function, args, kwargs, ((where,),), f"np.{function.__name__}(..., out=x)")
    return out


def write_by(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Call a function of NumPy that writes into its first argument."""
    name = f"np.{function.__name__}"
    if not args:
        first, *_ = inspect.signature(function).parameters
        args, kwargs = (kwargs[first],), {key: item for key, item in kwargs.items() if key != first}
    if type(args[0]) is not Value:
        said = (
            f"{name} at {Value._here()} writes Values into a plain array, which cannot hold values known only "
            "when the graph runs: make it of a symbolic array, a = np.zeros_like(x, shape=...)"
        )
        raise refusal(said)
    same = function is np.copyto and len(args) == 2 and args[1] is args[0]
    if same and args[0]._is_scalar is False and args[0].ndim != 0:
        return  # NumPy looks no further, not even whether it may write; at one number it does
    if function is np.copyto and len(args) == 2 and not kwargs.keys() - {"casting"}:
        _check_target(args[0], f"{name}(x, ...)")
        rehearse(function, args, kwargs)
        _check_writable(args[0], function, f"{name}(x, ...)")
        _assign(args[0], args[1], f"{name}(x, ...)")
    else:
        perform(function, args, kwargs, ((0,),), f"{name}(x, ...)")


def _assign(target: Any, value: Any, operation: str) -> None:
    """Assign ``target[...] = value`` under the name of another operation."""
    target._check_writable(operation)
    value, scalar = checked_value(target.dtype, value)
    write(target, ..., value, scalar)


# --- methods


def fill(self: Any, value: Any) -> None:
    """Fill the array with one value, as `ndarray.fill`."""
    _check_method(self, "fill")
    _check_target(self, "x.fill(...)")
    rehearse(np.ndarray.fill, (self, value), {})
    if is_number(value) or type(value) in (bool, int, float, complex) or (type(value) is Value and value.ndim == 0):
        _assign(self, value, "x.fill(...)")
    else:
        perform(np.ndarray.fill, (self, value), {}, ((0,),), "x.fill(...)")


def sort(self: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: bool | None = None) -> None:
    """Sort the array in place, as `ndarray.sort`."""
    options = {"kind": kind, "order": order, "stable": stable}
    _method(np.ndarray.sort, self, axis, **{k: v for k, v in options.items() if v is not None})


def partition(self: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> None:
    """Partition the array in place, as `ndarray.partition`."""
    _method(np.ndarray.partition, self, kth, axis, kind, **({} if order is None else {"order": order}))


def put(self: Any, indices: Any, values: Any, mode: Any = "raise") -> None:
    """Put values at flat indices, as `ndarray.put`."""
    _method(np.ndarray.put, self, indices, values, mode)


def byteswap(self: Any) -> Any:
    """Swap the bytes of the elements in place: ``x.byteswap(inplace=True)``."""
    _method(np.ndarray.byteswap, self, True)
    return self


def nan_to_num(self: Any, options: dict[str, Any]) -> Any:
    """Replace nan in place: ``np.nan_to_num(x, copy=False)``, which skips integers, even read-only ones."""
    if self.dtype.kind in "fc":
        perform(np.nan_to_num, (self, False), options, ((0,),), "np.nan_to_num(x, copy=False)")
    return self[()] if self.ndim == 0 else self


def _method(method: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    _check_method(self, method.__name__)
    perform(method, (self, *args), kwargs, ((0,),), f"x.{method.__name__}(...)")


def _check_method(self: Any, name: str) -> None:
    if self._is_scalar:  # NumPy's scalars have these, and write nothing
        getattr(self.dtype.type(0), name)
        raise refusal(f"x.{name}(...) of a NumPy scalar, which cannot be written: leave it out")


for _writer in (fill, sort, partition, put):
    setattr(Value, _writer.__name__, _writer)
