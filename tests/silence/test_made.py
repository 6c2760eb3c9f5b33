"""Programs with writes, made by chance: a sample here, and with ``-m campaign`` a hundred thousand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs run in forked children")


def campaign(first: int, last: int, *options: str) -> None:
    """In a process without other threads."""
    command = [sys.executable, "-m", "tests.silence.made", str(first), str(last), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-2000:]
    tally = json.loads(done.stdout)
    assert not tally["failures"], "\n\n".join(tally["failures"][:5])
    assert tally["counts"]["programs"] == last - first
    # Neither is all refused, nor is nothing.
    assert tally["counts"]["right"] > 0.1 * tally["counts"]["runs"]
    assert tally["counts"]["refused"] > 0.1 * tally["counts"]["runs"]


def test_programs() -> None:
    campaign(0, 1500)


def test_gradients() -> None:
    campaign(0, 500, "--gradients")


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(10))
def test_programs_campaign(block: int) -> None:
    campaign(block * 10_000, (block + 1) * 10_000)


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(6))
def test_gradients_campaign(block: int) -> None:
    campaign(block * 5_000, (block + 1) * 5_000, "--gradients")
