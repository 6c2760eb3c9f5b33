"""An allocation that fails is a MemoryError, wherever it does: never an error inside of Python, and never a crash."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("_testcapi", reason="this Python has no _testcapi, which makes allocations fail")

USES = {
    "op": ("op(X)", 300),
    "compiled": ("compiled(X)", 300),
    "first call": ("pyop.compile(lambda x: x * 3 + 1)(X)", 1500),
    "gradient": ("gradient(X)", 400),
    "compiled gradient": ("compiled_gradient(X)", 300),
    "graph": ("build()", 400),
    "plan": ("plan(X)", 300),
    "Tensor": ("(T * 2 + 1).sum()", 100),
    "jvp": ("pyop.jvp(np.sin, (X,), (X,))", 300),
    "profile": ("profiled()", 60),  # behind it NumPy itself fails otherwise
}
PROGRAM = """
import warnings
import _testcapi
import numpy as np
import pyop
warnings.simplefilter("ignore")
X = np.array([1.0, 2.0, 3.0])
T = pyop.Tensor(X)
op = pyop.op("float64[n] -> float64[n]")(lambda x: x + 1)
compiled = pyop.compile(lambda x: np.sin(x) * 2 + x)
gradient = pyop.grad(lambda x: np.sum(np.sin(x) * x))
compiled_gradient = pyop.compile(gradient)
plan = pyop.trace(lambda x: op(x) * 2, "float64[3]").compile()

def build():
    graph = pyop.Graph()
    return op(graph.input("float64[3]")) + 1

def profiled():
    with pyop.profile() as p:
        op(X)
    return p

def use():
    return USE

for _ in range(3):
    use()
for k in range(MOST):
    _testcapi.set_nomemory(k, k + 1)
    try:
        use()
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()
"""


@pytest.mark.parametrize("name", USES)
def test_each_allocation_fails_in_turn(name: str) -> None:
    use, most = USES[name]
    program = PROGRAM.replace("USE", use).replace("MOST", str(most))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
