"""``python -m tests.silence.made FIRST LAST [--gradients]``: the programs of these seeds."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

from ..judge import UNCLEAR, WRONG
from .campaign import run
from .program import random_program


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.silence.made", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the programs and do not run them")
    parser.add_argument("--json", action="store_true", help="everything, for tests")
    parser.add_argument("--failures", type=int, default=10, help="print so many failures")
    args = parser.parse_args()
    if args.show:
        for seed in range(args.first, args.last):
            print(random_program(seed, smooth=args.gradients).text())
        return 0
    begin = time.monotonic()
    tally = run(range(args.first, args.last), args.gradients)
    if args.json:
        json.dump({"counts": tally.counts, "reasons": tally.reasons, "failures": tally.failures}, sys.stdout)
        return 0
    for failure in sorted(tally.failures, key=len)[: args.failures]:
        print("---", failure, "\n", flush=True)
    took = time.monotonic() - begin
    print(f"{tally}\n{took:.0f} s, {tally.counts['programs'] / took:.0f} programs a second")
    return 1 if tally.counts[WRONG] or tally.counts[UNCLEAR] else 0


if __name__ == "__main__":
    sys.exit(main())
