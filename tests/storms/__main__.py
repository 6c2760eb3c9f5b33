"""`python -m tests.storms SECONDS [WORD …]`: a table of the storms whose names have such a word, or of all."""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings

import pyop

from .storms import STORMS, blow

# Beyond the storm's own time: a thread that waits for ever is a finding.
PATIENCE = 60


def ends(name: str, seconds: float, switch: float = 0.005) -> tuple[bool, str]:
    """Run a storm in a process of its own: whether it ended well, and what it said last.

    Threads ask for the GIL after `switch` seconds.
    """
    child = [sys.executable, "-W", "ignore:The global interpreter lock", "-m", "tests.storms", str(seconds), name]
    child += ["--switch", str(switch)]
    try:
        done = subprocess.run([*child, "--here"], capture_output=True, text=True, timeout=seconds + PATIENCE)
    except subprocess.TimeoutExpired:
        return False, "hangs"
    if done.returncode < 0:
        return False, f"dies of signal {-done.returncode}"
    if done.returncode or done.stderr:
        return False, (done.stderr.splitlines() or ["says nothing"])[-1]
    return True, f"{done.stdout.strip()} rounds"


def main() -> int:
    """The table, or one storm in this process."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("word", nargs="*")
    parser.add_argument("--here", action="store_true", help="run the storm of that name in this process")
    parser.add_argument("--switch", type=float, default=0.005, help="seconds after which threads ask for the GIL")
    asked = parser.parse_args()
    if asked.here:
        sys.setswitchinterval(asked.switch)
        warnings.simplefilter("ignore", pyop.RetraceWarning)  # a cache that is cleared again and again earns it
        print(blow(asked.word[0], asked.seconds))
        return 0
    names = [name for name in STORMS if not asked.word or any(word in name for word in asked.word)]
    if not names:
        parser.error(f"no storm has such a word in its name: {'; '.join(STORMS)}")
    gil = "on" if getattr(sys, "_is_gil_enabled", lambda: True)() else "off"
    print(f"CPython {sys.version.split()[0]}, GIL {gil}, {asked.seconds:g} s each\n")
    print("| storm | ends | |\n|---|---|---|")
    bad = 0
    for name in names:
        well, said = ends(name, asked.seconds, asked.switch)
        bad += not well
        print(f"| {name} | {'well' if well else 'badly'} | {said[:160]} |", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
