"""Some of the programs, or all: ``python -m benchmarks.science [NAME …] [--rounds N] [--json F]``."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .registry import programs
from .suite import COLUMNS, dear, line, measured, reasons, silent


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each as it comes; the exit status says whether all have NumPy's bits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.science", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs or families (default: all)")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="rounds (default: 15)")
    parser.add_argument("--json", type=Path, metavar="F", help="also write everything to this file")
    args = parser.parse_args(argv)
    known = programs()
    chosen = [name for name, one in known.items() if not args.names or {name, one.family} & set(args.names)]
    if unknown := set(args.names) - {*known, *(one.family for one in known.values())}:
        parser.error(f"no program or family is called {', '.join(sorted(unknown))}")

    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")

    def told(name: str, one: dict[str, Any]) -> None:
        print(f"| {' | '.join(cell.replace('|', '/') for cell in line(name, one))} |", flush=True)

    found = measured(chosen, args.rounds, told)
    wrong = sum(map(silent, found.values()))
    counts = Counter(one["verdict"] for one in found.values())
    words = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    print(f"\n{len(found)} programs: {words}; {wrong} with wrong bits")
    print(f"first calls that are dear: {sum(map(dear, found.values()))}; warnings: {reasons(found) or 'none'}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
