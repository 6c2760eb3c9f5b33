"""Replace some arguments of a function by what derivatives are taken by: the base of all transformations.

There are two kinds: `Eager` at arrays, with Tensors in their place, and `Symbolic` in a graph, with Values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core import Tensor, Value
from .._tree import TreeDef, flatten
from ..autograd.batched import EXAMPLES
from ..containers import check_rules
from ..declare.dims import same
from ..declare.rebuild import unflatten_each
from ..gradients.unbroadcast import conj, shape_of
from ..graph.symbolic_number import is_number

__all__ = ["Argnums", "Chosen", "Opened", "check_examples", "check_like", "check_scalar", "without_gradient"]

Argnums = int | tuple[int, ...]


def without_gradient(leaves: Sequence[Any], tree: TreeDef) -> set[int]:
    """Return the places of what objects hold beside their fields that is no real or complex number."""
    return set() if tree.is_leaf else {k for k in tree.beside_fields() if not _has_gradient(leaves[k])}


def _has_gradient(leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return isinstance(leaf, (float, complex, Value)) or getattr(dtype, "kind", None) in ("f", "c")


class Chosen:
    """Hold the arguments of a call to differentiate by.

    Attributes
    ----------
    inputs : list
        Their leaves, or what stands in the place of these.
    trees : list of TreeDef
        The structure of each of them.
    """

    def __init__(self, args: tuple[Any, ...], argnums: Argnums) -> None:
        self.single = isinstance(argnums, int)
        self.which = (argnums,) if isinstance(argnums, int) else argnums
        self.inputs: list[Any] = []
        self.trees: list[TreeDef] = []
        self.flat = True
        self.kept: dict[int, Any] = {}  # by its place, what an object holds beside its fields, and is no array
        for k in self.which:
            if not -len(args) <= k < len(args):
                raise TypeError(f"argnums={argnums}, but the function was called with {len(args)} positional arguments")
            leaves, tree = flatten(args[k])
            kept = without_gradient(leaves, tree)
            first = sum(before.num_leaves for before in self.trees)
            for n, leaf in enumerate(leaves):
                if n in kept:
                    self.kept[first + n] = leaf
                else:
                    self.inputs.append(self.open(leaf, k))
            self.trees.append(tree)
            self.flat = self.flat and tree.is_leaf

    def open(self, leaf: Any, k: int) -> Any:
        """Return the object to put in place of a leaf of argument `k`."""
        return leaf

    def replaced(self, args: tuple[Any, ...], inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments of the call with these leaves."""
        full = list(args)
        for k, part in zip(self.which, inputs if self.flat else self._in_trees(inputs), strict=True):
            full[k] = part
        return tuple(full)

    def _in_trees(self, parts: Sequence[Any]) -> list[Any]:
        full = list(parts)
        for place, leaf in self.kept.items():
            full.insert(place, leaf)
        return unflatten_each(self.trees, full)

    def like_arguments(self, parts: list[Any]) -> Any:
        """Return one array for each input, in the containers of the arguments."""
        found = parts if self.flat else self._in_trees(parts)
        return found[0] if self.single else tuple(found)

    def forward_jacobian(self, inputs: list[Any], push: Callable[[list[Any]], Any], result: Callable[[], Any]) -> Any:
        """Return the Jacobian by one pass forward for each element of the arguments.

        It is a tree like the result, of trees like the arguments. `push` returns the tangent of the result for one
        tangent (or None) for each input. `result` returns the result, where there are no elements.
        """
        structure: Any = None
        columns: list[list[Any]] = []  # by input, and by leaf of the result
        for n, x in enumerate(inputs):
            shape = _numbers(x)
            found = []
            for index in np.ndindex(shape):
                t = np.zeros(shape, x.dtype)
                t[index] = 1
                parts, structure = flatten(push([t if k == n else None for k in range(len(inputs))]))
                found.append(parts)
            if found:
                columns.append(
                    [_stacked(column, shape, _numbers(column[0]), -1) for column in zip(*found, strict=True)]
                )
            else:
                leaves, structure = flatten(result())
                columns.append([np.zeros(_numbers(y) + shape, x.dtype) for y in leaves])
        rows = [self.like_arguments(list(row)) for row in zip(*columns, strict=True)]
        return structure.unflatten(rows)


