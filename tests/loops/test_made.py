"""Random loops of `loops.made`, a few of each run."""

from __future__ import annotations

import pytest

from .made.judge import judge

WAYS = [{}, {"optimize": False}, {"threads": 2}]


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("kind", ["variables", "placed", "numbers", "states", "listed"])
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_loops_are_numpys(first, kind, options):
    for seed in range(first, first + 20):
        kinds = {} if kind == "variables" else {kind: True}
        found = judge(seed, **kinds, **options)
        assert found.outcome in ("right", "unread"), f"{found.why}\n{found.source}"
