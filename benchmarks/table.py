"""The table, the JSON, and the facts without which a number means nothing: load, versions, build type."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import pyop

from .harness import Harness, Row

STYLES = {"pass": "green", "fall short": "bold red", "not measured": "yellow"}


def surroundings(harness: Harness) -> dict[str, Any]:
    """What the numbers depend on besides pyop."""
    config = pyop.build_config()
    config["run"].pop("extension", None)  # where it lies is nobody else's business
    return {
        "load": [round(value, 2) for value in os.getloadavg()],
        "cpus": os.cpu_count(),
        "rounds": harness.rounds,
        "quick": harness.quick,
        **config,
    }


def show(rows: list[Row], around: dict[str, Any], console: Console) -> None:
    """Print the table and what it was measured on."""
    build, run = around["build"], around["run"]
    console.print(
        f"load {around['load'][0]} on {around['cpus']} CPUs · {run['python']} · NumPy {run['numpy']} · "
        f"pyop {build['version']} {build.get('build_type', '')} · {build.get('compiler', '')} · "
        f"median of {around['rounds']} interleaved rounds",
        highlight=False,
    )
    if around["quick"]:
        console.print("[yellow]--quick: small sizes and short samples; the verdicts mean nothing[/]")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "what"):
        table.add_column(column)
    table.add_column("measured", justify="right")
    table.add_column("budget")
    table.add_column("verdict")
    table.add_column("detail", style="dim")
    for row in rows:
        style = STYLES[row.verdict]
        table.add_row(row.id, row.what, row.measured, row.budget, f"[{style}]{row.verdict}[/]", row.detail)
    console.print(table)


def markdown(rows: list[Row]) -> str:
    """The table as docs/performance.md holds it."""
    lines = ["| id | what | measured | budget | detail |", "|---|---|---|---|---|"]
    for row in rows:
        verdict = "" if row.verdict == "pass" else f" **{row.verdict}**"
        lines.append(f"| {row.id} | {row.what} | {row.measured}{verdict} | {row.budget} | {row.detail} |")
    return "\n".join(lines)


def save(rows: list[Row], around: dict[str, Any], path: str) -> None:
    """Write everything that `show` prints, and more digits."""
    document = {"surroundings": around, "rows": [row.to_dict() for row in rows]}
    Path(path).write_text(json.dumps(document, indent=2) + "\n")
