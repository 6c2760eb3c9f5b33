"""How everything here is timed: in one interleaved run, judged by ratios.

Machines are shared and noisy, so nanoseconds of two runs say nothing about each other. A comparison therefore
runs its candidates in turn inside one process (A, B, C, then B, C, A, …), takes the ratio within each round, and
reports the median of those ratios. Work on one thread is read from the thread's CPU clock, which does not count the
time that others had the core; work on several threads from the wall clock. Statements are unrolled, and below a
microsecond the cost of the empty loop, measured in the same round, is taken off.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

UNROLL = 20
Clock = Callable[[], int]


@dataclass(frozen=True)
class Statement:
    """A statement to time, and the names it reads.

    The statement is compiled into a loop that holds it `unroll` times; every name is a local of that loop, so that
    what is timed is the call, not a dictionary look-up.
    """

    code: str
    names: Mapping[str, Any] = field(default_factory=dict)
    unroll: int = UNROLL

    def compile(self, clock: Clock) -> Callable[[int], int]:
        """A function ``n -> nanoseconds`` that runs the statement ``n * unroll`` times."""
        body = "\n".join(f"        {self.code}" for _ in range(self.unroll))
        parameters = "".join(f", {name}={name}" for name in self.names)
        source = (
            f"def loop(_n, *, _clock=_clock{parameters}):\n"
            "    _begin = _clock()\n"
            "    for _ in range(_n):\n"
            f"{body}\n"
            "    return _clock() - _begin\n"
        )
        scope: dict[str, Any] = {**self.names, "_clock": clock}
        exec(compile(source, f"<timed: {self.code}>", "exec"), scope)
        loop: Callable[[int], int] = scope["loop"]
        return loop


@dataclass(frozen=True)
class Comparison:
    """Nanoseconds a statement took, round by round, for every candidate of one interleaved run."""

    samples: Mapping[str, list[float]]

    def ns(self, name: str) -> float:
        """Median over the rounds."""
        return statistics.median(self.samples[name])

    def ratio(self, name: str, base: str) -> float:
        """Median over the rounds of `name` divided by `base`."""
        pairs = zip(self.samples[name], self.samples[base], strict=True)
        return statistics.median(a / b for a, b in pairs)

    def over(self, name: str, base: str) -> float:
        """Median over the rounds of `name` minus `base`, in ns."""
        pairs = zip(self.samples[name], self.samples[base], strict=True)
        return statistics.median(a - b for a, b in pairs)


@dataclass(frozen=True)
class Harness:
    """The settings of a run.

    Parameters
    ----------
    rounds
        How often each candidate is measured.
    quick
        Small sizes and short samples: shows that the suites work, not how fast pyop is.
    """

    rounds: int = 15
    quick: bool = False

    @property
    def sample_ns(self) -> int:
        """How long one sample of one candidate should take."""
        return 300_000 if self.quick else 4_000_000

    def compare(
        self, candidates: Mapping[str, Statement], clock: Clock = time.thread_time_ns, warm: int = 0
    ) -> Comparison:
        """Time the candidates in turn.

        Parameters
        ----------
        candidates
            Name to statement.
        clock
            The CPU clock of this thread; of the process (`time.process_time_ns`) where a candidate computes on a
            thread of its own; the wall clock (`time.perf_counter_ns`) where several threads are to be faster than one.
        warm
            Turns of each loop before anything is timed. A first call that makes what later ones use, for tens of
            milliseconds, would pass for a statement that takes that long: its samples would be single turns.
        """
        loops = {name: statement.compile(clock) for name, statement in candidates.items()}
        unrolls = {name: statement.unroll for name, statement in candidates.items()}
        for loop in loops.values() if warm else ():
            loop(warm)
        counts = {name: self._calibrate(loop) for name, loop in loops.items()}
        empty = Statement("pass").compile(clock)
        empty_count = self._calibrate(empty)
        samples: dict[str, list[float]] = {name: [] for name in candidates}

        enabled = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            for k in range(self.rounds):
                turn = empty(empty_count) / empty_count  # ns of one turn of the loop
                # Whoever comes first finds the threads of its framework asleep: each does in its turn.
                names = [*loops]
                for name in names[k % len(names) :] + names[: k % len(names)]:
                    loop = loops[name]
                    each = loop(counts[name]) / (counts[name] * unrolls[name])
                    samples[name].append(each - turn / unrolls[name] if each < 1000 else each)
                    gc.collect(0)
        finally:
            if enabled:
                gc.enable()
        return Comparison(samples)

    def _calibrate(self, loop: Callable[[int], int]) -> int:
        """Turns of the loop that fill one sample; the calls made on the way are the warm-up."""
        count = 1
        while True:
            elapsed = loop(count)
            if elapsed >= self.sample_ns / 4:
                return max(1, round(count * self.sample_ns / elapsed))
            count *= 4


@dataclass(frozen=True)
class Row:
    """One line of the table: a budget and what was measured against it.

    `value` is what the budget limits from above; `None` says that it could not be measured, and `detail` why.
    """

    id: str
    what: str
    budget: str
    value: float | None
    limit: float
    unit: str = "×"
    detail: str = ""

    @property
    def verdict(self) -> str:
        """``pass``, ``fall short`` or ``not measured``."""
        if self.value is None:
            return "not measured"
        return "pass" if self.value <= self.limit else "fall short"

    @property
    def measured(self) -> str:
        """The value with its unit."""
        if self.value is None:
            return "-"
        if self.unit == "×":
            return f"{self.value:.2f}×"
        return (
            f"{self.value:,.0f} {self.unit}" if self.value >= 10 or self.value == 0 else f"{self.value:.2f} {self.unit}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "id": self.id,
            "what": self.what,
            "budget": self.budget,
            "value": self.value,
            "unit": self.unit,
            "limit": self.limit,
            "verdict": self.verdict,
            "detail": self.detail,
        }
