"""A call of a function on Values, with its chosen arguments replaced by Values of their own; and its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Tensor, Value, graph_being_built
from .._tree import TreeDef, flatten
from ..declare.dims import same
from ..declare.rebuild import unflatten_each
from ..refusals import call_watched
from .fit import broadcast_like, conj, shape_of
from .forward import forward
from .marker import open_value
from .reverse import backward

__all__ = ["Opened", "check_examples", "check_scalar"]


class Opened:
    """``f(*args, **kwargs)`` in a graph.

    Parameters
    ----------
    f : callable
    args, kwargs : tuple, dict
        With at least one Value among them, or among `also`.
    argnums : int or tuple of int
        The positional arguments to differentiate by.

    Attributes
    ----------
    inputs : list of Value
        What stands for the leaves of these arguments.
    result : tree
        What `f` returned.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | tuple[int, ...],
        also: Any = (),
    ) -> None:
        self.single = isinstance(argnums, int)
        given = (leaf.graph for leaf in flatten((args, kwargs, also))[0] if isinstance(leaf, Value))
        graph = next(given, None) or graph_being_built()
        replaced = list(args)
        self.inputs: list[Value] = []
        self.trees: list[TreeDef] = []
        for k in (argnums,) if isinstance(argnums, int) else argnums:
            if not -len(args) <= k < len(args):
                raise TypeError(f"argnums={argnums}, but the function was called with {len(args)} positional arguments")
            leaves, tree = flatten(args[k])
            values = [open_value(graph, leaf, f"argument {k}") for leaf in leaves]
            self.inputs += values
            self.trees.append(tree)
            replaced[k] = tree.unflatten(values)
        self.result = call_watched(f, tuple(replaced), kwargs)
        check_examples(self.result)

    def like_arguments(self, parts: list[Any]) -> Any:
        """One array for each input, None for zeros, in the containers of the arguments."""
        full = [np.zeros_like(x) if part is None else part for part, x in zip(parts, self.inputs, strict=True)]
        return self._packed(full)

    def _packed(self, parts: list[Any]) -> Any:
        found = unflatten_each(self.trees, parts)
        return found[0] if self.single else tuple(found)

    def pullback(self, value: Any) -> Callable[[Any], Any]:
        """From cotangents of `value`, a part of the result, to those of the arguments."""
        leaves, structure = flatten(value)
        leaves = [leaf._lent() if type(leaf) is Value else leaf for leaf in leaves]  # the caller may write his

        def pull(ct: Any) -> Any:
            cts = structure.flatten_up_to(ct)
            for y, c in zip(leaves, cts, strict=True):
                _check_shape(c, y, "a cotangent", "what it belongs to")
            pairs = [(y, c) for y, c in zip(leaves, cts, strict=True) if isinstance(y, Value)]
            found = backward([y for y, _ in pairs], [c for _, c in pairs], self.inputs)
            return self.like_arguments(found)

        return pull

    def push_forward(self, tangents: list[Any]) -> Any:
        """The tangent of the result, for one tangent an argument."""
        given: list[Any] = []
        for tree, tangent in zip(self.trees, tangents, strict=True):
            given += tree.flatten_up_to(tangent)
        for x, t in zip(self.inputs, given, strict=True):
            _check_shape(t, x, "a tangent", "its argument")
        leaves, structure = flatten(self.result)
        values = [y for y in leaves if isinstance(y, Value)]
        found = iter(forward(values, self.inputs, given))
        return structure.unflatten([_or_zeros(next(found) if isinstance(y, Value) else None, y) for y in leaves])

    def jacobian(self, mode: str) -> Any:
        """A tree like the result of trees like the arguments."""
        leaves, structure = flatten(self.result)
        if mode == "forward":
            columns = [self._columns(x, leaves) for x in self.inputs]
            rows = [[column[k] for column in columns] for k in range(len(leaves))]
        else:
            rows = [self._rows(y) for y in leaves]
        return structure.unflatten([self._packed(row) for row in rows])

    def _rows(self, y: Any) -> list[Any]:
        """The Jacobians of one result, by one pass backwards an element."""
        if not isinstance(y, Value):
            return [np.zeros(np.shape(y) + _numbers(x), x.dtype) for x in self.inputs]
        shape = _numbers(y)
        dtype = y.dtype if y.dtype is not None and y.dtype.kind in "fc" else np.dtype(np.float64)
        found = []
        for index in np.ndindex(shape):
            ct = np.zeros(shape, dtype)
            ct[index] = 1
            parts = backward([y], [y.graph.constant(ct)], self.inputs)
            # A cotangent is the conjugate of the derivative of a holomorphic function.
            found.append(
                [_or_zeros(None if p is None else conj(p), x) for p, x in zip(parts, self.inputs, strict=True)]
            )
        if not found:
            return [np.zeros(shape + _numbers(x), dtype) for x in self.inputs]
        return [_stacked([row[k] for row in found], shape, _numbers(x), 0) for k, x in enumerate(self.inputs)]

    def _columns(self, x: Value, leaves: list[Any]) -> list[Any]:
        """The Jacobians by one argument, by one pass forward an element."""
        shape = _numbers(x)
        found = []
        for index in np.ndindex(shape):
            t = np.zeros(shape, x.dtype)
            t[index] = 1
            tangents = [x.graph.constant(t) if value is x else None for value in self.inputs]
            values = [y for y in leaves if isinstance(y, Value)]
            parts = iter(forward(values, self.inputs, tangents))
            found.append([_or_zeros(next(parts) if isinstance(y, Value) else None, y) for y in leaves])
        if not found:
            return [np.zeros(_numbers(y) + shape) for y in leaves]
        return [_stacked([row[k] for row in found], shape, _numbers(y), -1) for k, y in enumerate(leaves)]


