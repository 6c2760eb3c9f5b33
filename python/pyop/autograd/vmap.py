"""`vmap`: a function of single examples applied to a batch of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .. import _core
from .._core import FunctionClass, Tensor, Value
from .._tree import flatten, map_leaves
from ..containers import check_operands, plain_array
from .function import _method

__all__ = ["Batched", "VmapInfo", "apply_batched", "vmap"]


@dataclass(frozen=True)
class VmapInfo:
    """What a rule for batches is told.

    Attributes
    ----------
    batch_size : int
    randomness : str
        Always ``"error"``: a rule should not draw random numbers.
    """

    batch_size: int
    randomness: str = "error"


_IN_PLACE = {"partition", "put", "resize", "sort"}


class Batched(NDArrayOperatorsMixin):
    """One example of a batch, as a function under `vmap` sees it: an array without the axis of the batch."""

    __slots__ = ("array", "dim", "level")

    # Containers of pandas leave operators with it to it, which refuses them.
    __pandas_priority__ = 100_000

    def __init__(self, array: Any, dim: int, level: int) -> None:
        self.array, self.dim, self.level = array, dim, level

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
    def dtype(self) -> np.dtype[Any]:
        """Of all of them."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def batch_size(self) -> int:
        """How many examples there are."""
        size: int = self.array.shape[self.dim]
        return size

    def example(self, i: int) -> Any:
        """Example number `i`."""
        return self.array[(slice(None),) * self.dim + (i,)]

    def __repr__(self) -> str:
        return f"<one of {self.batch_size} examples of shape {self.shape}>"

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("an example under vmap has no array of its own: use NumPy functions or a pyop.Function on it")

    def __bool__(self) -> bool:
        raise TypeError("an example under vmap is neither true nor false: use np.where")

    def __getitem__(self, key: Any) -> Any:
        return one_by_one(lambda x, k: x[k], (self, key), {}, self.level)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        check_operands("an example under vmap", inputs, kwargs)
        level = level_of((inputs, kwargs))
        if method == "reduce" or (ufunc is np.matmul and not kwargs):
            found = (_reduced if method == "reduce" else _matmul)(getattr(ufunc, method), inputs, kwargs, level)
            if found is not None:
                return found
        if method != "__call__" or ufunc.signature is not None or kwargs:
            return one_by_one(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs, level)
        ndim = max(_ndim(x, level) for x in inputs)
        found = ufunc(*[_aligned(x, ndim, level) for x in inputs])
        return map_leaves(lambda array: Batched(array, 0, level), found)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        check_operands("an example under vmap", args, kwargs)
        level = level_of((args, kwargs))
        found = _reduced(func, args, kwargs, level) if func in _REDUCTIONS else None
        return one_by_one(func, args, kwargs, level) if found is None else found

    @property
    def size(self) -> int:
        """Of one example."""
        return math.prod(self.shape)

    @property
    def real(self) -> Any:
        """The real parts."""
        return Batched(np.real(self.array), self.dim, self.level)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return Batched(np.imag(self.array), self.dim, self.level)

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
        return Batched(self.array.astype(dtype, *args, **kwargs), self.dim, self.level)

    def flatten(self, order: Any = "C") -> Any:
        """One dimension."""
        return np.ravel(self, order)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Another shape for one example."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **kwargs)

    def transpose(self, *axes: Any) -> Any:
        """The axes of one example in another order."""
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) if axes else None)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an example without dimensions")
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name, None)
        # Not what NumPy has beside functions of arrays, nor what is no attribute of arrays or changes them in place.
        if name.startswith("_") or name in _IN_PLACE or not callable(function) or not hasattr(np.ndarray, name):
            raise AttributeError(f"an example under vmap has no {name!r}: use a function of NumPy")
        return lambda *args, **kwargs: function(self, *args, **kwargs)


_core.set_batched_type(Batched)


def level_of(tree: Any) -> int:
    """The innermost batch that examples among the leaves belong to."""
    return max(leaf.level for leaf in flatten(tree)[0] if isinstance(leaf, Batched))


def _ndim(x: Any, level: int) -> int:
    return x.ndim if isinstance(x, Batched) else np.ndim(x)


