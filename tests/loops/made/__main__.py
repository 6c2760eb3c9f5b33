"""Run random loops and print what differs from NumPy: with ``--places`` such with attributes and items, with
``--numbers`` such with Python's numbers, with ``--states`` such with what is None or a text, with ``--lists`` such with
lists; and with ``--others`` with arguments of several dtypes.
"""

from __future__ import annotations

import sys
import time

from .judge import judge

if __name__ == "__main__":
    kinds = {"placed": "--places" in sys.argv, "numbers": "--numbers" in sys.argv, "states": "--states" in sys.argv}
    kinds |= {"listed": "--lists" in sys.argv, "others": "--others" in sys.argv}
    given = [x for x in sys.argv[1:] if not x.startswith("--")]
    first, last = int(given[0]), int(given[1])
    seconds = float(given[2]) if len(given) > 2 else 1e9
    start, counts, shown = time.monotonic(), dict[str, int](), 0
    for seed in range(first, last):
        if time.monotonic() - start > seconds:
            break
        found = judge(seed, **kinds)
        counts[found.outcome] = counts.get(found.outcome, 0) + 1
        if found.outcome in ("WRONG", "refused") and shown < 6:
            shown += 1
            print(seed, found.outcome, found.why, *([found.source] if found.outcome == "WRONG" else []), sep="\n")
    print(counts)
