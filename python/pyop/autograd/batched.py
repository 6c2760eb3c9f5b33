"""One example of a batch, as a function under `vmap` sees it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeGuard

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .. import _core
from .._core import Tensor, Value
from .._tree import flatten, map_leaves
from ..containers import check_operands, check_rules
from ..refusals import refusal
from ..tracing.shown import Shown
from .element_class import AMBIGUOUS, class_of_element
from .out_argument import out_of

__all__ = ["EXAMPLES", "Batched", "BatchedArray", "BatchedScalar", "is_batched", "level_of", "one_by_one"]

_NEW = "which makes a new array"
_TAKE = "take numbers from what vmap returns, choose by value with np.where, or write a loop over the examples"
_PROTOCOLS = frozenset(("__class__", "__array_ufunc__", "__array_function__", "__pandas_priority__", "__module__"))
_WRITERS = {np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis}


class Batched(NDArrayOperatorsMixin):
    """One example of a batch: an array, or a scalar, without the axis of the batch.

    Making one gives a `BatchedArray` or a `BatchedScalar`, as NumPy has an array or a scalar there.
    """

    # `owned`: nothing else is over the memory of `array`, and no view of it was given away.
    __slots__ = ("array", "dim", "level", "owned")

    array: Any
    dim: int
    level: int
    owned: bool

    def __new__(cls, array: Any, dim: int, level: int, scalar: bool = True, owned: bool = False) -> Any:
        self = object.__new__(BatchedScalar if scalar and array.ndim == 1 else BatchedArray)
        self.array, self.dim, self.level, self.owned = array, dim, level, owned
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one example."""
        shape: tuple[int, ...] = self.array.shape
        return shape[: self.dim] + shape[self.dim + 1 :]

    @property
    def ndim(self) -> int:
        """Of one example."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Of one example."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of all of them."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of one example."""
        return self.size * self.itemsize

    @property
    def batch_size(self) -> int:
        """How many examples there are."""
        size: int = self.array.shape[self.dim]
        return size

    # Containers of pandas leave operators and ufuncs with it to it, which refuses them.
    __pandas_priority__ = __array_priority__ = 100_000

    def example(self, i: int) -> Any:
        """Example number `i`."""
        key: tuple[Any, ...] = (slice(None),) * self.dim + (i,)
        return self.array[key if type(self) is BatchedScalar or self.array.ndim > 1 else (*key, ...)]

    def __repr__(self) -> str:
        return Shown(f"<one of {self.batch_size} examples of shape {self.shape}>")

    def __format__(self, spec: str) -> str:
        if spec:
            raise refusal(f"format {spec!r} needs a number, and an example under vmap has none of its own: {_TAKE}")
        return repr(self)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise refusal("an example under vmap has no array of its own: use NumPy functions or a pyop.Function on it")

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(AMBIGUOUS)
        raise refusal("an example under vmap is neither true nor false: use np.where")

    def _number(self, what: str) -> NoReturn:
        if self.size != 1 or self.ndim > 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        raise refusal(f"{what} of an example under vmap was asked for, which has no number of its own: {_TAKE}")

    def __float__(self) -> float:
        self._number("float()")

    def __int__(self) -> int:
        self._number("int()")

    def __complex__(self) -> complex:
        self._number("complex()")

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        self._number("an index")

    def __round__(self, ndigits: int | None = None) -> Any:
        if self.ndim:
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        if ndigits is None:
            self._number("round()")
        return np.round(self, ndigits)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise refusal("an example under vmap means nothing outside of its function: pickle what vmap returns")

    def __copy__(self) -> Any:
        return np.copy(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return np.copy(self)

    def __getitem__(self, key: Any) -> Any:
        return one_by_one(lambda x, k: x[k], (self, key), {}, self.level)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        check_operands("an example under vmap", inputs, kwargs)
        level = level_of((inputs, kwargs))
        if kwargs.get("out") is not None or method == "at":
            self._refuse_writing(f"np.{ufunc.__name__}{'.at' if method == 'at' else '(..., out=...)'}")
        if method == "reduce" or (ufunc is np.matmul and not kwargs):
            found = (_reduced if method == "reduce" else _matmul)(getattr(ufunc, method), inputs, kwargs, level)
            if found is not None:
                return found
        if method != "__call__" or ufunc.signature is not None or kwargs:
            return one_by_one(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs, level)
        ndim = max(_ndim(x, level) for x in inputs)
        found = ufunc(*[_aligned(x, ndim, level) for x in inputs])
        return map_leaves(lambda array: Batched(array, 0, level, owned=True), found)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        check_operands("an example under vmap", args, kwargs)
        level = level_of((args, kwargs))
        if func in _WRITERS or out_of(func, args, kwargs) is not None:
            self._refuse_writing(f"np.{func.__name__}" + ("" if func in _WRITERS else "(..., out=...)"))
        if func is np.nan_to_num and kwargs.get("copy", True) is False:
            self._refuse_writing("np.nan_to_num(copy=False)")
        if func in (np.shares_memory, np.may_share_memory):
            raise refusal(f"np.{func.__name__} asks about memory, and an example under vmap has none: use `x is y`")
        found = _reduced(func, args, kwargs, level) if func in _REDUCTIONS else None
        return one_by_one(func, args, kwargs, level) if found is None else found

    def _refuse_writing(self, what: str) -> NoReturn:
        raise refusal(
            f"{what} under vmap would write into an array in place, which its other names and its views, or the other "
            "examples, would not see rightly: use what the function returns, or put parts together with np.where, "
            "np.concatenate or np.stack"
        )

    def _changed(self, sign: str, operate: Any, function: Any, other: Any) -> Any:
        """``self sign= other``: a scalar gets another name; an array that is nobody else's changes; else an error."""
        if type(self) is BatchedScalar:
            return operate(self, other)
        beyond = is_batched(other) and other.level > self.level
        if not self.owned or beyond or function is np.matmul:
            raise refusal(
                f"a {sign}= b under vmap would change an array in place, which the caller's array, its other names or "
                f"its views would not see: write a = a {sign} b, {_NEW}"
            )
        if _ndim(other, self.level) > self.ndim:
            raise ValueError(f"non-broadcastable output operand with shape {self.shape}")
        operand = _aligned(other, self.ndim, self.level)
        array = _aligned(self, self.ndim, self.level)
        if type(array) is np.ndarray and not isinstance(operand, Tensor | Value | Batched):
            function(array, operand, out=array)
            return self
        found = function(array, operand)
        if found.shape != array.shape or found.dtype != array.dtype:
            raise refusal(f"a {sign}= b under vmap would be of another dtype or shape: write a = a {sign} b, {_NEW}")
        self.array, self.dim = found, 0
        return self

    def __eq__(self, other: object) -> Any:
        plain = other is None or isinstance(other, str | bytes)
        return one_by_one(operator.eq, (self, other), {}, self.level) if plain else np.equal(_any(self), _any(other))

    def __ne__(self, other: object) -> Any:
        plain = other is None or isinstance(other, str | bytes)
        return (
            one_by_one(operator.ne, (self, other), {}, self.level) if plain else np.not_equal(_any(self), _any(other))
        )

    @property
    def real(self) -> Any:
        """The real parts."""
        self.owned = False
        return Batched(np.real(self.array), self.dim, self.level, type(self) is BatchedScalar)

    @real.setter
    def real(self, value: Any) -> None:
        self._refuse_writing("x.real = ...")

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        self.owned = False
        return Batched(np.imag(self.array), self.dim, self.level, type(self) is BatchedScalar)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._refuse_writing("x.imag = ...")

    @property
    def T(self) -> Any:
        """The axes of one example in reverse order."""
        return np.transpose(self)

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        return np.swapaxes(self, -1, -2)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """In another dtype."""
        self.owned = False
        return Batched(self.array.astype(dtype, *args, **kwargs), self.dim, self.level, type(self) is BatchedScalar)

    def flatten(self, order: Any = "C") -> Any:
        """One dimension."""
        return np.copy(np.ravel(self, order))

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Another shape for one example."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **kwargs)

    def transpose(self, *axes: Any) -> Any:
        """The axes of one example in another order."""
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) if axes else None)

    def __getattr__(self, name: str) -> Any:
        kind = np.ndarray if type(self) is BatchedArray else self.dtype.type
        if name.startswith("__") or not hasattr(kind, name):
            raise AttributeError(f"an example under vmap has no {name!r}, as {kind.__name__} has none")
        function = getattr(np, name, None)
        # Not what NumPy has beside functions of arrays, nor what changes them in place.
        if name in _IN_PLACE or not callable(function):
            raise refusal(
                f"an example under vmap has no {name!r}: use a function of NumPy that returns an array", AttributeError
            )
        return lambda *args, **kwargs: function(self, *args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("shape", "strides", "dtype", "data", "flat"):
            self._refuse_writing(f"x.{name} = ...")
        object.__setattr__(self, name, value)


def _any(x: Any) -> Any:
    """For type checkers: what takes part in NumPy's protocols."""
    return x


_IN_PLACE = {"partition", "put", "resize", "sort", "fill", "byteswap", "setflags"}


class BatchedArray(Batched):
    """An example that is an array in NumPy."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # isinstance(x, np.ndarray) is to answer what it would for the example itself.
        return np.ndarray

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[k] for k in range(self.shape[0])])

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self == item))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._refuse_writing("x[k] = v")

    def __delitem__(self, key: Any) -> None:
        raise ValueError("cannot delete array elements")


_core.match_as_array(BatchedArray)


class BatchedScalar(Batched):
    """An example that is a scalar in NumPy."""

    __slots__ = ()

    # Else iter() and `in` would go by __getitem__, and np.iterable(x) be true.
    __iter__ = __contains__ = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return class_of_element(self.dtype)

    def __getattribute__(self, name: str) -> Any:
        get = object.__getattribute__
        if name[:2] == "__" and name not in _PROTOCOLS and not hasattr(get(self, "dtype").type, name):
            raise AttributeError(name)  # as a scalar of NumPy, which has no x.__len__, x.__iadd__, x.__matmul__
        return get(self, name)

    def __getitem__(self, key: Any) -> Any:
        if key != () and key is not ...:
            # Iteration over an example comes by here too.
            raise refusal(f"an example that is one number was indexed with {key!r} or iterated over: use it as it is")
        return super().__getitem__(key)

    def __hash__(self) -> int:
        raise refusal(f"the hash of an example under vmap was asked for, which has no number of its own: {_TAKE}")


def _in_place(sign: str, operate: Any, function: Any) -> Callable[[Batched, Any], Any]:
    return lambda self, other: self._changed(sign, operate, function, other)


for _name, _sign, _function in (
    ("add", "+", np.add),
    ("sub", "-", np.subtract),
    ("mul", "*", np.multiply),
    ("truediv", "/", np.true_divide),
    ("floordiv", "//", np.floor_divide),
    ("mod", "%", np.remainder),
    ("pow", "**", np.power),
    ("and_", "&", np.bitwise_and),
    ("or_", "|", np.bitwise_or),
    ("xor", "^", np.bitwise_xor),
    ("lshift", "<<", np.left_shift),
    ("rshift", ">>", np.right_shift),
    ("matmul", "@", np.matmul),
):
    setattr(Batched, f"__i{_name.rstrip('_')}__", _in_place(_sign, getattr(operator, _name), _function))

EXAMPLES = (BatchedArray, BatchedScalar)


def is_batched(x: Any) -> TypeGuard[Batched]:
    """Whether it is one of a batch's examples."""
    return type(x) is BatchedArray or type(x) is BatchedScalar


def level_of(tree: Any) -> int:
    """The innermost batch that examples among the leaves belong to."""
    return max(leaf.level for leaf in flatten(tree)[0] if is_batched(leaf))


def _ndim(x: Any, level: int) -> int:
    return x.ndim if is_batched(x) else np.ndim(x)


def _aligned(x: Any, ndim: int, level: int) -> Any:
    """The batch in front, the example's axes at the end."""
    if not is_batched(x) or x.level != level:
        return x
    array = np.moveaxis(x.array, x.dim, 0) if x.dim else x.array
    missing = ndim - x.ndim
    return np.reshape(array, (array.shape[0],) + (1,) * missing + array.shape[1:]) if missing else array


_REDUCTIONS = {np.sum, np.mean, np.prod, np.max, np.min, np.amax, np.amin, np.var, np.std, np.any, np.all}


def _reduced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], level: int) -> Any:
    """A reduction of all examples at once; None for a call that is not plain."""
    x, *rest = args
    if not is_batched(x) or x.level != level or len(rest) > 1 or not kwargs.keys() <= {"axis", "keepdims"}:
        return None
    missing = 0 if getattr(function, "__name__", "") == "reduce" else None  # what axis is by default
    axis = rest[0] if rest else kwargs.get("axis", missing)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if any(not -x.ndim <= k < x.ndim for k in axes):
        return None
    inner = tuple([k + 1 if k >= 0 else k for k in axes])
    found = function(_aligned(x, x.ndim, level), axis=inner, keepdims=kwargs.get("keepdims", False))
    return Batched(found, 0, level, owned=True)


