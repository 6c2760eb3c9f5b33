"""Where the time of ops and plans goes: `profile` records every call, in C++, on every thread."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import Node, Op, Plan
from .interrupts import entered_as_a_whole

__all__ = ["Profile", "ProfileRow", "profile"]

# csrc/profile/events.h: Event
_FIELDS = ("start", "end", "source", "part", "bytes_in", "bytes_out", "copied", "released", "waited", "failed")
_EVENT = np.dtype([(name, "u4" if name in ("source", "part") else "u8") for name in _FIELDS])
_WHOLE_CALL = 0xFFFFFFFF

# What `Profile.events` is made of.
_PLACES, _TIMES = ("thread", "row", "depth"), ("start_ns", "duration_ns", "self_ns", "gil_released_ns", "gil_wait_ns")
_SIZES = ("bytes_in", "bytes_out", "bytes_copied")
_RECORD = np.dtype(
    [(name, "i4") for name in _PLACES]
    + [("failed", "?")]
    + [(name, "f8") for name in _TIMES]
    + [(name, "u8") for name in _SIZES]
)


@dataclass(frozen=True)
class ProfileRow:
    """What one op, plan or part of a plan has cost in a profile. Times are in nanoseconds.

    Attributes
    ----------
    name : str
        Of the op or node; a fused group names its nodes.
    kind : str
        ``"op"`` and ``"plan"`` are calls; within a plan there are ``"node"`` (a Python function), ``"native"``
        (one operation in C++), ``"view"`` and ``"group"`` (several operations in one pass over the elements).
    where : str
        ``"file:line"`` of the declaration (an op) or of the place where the node was written; of a group, its
        last node. Empty for a plan.
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