def _check_shape(x: Any, like: Any, what: str, whose: str) -> None:
    have, want = shape_of(x), shape_of(like)
    if x is None or have is None or want is None:
        return
    if len(have) != len(want) or any(same(m, n) is False for m, n in zip(have, want, strict=True)):
        raise TypeError(f"{what} has shape {have}, but {whose} {want}")


def _numbers(x: Any) -> tuple[int, ...]:
    shape = np.shape(x)
    if not all(isinstance(size, int) for size in shape):
        raise TypeError(
            f"the Jacobian of {x!r} needs sizes that are numbers when the graph is built: declare them, or use pyop.vjp"
        )
    return tuple(shape)


def _stacked(parts: list[Any], lead: tuple[int, ...], rest: tuple[int, ...], axis: int) -> Any:
    stacked = np.stack(parts, axis=axis)
    return stacked if len(lead) == 1 else np.reshape(stacked, lead + rest if axis == 0 else rest + lead)


def _or_zeros(part: Any, like: Any) -> Any:
    if part is None:
        return np.zeros_like(like)
    return part if shape_of(part) == shape_of(like) else broadcast_like(part, like)


def check_examples(result: Any) -> None:
    """Under vmap arguments are differentiated by one example at a time: in what the function returns there is a batch
    only if it came in by another way, and with it nothing is known of the arguments any more."""
    from ..autograd.batched import is_batched

    if any(map(is_batched, flatten(result)[0])):
        raise TypeError(
            "the function that is differentiated holds examples of a batch that are not among its arguments: pass them "
            "as arguments, and say with argnums what to differentiate by (with None for their tangents in pyop.jvp)"
        )


def check_scalar(f: Callable[..., Any], value: Any) -> None:
    """A gradient is of one real number."""
    known = isinstance(value, (Value, Tensor))
    shape = value.shape if known else np.shape(value)
    dtype = value.dtype if known else np.asarray(value).dtype
    if (shape is not None and shape != ()) or (dtype is not None and dtype.kind != "f"):
        what = str(value.spec) if isinstance(value, Value) else f"{dtype}{list(shape or ())}"
        raise TypeError(
            f"grad needs a function that returns one real number, but {getattr(f, '__name__', 'the function')} returns "
            f"{what}: sum it, take its real part, or use pyop.jacobian or pyop.vjp"
        )
