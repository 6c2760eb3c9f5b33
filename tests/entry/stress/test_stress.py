"""Plans called from C by many threads: while Python runs, ends and forks, and where they raise."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import pyop

from ..calling import call, message, results_for
from .plans import ATTACHED, NATIVE, RAISING, Called

ctests = pytest.importorskip("pyop._ctests", reason="needs the C++ tests: -Ccmake.define.PYOP_TESTS=ON")
ALL = {**NATIVE, **ATTACHED}


@pytest.mark.parametrize("name", NATIVE)
def test_foreign_threads_while_the_gil_is_held(name):
    called = Called(*NATIVE[name])
    assert ctests.call_on_threads(*called.call, 8, 500) == 0
    assert called.right()


@pytest.mark.parametrize("name", ALL)
def test_foreign_threads_beside_threads_of_python(name):
    called = Called(*ALL[name])
    stop, wrong = threading.Event(), []

    def beside():
        results = results_for(called.plan)
        while not stop.is_set():
            status = call(called.plan, [called.argument], results)
            if status or any(a.tobytes() != b.tobytes() for a, b in zip(results, called.expected, strict=True)):
                wrong.append(status)

    threads = [threading.Thread(target=beside) for _ in range(2)]
    for thread in threads:
        thread.start()
    status = ctests.call_on_threads(*called.call, 6, 100, True)
    stop.set()
    for thread in threads:
        thread.join()
    assert (status, wrong) == (0, [])
    assert called.right()


def test_exceptions_on_foreign_threads_beside_results():
    plan = pyop.trace(*RAISING).compile()
    good = Called(*NATIVE["numbers"])
    raising = Called.__new__(Called)
    raising.argument, raising.results = np.array(1.0), results_for(plan)
    for _ in range(20):
        assert call(plan, [raising.argument], raising.results) == -1
        assert message(plan).startswith("ValueError: it is raised on purpose")
        assert ctests.call_on_threads(*good.call, 4, 50, True) == 0
        assert good.right()


def run(program: str, name: str) -> tuple[int, bytes]:
    head = f"""
        import os, sys, time, warnings
        sys.path.insert(0, {str(Path(__file__).parents[3])!r})
        from pyop import _ctests
        from tests.entry.stress.plans import ATTACHED, NATIVE, Called
        called = Called(*{{**NATIVE, **ATTACHED}}[{name!r}])
        kept = called.plan.capsule
        _ctests.start_calls(*called.check, 3)
        end = time.monotonic() + 60
        while _ctests.calls_made() < 20 and time.monotonic() < end:
            time.sleep(0.01)
        assert _ctests.calls_made() >= 20
    """
    text = textwrap.dedent(head) + textwrap.dedent(program)
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore::DeprecationWarning", "-c", text]
    done = subprocess.run(command, capture_output=True, timeout=300)
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("end", ["", "del called", "sys.exit(0)"])
def test_python_ends_under_the_calls(name, end):
    assert run(end, name) == (0, b"")


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="AddressSanitizer's allocator does not take its locks at fork(): a child may wait for a thread it has not",
)
@pytest.mark.parametrize("name", NATIVE)
def test_forks_under_the_calls(name):
    """A child has none of the threads that call, and calls on."""
    program = """
        failed = 0
        for i in range(10):
            child = os.fork()
            if child == 0:
                good = _ctests.call_on_threads(*called.call, 2, 20) == 0 and called.right()
                sys.exit(0 if good else 3)
            failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
        assert failed == 0
    """
    assert run(program, name) == (0, b"")


@pytest.mark.campaign
@pytest.mark.parametrize("name", ALL)
def test_campaign_of_calls(name):
    called = Called(*ALL[name])
    for k in range(40):
        assert ctests.call_on_threads(*called.call, 2 + k % 12, 4000, True) == 0
        assert called.right()


@pytest.mark.campaign
@pytest.mark.parametrize("name", ALL)
def test_campaign_of_ends(name):
    for _ in range(40):
        assert run("", name) == (0, b"")


@pytest.mark.campaign
def test_campaign_in_parallel_loops():
    numba = pytest.importorskip("numba", reason="needs numba")
    native, attached = (
        pyop.trace(*table[name]).compile() for table, name in [(NATIVE, "small arrays"), (ATTACHED, "a sort")]
    )

    @numba.njit(parallel=True)
    def many(n, x, y):
        numbers, arrays = np.empty(n), np.empty((n, 16))
        for i in numba.prange(n):
            numbers[i] = native(x * i)[1]
            arrays[i] = attached(y + i)
        return numbers, arrays

    x, y = np.random.default_rng(0).normal(size=(2, 16))
    expected = None
    for _ in range(50):
        got = many(4000, x[:9], y)
        expected = expected or got
        assert [a.tobytes() for a in got] == [a.tobytes() for a in expected]
    assert expected[0][7] == native(x[:9] * 7)[1]
    assert np.array_equal(expected[1][7], attached(y + 7))
