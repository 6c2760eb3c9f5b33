"""NumPy imports ``np.random`` when somebody first asks for it, which may be the function that is traced."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, warnings
import numpy as np, pyop
{first}
warnings.simplefilter("ignore", pyop.RetraceWarning)

def helper():
    return np.random.rand()

f = pyop.compile({function})
found = [float(f(np.zeros(1))[0]) for _ in range(4)]
print(len(set(found)))
"""


def distinct(function: str, first: str = "") -> int:
    """How many different results four calls give, in a process of their own."""
    program = PROGRAM.format(function=function, first=first)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("first", ["", "np.random"])
@pytest.mark.parametrize(
    "function", ["lambda x: x + np.random.rand()", "lambda x: x + helper()", "lambda x: x + np.random.rand(312)[:1]"]
)
def test_numbers_that_are_drawn_are_other_ones_in_each_call(function, first):
    assert distinct(function, first) == 4


def test_a_seed_in_the_function_makes_them_the_same():
    assert distinct("lambda x: x + np.random.default_rng(3).random()") == 1
