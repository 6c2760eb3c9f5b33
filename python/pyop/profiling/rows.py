"""Make rows of a profile, the cost of one op, plan, node, function or line, and nest its calls."""

from __future__ import annotations

import re
import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._core import CompiledFunction, Node, Op, Plan
from ..graph.cells import shown_place

__all__ = ["ProfileRow", "Source", "counted", "nesting", "numbered", "parents_of", "source_of"]

_WHOLE_CALL = 0xFFFFFFFF
_SUMS = ("duration_ns", "self_ns", "gil_released_ns", "gil_wait_ns")
_SIZES = ("bytes_in", "bytes_out", "bytes_copied")


@dataclass(frozen=True)
class ProfileRow:
    """Hold the cost of one op, plan or part of a plan in a profile. Times are in nanoseconds.

    Attributes
    ----------
    name : str
        Of the op or node; a fused group names its nodes.
    kind : str
        ``"op"``, ``"plan"`` and ``"function"`` (a compiled function that runs the plain one) are calls; within a
        plan there are ``"node"`` (a Python function), ``"native"`` (one operation in C++), ``"view"`` and
        ``"group"`` (several operations in one pass over the elements).
        ``"backward"`` is a step of a backward run, ``"line"`` all that one line of the source has asked for.
    where : str
        ``"file:line"`` of the declaration (an op) or of the place where the node was written; of a group, its
        last node. Empty for a plan, and for a function that is called on several lines.
    calls, failed : int
        How often it was called, and how many of those calls raised.
    total_ns : float
        From begin to end of its calls, whatever they called in turn.
    self_ns : float
        `total_ns` without the calls of other rows within.
    min_ns, p50_ns : float
        Of the single calls: the shortest and the median.
    share : float
        `self_ns` as a part of that of all rows.
    bytes_in, bytes_out : int
        Of the arrays that came in and went out.
    bytes_copied : int
        Of those that had to be copied or converted on the way.
    gil_held_ns, gil_released_ns, gil_wait_ns : float
        `total_ns` in three: with the GIL, while pyop had given it up, and while it waited to have it back. What
        a Python function does about the GIL is not seen.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> double = pyop.op("float64[n] -> float64[n]", name="double")(lambda x: x + x)
    >>> with pyop.profile() as p:
    ...     y = double(double(np.ones(4)))
    >>> row = p.rows[0]
    >>> row.name, row.kind, row.calls, row.failed, row.bytes_out
    ('double', 'op', 2, 0, 64)
    """

    name: str
    kind: str
    where: str
    calls: int
    failed: int
    total_ns: float
    self_ns: float
    min_ns: float
    p50_ns: float
    share: float
    bytes_in: int
    bytes_out: int
    bytes_copied: int
    gil_held_ns: float
    gil_released_ns: float
    gil_wait_ns: float


@dataclass(frozen=True)
class Source:
    """Identify one number in the events: a whole op or plan, or an instruction of a plan."""

    name: str
    kind: str
    where: str
    owner: int  # the number of the op or plan
    function: Hashable  # the same for calls of one function
    nodes: tuple[Node, ...] = ()
    plan: weakref.ref[Plan] | None = None  # a profile keeps no plan alive


def source_of(source: Any, owner: int, part: int) -> Source:
    """Return name, kind, place and function of a recorded call."""
    if isinstance(source, Plan):
        if part == _WHOLE_CALL:
            return Source(source.graph.name, "plan", "", owner, owner, (), weakref.ref(source))
        native, nodes, text = source._instruction(part)
        # A group is one line of the table: where its last node was written is where its results are.
        kind = ("group" if len(nodes) > 1 else "view" if text == "view" else "native") if native else "node"
        function = tuple(id(node.function) for node in nodes)
        return Source(name_of(nodes), kind, shown_place(nodes[-1].origin), owner, function, nodes, weakref.ref(source))
    if isinstance(source, CompiledFunction):
        code = getattr(source.__wrapped__, "__code__", None)
        where = shown_place(f"{code.co_filename}:{code.co_firstlineno}") if code else ""
        return Source(source.__name__, "function", where, owner, owner)
    if isinstance(source, Op):
        return Source(source.name, "op", shown_place(source.origin), owner, owner)
    if isinstance(source, str):
        return Source(f"{source}Backward", "backward", "", owner, source)
    return Source(repr(source), "?", "", owner, owner)


def name_of(nodes: tuple[Node, ...]) -> str:
    """Return the names of a group's nodes, as many as fit a table."""
    names = [node.name for node in nodes]
    return " ".join(names if len(names) <= 4 else [*names[:2], f"…{len(names) - 3}…", names[-1]])


def numbered(sources: list[Source], by: str) -> tuple[list[int], list[tuple[str, str, str]]]:
    """Return the row number of each source, and name, kind and place of each row."""
    if by == "node":
        return list(range(len(sources))), [(s.name, s.kind, s.where) for s in sources]
    numbers: dict[Hashable, int] = {}
    row_numbers: list[int] = []
    names: list[tuple[str, str, str]] = []
    for s in sources:
        line = by == "line" and s.where
        key: Hashable = s.where if line else (s.kind, s.function)
        k = numbers.setdefault(key, len(numbers))
        row_numbers.append(k)
        if line:
            name = (s.where, "line", s.where)
        else:
            name = (" ".join(re.sub(r"_\d+$", "", part) for part in s.name.split()), s.kind, s.where)
        if k == len(names):
            names.append(name)
        elif names[k][2] != name[2]:
            names[k] = (*names[k][:2], "")
    return row_numbers, names


def counted(
    events: npt.NDArray[np.void], ids: npt.NDArray[np.intp], names: list[tuple[str, str, str]]
) -> list[ProfileRow]:
    """Return a row for each name, of the events that have its number; in the order of `names`."""
    rows = []
    whole = float(events["self_ns"].sum()) or 1.0
    groups = np.split(np.argsort(ids, kind="stable"), np.cumsum(np.bincount(ids))[:-1])
    for (name, kind, where), members in zip(names, groups if names else [], strict=True):
        mine = events[members]
        each = mine["duration_ns"]
        total, own, released, waited = (float(mine[field].sum()) for field in _SUMS)
        bytes_in, bytes_out, copied = (int(mine[field].sum()) for field in _SIZES)
        held = max(total - released - waited, 0.0)
        shortest, middle = float(each.min()), float(np.median(each))
        what = (name, kind, where, len(mine), int(mine["failed"].sum()))
        spent = (total, own, shortest, middle, own / whole)
        rows.append(ProfileRow(*what, *spent, bytes_in, bytes_out, copied, held, released, waited))
    return rows


def nesting(starts: list[int], ends: list[int]) -> tuple[list[int], list[int], npt.NDArray[np.intp]]:
    """Return depth, time in children, and parent of intervals ordered by start, each inside another or apart."""
    depths, inner, around = [], [0] * len(starts), list[int]()
    parents = np.full(len(starts), -1, np.intp)
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while around and ends[around[-1]] <= start:
            around.pop()
        depths.append(len(around))
        if around:
            inner[around[-1]] += end - start
            parents[i] = around[-1]
        around.append(i)
    return depths, inner, parents


def parents_of(events: npt.NDArray[np.void]) -> list[int]:
    """Return the number of the call that each event is within, on its thread, or -1."""
    last: list[int] = []
    parents = []
    for k, (thread, depth) in enumerate(zip(events["thread"].tolist(), events["depth"].tolist(), strict=True)):
        if k and thread != events["thread"][k - 1]:
            last = []
        del last[depth:]
        parents.append(last[-1] if last else -1)
        last.append(k)
    return parents
