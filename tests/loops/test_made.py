"""Random loops of `loops.made`, a few of each run."""

from __future__ import annotations

import pytest

from .made.judge import judge

WAYS = [{}, {"optimize": False}, {"threads": 2}]


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("placed", [False, True], ids=["variables", "places"])
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_loops_are_numpys(first, placed, options):
    for seed in range(first, first + 20):
        found = judge(seed, placed, **options)
        assert found.outcome in ("right", "unread"), f"{found.why}\n{found.source}"
