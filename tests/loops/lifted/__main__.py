"""Run many of them, and print what differs."""

from __future__ import annotations

import sys
from collections import Counter

from .judge import judge

if __name__ == "__main__":
    first, last = map(int, sys.argv[1:3])
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        found = judge(seed)
        counts[found.partition(":")[0] if found in ("", "same") or found.startswith("invalid") else "DIFFERENT"] += 1
        if found not in ("", "same") and not found.startswith("invalid") and counts["DIFFERENT"] < 4:
            print(seed, found)
    print({key or "right": count for key, count in counts.items()})
