"""Programs in processes of their own: what can hang or crash, and what goes by the environment."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

PROGRAM = """
import os, sys, threading, time
import numpy as np, pyop
from pyop.compiling import worth
worth.stand_still()  # or a call may run the function itself, on trial

def decay(x, n):
    total = x[0] * 0.0
    for k in range(n):
        total = total * 0.5 + x[k % 8]
    return total

def states(f, *given):
    return {code.state for _, code in f.plan_for(*given)._machine_code()}

def until(truth):
    end = time.monotonic() + 60
    while not truth():
        assert time.monotonic() < end
        time.sleep(0.01)

x = np.arange(8.0)
"""


@pytest.fixture
def run(tmp_path) -> Callable[..., str]:
    """``run(code, **environment)``: what a program prints that knows the names of `PROGRAM`."""

    def of(code: str, **environment: str) -> str:
        file = tmp_path / "program.py"  # loops are recorded from their source
        file.write_text(PROGRAM + textwrap.dedent(code))
        kept = {name: text for name, text in os.environ.items() if name != "PYOP_MACHINE_CODE"}
        end = subprocess.run(
            [sys.executable, "-X", "faulthandler", str(file)],
            env=kept | environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert end.returncode == 0, end.stderr
        return end.stdout

    return of
