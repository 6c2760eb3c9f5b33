"""Record what a compiled function was traced for, and warn where it is traced too often."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..declare.spec import Spec
from ..graph.deciding import RunItself

if TYPE_CHECKING:
    from ..tracing.places import Reading
    from .arguments import Place

__all__ = ["CALLS_PER_TRACE", "TRACES", "History", "NumbersNeeded", "RetraceWarning", "captured", "log"]

# Not before so many traces, and only while there are fewer than so many calls a trace.
TRACES = 12
CALLS_PER_TRACE = 8
_KEPT = 100
# Of a number that is needed so many values have plans of their own, if calls are fewer: ints are sizes and choices.
_VALUES, _INTS = 3, 8


class RetraceWarning(UserWarning):
    """Warn that a compiled function runs as the plain function, or is traced so often that this takes its time.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np, pyop
    >>> scale = pyop.compile(lambda x, *, by: x * by, static=("by",))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     for k in range(20):
    ...         y = scale(np.ones(2), by=k)
    >>> caught[0].category is pyop.RetraceWarning
    True
    """


def log(text: str, *values: Any) -> None:
    """Log to the logger "pyop", if the program has imported logging: ``import pyop`` does not load it."""
    if (logging := sys.modules.get("logging")) is not None:
        logging.getLogger("pyop").info(text, *values)


class History:
    """Record the varieties in which each argument of the function of this name has come, as long as they are few.

    Several threads may add some at once: what one goes through is a copy.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.traces = 0
        self.warn_at = TRACES
        self.seen: dict[str, dict[tuple[str, str | Spec], None]] = {}
        self._new: list[Mapping[str, tuple[str, str | Spec]]] = []  # not among them yet: most functions never are

    def count(self, function: Any, entries: Mapping[str, tuple[str, str | Spec]]) -> str | None:
        """Note one trace of a compiled function, as `add` does."""
        hits, misses, plans, most = function._counts()
        if plans >= most:
            log("evicted the plan of %s that was used longest ago: max_plans is %d", self.name, most)
        return self.add(entries, hits + misses + 1, most)

    def add(self, entries: Mapping[str, tuple[str, str | Spec]], calls: int, max_plans: int) -> str | None:
        """Note one trace, among so many calls; return the text of a warning that is due.

        The entries say of each argument what it is (array, static, …) and which one of these it was: text, or a Spec.
        """
        self.traces += 1
        if "logging" in sys.modules:
            self._log(entries, calls, max_plans)
        self._new.append(entries)
        if self.traces >= TRACES:
            self._sort()
        if self.traces < self.warn_at or calls > CALLS_PER_TRACE * self.traces:
            return None
        self.warn_at = 2 * self.traces
        varied = [
            _advice(self.name, path, [(kind, str(what)) for kind, what in [*known]])
            for path, known in [*self.seen.items()]
            if len(known) > 1
        ]
        if not varied:
            varied = [
                f"the same arguments come again after their plan was forgotten: raise max_plans, which is {max_plans}"
            ]
        return (
            f"{self.name} was traced {self.traces} times in {calls} calls, and tracing costs far more than a call "
            "(from now on it runs as it is where calls come that are not like one before):\n"
            + "\n".join(f"  - {line}" for line in varied)
        )

    def _log(self, entries: Mapping[str, tuple[str, str | Spec]], calls: int, max_plans: int) -> None:
        """Log what was traced, and which arguments were like none of an earlier trace."""
        before = [*self._new, *({path: entry} for path, known in self.seen.items() for entry in known)]
        new = [f"{path or 'the call'} is {what}" for path, (kind, what) in entries.items() if kind != "captured"
               and not any(known.get(path) == (kind, what) for known in before)]  # fmt: skip
        why = (
            "the first call" if self.traces == 1 else ", ".join(new) or "no plan was left, or what it read has changed"
        )
        log("traced %s, call %d, trace %d: %s", self.name, calls, self.traces, why)

    def _sort(self) -> None:
        new, self._new = self._new, []
        for entries in new:
            for path, entry in entries.items():
                known = self.seen.setdefault(path, {})
                if len(known) < _KEPT:
                    known[entry] = None


