"""Restore arrays that a loop carries and writes parts of, on the way back.

What was written over is put back, so that no iteration stores the whole array.

`one` is a graph of one iteration. Of such an array it has versions, the input and what it is after each write. On the
way back the loop carries the array itself; before the derivatives read an older version, the part that the write behind
it had overwritten is written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from .._core import Value
from ..gradients.store import picks_once, seen, store
from ..graph.graph import Graph
from ..graph.node_call import call_of
from ..graph.sizes import apply
from .bodies import copied, input_like, is_fixed, needed

__all__ = ["Versions", "copied_back", "size_of_all", "versions_of"]

_UNKNOWN_SIZE = 1000


class Versions:
    """Hold the versions of one array.

    Beside each write is what it overwrites (`old`), given back (`given`, an input), and the version before the write
    (`before`), computed of the one behind it.
    """

    def __init__(self, versions: list[Value], old: list[Value]) -> None:
        self.versions = versions
        self.old = old
        self.given: list[Value] = []
        self.before: list[Value] = []
        self.current = len(old)

    def link(self, one: Graph) -> None:
        """Add to the graph what computes versions of later ones."""
        for later, old in zip(self.versions[1:], self.old, strict=True):
            call = call_of(later.node)
            _, _, key, *rest = call.args
            given = input_like(one, old, "old")
            views = rest[0] if rest else ()
            scalar = bool(old._is_scalar)
            made = apply(store, (later, given, key, views, scalar), {}, later.spec, name="store", scalar=False)
            self.given.append(given)
            self.before.append(made)

    def restore(self, version: int, one: Graph, body: Graph, known: dict[int, Value]) -> None:
        """Write in `body` what makes `version` of the one that is there."""
        while self.current > version:
            self.current -= 1
            (made,) = copied(one, body, [self.before[self.current]], known)
            known[self.versions[self.current]._key] = made


def versions_of(one: Graph, start: Value, end: Value, carried: int) -> Versions | None:
    """Return the versions of what is carried, or None.

    An iteration has to do nothing to it but write parts by slices and integers, of known shapes, which are together at
    most half of it.
    """
    versions = [end]
    while versions[-1]._key != start._key:
        node = versions[-1].node
        call = call_of(node) if node.kind == "py" else None
        if call is None or call.function is not store or call.kwargs or not picks_once(call.args[2]):
            return None
        versions.append(call.args[0])
    versions.reverse()
    if len(versions) == 1 or not is_fixed(start, one, carried):
        return None
    old = [_overwritten(before, call_of(after.node).args) for before, after in pairwise(versions)]
    fixed = all(is_fixed(value, one, carried) and value.dtype == start.dtype for value in old)
    return Versions(versions, old) if fixed and 2 * size_of_all(old) <= size_of_all([start]) else None


def _overwritten(x: Value, args: Sequence[Any]) -> Value:
    found: Value = seen(x, args[3] if len(args) > 3 else ())[args[2]]
    return found


def size_of_all(values: Sequence[Value]) -> int:
    """Return how many bytes they have, about."""
    found = 0
    for value in values:
        sizes = [
            size if isinstance(size, int) else _UNKNOWN_SIZE for size in value.shape or (None,) * (value.shape is None)
        ]
        found += prod(sizes) * (8 if value.dtype is None else value.dtype.itemsize)
    return found


def copied_back(
    one: Graph, body: Graph, results: Sequence[Value], known: dict[int, Value], instead: Any, mark: int,
    arrays: Sequence[Versions],
) -> list[Value]:  # fmt: skip
    """Copy nodes as `copied` does, and restore the versions of the arrays that they read.

    The nodes behind `mark`, the derivatives, read these versions. In the end each array is what it was before the
    iteration. `known` has the last versions.
    """
    if not arrays:
        return copied(one, body, results, known, instead)
    where = {value._key: (array, j) for array in arrays for j, value in enumerate(array.versions)}
    waiting: list[Value] = []
    for index in needed(one, results, where, instead):
        if index < mark:
            continue
        read = [x for x in one[index].inputs if x.node.index < mark and (index, x._key) not in instead]
        if _restore_for(read, where, one, body, known, instead, waiting):
            waiting = []
        waiting += one[index].outputs
    front = [value for value in results if value.node.index < mark]
    _restore_for(front, where, one, body, known, instead, waiting)
    made = copied(one, body, results, known, instead)
    for array in arrays:
        array.restore(0, one, body, known)
    return made


def _restore_for(
    read: Sequence[Value], where: dict[int, tuple[Versions, int]], one: Graph, body: Graph, known: dict[int, Value],
    instead: Any, waiting: Sequence[Value],
) -> bool:  # fmt: skip
    """Restore the versions that these are computed of, the latest first, and read there what can be read. Before, the
    nodes that wait are written down, which read what is there now. Return whether there was anything to restore.
    """
    readers = needed(one, read, known.keys() | where.keys(), instead)
    versions: dict[int, list[int]] = {x._key: [] for x in read if x._key in where and x._key not in known}
    for reader in readers:
        for x in one[reader].inputs:
            if x._key in where and x._key not in known:
                versions.setdefault(x._key, []).append(reader)
    if not versions:
        return False
    copied(one, body, waiting, known, instead)
    for key in sorted(versions, key=lambda key: -where[key][1]):
        array, version = where[key]
        array.restore(version, one, body, known)
        nodes = [one[reader] for reader in versions[key]]
        ready = [y for node in nodes if all(x._key in known for x in node.inputs) for y in node.outputs]
        copied(one, body, ready, known, instead)
    return True
