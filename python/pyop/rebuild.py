"""Callables that put flat arguments back into the containers a function takes.

The core passes arrays as a flat list. Where a function takes them inside tuples, lists or dicts, what the core calls
is one of these. They compare by what they do, so that equal calls are merged.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from ._tree import TreeDef

__all__ = ["CallForOne", "CallOnTree", "CallOnTrees"]


class CallOnTree:
    """``fn(*args, **kwargs)`` where ``(args, kwargs)`` is rebuilt from arrays and static leaves.

    Parameters
    ----------
    fn : callable
    tree : TreeDef
        The structure of ``(args, kwargs)``.
    leaves : tuple
        One entry a leaf: a static object, or `CallOnTree.ARRAY` where the next array stands.
    """

    __slots__ = ("_key", "fn", "leaves", "tree")

    ARRAY: Any = type("_Array", (), {"__repr__": lambda self: "<array>", "__reduce__": lambda self: "ARRAY"})()
    _pyop_merge_by_value = True

    def __init__(self, fn: Callable[..., Any], tree: TreeDef, leaves: tuple[Any, ...]) -> None:
        self.fn = fn
        self.tree = tree
        self.leaves = leaves
        self._key = (id(fn), tree, tuple(_static_key(leaf) for leaf in leaves))

    def __call__(self, *arrays: Any) -> Any:
        given = iter(arrays)
        array = self.ARRAY
        args, kwargs = self.tree.unflatten([next(given) if leaf is array else leaf for leaf in self.leaves])
        return self.fn(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallOnTree) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fn!r})"


class CallOnTrees:
    """``fn(tree, tree, ...)``: each positional argument is rebuilt from a run of the arrays.

    Parameters
    ----------
    fn : callable
    trees : tuple of TreeDef
        The structure of each positional argument.
    """

    __slots__ = ("fn", "trees")

    _pyop_merge_by_value = True

    def __init__(self, fn: Callable[..., Any], trees: tuple[TreeDef, ...]) -> None:
        self.fn = fn
        self.trees = trees

    def __call__(self, *arrays: Any, **static: Any) -> Any:
        arguments, start = [], 0
        for tree in self.trees:
            stop = start + tree.num_leaves
            arguments.append(tree.unflatten(arrays[start:stop]))
            start = stop
        return self.fn(*arguments, **static)

    def bind(self, instance: Any) -> CallOnTrees:
        """The same for a method of an instance."""
        return CallOnTrees(MethodType(self.fn, instance), self.trees)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallOnTrees) and self.fn == other.fn and self.trees == other.trees

    def __hash__(self) -> int:
        return hash((self.fn, self.trees))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fn!r})"


class CallForOne:
    """``fn(*args, **kwargs)[0]``, for a function that returns a tuple or list of one.

    Parameters
    ----------
    fn : callable
    """

    __slots__ = ("fn",)

    _pyop_merge_by_value = True

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, *arguments: Any, **static: Any) -> Any:
        (result,) = self.fn(*arguments, **static)
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallForOne) and self.fn == other.fn

    def __hash__(self) -> int:
        return hash((CallForOne, self.fn))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fn!r})"


def _static_key(leaf: Any) -> Any:
    """Equal for leaves that no function can tell apart; by identity where that is not certain."""
    if isinstance(leaf, float):
        return float, leaf.hex()
    if leaf is None or type(leaf) in (int, bool, str, bytes, type(Ellipsis)):
        return type(leaf), leaf
    if type(leaf) is slice:
        return slice, _static_key(leaf.start), _static_key(leaf.stop), _static_key(leaf.step)
    return id(leaf)
