"""Trace a function that writes into its arguments.

While it is traced, such a write is one like any other: the memory becomes another value. The plan computes what each
argument holds in the end, and copies that into the caller's arrays when all is computed (csrc/plan/write_back.h). A
result that is the argument, or a view of it, is the caller's array, or a view of that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._core import Value
from .._tree import flatten
from ..graph.deciding import RunItself
from ..graph.graph import Graph
from ..refusals import call_watched, refusal, was_refused
from .arguments import Place, root

__all__ = ["any_written", "call_and_note", "check_container", "check_returned", "containers", "declare_writes"]
__all__ += ["holds_nothing", "is_changed"]


_is_written = operator.methodcaller("_is_written")
# By their places among the inputs of the graph, the Values that the function is traced with.
Lent = dict[int, Any]


def any_written(lent: Lent) -> bool:
    """Return whether one of them holds something else by now."""
    return any(map(_is_written, lent.values()))


def call_and_note(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], lent: Lent) -> Any:
    """Call a function with stand-ins, of which it may write into those that are `lent`.

    Raises RunItself, for this call, where an error that is the function's, or NumPy's, comes after a write.

    >>> from pyop.compiling.written_arguments import call_and_note
    >>> call_and_note(lambda x: x + 1, (1,), {}, {})
    2
    """
    try:
        return call_watched(fn, args, kwargs)
    except Exception as error:
        if was_refused(error) or not any_written(lent):
            raise
        raise RunItself(f"raised {type(error).__name__} after a write", ()) from error


def check_container(tree: Any, places: list[Place], leaves: list[Any], argument: Any, name: str) -> None:
    """Refuse a function that puts something else into a container that it was given: the caller's would not change."""
    if is_changed(tree, leaves, argument):
        which = f"its argument '{root(places[0].path)}'" if places else "an empty argument"
        said = (
            f"{name} changes what {which} holds, and the caller's {type(argument).__name__} would stay as it is: make "
            "a new one, and return it"
        )
        raise refusal(said)


def is_changed(tree: Any, leaves: list[Any], argument: Any) -> bool:
    """Return whether a container holds something else than the function was given in it."""
    if tree.is_leaf:
        return False
    found, structure = flatten(argument)
    return not (structure == tree and all(map(operator.is_, found, leaves)))


def check_returned(given: Any, result: Any, holds: Callable[[Any], bool]) -> None:
    """Have a function run itself that returns a list, dict or object that it was given, or `holds`, or that is in the
    result twice: a plan would make other ones."""
    found = containers(result)
    seen = {id(x) for x in containers(given)} if found else set()
    for part in found:
        if id(part) in seen or holds(part):
            raise RunItself(
                f"returns a {type(part).__name__} that it was given or holds, or twice, and a plan would return a copy",
                remedy="Return a new one, or what it holds",
            )
        seen.add(id(part))


def holds_nothing(x: Any) -> bool:
    """Return False: where nothing is known of an object, the function is taken not to reach it."""
    return False


def containers(tree: Any) -> list[Any]:
    """Return the containers of a tree that somebody may write into."""
    found: list[Any] = []
    flatten(tree, found.append)  # which returns None, so that none of them is a leaf
    return [part for part in found if type(part) is not tuple]


def declare_writes(graph: Graph, lent: Lent, result: Any, name: str) -> Any:
    """Declare what becomes of the arguments of the function `name`; return its result, with the caller's arrays."""
    inputs = graph.inputs
    written, writes = [], []
    for k, handle in lent.items():
        now = handle._root()
        if now._key != inputs[k]._key:
            written.append((handle, inputs[k]))
            writes.append((k, (now.node.index, now.output_index)))
    graph._writes = tuple(writes)
    leaves, structure = flatten(result)
    once = {id(leaf): leaf for leaf in leaves}  # what is returned twice is one object
    made = {key: _of_caller(leaf, written, name) for key, leaf in once.items()}
    return structure.unflatten([made[id(leaf)] for leaf in leaves])


def _of_caller(leaf: Any, written: list[tuple[Any, Any]], name: str) -> Any:
    """Return a part of the result, as a view of the caller's array if it is one."""
    if type(leaf) is not Value:
        return leaf
    for handle, given in written:
        shows = leaf._shows(handle)
        if shows > 0:
            return leaf._shown_of(given)
        if shows == 0:
            raise refusal(
                f"{name} returns {leaf.name!r} (made at {leaf.node.origin}), which may be a view of the argument "
                f"{given.name!r}, or a copy, and writes into that: return a copy, `x.copy()`"
            )
    return leaf
