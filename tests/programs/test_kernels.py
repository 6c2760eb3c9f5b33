"""Kernels as people write them, compiled: none gives another number than NumPy, and most run as plans."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from silence.hunt import in_children

from .judge import RIGHT, WRONG, judge
from .registry import kernels, traps

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kernels run in forked children")

# How many of them are right as plans; raise it with what makes more of them so.
FLOORS = {"kernels": 54, "traps": 19}


@pytest.mark.parametrize("which", FLOORS)
def test_kernels(which: str) -> None:
    found = {"kernels": kernels, "traps": traps}[which]()
    names = list(found)

    def outcome(name: str) -> list[str]:
        judgement = judge(found[name])
        return [judgement.outcome, judgement.why]

    judged = in_children(names, outcome, limit=120.0)
    outcomes = {
        name: one if isinstance(one, list) else ["broken", one["broken"]]
        for name, one in zip(names, judged, strict=True)
    }
    counts = Counter(outcome for outcome, _ in outcomes.values())
    wrong = {name: why for name, (outcome, why) in outcomes.items() if outcome in (WRONG, "broken")}
    assert not wrong
    assert counts[RIGHT] >= FLOORS[which], {n: why[:160] for n, (outcome, why) in outcomes.items() if outcome != RIGHT}


def test_there_are_many() -> None:
    assert len(kernels()) >= 130
    assert len(traps()) >= 59