def _aligned(x: Any, ndim: int, level: int) -> Any:
    """The batch in front, the example's axes at the end."""
    if not isinstance(x, Batched) or x.level != level:
        return x
    array = np.moveaxis(x.array, x.dim, 0) if x.dim else x.array
    missing = ndim - x.ndim
    return np.reshape(array, (array.shape[0],) + (1,) * missing + array.shape[1:]) if missing else array


_REDUCTIONS = {np.sum, np.mean, np.prod, np.max, np.min, np.amax, np.amin, np.var, np.std, np.any, np.all}


def _reduced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], level: int) -> Any:
    """A reduction of all examples at once; None for a call that is not plain."""
    x, *rest = args
    if not isinstance(x, Batched) or x.level != level or len(rest) > 1 or not kwargs.keys() <= {"axis", "keepdims"}:
        return None
    missing = 0 if getattr(function, "__name__", "") == "reduce" else None  # what axis is by default
    axis = rest[0] if rest else kwargs.get("axis", missing)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if any(not -x.ndim <= k < x.ndim for k in axes):
        return None
    array = _aligned(x, x.ndim, level)
    inner = tuple([k + 1 if k >= 0 else k for k in axes])
    return Batched(function(array, axis=inner, keepdims=kwargs.get("keepdims", False)), 0, level)


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
    return Batched(np.squeeze(found, axis=gone) if gone else found, 0, level)


def _widened(array: Any, argument: Any, ndim: int, most: int, level: int) -> Any:
    """Axes of one element behind that of the batch, so that those of the examples stand below each other."""
    if ndim == most or not isinstance(argument, Batched) or argument.level != level:
        return array
    return np.expand_dims(array, tuple(range(1, 1 + most - ndim)))


def _size(tree: Any, level: int) -> int:
    sizes = {leaf.batch_size for leaf in flatten(tree)[0] if isinstance(leaf, Batched) and leaf.level == level}
    if len(sizes) != 1:
        raise ValueError(f"the batches are of different sizes: {sorted(sizes)}")
    return sizes.pop()


def one_by_one(function: Callable[..., Any], args: Any, kwargs: Any, level: int) -> Any:
    """The function on one example after the other, and the results put together."""
    size = _size((args, kwargs), level)
    if not isinstance(size, int):
        raise TypeError(
            f"{getattr(function, '__name__', function)} under vmap runs for one example after the other, and their "
            f"number, {size}, is not known while the graph is built: declare it"
        )

    def pick(i: int) -> Callable[[Any], Any]:
        return lambda leaf: leaf.example(i) if isinstance(leaf, Batched) and leaf.level == level else leaf

    results = [function(*map_leaves(pick(i), args), **map_leaves(pick(i), kwargs)) for i in range(size)]
    return _together(results, level)


def _together(results: list[Any], level: int) -> Any:
    if not results:
        raise ValueError("a batch without examples: what the function returns for one is not known")
    first, tree = flatten(results[0])
    check_operands("the results for other examples under vmap", *[one for one in first if type(one) is not np.ndarray])
    columns = zip(*[flatten(result)[0] for result in results], strict=True)
    return tree.unflatten(
        [
            Batched(np.stack(column), 0, level)
            if isinstance(one, (np.ndarray, np.generic, Tensor, Batched, Value))
            else one
            for one, column in zip(first, map(list, columns), strict=True)
        ]
    )


