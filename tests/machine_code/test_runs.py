"""Runs of machine code that end half-way, and what goes on beside them."""

from __future__ import annotations

import numpy as np
import pytest

import pyop

pytest.importorskip("llvmlite", reason="the jit extra is not installed")


def test_an_index_out_of_bounds_raises_behind_what_was_written():
    def shift(x, at):
        for k in range(len(x)):
            x[at[k]] = x[k] + 1.0
        return x

    f = pyop.compile(shift, machine_code="now")
    good, bad = np.arange(500)[::-1].copy(), np.arange(500)
    assert f(np.arange(500.0), good).tobytes() == shift(np.arange(500.0), good).tobytes()
    bad[317] = 500
    plain, found = np.arange(500.0), np.arange(500.0)
    with pytest.raises(IndexError, match="index 500 is out of bounds"):
        shift(plain, bad)
    with pytest.raises(IndexError, match="index 500 is out of bounds"):
        f(found, bad)
    assert found.tobytes() == plain.tobytes()


@pytest.mark.parametrize("errors", ["ignore", "warn", "raise"])
def test_a_nest_that_overflows_late(errors):
    def powers(x):
        for i in range(len(x)):
            for j in range(len(x)):
                x[i, j] = x[i, j] * x[i, j] * 3.0
        return x

    x = np.ones((40, 40))
    f = pyop.compile(powers, machine_code="now")
    assert f(x.copy()).tobytes() == powers(x.copy()).tobytes()
    x[31, 7] = 1e200

    def outcome(function):
        given = x.copy()
        with np.errstate(all=errors), pytest.warns() if errors == "warn" else np.errstate():
            try:
                function(given)
            except FloatingPointError as error:
                return str(error), given.tobytes()
        return "", given.tobytes()

    assert outcome(f) == outcome(powers)
    assert outcome(f) == outcome(powers)


def test_a_long_loop_goes_over_while_it_runs_and_hears_signals(run):
    program = """
        import signal
        f = pyop.compile(decay)
        for seconds in (0, 4):
            timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
            started = time.monotonic()
            if seconds: timer.start()
            try:
                f(x, 10**11 if seconds else 10000)
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - started < 30)
        print(f(x, 10000) == decay(x, 10000), "ready" in states(f, x, 10**11))
    """
    assert run(program) == "interrupted True\nTrue True\n"


def test_other_threads_and_cleared_caches_beside_it(run):
    program = """
        f = pyop.compile(decay, machine_code="now")
        want, wrong, end = decay(x, 30000), [], time.monotonic() + 3
        def call():
            while time.monotonic() < end:
                if f(x, 30000) != want: wrong.append(1)
        def clear():
            while time.monotonic() < end:
                f.cache_clear()
                time.sleep(0.02)
        threads = [threading.Thread(target=t) for t in (call, call, call, clear)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(wrong)
    """
    assert run(program) == "[]\n"


def test_forks(run):
    program = """
        f = pyop.compile(decay)
        until(lambda: f(x, 100000) is not None and states(f, x, 100000) != {"cold"})
        for _ in range(8):  # while it is made, and behind that
            child = os.fork()
            if child == 0:
                g = pyop.compile(lambda x, n: decay(x, n))
                same = f(x, 100000) == decay(x, 100000)
                h = pyop.compile(decay, machine_code="now")
                h(x, 3000)
                until(lambda: f(x, 100000) is not None and "ready" in states(f, x, 100000))
                os._exit(0 if same and "ready" in states(h, x, 3000) else 1)
            print(os.waitpid(child, 0)[1], end=" ")
    """
    assert run(program) == "0 " * 8


def test_a_fork_ends_the_thread_that_has_nothing_to_do(run):
    program = """
        f = pyop.compile(decay)
        until(lambda: f(x, 100000) is not None and "ready" in states(f, x, 100000))
        names = lambda: "pyop machine code" in {thread.name for thread in threading.enumerate()}
        before = names()
        if (child := os.fork()) == 0: os._exit(0)
        os.waitpid(child, 0)
        print(before, names())
    """
    assert run(program) == "True False\n"


def test_the_end_of_a_process_that_compiles(run):
    program = """
        def copy():
            def f(x, n):
                total = x[0] * 0.0
                for k in range(n):
                    total = total * 0.5 + x[k % 8]
                return total
            return f
        fs = [pyop.compile(copy()) for _ in range(20)]
        for f in fs:
            for _ in range(100): f(x, 10000)
        threading.Thread(target=fs[0], args=(x, 10**11), daemon=True).start()
        time.sleep(0.1)
        print("end")
    """
    assert run(program) == "end\n"


def test_code_goes_with_its_plan(run):
    program = """
        import gc
        def memory():
            with open("/proc/self/statm") as file: return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        def make():
            f = pyop.compile(decay, machine_code="now")
            f(x, 3000)
            assert "ready" in states(f, x, 3000)
            (owner,) = [code.owner for _, code in f.plan_for(x, 3000)._machine_code() if code.owner]
            return sys.getrefcount(owner)
        counts = {make() for _ in range(100)}
        gc.collect()
        before = memory()
        for _ in range(300): make()
        gc.collect()
        print(counts, (memory() - before) / 300 < 8192)
    """
    assert run(program) == "{3} True\n"
