"""A function that calls itself without end, on threads with small stacks: RecursionError, as Python has it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .harness import TIMEOUT_SECONDS

SCRIPT = """
import sys, threading
import numpy as np, pyop

x = np.ones(3)

@pyop.op("float64[n] -> float64[n]")
def plain(a): return plain(a)
@pyop.op("float64[*s] -> float64[*s]")
def general(a): return general(a)
@pyop.op("(n)->(n)")
def looping(a): return looping(np.stack([a, a]))[0]
@pyop.op("float64[n] -> float64[n]")
def within(a): return plan(a)
plan = pyop.trace(lambda v: within(v), "float64[n]").compile()
@pyop.op("float64[n] -> float64[n]")
def compiling(a): return compiled(a)
compiled = pyop.compile(lambda v: compiling(v))
tracing = pyop.compile(lambda v: tracing(v))
class Again(pyop.Function):
    @staticmethod
    def forward(ctx, a): return Again.apply(pyop.Tensor(a)).numpy()
    @staticmethod
    def backward(ctx, g): return g
class Back(pyop.Function):
    @staticmethod
    def forward(ctx, a): return a * 1
    @staticmethod
    def backward(ctx, g):
        t = pyop.Tensor(x, requires_grad=True)
        with pyop.enable_grad():
            y = Back.apply(t).sum()
        y.backward()
        return g
calls = [
    lambda: plain(x), lambda: general(x), lambda: looping(np.ones((2, 3))), lambda: plan(x), lambda: compiled(x),
    lambda: tracing(x), lambda: Again.apply(pyop.Tensor(x, requires_grad=True)),
    lambda: Back.apply(pyop.Tensor(x, requires_grad=True)).sum().backward(),
]
def run():
    for k, call in enumerate(calls):
        try:
            call()
        except RecursionError as error:
            caught.append(k)
    # The thread is of use afterwards.
    assert pyop.op("float64[n] -> float64[n]")(lambda a: a + 1)(x).sum() == 6

for size in (256, 384, 512, 1024, 8192):
    caught = []
    threading.stack_size(size << 10)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    print(size, len(caught), len(calls), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks pthread for the size of a stack")
def test_recursion_ends_in_an_error() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-2000:])
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr[-2000:]
    for line in lines:
        _, caught, every = line.split()
        assert caught == every, (line, done.stderr[-2000:])
