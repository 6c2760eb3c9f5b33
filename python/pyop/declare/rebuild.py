"""Put flat arguments back into the containers that a function takes.

The core passes arrays as a flat list. Where a function takes them inside tuples, lists or dicts, the core calls one of
these callables. They compare by what they do, so that equal calls are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import MethodType
from typing import Any

import numpy as np

from .._core import CallOnTree, Value
from .._tree import TreeDef
from .dim import Dim

__all__ = ["CallForOne", "CallOnTree", "CallOnTrees", "call_on_tree", "call_with_sizes", "replaced", "unflatten_each"]
__all__ += ["MergedByValue", "deeper", "getitem_with_bounds", "holds", "layers", "spelled_index", "unwrapped", "walk"]


_MAX_DEPTH = 200


def deeper(depth: int) -> int:
    """Return one level more; raise where a container must hold itself, as nobody nests so deep."""
    if depth == _MAX_DEPTH:
        raise ValueError(f"an argument is nested deeper than {_MAX_DEPTH} levels; does a container hold itself?")
    return depth + 1


def replaced(x: Any, change: Callable[[Any], Any]) -> Any:
    """Return arguments of a NumPy function with `change` applied to every object, inside containers and slices too."""
    kind = type(x)
    try:  # recorded calls go through here: counting levels would cost a sixth
        if kind is tuple or kind is list:
            return kind([replaced(item, change) for item in x])
        if kind is dict:
            return {key: replaced(item, change) for key, item in x.items()}
        if kind is slice:
            return slice(replaced(x.start, change), replaced(x.stop, change), replaced(x.step, change))
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return kind(*[replaced(item, change) for item in x])
    except RecursionError:
        raise ValueError("an argument is nested too deep; does a container hold itself?") from None
    return change(x)


def walk(x: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the objects in nested tuples, lists, dicts and slices."""
    items: Iterable[Any]
    if isinstance(x, (tuple, list)):
        items = x
    elif isinstance(x, dict):
        items = x.values()
    elif type(x) is slice:
        items = (x.start, x.stop, x.step)
    else:
        yield x
        return
    depth = depth + 1 if depth < _MAX_DEPTH else deeper(depth)
    for item in items:
        yield from walk(item, depth)


def holds(x: Any, kind: type, depth: int = 0) -> bool:
    """Return whether nested tuples, lists, dicts and slices hold an object of this type."""
    own_type = type(x)
    if own_type is kind:
        return True
    items: Any = ()
    if own_type in _LEAVES:
        return False
    if own_type is tuple or own_type is list or isinstance(x, (tuple, list)):
        items = x
    elif isinstance(x, dict):
        items = x.values()
    elif own_type is slice:
        items = (x.start, x.stop, x.step)
    else:
        return isinstance(x, kind)
    depth = depth + 1 if depth < _MAX_DEPTH else deeper(depth)  # a call costs more
    for item in items:  # noqa: SIM110 (any() of a generator costs more)
        if holds(item, kind, depth):
            return True
    return False


# What most arguments are: of no other type, and nothing lies inside them.
_LEAVES = frozenset((Value, np.ndarray, int, float, bool, str, type(None)))


