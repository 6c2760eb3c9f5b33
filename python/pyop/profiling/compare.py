"""Compare two profiles of one program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .rows import ProfileRow
from .table import columns, short, text_of_ns

if TYPE_CHECKING:
    from .session import Profile

__all__ = ["Change", "Comparison", "compare"]


@dataclass(frozen=True)
class Change:
    """Hold one row before and after; None where it was not called.

    Attributes
    ----------
    name, kind : str
    before, after : ProfileRow or None
    """

    name: str
    kind: str
    before: ProfileRow | None
    after: ProfileRow | None

    @property
    def gained_ns(self) -> float:
        """Return the increase of the row's own time in ns, negative if it fell."""
        return (self.after.self_ns if self.after else 0.0) - (self.before.self_ns if self.before else 0.0)


@dataclass(frozen=True)
class Comparison:
    """Hold the rows of both profiles, those that changed most first: the result of `Profile.compare`.

    Attributes
    ----------
    changes : list of Change
    before_ns, after_ns : float
        How long the profiles lasted.
    """

    changes: list[Change]
    before_ns: float
    after_ns: float

    def __str__(self) -> str:
        lines = []
        for c in self.changes:
            a, b = (row.self_ns if row else 0.0 for row in (c.before, c.after))
            calls = (str(row.calls) if row else "-" for row in (c.before, c.after))
            sign = "-" if c.gained_ns < 0 else "+"
            times = (text_of_ns(a), text_of_ns(b), sign + text_of_ns(abs(c.gained_ns)), f"{b / a:.2f}" if a else "new")
            row = c.after or c.before
            lines.append((c.name, c.kind, *calls, *times, short(row.where if row else "")))
        title = f"{text_of_ns(self.before_ns)} before, {text_of_ns(self.after_ns)} after"
        titles = ("name", "kind", "calls", "then", "self", "then", "change", "ratio", "where")
        return "\n".join([title, *columns(titles, lines, left=(0, 1, 8))])

    __repr__ = __str__


def compare(before: Profile, after: Profile, by: str) -> Comparison:
    """Match the rows of both by name, kind and file; of two with one key, the n-th before and the n-th after."""
    pairs = []
    for p in (before, after):
        rows: dict[tuple[str, str, str, int], ProfileRow] = {}
        seen: dict[tuple[str, str, str], int] = {}
        for row in p.by(by):
            key = (row.name, row.kind, row.where.rpartition(":")[0])
            n = seen[key] = seen.get(key, -1) + 1
            rows[*key, n] = replace(row)
        pairs.append(rows)
    keys = list(dict.fromkeys([*pairs[0], *pairs[1]]))
    changes = [Change(key[0], key[1], *(rows.get(key) for rows in pairs)) for key in keys]
    return Comparison(sorted(changes, key=lambda c: -abs(c.gained_ns)), before.wall_ns, after.wall_ns)
