"""What is loaded by its first use, asked for by several threads at once: each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

FIRST_USES = {
    "gradient": "pyop.grad(lambda x: np.sum(np.sin(x) * np.dot(x, x)))(X)",
    "gradient of many families": """pyop.grad(lambda x: np.sum(np.cumsum(np.sort(x))) + np.var(np.stack([x, x]))
        + np.linalg.norm(x) + np.sum(np.pad(x, 1)))(X)""",
    "compiled gradient": "pyop.compile(pyop.value_and_grad(lambda x: np.sum(np.tanh(x) ** 2)))(X)",
    "jvp": "pyop.jvp(lambda x: np.exp(x) * x[0], (X,), (X,))",
    "vmap": "pyop.vmap(lambda x: np.sum(x * x))(np.stack([X, X]))",
    "compile": "pyop.compile(lambda x: np.where(x > 0, np.sqrt(x), np.median(x)))(X)",
    "loop": "pyop.compile(looped)(X)",
    "trace": "pyop.trace(lambda x: np.fft.fft(np.roll(x, 1)), 'float64[3]').compile()(X)",
    "explain": "str(pyop.trace(lambda x: x + 1, 'float64[3]').compile().explain().summary)",
    "scipy": "pyop.grad(lambda x: np.sum(scipy.special.gammaln(x)))(X)",
    "op": "pyop.op('float64[n] -> float64[n]')(lambda x: x + 1)(X)",
    "pickle": "len(pickle.dumps(pyop.trace(lambda x: x + 1, 'float64[3]')))",
    "a Function": "pyop.grad(lambda x: np.sum(Twice.apply(x)))(X)",
}
PROGRAM = """
import pickle, sys, threading
import numpy as np
import scipy.special
import pyop
sys.setswitchinterval(1e-6)
X = np.array([1.0, 2.0, 3.0])

class Twice(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2

def looped(x):
    s = 0.0
    for k in range(len(x)):
        s += x[k] * k
    return s

barrier, found = threading.Barrier(6), []
def work():
    barrier.wait()
    try:
        found.append(str(USE))
    except BaseException as error:
        found.append(repr(error))

threads = [threading.Thread(target=work) for _ in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
assert len(found) == 6 and set(found) == {str(USE)}, found
"""


@pytest.mark.parametrize("name", FIRST_USES)
def test_by_six_threads_at_once(name: str) -> None:
    program = PROGRAM.replace("USE", " ".join(textwrap.dedent(FIRST_USES[name]).split()))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
