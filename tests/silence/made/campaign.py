"""Ranges of seeds, by forked workers: how many programs are right, refused and why, wrong and how."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..hunt import in_children
from ..judge import BROKEN, REFUSED, RIGHT, UNCLEAR, WRONG
from .program import Program, random_program
from .running import GRADIENTS, WAYS, Invalid, outcome, reason
from .shrink import shrink

CHUNK = 100


@dataclass
class Tally:
    """What became of many programs."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{self.counts[word]} {word}" for word in ("programs", "runs", RIGHT, "plainly", REFUSED, UNCLEAR, WRONG)
        )
        lines = [f"{count:8}  {text}" for text, count in self.reasons.most_common(40)]
        return "\n".join([counts, *lines])


def ways_of(seed: int, gradients: bool) -> list[str]:
    """Compiled always, and another way in turn."""
    if gradients:
        return random.Random(seed).sample(GRADIENTS, 2)
    return ["compile", *random.Random(seed).sample(sorted(set(WAYS) - {"compile"}), 1)]


def check(seeds: range, gradients: bool) -> dict[str, Any]:
    """The outcomes of a few programs, failures as the smallest programs that show them."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    failures = []
    for seed in seeds:
        program = random_program(seed, smooth=gradients)
        counts["programs"] += 1
        for way in ways_of(seed, gradients):
            try:
                found, why = outcome(program, way)
            except Invalid:
                counts["invalid"] += 1
                continue
            counts["runs"] += 1
            counts[found] += 1
            counts["plainly"] += why == "plainly"
            if found in (REFUSED, UNCLEAR):
                reasons[f"{found}: {reason(why)}"] += 1
            if found in (WRONG, UNCLEAR) and len(failures) < 6:
                failures.append(report(program, way, found, seed))
    return {"counts": counts, "reasons": reasons, "failures": failures}


def report(program: Program, way: str, word: str, seed: int) -> str:
    smallest, why = shrink(program, way, word)
    return f"{word} [{way}] seed {seed}: {why}\n\n{smallest.source(way, (1, 2))}"


def run(seeds: range, gradients: bool = False, limit: float = 120.0) -> Tally:
    """The programs of a range of seeds."""
    chunks = [range(k, min(k + CHUNK, seeds.stop)) for k in range(seeds.start, seeds.stop, CHUNK)]
    tally = Tally()
    for chunk, found in zip(chunks, in_children(chunks, lambda chunk: check(chunk, gradients), limit), strict=True):
        if "broken" in found:
            each = in_children(list(chunk), lambda seed: check(range(seed, seed + 1), gradients), limit)
            for seed, one in zip(chunk, each, strict=True):
                if "broken" in one:
                    tally.counts[WRONG] += 1
                    tally.failures.append(f"{BROKEN} seed {seed}: {one['broken']}")
                else:
                    add(tally, one)
        else:
            add(tally, found)
    return tally


def add(tally: Tally, found: dict[str, Any]) -> None:
    tally.counts.update(found["counts"])
    tally.reasons.update(found["reasons"])
    tally.failures += found["failures"]
