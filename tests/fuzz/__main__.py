"""``python -m tests.fuzz FIRST LAST [--every]``: the programs of these seeds, every failure printed."""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from .campaign import check
from .crash import Crash, in_child
from .growth import random_program
from .program import Program
from .shrink import failure, shrink
from .ways import Difference, ways

CHUNK = 250


def crashes(program: Program, way: str, seed: int) -> Difference | None:
    """As `failure`, of programs that end the process."""
    try:
        in_child(lambda tell: tell(failure(program, way, seed) is None))
    except Crash as found:
        return Difference(way, str(found))
    return None


def report_crash(seed: int, every: bool) -> str:
    """The smallest program that ends the process, and how it does."""
    program, reference, _ = random_program(seed)
    for way in ways(program, reference, random.Random(seed + 1), every):
        if crashes(program, way, seed + 1):
            smallest, found = shrink(program, way, seed + 1, crashes)
            return f"{found}\n\n{smallest.source(way if '=...' not in way else 'compile()')}\n\nseed {seed}"
    return f"seed {seed} ended the process, but does not alone"


def run(seeds: range, every: bool, tell: Callable[[Any], None]) -> None:
    for seed in seeds:
        tell(seed)
        started = time.monotonic()
        try:
            check(seed, every)
        except Exception as error:
            tell(str(error) if isinstance(error, AssertionError) else f"seed {seed}: {traceback.format_exc()}")
        if time.monotonic() - started > 5:
            print(f"seed {seed} took {time.monotonic() - started:.1f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--every", action="store_true", help="run each program in every way, not in some")
    parser.add_argument("--stop", type=int, default=20, help="stop after so many failures")
    args = parser.parse_args()
    failures, begin, first = 0, time.monotonic(), args.first
    while first < args.last and failures < args.stop:
        seeds = range(first, min(first + CHUNK, args.last))
        try:
            told = in_child(lambda tell, seeds=seeds: run(seeds, args.every, tell))
            first = seeds.stop
        except Crash as crash:
            told = crash.told
            last = max(item for item in told if isinstance(item, int))
            told.append(report_crash(last, args.every))
            first = last + 1
        for message in told:
            if isinstance(message, str):
                failures += 1
                print("---", message, flush=True)
    took = time.monotonic() - begin
    print(f"{first - args.first} programs, {failures} failures, {took:.0f} s, NumPy {np.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