class Opened(Chosen):
    """Call ``f(*args, **kwargs)`` with the positional arguments to differentiate by opened.

    Attributes
    ----------
    inputs : list
        What stands in the place of the leaves of these arguments.
    result : tree
        What `f` returned.
    """

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> None:
        super().__init__(args, argnums)
        self.result: Any = self.call(f, self.replaced(args, self.inputs), kwargs)
        self.leaves, self.structure = flatten(self.result)
        if any(
            map(is_number, self.leaves)
        ):  # Python's, which a function under trace computes: scalars have derivatives
            self.leaves = [x._value[()] if is_number(x) else x for x in self.leaves]
            self.result = self.structure.unflatten(self.leaves)
        check_examples(self.leaves)

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function with opened arguments, and return its result."""
        raise NotImplementedError

    def out(self, tree: Any) -> Any:
        """Return a part of the result as the caller gets it."""
        return tree

    def seed(self, value: Any) -> Any:
        """Return the cotangent one of a single number; None for one that does not depend on the inputs."""
        raise NotImplementedError

    def pull(self, outputs: list[Any], cts: list[Any]) -> list[Any]:
        """Return one cotangent for each input, for cotangents of leaves of the result; None stands for zero."""
        raise NotImplementedError

    @staticmethod
    def jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the value and its derivative along a direction, as `pyop.jvp`."""
        raise NotImplementedError

    @staticmethod
    def jacobian_forward(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> Any:
        """Return the Jacobian, as ``pyop.jacobian(f, argnums, mode="forward")``."""
        raise NotImplementedError

    def lent(self, leaves: list[Any]) -> list[Any]:
        """Return leaves of the result, which the caller may write into."""
        return leaves

    def run_once(self, gradients: Any) -> Any:
        """Return gradients that have been computed, without what they compute twice, where that can be told."""
        return gradients

    def pullback(self, value: Any) -> Callable[[Any], Any]:
        """Return the function from cotangents of `value`, a part of the result, to those of the arguments.

        It may be called any number of times.
        """
        leaves, structure = (self.leaves, self.structure) if value is self.result else flatten(value)
        leaves = self.lent(leaves)

        def pullback(ct: Any) -> Any:
            cts = structure.flatten_up_to(ct)
            for y, c in zip(leaves, cts, strict=True):
                check_like("a cotangent", c, y, "what it belongs to")
            return self.like_arguments(self.pull(leaves, cts))

        return pullback

    def jacobian(self) -> Any:
        """Return a tree like the result, of trees like the arguments, by one backward pass for each of its elements."""
        return self.structure.unflatten([self.like_arguments(self._rows(y)) for y in self.leaves])

    def _rows(self, y: Any) -> list[Any]:
        shape = _numbers(y)
        rows = []
        if isinstance(y, (Value, Tensor)):
            dtype = y.dtype if y.dtype is not None and y.dtype.kind in "fc" else np.dtype(np.float64)
            for index in np.ndindex(shape):
                ct = np.zeros(shape, dtype)
                ct[index] = 1
                # A cotangent is the conjugate of the derivative of a holomorphic function.
                rows.append([conj(part) for part in self.pull([y], [ct])])
        if not rows:
            return [np.zeros(shape + _numbers(x), x.dtype) for x in self.inputs]
        return [_stacked([row[k] for row in rows], shape, _numbers(x), 0) for k, x in enumerate(self.inputs)]


def check_like(what: str, x: Any, like: Any, whose: str) -> None:
    """Raise for a cotangent or tangent of another shape than its array."""
    if x is None or (type(x) is np.ndarray and type(like) is Tensor and x.shape == like.shape):
        return
    check_rules(what, x)
    have, want = shape_of(x), shape_of(like)
    if have == want or have is None or want is None:
        return
    if len(have) != len(want) or any(same(m, n) is False for m, n in zip(have, want, strict=True)):
        raise TypeError(f"{what} has shape {have}, but {whose} {want}")


def _numbers(x: Any) -> tuple[int, ...]:
    shape: Any = shape_of(x)
    if not all(isinstance(size, int) for size in shape):
        raise TypeError(
            f"the Jacobian of {x!r} needs sizes that are numbers when the graph is built: declare them, or use pyop.vjp"
        )
    return tuple(shape)


def _stacked(parts: Sequence[Any], lead: tuple[int, ...], rest: tuple[int, ...], axis: int) -> Any:
    stacked = np.stack(parts, axis=axis)
    return stacked if len(lead) == 1 else np.reshape(stacked, lead + rest if axis == 0 else rest + lead)


def check_examples(leaves: list[Any]) -> None:
    """Raise if a result is a batch of examples.

    Under vmap arguments are differentiated one example at a time. A batch in the result came in by another way than the
    arguments, and its derivative by them is unknown.
    """
    for leaf in leaves:
        if type(leaf) in EXAMPLES:
            raise TypeError(
                "the function that is differentiated holds examples of a batch that are not among its arguments: pass "
                "them as arguments, and say with argnums what to differentiate by (with None for their tangents in "
                "pyop.jvp)"
            )


def check_scalar(f: Callable[..., Any], value: Any) -> None:
    """Raise unless the value is one real number, of which alone there is a gradient."""
    if isinstance(value, (list, tuple, dict)):  # which may hold Values, or itself
        shape, dtype, what = None, None, f"a {type(value).__name__}"
    else:
        known = isinstance(value, (Value, Tensor))
        shape = value.shape if known else np.shape(value)
        dtype = value.dtype if known else np.asarray(value).dtype
        what = str(value.spec) if isinstance(value, Value) else f"{dtype}{list(shape or ())}"
    if isinstance(value, (list, tuple, dict)) or shape not in (None, ()) or (dtype is not None and dtype.kind != "f"):
        raise TypeError(
            f"grad needs a function that returns one real number, but {getattr(f, '__name__', 'the function')} returns "
            f"{what}: sum it, take its real part, or use pyop.jacobian or pyop.vjp"
        )