def _matmul(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], level: int) -> Any:
    """Products of all examples at once."""
    ndims = [_ndim(x, level) for x in args]
    if 0 in ndims:
        return None
    x, y = (_aligned(a, n, level) for a, n in zip(args, ndims, strict=True))
    x = np.expand_dims(x, -2) if ndims[0] == 1 else x
    y = np.expand_dims(y, -1) if ndims[1] == 1 else y
    most = max(*ndims, 2)
    x, y = (_widened(a, b, max(n, 2), most, level) for a, b, n in zip((x, y), args, ndims, strict=True))
    found = np.matmul(x, y)
    gone = tuple([axis for axis, n in zip((-2, -1), ndims, strict=True) if n == 1])
    return Batched(np.squeeze(found, axis=gone) if gone else found, 0, level, owned=True)


def _widened(array: Any, argument: Any, ndim: int, most: int, level: int) -> Any:
    """Axes of one element behind that of the batch, so that those of the examples stand below each other."""
    if ndim == most or not is_batched(argument) or argument.level != level:
        return array
    return np.expand_dims(array, tuple(range(1, 1 + most - ndim)))


def size_of(tree: Any, level: int) -> int:
    """How many examples a batch has."""
    sizes = {leaf.batch_size for leaf in flatten(tree)[0] if is_batched(leaf) and leaf.level == level}
    if len(sizes) != 1:
        raise ValueError(f"the batches are of different sizes: {sorted(sizes)}")
    return sizes.pop()


def one_by_one(function: Callable[..., Any], args: Any, kwargs: Any, level: int) -> Any:
    """The function on one example after the other, and the results put together."""
    if not isinstance(size := size_of((args, kwargs), level), int):
        raise TypeError(
            f"{getattr(function, '__name__', function)} under vmap runs for one example after the other, and their "
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
        raise ValueError("a batch without examples: what the function returns for one is not known")
    first, tree = flatten(results[0])
    columns = zip(*[flatten(result)[0] for result in results], strict=True)
    return tree.unflatten([_joined(one, list(column), level, name) for one, column in zip(first, columns, strict=True)])


def _joined(one: Any, column: list[Any], level: int, name: str) -> Any:
    """The results of all examples as one; what is no array has to be the same for all."""
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
            f"and no array: {_TAKE}"
        )
    return one


def _is_scalar(x: Any) -> bool:
    """Whether NumPy has a scalar there."""
    if issubclass(type(x), (np.ndarray, np.generic)) or is_batched(x):
        return issubclass(type(x), (np.generic, BatchedScalar))
    return bool(getattr(x, "_is_scalar" if issubclass(type(x), Value) else "_scalar", True))
