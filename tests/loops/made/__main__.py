"""Run random loops, with ``--places`` such with attributes and items, and print what differs from NumPy."""

from __future__ import annotations

import sys
import time

from .judge import judge

if __name__ == "__main__":
    placed = "--places" in sys.argv
    numbers = [x for x in sys.argv[1:] if x != "--places"]
    first, last = int(numbers[0]), int(numbers[1])
    seconds = float(numbers[2]) if len(numbers) > 2 else 1e9
    start, counts, shown = time.monotonic(), dict[str, int](), 0
    for seed in range(first, last):
        if time.monotonic() - start > seconds:
            break
        found = judge(seed, placed)
        counts[found.outcome] = counts.get(found.outcome, 0) + 1
        if found.outcome in ("WRONG", "refused") and shown < 6:
            shown += 1
            print(seed, found.outcome, found.why, *([found.source] if found.outcome == "WRONG" else []), sep="\n")
    print(counts)
