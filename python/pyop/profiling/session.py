"""Profile ops and plans: `profile` records every call, in C++, on every thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from .. import _core
from ..graph.html import clean
from ..interrupts import entered_as_a_whole
from .rows import ProfileRow, Source, counted, nesting, numbered, source_of
from .table import html, table, text_of_ns

if TYPE_CHECKING:
    from .compare import Comparison

__all__ = ["Profile", "profile"]

# csrc/profile/events.h: Event
_FIELDS = ("start", "end", "source", "part", "bytes_in", "bytes_out", "copied", "released", "waited", "failed")
_EVENT = np.dtype([(name, "u4" if name in ("source", "part") else "u8") for name in _FIELDS])

# Where `spent` puts the time of a row's own.
_ACCOUNTS = {"op": "user code", "function": "user code", "node": "user code", "plan": "overhead"}

# What `Profile.events` is made of.
_PLACES, _TIMES = ("thread", "row", "depth"), ("start_ns", "duration_ns", "self_ns", "gil_released_ns", "gil_wait_ns")
_SIZES = ("bytes_in", "bytes_out", "bytes_copied")
_RECORD = np.dtype(
    [(name, "i4") for name in _PLACES]
    + [("failed", "?")]
    + [(name, "f8") for name in _TIMES]
    + [(name, "u8") for name in _SIZES]
)


@entered_as_a_whole
class Profile(_core.ProfileSession):
    """Hold the calls of ops and plans between entering and leaving it; `profile` makes it.

    Only calls that began and ended within are part of it. Attributes are available once it is over.

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

    def __init__(self, events: int, opener: Callable[[Any, int], Callable[[], Any]] | None = None) -> None:
        import threading  # noqa: F401, so that threads have their names

        super().__init__(events, opener)
        self._over = False
        self._rows: list[ProfileRow] = []
        self._events = np.empty(0, _RECORD)
        self._sources: list[Source] = []
        self._own_waits = np.empty((2, 0))
        self._threads: list[tuple[str, int]] = []
        self._wall_ns = 0.0
        self._lost = 0

    @property
    def rows(self) -> list[ProfileRow]:
        """Return a row for each op, plan and part of a plan, those with most time of their own first."""
        return self._done()._rows

    @property
    def threads(self) -> list[str]:
        """Return the names of the threads that made calls."""
        return [name for name, _ in self._done()._threads]

    @property
    def wall_ns(self) -> float:
        """Return the duration of the profile in nanoseconds."""
        return self._done()._wall_ns

    @property
    def lost(self) -> int:
        """Return the number of events that were overwritten by later ones."""
        return self._done()._lost

    @property
    def events(self) -> npt.NDArray[np.void]:
        """Return every call, as a structured array.

        Its fields are ``thread`` and ``row`` (indices into `threads` and `rows`), ``depth`` (the number of recorded
        calls around it), ``failed``, ``start_ns`` (since the profile began), ``duration_ns``, ``self_ns``,
        ``gil_released_ns``, ``gil_wait_ns``, ``bytes_in``, ``bytes_out`` and ``bytes_copied``. They are ordered by
        thread and start.
        """
        return self._done()._events

    @property
    def spent(self) -> dict[str, float]:
        """Return how the threads spent their time, in ns: `wall_ns` in all for each thread that made calls.

        ``"user code"`` are Python functions of ops and nodes, and compiled functions that run the plain one.
        ``"native"`` are loops, views and backward steps in C++, ``"overhead"`` the work of plans around them. ``"GIL
        wait"`` is time until the GIL was there again, ``"idle"`` that of plans that wait for nodes on other threads,
        and ``"outside"`` that of no recorded call.

        Examples
        --------
        >>> import numpy as np, pyop
        >>> double = pyop.op("float64[n] -> float64[n]", name="double")(lambda x: x + x)
        >>> with pyop.profile() as p:
        ...     y = double(np.ones(4))
        >>> abs(sum(p.spent.values()) - p.wall_ns) < 0.02 * p.wall_ns
        True
        """
        self._done()
        spent = dict.fromkeys(("user code", "native", "overhead", "GIL wait", "idle", "outside"), 0.0)
        waited, released = self._own_waits
        kinds = np.array([_ACCOUNTS.get(source.kind, "native") for source in self._sources], object)
        accounts = kinds[self._events["row"]] if len(kinds) else np.empty(0, object)
        own = np.maximum(self._events["self_ns"] - waited, 0.0)
        spent["GIL wait"] = float((self._events["self_ns"] - own).sum())
        for name in ("user code", "native", "overhead"):
            spent[name] = float(own[accounts == name].sum())
        away = np.minimum(released, own)[accounts == "overhead"]
        spent["idle"] = float(away.sum())
        spent["overhead"] -= spent["idle"]
        for thread in range(len(self._threads)):
            outer = self._events[(self._events["thread"] == thread) & (self._events["depth"] == 0)]
            begin = outer["start_ns"].clip(0.0)
            end = np.minimum(outer["start_ns"] + outer["duration_ns"], self._wall_ns)
            gaps = np.append(begin, self._wall_ns) - np.append(0.0, end)  # they lie in order and apart
            spent["outside"] += float(gaps.clip(0.0).sum())
        return spent

    def by(self, what: str = "node") -> list[ProfileRow]:
        """Return rows of one kind, those with most time of their own first.

        Parameters
        ----------
        what : {"node", "function", "line"}
            A row for each op, plan and part of a plan (`rows`); for each function, however many nodes call it; or
            for each line of the source.

        Returns
        -------
        list of ProfileRow

        Examples
        --------
        >>> import numpy as np, pyop
        >>> double = pyop.op("float64[n] -> float64[n]", name="double")(lambda x: x + x)
        >>> plan = pyop.trace(lambda x: double(double(x)), "float64[n]").compile()
        >>> with pyop.profile() as p:
        ...     y = plan(np.ones(4))
        >>> sorted((row.name, row.calls) for row in p.by("function"))
        [('double', 2), ('lambda', 1)]
        """
        self._done()
        if what not in ("node", "function", "line"):
            raise ValueError(f"rows are by 'node', 'function' or 'line', not {what!r}")
        if what == "node":
            return self._rows
        ids, names = numbered(self._sources, what)
        rows = counted(self._events, np.asarray(ids, np.intp)[self._events["row"]], names) if ids else []
        return sorted(rows, key=lambda row: -row.self_ns)

    def table(self, by: str = "node") -> str:
        """Return the table that `print` shows, of other rows if asked for.

        Parameters
        ----------
        by : {"node", "function", "line"}
            As `by` has it.

        Returns
        -------
        str

        Examples
        --------
        >>> import pyop
        >>> with pyop.profile() as p:
        ...     pass
        >>> print(p.table("line"))  # doctest: +ELLIPSIS
        0 calls in ... on 0 threads
        ...
        """
        return table(self, by)

    def compare(self, other: Profile, by: str = "function") -> Comparison:
        """Compare with another run of the same program, row by row.

        Parameters
        ----------
        other : Profile
            The later one, say with other passes or on other data.
        by : {"node", "function", "line"}
            Which rows are held against each other. Those of one name, kind and file are the same.

        Returns
        -------
        Comparison
            Printed, it is a table.

        Examples
        --------
        >>> import numpy as np, pyop
        >>> double = pyop.op("float64[n] -> float64[n]", name="double")(lambda x: x + x)
        >>> with pyop.profile() as p:
        ...     y = double(np.ones(4))
        >>> with pyop.profile() as q:
        ...     y = double(double(np.ones(4)))
        >>> [(change.name, change.before.calls, change.after.calls) for change in p.compare(q).changes]
        [('double', 1, 2)]
        """
        from .compare import compare

        return compare(self._done(), other, by)

    def plot(self, ax: Any = None) -> Any:
        """Draw the calls of each thread along time, in matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import pyop
        >>> with pyop.profile() as p:
        ...     pass
        >>> ax = p.plot()  # doctest: +SKIP
        """
        from .plot import draw

        return draw(self._done(), ax)

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the single calls, as objects that JSON can hold.

        Returns
        -------
        dict
            ``wall_ns``, ``lost``, ``threads``, ``spent`` and ``rows``, whose entries are those of `ProfileRow`.

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
            "spent": self.spent,
            "rows": [asdict(row) for row in self.rows],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write every call, in the form that the end of the file's name tells.

        Parameters
        ----------
        path : str or path-like
            ``.pstats`` is for `pstats`, and for SnakeViz and gprof2dot, which read it; ``.speedscope.json`` for
            speedscope.app. Any other is a trace in the Trace Event Format, which Perfetto (ui.perfetto.dev) and
            Chrome (chrome://tracing) show, with arrows from plans to their nodes on other threads, and a counter
            of the bytes in results of running plans.

        Examples
        --------
        >>> import os, tempfile, numpy as np, pyop
        >>> double = pyop.op("float64[n] -> float64[n]", name="double")(lambda x: x + x)
        >>> with pyop.profile() as p:
        ...     y = double(np.ones(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.save(os.path.join(folder, "trace.json"))
        """
        from .export import EXPORTS

        self._done()
        name = os.fspath(path)
        kinds = [kind for kind in EXPORTS if name.endswith(kind)]
        EXPORTS[kinds[0] if kinds else ".json"](self, name)

    def __str__(self) -> str:
        if not self._over:
            return repr(self)
        return table(self, "node")

    def __repr__(self) -> str:
        if not self._over:
            return f"<pyop.Profile {'running' if self._entered else 'not begun'}>"
        return f"<pyop.Profile of {len(self._events)} calls in {len(self._rows)} rows, {text_of_ns(self._wall_ns)}>"

    def _repr_html_(self) -> str:
        return html(self) if self._over else clean(repr(self))

    def _done(self) -> Self:
        if not self._over:
            raise RuntimeError("the profile has not ended: read it after the `with` block")
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
        parts, own_waits = [], []
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
            out["depth"], inner, around = nesting(events["start"].tolist(), events["end"].tolist())
            waits = np.array([out["gil_wait_ns"], out["gil_released_ns"]])
            inside = around >= 0
            own = waits.copy()
            for mine, whole in zip(own, waits, strict=True):
                np.subtract.at(mine, around[inside], whole[inside])
            own_waits.append(own.clip(0.0))
            out["self_ns"] = out["duration_ns"] - np.asarray(inner) * rate
            parts.append(out)
        if parts:
            self._events = np.concatenate(parts)
            self._own_waits = np.concatenate(own_waits, axis=1)
        self._sources = [source_of(recorded["sources"][source], source, part) for source, part in keys]
        ids, names = numbered(self._sources, "node")
        rows = counted(self._events, self._events["row"], names)
        order = sorted(ids, key=lambda i: -rows[i].self_ns)
        self._rows, self._sources = [rows[i] for i in order], [self._sources[i] for i in order]
        place = np.empty(len(rows), "i4")
        place[order] = ids
        if len(rows):
            self._events["row"] = place[self._events["row"]]


def profile(events: int = 1_000_000, *, ranges: str | Iterable[str] = ()) -> Profile:
    """Record every call of an op or plan, and every node and fused group in plans, on all threads.

    It costs about 25 ns a call. Profiles may be nested, and run at the same time on several threads: each sees
    all calls, whoever makes them. While no profile runs, nothing is recorded and nothing paid.

    Parameters
    ----------
    events : int, optional
        How many calls are kept for each thread, 72 bytes each; beyond that the oldest are lost.
    ranges : {"torch", "nvtx", "itt"} or several of them, optional
        Other profilers that are shown each call while it runs, as a range named by kind and name (``"node align"``):
        ``torch.profiler`` (by ``record_function``), NVIDIA's tools (by the package nvtx) and Intel's (by ittapi).
        A range costs microseconds.

    Returns
    -------
    Profile
        A context manager. Afterwards ``print(p)`` shows a table, `Profile.rows` holds it, `Profile.save` writes
        a trace with every call.

    Raises
    ------
    ValueError
        If `events` is less than one, or a name in `ranges` is none of these.
    ImportError
        If a package that `ranges` needs is not there.

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
    if not ranges:
        return Profile(events)
    from .ranges import opener_of

    return Profile(events, opener_of((ranges,) if isinstance(ranges, str) else tuple(ranges)))
