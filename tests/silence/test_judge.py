"""That the suite and the programs made by chance find what they are for."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyop

from .judge import REFUSED, RIGHT, UNCLEAR, WRONG, judge_calls
from .made import running
from .made.draw import KINDS
from .made.program import Program, random_program
from .made.running import outcome
from .made.shrink import shrink
from .programs import GROUPS, Entry, every

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="children are forked")


def judged(function: Callable[..., Any], stand_in: Callable[..., Any], *arguments: Any) -> str:
    return judge_calls(Entry("f", function, arguments or ("f8[4]",)), lambda f, given: stand_in)[0]


def scaled(x: Any) -> Any:
    x *= 2
    return x + 1


def test_what_is_right() -> None:
    assert judged(scaled, scaled) == RIGHT
    assert judged(lambda x: x.reshape(7), lambda x: x.reshape(7)) == RIGHT
    assert judged(lambda x: x.sum(), lambda x: np.asarray(x.sum())) == RIGHT


@pytest.mark.parametrize(
    "stand_in",
    [
        lambda x: x * 2 + 1,  # the argument is as it was
        lambda x: np.add(np.multiply(x, 2, out=x), 1, dtype="f4"),
        lambda x: np.add(np.multiply(x, 2, out=x), 1 + 1e-16 * x) * (1 + 2.0**-52),
        lambda x: scaled(x)[:3],
        lambda x: (scaled(x),),
        lambda x: scaled(x) * 0 + scaled(x),
        lambda x: np.add(np.multiply(x, 2, out=x), 1, out=x),  # the result is the argument
    ],
)
def test_what_is_wrong(stand_in: Callable[..., Any]) -> None:
    assert judged(scaled, stand_in) == WRONG


def test_writes_beside_a_view_and_by_later_calls_are_seen() -> None:
    def beside(x: Any) -> Any:
        x.base[0] = 5
        return scaled(x)

    assert judged(scaled, beside, "f8[4] step") == WRONG
    kept = np.zeros(4)
    assert judged(lambda x: x * 2, lambda x: np.multiply(x, 2, out=kept)) == WRONG


def test_refusals_name_place_and_remedy() -> None:
    def refuse(text: str, write: bool = False) -> Callable[..., Any]:
        def stand_in(x: Any) -> Any:
            x[0] = 5 if write else x[0]
            raise TypeError(text)

        return stand_in

    assert judged(scaled, refuse("argument 'x' is written: write to a copy")) == REFUSED
    assert judged(scaled, refuse("argument 'x' is written")) == UNCLEAR
    assert judged(scaled, refuse("argument 'x' is written: write to a copy", write=True)) == WRONG


def test_an_error_that_numpy_has_is_not_swallowed() -> None:
    assert judged(lambda x: x.reshape(7), lambda x: x) == WRONG


# Run in a process of its own, which has no other threads: a fork beside those of other tests may hang.
ENDINGS = """
import os, signal
from silence.hunt import in_children

def work(item):
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if item == 5:
        while True:
            pass
    return item * 2

found = in_children(range(8), work, limit=1.0)
assert [x for k, x in enumerate(found) if k not in (3, 5)] == [0, 2, 4, 8, 12, 14], found
assert found[3] == {"broken": "the process ended with -9"}, found
assert found[5] == {"broken": "no end in 1 s"}, found
"""


def test_what_ends_the_process_is_an_outcome() -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", ENDINGS], cwd=tests, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_there_are_programs_of_every_group() -> None:
    written = Counter(name.partition(".")[0] for name in every())
    assert set(written) == set(GROUPS)
    assert min(written.values()) >= 12
    assert sum(written.values()) >= 600


def test_programs_made_by_chance_are_of_all_kinds() -> None:
    lines = [line for seed in range(400) for line in random_program(seed).lines]
    smooth = [line for seed in range(400) for line in random_program(seed, smooth=True).lines]
    text = "\n".join(lines)
    for word in ("+=", "out=", "] =", "for ", "try:", "Box(", "float(", "bump(", ".sort()", ".T", "np.copyto", "if "):
        assert word in text, word
    for word in ("while ", "np.zeros(", "np.array([", "range(", "break", "halves(", "summed(", "early(", "np.argmax("):
        assert word in text, word
    assert not re.search(r"astype|\.real|(?<! [ij])(?<!\[[ij]) //", "\n".join(smooth))
    assert len(KINDS) > 25


def test_a_mistake_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for pyop.compile that rebinds where NumPy writes."""

    def rebinding(f: Callable[..., Any], given: list[Any]) -> Callable[..., Any]:
        return lambda *arguments: f(*[a.copy() for a in arguments])

    monkeypatch.setitem(running.WAYS, "compile", rebinding)
    found = (random_program(seed) for seed in range(200))
    program = next(p for p in found if attempt(p) == WRONG)
    smallest, why = shrink(program, "compile", WRONG)
    assert why.startswith(("arguments", "["))
    assert len(smallest.lines) <= 2
    names: dict[str, Any] = {}
    monkeypatch.setattr(pyop, "compile", lambda f: f)
    exec(smallest.source("compile", (1,)), names)
    assert callable(names["f"])


def attempt(program: Program) -> str:
    try:
        return outcome(program, "compile")[0]
    except running.Invalid:
        return ""
