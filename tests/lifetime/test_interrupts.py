"""Ctrl-C may land between any two lines: whatever it interrupts, the thread is in no mode afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .harness import TIMEOUT_SECONDS

# Signals come at random moments of small programs. `heard` counts those that ended one; after each the thread is asked
# what it is in.
STORM = """
import gc, random, signal, sys, time, weakref
import numpy as np, pyop
from pyop import _core
from pyop.autograd import detect_anomaly, enable_grad, no_grad, vmap
from pyop.autograd.vmap import _nesting
from pyop.gradients.saved import _boxes

armed = False
def interrupt(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
x = np.linspace(0.5, 1.5, 3)

@pyop.op("float64[n] -> float64[n]")
def square(a):
    return pyop.saved(a * a, a)
@square.vjp
def _(ct, a, *, saved):
    return 2 * ct * saved

@no_grad()
def quiet(t): return t * 2
@no_grad()
def steps(t):
    yield t
    yield t * 2
@pyop.autograd.once_differentiable
def slope(ctx, g): return g
def tensor(): return pyop.Tensor(x, requires_grad=True)

def building():
    with pyop.Graph() as g:
        g.input("float64[n]")
def modes():
    with no_grad():
        with enable_grad():
            pass
def decorated():
    quiet(x)
    list(steps(x))
def anomaly():
    with detect_anomaly(): pass
def backwards(): pyop.grad(lambda y: np.sum(y * y))(x)
def op(): pyop.grad(lambda y: np.sum(square(y)))(x)
def forwards(): pyop.jvp(lambda y: np.sum(y * y), (x,), (x,))
def twice(): pyop.autograd.jvp(lambda y: y * y, tensor(), x)
def batches(): vmap(lambda y: y * 2)(x)
def tracing(): pyop.trace(lambda y: np.sum(y * y), "float64[n]")
def profile():
    with pyop.profile(): pass

def state():
    return (_core.graph_being_built(), _core.is_recording(), _core.forward_running(), _core.forward_runs(),
            _core.transformations_running(), _nesting.depth, _boxes.innermost)

at_first = state()
assert at_first == (None, True, False, 0, 0, 0, None)
heard, rng = 0, random.Random(int(sys.argv[1]))
programs = [building, modes, decorated, anomaly, backwards, op, forwards, twice, batches, tracing, profile]
spans = {}
for program in programs:
    program()
    began = time.perf_counter()
    program()
    spans[program] = time.perf_counter() - began
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    program = rng.choice(programs)
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + rng.random() * spans[program])
        program()
        armed = False
    except KeyboardInterrupt:
        heard += 1
    armed = False
    assert state() == at_first, (program, heard, state())

# Modes that nothing tells of: what they would do.
class Broken(pyop.Function):
    @staticmethod
    def forward(ctx, a): return a * 1
    @staticmethod
    def backward(ctx, g): return g * np.nan
Broken.apply(tensor()).sum().backward()
held = pyop.op("float64[n] -> float64[n]")(lambda a: a + 1)
held(x)
gone = weakref.ref(held)
del held
gc.collect()
assert gone() is None, "a profile is still on"
print(heard)
"""


@pytest.mark.parametrize("seed", range(2))
def test_no_mode_outlives_an_interrupt(seed: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STORM, str(seed), "3"], capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000


# A plan of seconds in one native step, in many, and by several threads; and a handler that runs that plan itself.
LONG = """
import signal, time
import numpy as np, pyop

x = np.linspace(0.1, 1.0, 4_000_000)
small = x[:100_000]

def f(v):
    for _ in range(40):
        v = np.sin(np.exp(-v)) + 0.1
    return v

def late(call, handler, after):
    signal.signal(signal.SIGALRM, handler)
    sent = time.perf_counter() + after
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        call()
    except KeyboardInterrupt:
        return time.perf_counter() - sent
    raise AssertionError("it was over before it was interrupted")

def interrupt(*_):
    raise KeyboardInterrupt

graph = pyop.trace(f, "float64[n]")
expected = f(small)
for options in ({}, {"disable": ["fuse"]}, {"threads": 2}):
    plan = graph.compile(**options)
    kept = plan(small)
    for after in (0.1, 0.23):
        print(late(lambda: plan(x), interrupt, after), flush=True)
    assert np.array_equal(plan(small), expected)    # the plan, its graph and the memory of its results
    assert np.array_equal(kept, expected)

def within(*_):
    again.append(np.array_equal(graph.compile()(small), expected) and np.array_equal(plan(small), expected))

again, plan = [], graph.compile()
part = x[:1_000_000]
signal.signal(signal.SIGALRM, within)
signal.setitimer(signal.ITIMER_REAL, 0.02)  # once: a handler may take longer than the next would wait
found = plan(part)
signal.setitimer(signal.ITIMER_REAL, 0)
assert again and all(again)
assert np.array_equal(found, f(part))
"""


def test_a_long_plan_hears_an_interrupt() -> None:
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr
    late = sorted(map(float, done.stdout.split()))
    assert len(late) == 6
    assert late[3] < 0.1  # most of them: the machine may be busy
