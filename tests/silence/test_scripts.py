"""Scripts made by chance (`scripts/`): what a caller can tell of them is the same plainly and compiled."""

from __future__ import annotations

import pytest

from .hunt import in_children
from .judge import RIGHT, WRONG
from .scripts.running import check

CHUNK = 100


def wrong(first: int, last: int) -> tuple[list[str], int]:
    """What is wrong among the scripts of these seeds, and how many are right."""
    chunks = [range(k, min(k + CHUNK, last)) for k in range(first, last, CHUNK)]
    found, right = [], 0
    for chunk, answer in zip(chunks, in_children(chunks, check, 600.0), strict=True):
        if isinstance(answer, dict):
            found.append(f"{chunk}: {answer}")
            continue
        right += answer[0].get(RIGHT, 0)
        found += [f"seed {seed} [{way}]: {why}" for seed, way, word, why in answer[1] if word == WRONG]
    return found, right


def test_scripts() -> None:
    found, right = wrong(0, 600)
    assert not found
    assert right > 400


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(10))
def test_scripts_campaign(block: int) -> None:
    found, right = wrong(10_000 * (block + 1), 10_000 * (block + 2))
    assert not found
    assert right > 7000