def apply_batched(function: FunctionClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A Function called with examples of a batch: by its rule."""
    cls: Any = function.cls
    rule, generate = _method(cls, "vmap"), bool(getattr(cls, "generate_vmap_rule", False))
    if kwargs:
        args, kwargs = function._bind(args, kwargs)
    if rule is not None and generate:
        raise RuntimeError(f"{function.name} has both a vmap and generate_vmap_rule=True: it can have one of them")
    if rule is None and not generate:
        raise RuntimeError(
            f"{function.name} cannot be used under vmap: give it a static method vmap(info, in_dims, *args), or set "
            "generate_vmap_rule = True"
        )
    if _method(cls, "setup_context") is None:
        raise RuntimeError(f"{function.name} needs the split form for vmap: forward(*args) and setup_context")
    level = level_of(args)
    size = _size(args, level)
    if rule is None:
        return one_by_one(function, args, kwargs, level)

    def is_here(leaf: Any) -> bool:
        return isinstance(leaf, Batched) and leaf.level == level

    in_dims = tuple(map_leaves(lambda leaf: leaf.dim if is_here(leaf) else None, args))
    plain = map_leaves(lambda leaf: leaf.array if is_here(leaf) else leaf, args)
    found = rule(VmapInfo(size), in_dims, *plain, **kwargs)
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError(f"vmap of {function.name} must return a pair: the result, and its batch dimensions")
    return _batched(found[0], found[1], level, size, f"vmap of {function.name}")


def _batched(result: Any, dims: Any, level: int, size: int, what: str) -> Any:
    def wrap(x: Any, dim: Any) -> Any:
        if dim is None or not isinstance(x, (np.ndarray, Tensor, Batched)):
            return x
        if not -x.ndim <= dim < x.ndim or x.shape[dim] != size:
            raise RuntimeError(f"{what}: axis {dim} of a result of shape {x.shape} is not that of {size} examples")
        return Batched(x, dim % x.ndim, level)

    if isinstance(result, tuple):
        each = dims if isinstance(dims, (tuple, list)) else (dims,) * len(result)
        if len(each) != len(result):
            raise RuntimeError(f"{what} returned {len(result)} results and {len(each)} batch dimensions")
        return tuple(wrap(x, dim) for x, dim in zip(result, each, strict=True))
    return wrap(result, dims[0] if isinstance(dims, (tuple, list)) else dims)


class _Nesting(threading.local):
    """How many calls of functions that `vmap` has made run on this thread; an example is of one of them."""

    depth = 0


_nesting = _Nesting()


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """A function of batches, from a function of single examples.

    A `Function` is called once, with its rule for batches; elementwise NumPy functions run once on the whole batch; any
    other NumPy function runs for one example after the other.

    Parameters
    ----------
    func : callable
        Of Tensors or arrays.
    in_dims : int, None or tuple
        Which axis of each argument is that of the batch; None for an argument that is the same for all.
    out_dims : int or tuple
        Where that axis goes in the results.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        No argument has a batch, or the batches are of different sizes.
    RuntimeError
        A Function on the way has no rule.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.autograd.vmap(lambda x, y: x * y, in_dims=(0, None))(np.arange(3.0), 2.0)
    array([0., 2., 4.])
    """

    def batched(*args: Any) -> Any:
        dims = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        if len(dims) != len(args):
            raise ValueError(f"in_dims has {len(dims)} entries for {len(args)} arguments")
        level = _nesting.depth + 1
        inner = []
        for arg, dim in zip(args, dims, strict=True):
            if dim is None:
                inner.append(arg)
                continue

            def wrap(leaf: Any, dim: int = dim) -> Any:
                leaf = leaf if isinstance(leaf, (Tensor, Batched, Value)) else plain_array(leaf, "an argument")
                if not -leaf.ndim <= dim < leaf.ndim:
                    raise ValueError(f"in_dims={dim} for an argument of shape {leaf.shape}")
                return Batched(leaf, dim % leaf.ndim, level)

            inner.append(map_leaves(wrap, arg))
        if not any(isinstance(leaf, Batched) and leaf.level == level for leaf in flatten(inner)[0]):
            raise ValueError("vmap needs at least one argument with a batch")
        size = _size(inner, level)
        result = _core.call_with_attribute(_nesting, "depth", level, func, tuple(inner), {})

        def unwrap(leaf: Any, dim: Any) -> Any:
            if not isinstance(leaf, Batched) or leaf.level != level:
                array = leaf if isinstance(leaf, (Tensor, Batched, Value)) else plain_array(leaf, "a result")
                return np.stack([array] * size, axis=dim)
            return leaf.array if leaf.dim == dim else np.moveaxis(leaf.array, leaf.dim, dim)

        if isinstance(out_dims, (tuple, list)):
            return tuple(unwrap(x, dim) for x, dim in zip(result, out_dims, strict=True))
        return map_leaves(lambda leaf: unwrap(leaf, out_dims), result)

    return batched
