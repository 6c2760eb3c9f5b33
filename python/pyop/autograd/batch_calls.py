"""Apply NumPy's functions and operators under `vmap`: to the whole batch where possible, else one by one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Tensor, Value
from .._tree import flatten, map_leaves
from ..containers import check_operands, check_rules
from ..functions import surface
from ..graph.lists import with_arrays
from ..refusals import refusal
from .batched import TAKE, Batched, BatchedScalar, is_batched, level_of
from .out_argument import out_of

__all__ = ["one_by_one", "size_of"]


def __array_ufunc__(self: Batched, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    kinds = [*map(type, inputs)]
    if list in kinds or tuple in kinds:
        inputs, kwargs = with_arrays(getattr(ufunc, method), inputs, kwargs)
    check_operands("an example under vmap", inputs, kwargs)
    level = level_of((inputs, kwargs))
    if kwargs.get("out") is not None or method == "at":
        self._refuse_writing(f"np.{ufunc.__name__}{'.at' if method == 'at' else '(..., out=...)'}")
    if method == "reduce" or (ufunc is np.matmul and not kwargs):
        result = (_reduced if method == "reduce" else _matmul)(getattr(ufunc, method), inputs, kwargs, level)
        if result is not None:
            return result
    if method != "__call__" or ufunc.signature is not None or kwargs:
        return one_by_one(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs, level)
    ndim = max(_ndim(x) for x in inputs)
    result = ufunc(*[_aligned(x, ndim, level) for x in inputs])
    return map_leaves(lambda array: Batched(array, 0, level, owned=True), result)


def __array_function__(self: Batched, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    check_operands("an example under vmap", args, kwargs)
    level = level_of((args, kwargs))
    if func in surface.WRITERS:
        self._refuse_writing(f"np.{func.__name__}", surface.WRITERS[func])
    if out_of(func, args, kwargs) is not None:
        self._refuse_writing(f"np.{func.__name__}(..., out=...)")
    if func is np.nan_to_num and kwargs.get("copy", True) is False:
        self._refuse_writing("np.nan_to_num(copy=False)")
    if func in surface.ASK_MEMORY:
        raise refusal(f"np.{func.__name__} asks about memory, and an example under vmap has none: use `x is y`")
    result = _reduced(func, args, kwargs, level) if func in _REDUCTIONS else None
    return one_by_one(func, args, kwargs, level) if result is None else result


def __getitem__(self: Batched, key: Any) -> Any:
    if type(self) is BatchedScalar and key != () and key is not ...:
        # Iteration over an example comes by here too.
        raise refusal(f"an example that is one number was indexed with {key!r} or iterated over: use it as it is")
    return one_by_one(lambda x, k: x[k], (self, key), {}, self.level)


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    """Return the method for ``==`` or ``!=``, which also compares objects that are no arrays."""
    compare, ufunc = getattr(operator, name), surface.COMPARISONS[name]

    def method(self: Batched, other: Any) -> Any:
        if other is None or isinstance(other, str | bytes):
            return one_by_one(compare, (self, other), {}, self.level)
        return ufunc(self, other)

    return method


def _changed(self: Batched, sign: str, operate: Any, function: Any, other: Any) -> Any:
    """Apply ``self sign= other``.

    A scalar gets another name; an array that nobody else has changes in place; else raise.
    """
    if type(self) is BatchedScalar:
        return operate(self, other)
    beyond = is_batched(other) and other.level > self.level
    if not self.owned or beyond or function is np.matmul:
        raise refusal(
            f"a {sign}= b under vmap would change an array in place, which the caller's array, its other names or "
            f"its views would not see: write a = a {sign} b, which makes a new array"
        )
    if _ndim(other) > self.ndim:
        raise ValueError(f"non-broadcastable output operand with shape {self.shape}")
    operand = _aligned(other, self.ndim, self.level)
    array = _aligned(self, self.ndim, self.level)
    if type(array) is np.ndarray and not isinstance(operand, Tensor | Value | Batched):
        function(array, operand, out=array)
        return self
    changed = function(array, operand)
    if changed.shape != array.shape or changed.dtype != array.dtype:
        raise refusal(
            f"a {sign}= b under vmap would be of another dtype or shape: write a = a {sign} b, which makes a new array"
        )
    self.array, self.dim = changed, 0
    return self


def _in_place(name: str) -> Callable[[Batched, Any], Any]:
    sign, ufunc = surface.OPERATORS[name]
    operate = getattr(operator, f"__{name}__")
    return lambda self, other: _changed(self, sign, operate, ufunc, other)


def _ndim(x: Any) -> int:
    return x.ndim if is_batched(x) else np.ndim(x)


def _aligned(x: Any, ndim: int, level: int) -> Any:
    """Return the array with the axis of the batch in front, and the example's axes at the end."""
    if not is_batched(x) or x.level != level:
        return x
    array = np.moveaxis(x.array, x.dim, 0) if x.dim else x.array
    missing = ndim - x.ndim
    return np.reshape(array, (array.shape[0],) + (1,) * missing + array.shape[1:]) if missing else array


_REDUCTIONS = {np.sum, np.mean, np.prod, np.max, np.min, np.amax, np.amin, np.var, np.std, np.any, np.all}


