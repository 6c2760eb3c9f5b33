"""No program is wrong, in any way of running it; and what was right stays right.

`outcomes.txt` has a letter for each of `ways.WAYS`: R right, r refused, ? refused without naming the line, - not asked.
``python -m tests.silence --table > tests/silence/outcomes.txt`` writes it anew. What is refused there may become right.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from .__main__ import LETTERS
from .programs import GROUPS, every
from .ways import WAYS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs run in forked children")

HERE = Path(__file__).parent
ALLOWED = {"R": "R", "r": "Rr", "?": "Rr?", "-": "-"}


@functools.cache
def found() -> dict[str, dict[str, list[str]]]:
    """What becomes of each program, in a process without other threads."""
    command = [sys.executable, "-m", "tests.silence", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    return outcomes


@functools.cache
def expected() -> dict[str, str]:
    lines = (HERE / "outcomes.txt").read_text().split("\n")
    return dict(line.split() for line in lines if line and line[0] != "#")


def test_every_program_has_its_line() -> None:
    assert set(every()) <= set(expected())
    assert {len(letters) for letters in expected().values()} == {len(WAYS)}
    assert set("".join(expected().values())) <= set(ALLOWED)


@pytest.mark.parametrize("group", GROUPS)
def test_programs(group: str) -> None:
    worse = []
    for name, by_way in found().items():
        if name.partition(".")[0] != group:
            continue
        for way, letter in zip(by_way, expected()[name], strict=True):
            outcome, why = by_way[way]
            if LETTERS[outcome] not in ALLOWED[letter]:
                worse.append(f"{name} [{way}] is {outcome}, was {letter}: {why}")
    assert not worse, "\n".join(worse)