def _advice(name: str, path: str, entries: list[tuple[str, str]]) -> str:
    kinds = {kind for kind, _ in entries}
    shown = ", ".join(text for _, text in entries[:3]) + (", ..." if len(entries) > 3 else "")
    if kinds == {"captured"}:
        return f"{path}, which the function reads and others change, was another one each time: make it an argument"
    count = f"{len(entries)}{'+' * (len(entries) >= _KEPT)}"
    if kinds == {"array"}:
        if len({text.partition("[")[0] for _, text in entries}) > 1:
            return f"argument {path!r} came in {count} dtypes and shapes ({shown}): convert it before the call"
        return (
            f"argument {path!r} came in {count} shapes ({shown}): name its sizes for one plan of all, "
            f"pyop.compile({name}, {_general([text for _, text in entries])!r})"
        )
    if kinds == {"static"}:
        return (
            f"static argument {path!r} had {count} values ({shown}): pass it as an array if it only enters the numbers"
        )
    if "number" in kinds:
        return (
            f"argument {path!r}, a Python number that the function needs when it is traced (an if, range(), a function "
            f"of `math`), had {count} values ({shown}): use NumPy's functions of it, and np.where instead of if"
        )
    if kinds == {"function"}:
        return (
            f"argument {path!r} was {count} functions, one made anew in each call perhaps: make it once, and pass the "
            "numbers that it holds as arguments"
        )
    if kinds == {"instance"}:
        return f"the method was called on {count} instances: compile a function that takes their arrays as arguments"
    if kinds == {"structure"}:
        return f"argument {path!r} came in {count} structures ({shown}): keep to one"
    return f"argument {path!r} came in {count} kinds ({shown}): keep to one"


def _general(texts: list[str]) -> str:
    """Return a spec for all of these: sizes that differ get names."""
    dtype = texts[0].partition("[")[0]
    shapes = [text.partition("[")[2].rstrip("]").split(",") for text in texts]
    if len({len(shape) for shape in shapes}) > 1:
        return f"{dtype}[...]"
    names = iter("nmkpqrstuvw")
    sizes = [column[0] if len(set(column)) == 1 else next(names, "_") for column in zip(*shapes, strict=True)]
    return f"{dtype}[{','.join(sizes)}]"


class NumbersNeeded:
    """Record the Python numbers that a function needs while it is traced: a plan holds for one value of each. Where
    most calls have another one, the function itself runs.
    """

    __slots__ = ("_for_all", "_values", "_varied")

    def __init__(self) -> None:
        self._for_all: set[str] = set()  # that some path needs, so that all paths are for the same calls
        self._values: dict[str, dict[str, None]] = {}  # by the paths of the arguments
        self._varied: set[str] = set()  # those of which the function itself runs, for calls of every kind

    def of(self, places: Sequence[Place]) -> set[int]:
        """Return the places of those that every trace is made with."""
        return {k for k, place in enumerate(places) if place.path in self._for_all} if self._for_all else set()

    def add(self, places: Sequence[Place], specialised: Iterable[int], branches: bool) -> None:
        """Note a trace that was made with these numbers. `branches`: it is of one path among others."""
        for k in specialised:
            if k >= len(places):
                continue  # whatever number stands anywhere was asked for
            path = places[k].path
            self._values.setdefault(path, {})[repr(places[k].value)] = None
            if branches:
                self._for_all.add(path)

    def note(self, places: Sequence[Place]) -> None:
        """Note a call that is not traced: that its numbers vary is seen by it, too."""
        for place in places if self._values else ():
            if place.path in self._values:
                self._values[place.path][repr(place.value)] = None

    def check(self, places: Sequence[Place], traces: int, calls: int) -> None:
        """End the trace if one of the numbers is another one in most calls."""
        often = calls >= CALLS_PER_TRACE * traces
        for place in places if self._values else ():
            path, known = place.path, self._values.get(place.path, {})
            most = _INTS if type(place.value) is int else _VALUES
            if place.kind != b"n" or len(known) < most or repr(place.value) in known:
                continue
            if often and path not in self._varied:
                continue
            self._varied.add(path)
            parameter = path.partition("[")[0].partition(".")[0]
            raise RunItself(
                f"needs argument {path!r}, a Python number, while it is traced (an if, range(), a shape), and that had "
                f"{len(known) + 1} values in {calls + 1} calls ({', '.join([*known][:3])}, ...)",
                remedy="Use NumPy's functions of it, and np.where instead of if, or give each value a plan with "
                f"static=({parameter!r},)",
            )


def captured(read: Iterable[Reading]) -> dict[str, tuple[str, str | Spec]]:
    """Return what a function has read beside its arguments, as entries of its history."""
    return {label: ("captured", f"{_identity(value):x}") for _, _, _, value, label in read}


def _identity(value: Any) -> int:
    if isinstance(value, tuple):
        return hash(tuple(map(id, value)))
    return hash(value) if isinstance(value, bytes) else id(value)


def tell(text: str) -> None:
    """Warn with this text: a `RetraceWarning`."""
    from ..graph.cells import warn

    warn(text, RetraceWarning)