def _reduced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], level: int) -> Any:
    """Reduce all examples at once; None for a call that is not plain."""
    x, *rest = args
    if not is_batched(x) or x.level != level or len(rest) > 1 or not kwargs.keys() <= {"axis", "keepdims"}:
        return None
    missing = 0 if getattr(function, "__name__", "") == "reduce" else None  # what axis is by default
    axis = rest[0] if rest else kwargs.get("axis", missing)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if any(not -x.ndim <= k < x.ndim for k in axes):
        return None
    inner = tuple([k + 1 if k >= 0 else k for k in axes])
    result = function(_aligned(x, x.ndim, level), axis=inner, keepdims=kwargs.get("keepdims", False))
    return Batched(result, 0, level, owned=True)


def _matmul(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], level: int) -> Any:
    """Multiply all examples at once; None for scalars."""
    ndims = [_ndim(x) for x in args]
    if 0 in ndims:
        return None
    x, y = (_aligned(a, n, level) for a, n in zip(args, ndims, strict=True))
    x = np.expand_dims(x, -2) if ndims[0] == 1 else x
    y = np.expand_dims(y, -1) if ndims[1] == 1 else y
    most = max(*ndims, 2)
    x, y = (_widened(a, b, max(n, 2), most, level) for a, b, n in zip((x, y), args, ndims, strict=True))
    result = np.matmul(x, y)
    gone = tuple([axis for axis, n in zip((-2, -1), ndims, strict=True) if n == 1])
    return Batched(np.squeeze(result, axis=gone) if gone else result, 0, level, owned=True)


def _widened(array: Any, argument: Any, ndim: int, most: int, level: int) -> Any:
    """Insert axes of one element behind that of the batch, so that the examples' axes are aligned."""
    if ndim == most or not is_batched(argument) or argument.level != level:
        return array
    return np.expand_dims(array, tuple(range(1, 1 + most - ndim)))


def size_of(tree: Any, level: int) -> int:
    """Return the number of examples of a batch; ValueError if the leaves differ."""
    sizes = {leaf.batch_size for leaf in flatten(tree)[0] if is_batched(leaf) and leaf.level == level}
    if len(sizes) != 1:
        raise ValueError(f"the batches are of different sizes: {sorted(sizes)}")
    return sizes.pop()


def one_by_one(function: Callable[..., Any], args: Any, kwargs: Any, level: int) -> Any:
    """Call the function on one example after the other, and put the results together."""
    if not isinstance(size := size_of((args, kwargs), level), int):
        raise TypeError(
            f"{getattr(function, '__name__', function)} under vmap runs one example at a time, and their "
            f"number, {size}, is not known while the graph is built: declare it"
        )

    def pick(i: int) -> Callable[[Any], Any]:
        return lambda leaf: leaf.example(i) if is_batched(leaf) and leaf.level == level else leaf

    for leaf in flatten((args, kwargs))[0]:
        if is_batched(leaf):
            leaf.owned = False  # what comes back may be a view of it
    results = [function(*map_leaves(pick(i), args), **map_leaves(pick(i), kwargs)) for i in range(size)]
    return _together(results, level, getattr(function, "__name__", "this"))


def _together(results: list[Any], level: int, name: str) -> Any:
    if not results:
        raise ValueError("the batch has no examples, so the form of the results is not known")
    first, tree = flatten(results[0])
    columns = zip(*[flatten(result)[0] for result in results], strict=True)
    return tree.unflatten([_joined(one, list(column), level, name) for one, column in zip(first, columns, strict=True)])


def _joined(one: Any, column: list[Any], level: int, name: str) -> Any:
    """Return the results of all examples as one; anything that is no array has to be the same for all."""
    if issubclass(type(one), (np.ndarray, np.generic, Tensor, Value)) or is_batched(one):
        check_rules(f"what {name} gives for an example under vmap", one)
        if one.shape is None:
            raise refusal(
                f"{name} gives an array under vmap whose shape is not known when the graph is built (created at "
                f"{one.node.origin}): do this inside a pyop.op that declares the shape of its result, or compute what "
                "vmap gives without pyop.compile"
            )
        if len({tuple(x.shape) for x in column}) > 1:
            raise refusal(
                f"{name} gives arrays of other shapes for the examples under vmap, {column[0].shape} and "
                f"{next(x.shape for x in column if x.shape != column[0].shape)}: choose by value with np.where instead"
            )
        return Batched(np.stack(column), 0, level, _is_scalar(one))
    if any(type(other) is not type(one) or other != one for other in column):
        raise refusal(
            f"{name} gives {one!r} for one example under vmap and {next(x for x in column if x != one)!r} for another, "
            f"and no array: {TAKE}"
        )
    return one


def _is_scalar(x: Any) -> bool:
    """Return whether NumPy has a scalar there."""
    if issubclass(type(x), (np.ndarray, np.generic)) or is_batched(x):
        return issubclass(type(x), (np.generic, BatchedScalar))
    return bool(getattr(x, "_is_scalar" if issubclass(type(x), Value) else "_scalar", True))


surface.install(
    Batched,
    surface.refusing(Batched._refuse)
    | surface.refusing(Batched._refuse, {name: surface.SURFACE[name] for name in ("view", "byteswap")})
    | {"__array_ufunc__": __array_ufunc__, "__array_function__": __array_function__, "__getitem__": __getitem__}
    | {f"__{name}__": _comparison(name) for name in ("eq", "ne")}
    | {f"__i{name}__": _in_place(name) for name in surface.OPERATORS},
)
