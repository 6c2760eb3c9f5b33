"""Write profiles as text: tables, and numbers with units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..graph.html import table as html_table
from .rows import ProfileRow

if TYPE_CHECKING:
    from .session import Profile

__all__ = ["columns", "footer", "html", "table", "text_of_bytes", "text_of_ns"]

_COLUMNS = (
    "name", "kind", "calls", "total", "self", "min", "p50", "share", "in", "out", "copied", "held", "released", "wait",
    "where",
)  # fmt: skip


def text_of_ns(ns: float) -> str:
    """Return a time with three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 999.5 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def text_of_bytes(n: int) -> str:
    """Return a size with three digits and a unit, a dash for zero."""
    if n < 1024:
        return f"{n} B" if n else "-"
    value, units = float(n), iter("kMGTPE")
    while value >= 999.5:
        value, unit = value / 1024, next(units)
    return f"{value:.3g} {unit}iB"


def cells(row: ProfileRow) -> tuple[str, ...]:
    """Return one line of the table."""
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
        short(row.where),
    )


def short(where: str) -> str:
    """Return a place without the folders of its file."""
    return where.rpartition("/")[2]


def columns(titles: Sequence[str], lines: Sequence[Sequence[str]], *, left: Sequence[int]) -> list[str]:
    """Return lines of text in columns, aligned left where `left` says so."""
    widths = [max(map(len, column)) for column in zip(titles, *lines, strict=True)]
    align = [str.ljust if k in left else str.rjust for k in range(len(titles))]
    return [
        "  ".join([put(cell, width) for put, cell, width in zip(align, line, widths, strict=True)]).rstrip()
        for line in (titles, *lines)
    ]


def footer(spent: Mapping[str, float]) -> str:
    """Return the text of how all threads spent their time."""
    whole = sum(spent.values()) or 1.0
    return "; ".join(f"{name} {text_of_ns(ns)} ({ns / whole:.1%})" for name, ns in spent.items())


def table(p: Profile, by: str) -> str:
    """Return the rows in columns, and their total."""
    rows = p.by(by)
    lines = [cells(row) for row in rows]
    calls = sum(row.calls for row in rows)
    title = f"{calls} calls in {text_of_ns(p.wall_ns)} on {len(p.threads)} thread{'s' * (len(p.threads) != 1)}"
    if p.lost:
        title += f"; {p.lost} more were lost, the oldest: profile(events=…) keeps more"
    texts = columns(_COLUMNS, lines, left=(0, 1, len(_COLUMNS) - 1))
    return "\n".join([title, *texts, footer(p.spent)])


def html(profile: Profile) -> str:
    """Return the rows with most time of their own, for a notebook."""
    head = ("name", "kind", "calls", "total", "self", "share", "in", "out", "where")
    rows = []
    for r in profile.rows[:100]:
        times = (text_of_ns(r.total_ns), text_of_ns(r.self_ns), f"{100 * r.share:.1f}%")
        rows.append((r.name, r.kind, str(r.calls), *times, *map(text_of_bytes, (r.bytes_in, r.bytes_out)), r.where))
    more = f", {len(profile.rows) - 100} rows more" if len(profile.rows) > 100 else ""
    return html_table(repr(profile).strip("<>") + more, head, rows)