def spelled_index(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index that `getitem_with_bounds` spells: slices are tuples of three, other items tuples of one.

    >>> from pyop.declare.rebuild import spelled_index
    >>> spelled_index(((1, None, 2), (0,)))
    (slice(1, None, 2), 0)
    """
    return tuple(slice(*item) if len(item) == 3 else item[0] for item in key)


def getitem_with_bounds(array: Any, key: tuple[Any, ...]) -> Any:
    """Return ``array[key]`` for an index spelled by tuples, so that a graph finds the bounds that it computes."""
    return array[spelled_index(key)]


def unflatten_each(trees: Iterable[TreeDef], leaves: Sequence[Any]) -> list[Any]:
    """Return one object for each tree, built from the leaves of all of them."""
    objects, start = [], 0
    for tree in trees:
        objects.append(tree.unflatten(leaves[start : start + tree.num_leaves]))
        start += tree.num_leaves
    return objects


def call_on_tree(fn: Callable[..., Any], tree: TreeDef, leaves: tuple[Any, ...]) -> CallOnTree:
    """Return a callable for ``fn(*args, **kwargs)`` that rebuilds ``(args, kwargs)`` from leaves.

    A leaf is a static object, or `CallOnTree.ARRAY` where the next array stands.
    """
    places: list[Any] = []

    def placed(leaf: Any) -> Any:
        if leaf is not CallOnTree.ARRAY:
            return leaf
        places.append(object())
        return places[-1]

    pattern = tree.unflatten([placed(leaf) for leaf in leaves])
    key = (id(fn), tree, tuple(map(_static_key, leaves)))
    callee, carriers = fn, {}
    if fn is call_with_sizes:
        callee, args, kwargs, carriers = pattern[0]
        pattern = (args, kwargs)
    return CallOnTree(fn, tree, leaves, key, callee, pattern, tuple(places), carriers)


def call_with_sizes(func: Callable[..., Any], args: Any, kwargs: Any, carriers: dict[str, tuple[Any, int]]) -> Any:
    """Call ``func(*args, **kwargs)`` with numbers in place of symbolic sizes.

    `carriers` gives, by name, an array and the axis that has this size. Axis -1 means that the array is itself the
    number: the counter of a loop.
    """
    env: dict[str, int | Dim] = {
        name: int(array.shape[axis] if axis >= 0 else array) for name, (array, axis) in carriers.items()
    }

    def number(x: Any) -> Any:
        return x.evaluate(env) if isinstance(x, Dim) else x

    return func(*replaced(args, number), **replaced(kwargs, number))


class MergedByValue:
    """Compare a callable of nodes by value: nodes that call equal ones with the same arguments are computed once."""

    __slots__: tuple[str, ...] = ()

    _pyop_merge_by_value = True

    def _identity(self) -> tuple[Any, ...]:
        """Return what makes two callables of a type equal: `_key`, or everything that they hold."""
        key: tuple[Any, ...] | None = getattr(self, "_key", None)
        return tuple([getattr(self, name) for name in self.__slots__]) if key is None else key

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self), self._identity()))


class CallOnTrees(MergedByValue):
    """Call ``fn(tree, tree, ...)``, each positional argument rebuilt from a run of the arrays."""

    __slots__ = ("fn", "trees")

    def __init__(self, fn: Callable[..., Any], trees: tuple[TreeDef, ...]) -> None:
        self.fn = fn
        self.trees = trees

    def __call__(self, *arrays: Any, **static: Any) -> Any:
        return self.fn(*unflatten_each(self.trees, arrays), **static)

    def bind(self, instance: Any) -> CallOnTrees:
        """Return the same callable for the method of an instance."""
        return CallOnTrees(MethodType(self.fn, instance), self.trees)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fn!r})"


class CallForOne(MergedByValue):
    """Call ``fn(*args, **kwargs)[0]``, for a function that returns a tuple or list of one."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, *arguments: Any, **static: Any) -> Any:
        (result,) = self.fn(*arguments, **static)
        return result

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fn!r})"


def _static_key(leaf: Any) -> Any:
    """Return a key that is equal for leaves no function can tell apart; by identity where that is not certain."""
    if isinstance(leaf, float):
        return float, leaf.hex()
    if leaf is None or type(leaf) in (int, bool, str, bytes, type(Ellipsis)):
        return type(leaf), leaf
    if type(leaf) is slice:
        return slice, _static_key(leaf.start), _static_key(leaf.stop), _static_key(leaf.step)
    return id(leaf)


def layers(fn: Any) -> Iterator[Any]:
    """Iterate over what a node calls and what is inside it, the function itself last."""
    yield fn
    while isinstance(fn, CallForOne | CallOnTree | CallOnTrees):
        fn = fn.fn
        yield fn


def unwrapped(fn: Any) -> Any:
    """Return the function inside what a node calls."""
    (*_, inside) = layers(fn)
    return inside
