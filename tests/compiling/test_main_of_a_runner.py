"""A program that another one runs as ``__main__`` is the user's, though the module of that name is of a package."""

import subprocess
import sys

PROGRAM = """
import warnings
import numpy as np, pyop
calls = {"count": 0}

def numbered(x):
    calls["count"] += 1
    return x + calls["count"]

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    pyop.compile(numbered)(np.ones(3))
print(any("changes the global 'calls'" in str(w.message) for w in caught))
"""
RUNNER = """
import sys
sys.modules["__main__"].__file__ = "/usr/lib/python3/site-packages/runner/__main__.py"
exec(compile(sys.argv[1], "<program>", "exec"), {"__name__": "__main__"})
"""


def test_what_such_a_program_holds_is_looked_at():
    command = [sys.executable, "-c", RUNNER, PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"
