"""Kernels as people write them, compiled: none gives another number than NumPy, and most run as plans."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from silence.hunt import in_children

from .judge import RIGHT, judge
from .registry import kernels

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kernels run in forked children")

# How many are right; raise it with what makes more of them so.
FLOOR = 54


def test_kernels() -> None:
    found = kernels()
    assert len(found) >= 60
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
    wrong = {name: why for name, (outcome, why) in outcomes.items() if outcome in ("WRONG", "broken")}
    assert not wrong
    assert counts[RIGHT] >= FLOOR, {name: why[:160] for name, (outcome, why) in outcomes.items() if outcome != RIGHT}
