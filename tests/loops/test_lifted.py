"""Lifted functions on plain values: they do what they did, in the same order, with the same lines in tracebacks."""

from __future__ import annotations

import pytest

from .lifted.judge import judge


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_lifted_is_original(first):
    different = {seed: found for seed in range(first, first + 100) if (found := judge(seed)) not in ("", "same")}
    assert not {seed: found for seed, found in different.items() if not found.startswith("invalid")}
    assert len(different) < 10


@pytest.mark.campaign
def test_many():
    found = [judge(seed) for seed in range(10_000, 20_000)]
    assert not [text for text in found if text not in ("", "same") and not text.startswith("invalid")]
