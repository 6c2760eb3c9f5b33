"""``python -m benchmarks.report``: plans against their peers, measured, drawn and tabulated in docs/benchmarks/."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import edges, peers
from .candidates import CANDIDATES, NUMPY, PYOP
from .edge_tasks import TASKS
from .harness import Harness
from .table import surroundings

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks"
STATES = {
    "ordinary": "ordinary process: the C library gives large arrays back to the system",
    "warm": "allocator kept warm (`MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_` raised)",
}


def document(found: dict[str, Any], around: dict[str, Any], plot: str) -> str:
    """The page: how it was measured, the plot, a table for each state and expression, and the first calls."""
    build, run = around["build"], around["run"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    missing = f" Not installed, so left out: {', '.join(found['missing'])}." if found["missing"] else ""
    lines = [
        "# Plans and their peers",
        "",
        "Made by `python -m benchmarks.report`; do not edit. How many times as fast as NumPy two expressions of",
        "float64 arrays are computed. Everybody runs in one process in turn, on one core and one thread, and returns a",
        f"new array; CPU time, median of {around['rounds']} interleaved rounds. pyop gives NumPy's results bit for",
        "bit; the others, allowed what their documentation advises, nearly. The compilers among them leave large free",
        "blocks behind, so that even the ordinary process is warmer here than one that holds NumPy alone, whose row at",
        "10^5 elements `python -m benchmarks expressions` has.",
        "",
        f"{run['python']}, NumPy {run['numpy']}, pyop {build['version']} ({build.get('build_type', '')}, "
        f"{build.get('compiler', '')}), load {around['load'][0]} on {around['cpus']} CPUs. {versions}.{missing}",
        "",
        f"![Times as fast as NumPy, by size of the arrays]({plot})",
    ]
    for state, words in STATES.items():
        for text in peers.EXPRESSIONS:
            found_here = [one for one in found["steady"] if (one["state"], one["expression"]) == (state, text)]
            lines += ["", f"## {text}, {words}", "", *_table(found_here)]
    lines += ["", "## First call, compilation included", "", *_first(found["first"]), ""]
    return "\n".join([*lines, *_edges(found["edges"])] if "edges" in found else lines)


def _edges(found: dict[str, Any]) -> list[str]:
    """Stencils, numbers, sine and gradients: a table for each, the first call behind every speed."""
    missing = f" Not installed, so left out: {', '.join(found['missing'])}." if found["missing"] else ""
    lines = [
        "## Beside plain expressions",
        "",
        "The same processes, clock and rounds, the allocator as it is ordinarily; in brackets the first call of the",
        f"smallest size, compilation included, each in a process of its own.{missing}",
    ]
    for key in dict.fromkeys(one["task"] for one in found["steady"]):
        task = TASKS[key]
        measured = [one for one in found["steady"] if one["task"] == key]
        first = {one["name"]: one["seconds"] for one in found["first"] if one["task"] == key}
        names = [name for name in measured[0]["ns"] if name != task.base]
        heads = [f"{name} ({duration(first[name])})" if name in first else name for name in names]
        lines += [
            "",
            f"### {task.title}",
            "",
            f"| n | {task.base} takes | {' | '.join(heads)} | pyop over the best peer |",
            "|---" * (len(names) + 3) + "|",
        ]
        lines += [_row(one, names, [task.base]) for one in measured]
    return [*lines, ""]


def _row(one: dict[str, Any], names: Sequence[str], timed: Sequence[str]) -> str:
    """A size: the times of some, the speeds of all, and pyop's over the best peer's."""
    top = max(one["faster"].values())
    cells = [f"**{x:.2f}×**" if (x := one["faster"][name]) == top else f"{x:.2f}×" for name in names]
    over = f"{1 / one['over_best']:.2f}× as fast as {one['best']}" if one["best"] else "-"
    times = [duration(one["ns"][name] / 1e9) for name in timed]
    return "| " + " | ".join([f"{one['size']:,}", *times, *cells, over]) + " |"


def _table(measured: list[dict[str, Any]]) -> list[str]:
    names = [name for name in CANDIDATES if name in measured[0]["ns"] and name != NUMPY]
    return [
        f"| elements | NumPy takes | pyop takes | {' | '.join(names)} | pyop over the best peer |",
        "|---" * (len(names) + 4) + "|",
        *[_row(one, names, (NUMPY, PYOP)) for one in measured],
    ]


def _first(first: list[dict[str, Any]]) -> list[str]:
    texts = list(dict.fromkeys(one["expression"] for one in first))
    lines = [f"| | {' | '.join(texts)} |", "|---" * (len(texts) + 1) + "|"]
    for name in dict.fromkeys(one["name"] for one in first):
        cells = [
            duration(one["seconds"])
            for text in texts
            for one in first
            if (one["name"], one["expression"]) == (name, text)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, or read what was measured, and write the page and the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few sizes and short samples: shows that it works")
    parser.add_argument("--rounds", type=int, default=None, metavar="N", help="rounds (default: 15; 3 if quick)")
    parser.add_argument("--measured", type=Path, metavar="F", help="write what this file holds instead of measuring")
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER", help="default: docs/benchmarks")
    args = parser.parse_args(argv)
    from . import plot  # needs matplotlib: says so before anything is measured

    if args.measured:
        held = json.loads(args.measured.read_text())
        found, around = held["found"], held["surroundings"]
    else:
        rounds = args.rounds if args.rounds is not None else 3 if args.quick else 15
        harness = Harness(rounds=rounds, quick=args.quick)
        around = surroundings(harness)
        found = {**peers.collect(harness), "edges": edges.collect(harness)}
    args.to.mkdir(parents=True, exist_ok=True)
    (args.to / "peers.json").write_text(json.dumps({"surroundings": around, "found": found}, indent=1) + "\n")
    plot.draw(found, args.to / "peers.png")
    (args.to / "peers.md").write_text(document(found, around, "peers.png"))
    print(f"wrote {args.to}/peers.md, peers.png and peers.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
