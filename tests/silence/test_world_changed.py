"""Functions made by chance that read what somebody changes between calls: they compute what plain ones do."""

from __future__ import annotations

import contextvars
import os
import random
import re
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from .world import CHANGES, READS, RELATED, WORLD

USES = (
    "y = y + (r if isinstance(r, (int, float)) else 0)",
    "if r: y = y * 3",
    "y = y * 2 if r is None else y + 1",
    "z.append(r if isinstance(r, (int, float)) else 0)",
    "y = y + len(str(r)) if not callable(r) else y",
)


def names(text: str) -> set[str]:
    found = set(re.findall(r"[A-Za-z_]\w*", text))
    return found.union(*(RELATED.get(name, ()) for name in found))


NAMES = {change: names(change) for change in CHANGES}


def made(seed: int) -> tuple[str, list[list[str]]]:
    """A function, and what is changed before each call: of what it reads, mostly."""
    chance = random.Random(seed)
    reads = [chance.choice(READS) for _ in range(chance.randint(1, 3))]
    body = "".join(f"    r = {read}\n    {chance.choice(USES)}\n" for read in reads)
    read = set().union(*map(names, reads))
    close = [change for change in CHANGES if not read.isdisjoint(NAMES[change])] or CHANGES
    calls = [
        [chance.choice(close if chance.random() < 0.85 else CHANGES) for _ in range(chance.choice((0, 1, 1, 1, 2, 4)))]
        for _ in range(7)
    ]
    return f"def f(x):\n    y, z = x * 1.0, []\n{body}    return (y, *z)\n", calls


def run(source: str, calls: list[list[str]], wrap: Any) -> list[str]:
    world: dict[str, Any] = {"__name__": "world"}
    exec(compile(WORLD + source, "<world>", "exec", dont_inherit=True), world)
    f, said = wrap(world["f"]), []

    def go() -> None:
        for changes in calls:
            for change in changes:
                try:
                    exec(change, world)
                except Exception as error:
                    said.append(f"{change}: {type(error).__name__}")
            try:
                said.append(repr(f(np.ones(2))))
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")

    os.environ.pop("PYOP_WORLD", None)
    with np.printoptions():
        contextvars.copy_context().run(go)
    return said


def check(seed: int) -> bool:
    """Whether the function was compiled, and neither ran itself nor was refused."""
    source, calls = made(seed)
    want = run(source, calls, lambda f: f)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        got = run(source, calls, pyop.compile)
    for k, (mine, other) in enumerate(zip(got, want, strict=True)):
        if mine != other and "while a function is traced" in mine:  # type(x) is something
            return False
        if mine != other and mine.partition(":")[0] == other.partition(":")[0] and "Error: " in mine:  # in other words
            continue
        assert mine == other, f"seed {seed}, {k} of what {calls} say:\n{source}\n{mine}\n{other}"
    return not any("function itself runs" in str(warning.message) for warning in told)


def test_what_is_read_is_as_somebody_has_left_it(monkeypatch):
    monkeypatch.setenv("PYOP_WORLD", "")
    assert sum(map(check, range(400))) > 380


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(10))
def test_what_is_read_is_as_somebody_has_left_it_campaign(block, monkeypatch):
    monkeypatch.setenv("PYOP_WORLD", "")
    assert sum(map(check, range(10_000 * (block + 1), 10_000 * (block + 2)))) > 9500
