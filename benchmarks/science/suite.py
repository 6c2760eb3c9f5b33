"""B39: programs as scientists write them, compiled, against themselves: each in a process of its own."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from .. import child
from ..harness import Harness, Row
from .registry import programs

# A program is called so where it is so many times as fast as without pyop, on data that differ in each call.
FASTER, BETTER, EQUAL = 2.0, 1.05, 0.95
FIRST_CALLS, FIRST_MS = 30.0, 200.0
LIMIT = 120.0
# What a RetraceWarning says, by the words that tell it from the others.
REASONS = ("decides by the contents", "cannot be compiled", "needs argument", "things in one call", "was traced")
VERDICTS = ("faster", "better", "equal", "slower", "broken")


def run(harness: Harness) -> list[Row]:
    """Totals, then each program; four of them if quick."""
    names = list(programs())
    if harness.quick:
        names = names[:: len(names) // 4]
    found = measured(names, harness.rounds)
    return [*_totals(found), *[_row(name, one) for name, one in found.items()]]


def measured(
    names: Iterable[str], rounds: int, told: Callable[[str, dict[str, Any]], None] = lambda name, one: None
) -> dict[str, dict[str, Any]]:
    """Return what `measure` tells of each, and its verdict; `told` hears of each as it comes."""
    found = {}
    for name in names:
        try:
            one = child.call("science.measure:measure", {"name": name, "rounds": rounds}, limit=LIMIT)
        except Exception as error:  # it takes too long, or the process dies
            one = {"family": programs()[name].family, "wrong": f"{type(error).__name__}: {str(error)[-300:]}"}
        found[name] = one | {"verdict": verdict(one)}
        told(name, found[name])
    return found


def verdict(one: dict[str, Any]) -> str:
    """The word for how fast it is on fresh data: in the median, and in all calls together."""
    if not one.get("fresh"):
        return "broken"
    ratio = min(one["fresh"], one["whole"])
    if ratio >= FASTER:
        return "faster"
    return "better" if ratio >= BETTER else "equal" if ratio >= EQUAL else "slower"


def silent(one: dict[str, Any]) -> bool:
    """Return True where something differs and no error says so."""
    return bool(one["wrong"]) and one["verdict"] != "broken"


def dear(one: dict[str, Any]) -> bool:
    """Return True where the first call costs more than it should."""
    return "first" in one and (one["first"] > FIRST_CALLS * one["plain"] or one["first"] > FIRST_MS * 1e6)


def reasons(found: dict[str, dict[str, Any]]) -> str:
    """Count the programs that are warned of by the reason, the first that comes."""
    first = [one["warnings"][0] for one in found.values() if one.get("warnings")]
    counts = Counter(next((each for each in REASONS if each in text), "something else") for text in first)
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())


def line(name: str, one: dict[str, Any]) -> list[str]:
    """The cells of a program: see `COLUMNS`."""
    if "first" not in one:
        return [name, one["family"], *["-"] * 7, one["verdict"], one["wrong"], "", ""]
    return [
        name,
        one["family"],
        f"{one['plain'] / 1e3:,.0f}",
        f"{one['first'] / 1e6:,.1f}",
        f"{one['first'] / one['plain']:,.1f}",
        f"{one['settling'] / 1e6:,.1f}",
        _times(one["same"]),
        _times(one["fresh"]),
        _times(one["whole"]),
        one["verdict"],
        one["wrong"],
        one["types"],
        " ".join(" | ".join(one["warnings"]).split())[:100],
    ]


COLUMNS = (
    "program",
    "family",
    "plain µs",
    "first ms",
    "plain calls",
    "8 calls ms",
    "same data",
    "fresh data",
    "in all",
    "verdict",
    "wrong bits",
    "other types",
    "warning",
)


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}×"


def _totals(found: dict[str, dict[str, Any]]) -> list[Row]:
    counts = Counter(one["verdict"] for one in found.values())
    timed = [one for one in found.values() if one.get("fresh")]
    what, rows = f"of {len(found)} programs of scientists", []
    mean = math.exp(statistics.fmean(-math.log(one["fresh"]) for one in timed)) if timed else None
    detail = ", ".join(f"{counts[each]} {each}" for each in VERDICTS)
    rows.append(Row("B39", f"{what}, compiled over plain, fresh data", "reported", mean, math.inf, detail=detail))
    rows += [
        Row("B39", f"{what}, {text}", budget, number, limit, "programs")
        for text, budget, number, limit in (
            ("wrong bits", "none", sum(map(silent, found.values())), 0),
            ("refused with an error, or never done", "none", counts["broken"], 0),
            (f"slower than {EQUAL:g} of plain", "none", counts["slower"], 0),
            (f"slower than {EQUAL:g} of plain on the same data", "none", sum(one["same"] < EQUAL for one in timed), 0),
            (f"not {FASTER:g}× as fast", "reported", len(found) - counts["faster"], math.inf),
            (
                f"not {FASTER:g}× as fast on the same data",
                "reported",
                len(found) - sum(one["same"] >= FASTER for one in timed),
                math.inf,
            ),
            (
                f"first call above {FIRST_CALLS:g} plain calls or {FIRST_MS:g} ms",
                "none",
                sum(map(dear, found.values())),
                0,
            ),
        )
    ]
    warned = sum(bool(one.get("warnings")) for one in found.values())
    rows.append(Row("B39", f"{what}, with a RetraceWarning", "reported", warned, math.inf, "programs", reasons(found)))
    return rows


def _row(name: str, one: dict[str, Any]) -> Row:
    ratio = 1 / one["fresh"] if one.get("fresh") else None
    cells = dict(zip(COLUMNS, line(name, one), strict=True))
    details = [cells["verdict"]]
    if "first" in one:
        details.append(f"same data {cells['same data']}, all calls on fresh data {cells['in all']}")
        details.append(f"plain {cells['plain µs']} µs")
        details.append(f"first call {cells['first ms']} ms, {cells['plain calls']} plain calls")
        details.append(f"8 calls beyond plain ones {cells['8 calls ms']} ms")
    details += [f"{key}: {cells[key]}" for key in ("wrong bits", "other types", "warning") if cells[key]]
    return Row("B39", f"{name} ({one['family']})", "reported", ratio, math.inf, detail="; ".join(details))