@entered_as_a_whole
class Profile(_core.ProfileSession):
    """The calls of ops and plans between entering and leaving it, from `profile`.

    Only calls that began and ended within are part of it. Attributes are there once it is over.

    Attributes
    ----------
    rows : list of ProfileRow
        One for each op, plan and part of a plan that was called, those with most time of their own first.
    threads : list of str
        Names of the threads that called them.
    wall_ns : float
        How long it lasted.
    lost : int
        Events that were overwritten by later ones. Zero unless there were more than `events` on a thread; then
        rows tell about the last ones only.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> plan = pyop.trace(np.sin, "float64[n]").compile()
    >>> with pyop.profile() as p:
    ...     y = plan(np.ones(4))
    >>> p.wall_ns > 0, p.lost, len(p.threads), {row.kind for row in p.rows} >= {"plan"}
    (True, 0, 1, True)
    """

    def __init__(self, events: int) -> None:
        import threading  # noqa: F401, so that threads have their names

        super().__init__(events)
        self._over = False
        self._rows: list[ProfileRow] = []
        self._events = np.empty(0, _RECORD)
        self._threads: list[tuple[str, int]] = []
        self._wall_ns = 0.0
        self._lost = 0

    @property
    def rows(self) -> list[ProfileRow]:
        """One for each op, plan and part of a plan, those with most time of their own first."""
        return self._done()._rows

    @property
    def threads(self) -> list[str]:
        """Names of the threads that made calls."""
        return [name for name, _ in self._done()._threads]

    @property
    def wall_ns(self) -> float:
        """How long the profile lasted, in nanoseconds."""
        return self._done()._wall_ns

    @property
    def lost(self) -> int:
        """How many events were overwritten by later ones."""
        return self._done()._lost

    @property
    def events(self) -> npt.NDArray[np.void]:
        """Every call, as a structured array.

        Its fields are ``thread`` and ``row`` (indices into `threads` and `rows`), ``depth`` (how many recorded
        calls it was within), ``failed``, ``start_ns`` (since the profile began), ``duration_ns``, ``self_ns``,
        ``gil_released_ns``, ``gil_wait_ns``, ``bytes_in``, ``bytes_out`` and ``bytes_copied``. They are ordered
        by thread and start.
        """
        return self._done()._events

    def to_dict(self) -> dict[str, Any]:
        """All but the single calls, as what JSON can hold.

        Returns
        -------
        dict
            ``wall_ns``, ``lost``, ``threads`` and ``rows``, whose entries are those of `ProfileRow`.

        Examples
        --------
        >>> import numpy as np, pyop
        >>> double = pyop.op("float64[n] -> float64[n]", name="double")(lambda x: x + x)
        >>> with pyop.profile() as p:
        ...     y = double(double(np.ones(4)))
        >>> row = p.to_dict()["rows"][0]
        >>> row["name"], row["calls"], row["bytes_in"]
        ('double', 2, 64)
        """
        self._done()
        return {
            "wall_ns": self.wall_ns,
            "lost": self.lost,
            "threads": self.threads,
            "rows": [asdict(row) for row in self.rows],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write every call as a trace that Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) show.

        Parameters
        ----------
        path : str or path-like
            The file, JSON in the Trace Event Format.

        Examples
        --------
        >>> import os, tempfile, numpy as np, pyop
        >>> double = pyop.op("float64[n] -> float64[n]", name="double")(lambda x: x + x)
        >>> with pyop.profile() as p:
        ...     y = double(np.ones(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.save(os.path.join(folder, "trace.json"))
        """
        import json

        self._done()
        pid = os.getpid()
        trace: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "pyop"}}
        ]
        for name, tid in self._threads:
            trace.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
        for event in self._events:
            row, (_, tid) = self._rows[event["row"]], self._threads[event["thread"]]
            args: dict[str, Any] = {name: int(event[name]) for name in _SIZES}
            args |= {name: float(event[name]) for name in ("gil_released_ns", "gil_wait_ns") if event[name]}
            if event["failed"]:
                args["failed"] = True
            trace.append(
                {
                    "ph": "X",
                    "name": row.name,
                    "cat": row.kind,
                    "pid": pid,
                    "tid": tid,
                    "ts": float(event["start_ns"]) / 1000,  # microseconds, as the format has it
                    "dur": float(event["duration_ns"]) / 1000,
                    "args": args | {"where": row.where},
                }
            )
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": trace, "displayTimeUnit": "ns"}, file)

    def __str__(self) -> str:
        if not self._over:
            return repr(self)
        return table(self)

    def __repr__(self) -> str:
        if not self._over:
            return f"<pyop.Profile {'running' if self._entered else 'not begun'}>"
        return f"<pyop.Profile of {len(self._events)} calls in {len(self._rows)} rows, {text_of_ns(self._wall_ns)}>"

    def _done(self) -> Self:
        if not self._over:
            raise RuntimeError("the profile is not over: look at it after the `with` block")
        return self

    def _read(self, recorded: dict[str, Any]) -> None:
        """Turn ticks and numbers into times and rows. The core calls it when the profile is left."""
        self._over = True
        rate = recorded["ns_per_tick"]
        self._wall_ns = float(recorded["stop_ns"] - recorded["start_ns"])
        self._threads = [(name, tid) for name, tid, _, _ in recorded["threads"]]
        self._lost = sum(lost for _, _, lost, _ in recorded["threads"])
        raw = [np.frombuffer(events, _EVENT) for _, _, _, events in recorded["threads"]]
        keys: dict[tuple[int, int], int] = {}
        parts = []
        for thread, events in enumerate(raw):
            # A call begins before those within it; of two that begin in the same tick, the later one to end is outside.
            events = events[np.lexsort((-events["end"].astype("i8"), events["start"]))]
            out = np.zeros(len(events), _RECORD)
            out["thread"] = thread
            pairs = zip(events["source"].tolist(), events["part"].tolist(), strict=True)
            out["row"] = [keys.setdefault(pair, len(keys)) for pair in pairs]
            out["failed"] = events["failed"]
            out["start_ns"] = (events["start"] - np.uint64(recorded["start"])) * rate
            out["duration_ns"] = (events["end"] - events["start"]) * rate
            out["gil_released_ns"] = events["released"] * rate
            out["gil_wait_ns"] = events["waited"] * rate
            for name, field in zip(_SIZES, ("bytes_in", "bytes_out", "copied"), strict=True):
                out[name] = events[field]
            out["depth"], inner = nesting(events["start"].tolist(), events["end"].tolist())
            out["self_ns"] = out["duration_ns"] - np.asarray(inner) * rate
            parts.append(out)
        if parts:
            self._events = np.concatenate(parts)
        self._count([described(recorded["sources"][source], part) for source, part in keys])

    def _count(self, names: list[tuple[str, str, str]]) -> None:
        """Make the rows; `names` holds name, kind and place of each."""
        events, rows = self._events, []
        whole = float(events["self_ns"].sum()) or 1.0
        groups = np.split(np.argsort(events["row"], kind="stable"), np.cumsum(np.bincount(events["row"]))[:-1])
        for (name, kind, where), members in zip(names, groups if len(names) else [], strict=True):
            mine = events[members]
            each = mine["duration_ns"]
            total, own, released, waited = (float(mine[field].sum()) for field in _TIMES[1:])
            bytes_in, bytes_out, copied = (int(mine[field].sum()) for field in _SIZES)
            held = max(total - released - waited, 0.0)
            shortest, middle = float(each.min()), float(np.median(each))
            what = (name, kind, where, len(mine), int(mine["failed"].sum()))
            spent = (total, own, shortest, middle, own / whole)
            rows.append(ProfileRow(*what, *spent, bytes_in, bytes_out, copied, held, released, waited))
        order = sorted(range(len(rows)), key=lambda i: -rows[i].self_ns)
        self._rows = [rows[i] for i in order]
        place = np.empty(len(rows), "i4")
        place[order] = np.arange(len(rows))
        if len(rows):
            events["row"] = place[events["row"]]


def profile(events: int = 1_000_000) -> Profile:
    """Record every call of an op or plan, and every node and fused group in plans, on all threads.

    It costs about 25 ns a call. Profiles may be nested, and run at the same time on several threads: each sees
    all calls, whoever makes them. While no profile runs, nothing is recorded and nothing paid.

    Parameters
    ----------
    events : int, optional
        How many calls are kept for each thread, 72 bytes each; beyond that the oldest are lost.

    Returns
    -------
    Profile
        A context manager. Afterwards ``print(p)`` shows a table, `Profile.rows` holds it, `Profile.save` writes
        a trace with every call.

    Raises
    ------
    ValueError
        If `events` is less than one.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> double = pyop.op("float64[n] -> float64[n]", name="double")(lambda x: x + x)
    >>> with pyop.profile() as p:
    ...     for _ in range(10):
    ...         y = double(np.ones(1000))
    >>> [(row.name, row.kind, row.calls, row.bytes_out) for row in p.rows]
    [('double', 'op', 10, 80000)]
    """
    if events < 1:
        raise ValueError(f"a profile must keep at least one event, not {events}")
    return Profile(events)


def nesting(starts: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
    """Of intervals ordered by start, one in another or apart: the depth of each, and how much lies in its children."""
    depths, inner, around = [], [0] * len(starts), list[int]()
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while around and ends[around[-1]] <= start:
            around.pop()
        depths.append(len(around))
        if around:
            inner[around[-1]] += end - start
        around.append(i)
    return depths, inner


def described(source: Any, part: int) -> tuple[str, str, str]:
    """Name, kind and place of what was called."""
    if isinstance(source, Plan):
        if part == _WHOLE_CALL:
            return source.graph.name, "plan", ""
        native, nodes, text = source._instruction(part)
        # A group is one line of the table: where its last node was written is where its results are.
        kind = ("group" if len(nodes) > 1 else "view" if text == "view" else "native") if native else "node"
        return name_of(nodes), kind, nodes[-1].origin
    if isinstance(source, Op):
        return source.name, "op", source.origin
    return repr(source), "?", ""


def name_of(nodes: tuple[Node, ...]) -> str:
    """The names of a group's nodes, as many as fit a table."""
    names = [node.name for node in nodes]
    return " ".join(names if len(names) <= 4 else [*names[:2], f"…{len(names) - 3}…", names[-1]])


# --- the table

_COLUMNS = (
    "name", "kind", "calls", "total", "self", "min", "p50", "share", "in", "out", "copied", "held", "released", "wait",
)  # fmt: skip


def text_of_ns(ns: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 999.5 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def text_of_bytes(n: int) -> str:
    """Three digits and a unit, a dash for nothing."""
    if n < 1024:
        return f"{n} B" if n else "-"
    value, units = float(n), iter("kMGTPE")
    while value >= 999.5:
        value, unit = value / 1024, next(units)
    return f"{value:.3g} {unit}iB"


def cells(row: ProfileRow) -> tuple[str, ...]:
    """One line of the table."""
    times = (row.total_ns, row.self_ns, row.min_ns, row.p50_ns)
    sizes = (row.bytes_in, row.bytes_out, row.bytes_copied)
    gil = (row.gil_held_ns, row.gil_released_ns, row.gil_wait_ns)
    return (
        row.name,
        row.kind,
        f"{row.calls}" + (f" ({row.failed} failed)" if row.failed else ""),
        *map(text_of_ns, times),
        f"{row.share:.1%}",
        *map(text_of_bytes, sizes),
        *(text_of_ns(ns) if ns else "-" for ns in gil),
    )


def table(p: Profile) -> str:
    """The rows in columns."""
    lines = [cells(row) for row in p.rows]
    calls = sum(row.calls for row in p.rows)
    title = f"{calls} calls in {text_of_ns(p.wall_ns)} on {len(p.threads)} thread{'s' * (len(p.threads) != 1)}"
    if p.lost:
        title += f"; {p.lost} more were lost, the oldest: profile(events=…) keeps more"
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *lines, strict=True)]
    align = [str.ljust] * 2 + [str.rjust] * (len(_COLUMNS) - 2)
    texts = (
        "  ".join([put(cell, width) for put, cell, width in zip(align, line, widths, strict=True)])
        for line in (_COLUMNS, *lines)
    )
    return "\n".join([title, *(text.rstrip() for text in texts)])
