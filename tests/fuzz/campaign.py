"""One seed, checked and reported; and a range of them."""

from __future__ import annotations

import random

from .growth import random_program
from .shrink import shrink
from .ways import Difference, Excused, check_refused, ways


def check(seed: int, every: bool = False) -> None:
    """Run the program of a seed in several ways, or in every way; a failure is raised with the smallest program."""
    program, reference, refused = random_program(seed)
    r = random.Random(seed + 1)
    for name, run in ways(program, reference, r, every).items():
        try:
            run()
        except Excused:
            continue
        except Difference as found:
            smallest, smaller = shrink(program, name, seed + 1)
            compiled = name if name.startswith("compile(") and "out" not in name else "compile()"
            message = f"\n{smaller or found}\n\n{smallest.source(compiled)}\n\nseed {seed}"
            raise AssertionError(message + ("" if smaller else " (the way by chance)")) from None
    if refused and seed % 4 == 0:
        try:
            check_refused(program, refused[0])
        except Difference as found:
            raise AssertionError(f"\n{found}\n\n{program.source()}\n\nseed {seed}") from None
