"""``python -m tests.silence.scripts FIRST LAST``: what becomes of the scripts of these seeds."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

from ..hunt import in_children
from ..judge import WRONG
from .program import script
from .running import check

CHUNK = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.silence.scripts", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--show", type=int, default=5, help="print so many wrong scripts")
    parser.add_argument("--refused", action="store_true", help="print why scripts were refused, most frequent first")
    args = parser.parse_args()
    chunks = [range(k, min(k + CHUNK, args.last)) for k in range(args.first, args.last, CHUNK)]
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    wrong = []
    for chunk, answer in zip(chunks, in_children(chunks, check, 300.0), strict=True):
        if isinstance(answer, dict):
            counts["broken"] += 1
            print(f"seeds {chunk}: {answer}")
            continue
        counts.update(answer[0])
        wrong += [found for found in answer[1] if found[2] == WRONG]
        reasons.update(re.sub(r"<[^>]*>|'[^']*'|\d+", "…", f[3])[:110] for f in answer[1] if f[2] != WRONG)
    for seed, way, _, why in wrong[: args.show]:
        made = script(seed)
        print(
            f"--- seed {seed} [{way}] {made.layouts} {made.numbers} {made.changes} {made.instance}\n"
            f"{made.text()}\n{why}\n"
        )
    for seed, way, _, why in wrong:
        print(f"seed {seed} [{way}]: {why[:200]}")
    for reason, count in reasons.most_common(40) if args.refused else ():
        print(f"{count:6}  {reason}")
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts[WRONG] or counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
