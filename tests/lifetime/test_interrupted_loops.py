"""Ctrl-C within one call of a native plan: a long group, compiled loops, threads; and other threads get their turns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

PROLOGUE = """
import os, sys, threading, time
import numpy as np, pyop

def call(f, *args):
    print("ready", flush=True)
    try:
        f(*args)
        print("finished", flush=True)
    except KeyboardInterrupt:
        print(time.monotonic(), time.process_time(), flush=True)
    assert pyop.compile(lambda x: x + 1)(1.0) == 2.0

def counted(n, x):
    return pyop.fori_loop(0, n, lambda i, c: c * 0.999 + i, x)
"""
LONG = {
    "group": "f = pyop.compile(lambda x: np.sin(np.exp(np.cos(x))) * np.tan(x)); call(f, np.ones(10**8))",
    "group with threads": "f = pyop.trace(lambda x: np.sin(np.exp(np.cos(x))) * np.tan(x), 'float64[n]')"
    ".compile(threads=2); call(f, np.ones(10**8))",
    "loop": "f = pyop.compile(counted); f(10, np.float64(1)); call(f, 10**9, np.float64(1))",
    "loop over short arrays": "f = pyop.compile(counted); f(10, np.ones(100)); call(f, 10**9, np.ones(100))",
    "reduction": "f = pyop.compile(lambda x: np.sum(np.sin(np.exp(x)) * np.tan(x))); call(f, np.ones(10**8))",
    "rows": "f = pyop.compile(lambda x: np.sum(np.sin(np.exp(x)) * np.tan(x), axis=1)); call(f, np.ones((10**7, 10)))",
    "strided": "f = pyop.compile(lambda x: np.sin(np.exp(x[::2])) * np.tan(x[1::2])); call(f, np.ones(10**8))",
    "many steps": "def many(x):\n    for _ in range(3000):\n        x = np.sort(np.cumsum(x) * 0.5)\n    return x\n"
    "f = pyop.compile(many); f(np.ones(3)); call(f, np.ones(10**5))",
    "scan": "f = pyop.compile(lambda x: pyop.scan(lambda c, y: (np.sin(c) * 0.9 + y, None), x[0], x)[0])\n"
    "x = np.broadcast_to(np.ones(100), (10**7, 100)); f.plan_for(x); call(f, x)",
    "while": "f = pyop.compile(lambda c, x: pyop.while_loop(lambda y: y < c, lambda y: y + 1.0, x))\n"
    "f(np.float64(5), np.float64(0)); call(f, np.float64(1e10), np.float64(0))",
}


def processor_time(pid: int) -> float:
    """What `time.process_time` is in another process, whose clock it has on Linux."""
    return time.clock_gettime(~pid << 3 | 2) if sys.platform == "linux" else float("inf")


@pytest.mark.parametrize("kind", LONG)
def test_is_heard_soon(kind):
    """Within 100 ms: by the clock on an idle machine, and by the processor's time that the process had since on any
    other, which may let it wait; by the clock within a second there.
    """
    with subprocess.Popen([sys.executable, "-c", PROLOGUE + LONG[kind]], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.3)
            begin, used = time.monotonic(), processor_time(child.pid)
            os.kill(child.pid, signal.SIGINT)
            said = child.stdout.readline().strip()
            assert said != "finished", "the call ended before the signal came: make it longer"
            clock, processor = map(float, said.split())
            print(f"{kind}: heard after {(clock - begin) * 1e3:.1f} ms, {(processor - used) * 1e3:.1f} ms of processor")
            assert clock - begin < 1.0
            assert processor - used < 0.1 * (1 + ("threads" in kind))
            assert child.wait(20) == 0
        finally:
            child.kill()


STARVED = """
turns = 0
over = threading.Event()
def other():
    global turns
    while not over.is_set():
        turns += 1
        time.sleep(0.001)
f = pyop.compile(counted)
f(10, np.ones(100))
thread = threading.Thread(target=other)
thread.start()
found, passes, took = 0, 200_000, 0.0
while took < 0.2:  # on a quick machine a call may be over before the other is awake
    passes, begin = 2 * passes, time.monotonic()
    f(passes, np.ones(100))
    took = time.monotonic() - begin
for _ in range(50):  # on a busy machine the other may sleep through a call
    before = turns
    f(passes, np.ones(100))
    found += max(turns - before - 1, 0)  # one may have come between the call and here
    if found > 3:
        break
print(found)
over.set()
thread.join()
"""


def test_other_threads_run_during_a_loop_of_short_steps():
    done = subprocess.run([sys.executable, "-c", PROLOGUE + STARVED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 3
