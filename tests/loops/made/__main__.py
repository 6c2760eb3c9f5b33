"""Run random loops and print what differs from NumPy."""

from __future__ import annotations

import sys
import time

from .judge import judge

if __name__ == "__main__":
    first, last = int(sys.argv[1]), int(sys.argv[2])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 1e9
    start, counts, shown = time.monotonic(), dict[str, int](), 0
    for seed in range(first, last):
        if time.monotonic() - start > seconds:
            break
        found = judge(seed)
        counts[found.outcome] = counts.get(found.outcome, 0) + 1
        if found.outcome in ("WRONG", "refused") and shown < 6:
            shown += 1
            print(seed, found.outcome, found.why, *([found.source] if found.outcome == "WRONG" else []), sep="\n")
    print(counts)
