"""Run a script in a fresh interpreter and look at how it ends.

A lifetime bug shows as a crash, an abort or a hang at an awkward moment, so every scenario has a process of its
own and a time limit.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import Protocol

# Generous: a sanitizer build on a busy machine is 30 times slower. A deadlock takes all of it.
TIMEOUT_SECONDS = 180

PRELUDE = """
import atexit, os, sys, threading, time

def at_last(): pass

atexit.register(lambda: at_last())      # before the import below, hence run after the reaper's close()
from pyop import _ctests

class Thing:
    died = 0
    def __del__(self):
        Thing.died += 1

def things(n):
    return [Thing() for _ in range(n)]

def say(*words):    # in one piece: a forked child says something at the same time
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""


@dataclass(frozen=True)
class Outcome:
    """How the script ended: what it printed, and the reaper's counters as the last act of the process."""

    said: list[str]
    deferred: int
    drained: int
    leaked: int


class Run(Protocol):
    """`run` with the owner chosen: the type of the fixture of that name."""

    def __call__(self, script: str, *flags: str, at_last: str = "pass") -> Outcome: ...


def run(script: str, *flags: str, owner: str, at_last: str = "pass") -> Outcome:
    """Run PRELUDE and `script`; fail unless it exits with 0 in time and says nothing on stderr.

    `flags` are the interpreter's, `owner` is the C++ class that owns the objects, and `at_last` runs as an atexit
    function after the reaper is closed.
    """
    late = "def at_last():\n" + textwrap.indent(textwrap.dedent(at_last), "    ")
    setup = f"_ctests.own_through({owner!r})\n_ctests.report_at_exit()"
    code = "\n".join([PRELUDE, setup, late, textwrap.dedent(script)])
    try:
        done = subprocess.run(
            [sys.executable, *flags, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as hang:
        raise AssertionError(f"hangs: not finished after {TIMEOUT_SECONDS} s; it said {hang.stdout!r}") from None
    told = f"exit code {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    assert done.returncode == 0, told
    assert done.stderr == "", told
    *said, last = done.stdout.splitlines()
    counters = re.fullmatch(r"at exit: deferred=(\d+) drained=(\d+) leaked=(\d+)", last)
    assert counters, told
    deferred, drained, leaked = map(int, counters.groups())
    return Outcome(said, deferred, drained, leaked)
