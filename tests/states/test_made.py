"""Random programs with state of `states.made`, a few of each run."""

from __future__ import annotations

import pytest

from .made.judge import judge


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_state_is_pythons(first):
    for seed in range(first, first + 20):
        found = judge(seed)
        assert found.outcome in ("right", "given up", "itself", "unread"), f"{seed}: {found.why}\n{found.source}"
