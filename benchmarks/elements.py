"""B38: loops whose body is one operation on single elements (tests/elements), compiled, against the plain loop.

An operation that the interpreter of loops knows takes a few nanoseconds; one that falls out of it takes microseconds,
more than Python does. So what counts is how many of them are slow, not how fast they are together.

``python -m benchmarks.elements [TEXT …]`` prints the slow ones of all, or those whose group, text or dtypes match.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

import pyop

from . import child
from .harness import Harness, Row

sys.path.append(str(child.ROOT / "tests"))

from elements.cases import Case, arguments, cases, function

N = 2048
SLOW = 60.0  # ns an element


@dataclass(frozen=True)
class Measured:
    """Nanoseconds of an iteration, compiled and plain."""

    case: Case
    ns: float
    plain: float

    @property
    def slow(self) -> bool:
        """Return whether there is something to be mended."""
        return self.ns > SLOW or self.ns > self.plain


def _best(f: Callable[..., None], given: list[object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        begin = time.thread_time_ns()
        f(*given)
        best = min(best, time.thread_time_ns() - begin)
    return best


def measure(case: Case, n: int = N) -> Measured | None:
    """Time one case; None if the plain function raises."""
    names = arguments(case, n)
    if names is None:
        return None
    given, plain = list(names.values()), function(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            by_hand = _best(plain, given, 2)
        except (TypeError, ValueError, OverflowError, IndexError):
            return None
        compiled = pyop.compile(plain)
        try:
            for _ in range(2):
                compiled(*given)
        except TypeError:  # refused
            return Measured(case, float("inf"), by_hand / n)
        return Measured(case, _best(compiled, given, 3) / n, by_hand / n)


def run(harness: Harness) -> list[Row]:
    """Return of each group how many operations are slower than `SLOW`, or than Python."""
    chosen = list(cases())
    if harness.quick:
        chosen = chosen[::97]
    groups: dict[str, list[Measured]] = {}
    for case in chosen:
        if found := measure(case, 64 if harness.quick else N):
            groups.setdefault(case.group, []).append(found)
    rows = []
    for group, of in groups.items():
        slow = sorted((m for m in of if m.slow), key=lambda m: -m.ns)
        best = min(m.ns for m in of)
        median = float(np.median([m.ns for m in of]))
        detail = f"of {len(of)}: best {best:.0f} ns, median {median:.0f} ns"
        detail += "".join(f"; {m.case.name} {m.ns:,.0f} ns, plain {m.plain:,.0f}" for m in slow[:3])
        what = f"{group}: slower than {SLOW:.0f} ns or plain Python"
        rows.append(Row("B38", what, "none", len(slow), 0, unit="operations", detail=detail))
    return rows


def main(words: Iterable[str]) -> None:
    """Print the slow ones, slowest first."""
    wanted = list(words)
    with np.errstate(all="ignore"):
        found = [measure(c) for c in cases() if all(w in (c.group, c.text, c.a, c.b, c.out) for w in wanted)]
    of = [m for m in found if m]
    for m in sorted(of, key=lambda m: -m.ns):
        if m.slow:
            print(f"{m.ns:9.0f} ns  plain {m.plain:7.0f}  {m.case.group}: {m.case.name}")
    print(f"{sum(m.slow for m in of)} slow of {len(of)}; median {np.median([m.ns for m in of]):.0f} ns")


if __name__ == "__main__":
    main(sys.argv[1:])
