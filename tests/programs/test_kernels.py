"""Kernels as people write them, compiled: none gives another number than NumPy, and most run as plans."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import pytest
from silence.hunt import in_children

import pyop

from .judge import RIGHT, WRONG, Judgement, judge
from .registry import Kernel, kernels, traps
from .slopes import judge_slope

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kernels run in forked children")

# How many of them are right as plans; raise it with what makes more of them so.
SUITES: dict[str, tuple[Callable[[], dict[str, Kernel]], Callable[[Kernel], Judgement], int]] = {
    "kernels": (kernels, judge, 124),
    "traps": (traps, judge, 52),
    "traps, unoptimized": (traps, lambda kernel: judge(kernel, lambda f: pyop.compile(f, optimize=False)), 52),
    "traps, two threads": (traps, lambda kernel: judge(kernel, lambda f: pyop.compile(f, threads=2)), 52),
    "slopes": (kernels, judge_slope, 96),
}


@pytest.mark.parametrize("which", SUITES)
def test_kernels(which: str) -> None:
    suite, judged_by, floor = SUITES[which]
    found = suite()
    names = list(found)

    def outcome(name: str) -> list[str]:
        judgement = judged_by(found[name])
        return [judgement.outcome, judgement.why]

    judged = in_children(names, outcome, limit=120.0)
    outcomes = {
        name: one if isinstance(one, list) else ["broken", one["broken"]]
        for name, one in zip(names, judged, strict=True)
    }
    counts = Counter(outcome for outcome, _ in outcomes.values())
    wrong = {name: why for name, (outcome, why) in outcomes.items() if outcome in (WRONG, "broken")}
    assert not wrong
    assert counts[RIGHT] >= floor, {n: why[:160] for n, (outcome, why) in outcomes.items() if outcome != RIGHT}


def test_there_are_many() -> None:
    assert len(kernels()) >= 130
    assert len(traps()) >= 59
