"""Apply a function of single examples to a batch of them: `vmap`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._core import FunctionClass, Tensor, Value
from .._tree import flatten, map_leaves
from ..containers import plain_array
from ..graph.cells import named_place
from ..refusals import call_watched, note_call
from .batch_calls import one_by_one, size_of
from .batched import Batched, is_batched, level_of
from .function import _method, with_defaults

__all__ = ["Batched", "VmapInfo", "apply_batched", "vmap"]


@dataclass(frozen=True)
class VmapInfo:
    """Describe a call to a rule for batches.

    Attributes
    ----------
    batch_size : int
    randomness : str
        Always ``"error"``: a rule should not draw random numbers.
    """

    batch_size: int
    randomness: str = "error"


def apply_batched(function: FunctionClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Function with examples of a batch, by its rule."""
    cls: Any = function.cls
    rule, generate = _method(cls, "vmap"), bool(getattr(cls, "generate_vmap_rule", False))
    if kwargs:
        args, kwargs = function._bind(args, kwargs)
    if rule is not None and generate:
        raise RuntimeError(f"{function.name} has both a vmap and generate_vmap_rule=True: give it only one of them")
    if rule is None and not generate:
        raise RuntimeError(
            f"{function.name} cannot be used under vmap: give it a static method vmap(info, in_dims, *args), or set "
            "generate_vmap_rule = True"
        )
    if _method(cls, "setup_context") is None:
        raise RuntimeError(f"{function.name} needs the split form for vmap: forward(*args) and setup_context")
    level = level_of(args)
    size = size_of(args, level)
    if rule is None:
        return one_by_one(function, args, kwargs, level)
    args = with_defaults(cls, rule, args)

    def is_here(leaf: Any) -> bool:
        return is_batched(leaf) and leaf.level == level

    in_dims = tuple(map_leaves(lambda leaf: leaf.dim if is_here(leaf) else None, args))
    plain = map_leaves(lambda leaf: leaf.array if is_here(leaf) else leaf, args)
    result = rule(VmapInfo(size), in_dims, *plain, **kwargs)
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"vmap of {function.name} must return a pair: the result, and its batch dimensions")
    return _batched(result[0], result[1], level, size, f"vmap of {function.name}")


def _batched(result: Any, dims: Any, level: int, size: int, what: str) -> Any:
    def wrap(x: Any, dim: Any) -> Any:
        if dim is None or not (issubclass(type(x), (np.ndarray, Tensor)) or is_batched(x)):
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


def _stands_for_array(x: Any) -> bool:
    return issubclass(type(x), (Tensor, Value)) or is_batched(x)


def _place(func: Any) -> str:
    """Return the name of a function, and its line."""
    return named_place(str(getattr(func, "__name__", "the function")), func)


class _Nesting(threading.local):
    """Count the running calls that `vmap` has made on this thread; an example belongs to one of them."""

    depth = 0


_nesting = _Nesting()


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Return a function of batches from a function of single examples: `pyop.vmap` for functions that are no Graphs.

    Parameters
    ----------
    func, in_dims, out_dims
        As of `pyop.vmap`.

    Returns
    -------
    callable

    Raises
    ------
    RuntimeError
        A Function on the way has no rule.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.autograd.vmap(lambda x, y: x * y, in_dims=(0, None))(np.arange(3.0), 2.0)
    array([0., 2., 4.])
    """

    def batched(*args: Any) -> Any:
        from ..tracing.again import called  # on first use
        from ..tracing.type_checks import refuse_exact_types

        refuse_exact_types(func)
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
                leaf = leaf if _stands_for_array(leaf) else plain_array(leaf, "an argument of vmap")
                if not -leaf.ndim <= dim < leaf.ndim:
                    raise ValueError(f"in_dims={dim} for an argument of shape {leaf.shape}")
                return Batched(leaf, dim % leaf.ndim, level)

            inner.append(map_leaves(wrap, arg))
        if not any(is_batched(leaf) and leaf.level == level for leaf in flatten(inner)[0]):
            raise ValueError("vmap needs at least one argument with a batch")
        size = size_of(inner, level)
        try:
            args = tuple(inner)
            result = called(
                lambda f: _core.call_with_attribute(_nesting, "depth", level, call_watched, (f, args, {}), {}),
                func,
                args,
            )
        except Exception as error:
            note_call(error, f"pyop.vmap called {getattr(func, '__name__', 'a function')} with one example")
            raise

        def unwrap(leaf: Any, dim: Any) -> Any:
            if not is_batched(leaf) or leaf.level != level:
                array = leaf if _stands_for_array(leaf) else plain_array(leaf, "a result under vmap")
                if array.dtype == object and not issubclass(type(leaf), np.ndarray):
                    raise TypeError(
                        f"{_place(func)}, under vmap, returned an object of type {type(leaf).__name__}: return arrays "
                        "or numbers, in tuples, lists, dicts, named tuples or dataclasses"
                    )
                return np.stack([array] * size, axis=dim)
            return leaf.array if leaf.dim == dim else np.moveaxis(leaf.array, leaf.dim, dim)

        if isinstance(out_dims, (tuple, list)):
            return tuple(unwrap(x, dim) for x, dim in zip(result, out_dims, strict=True))
        return map_leaves(lambda leaf: unwrap(leaf, out_dims), result)

    return batched
