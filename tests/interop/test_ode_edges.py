"""`solve_ivp` where something is amiss: errors as they are, SciPy's words, what only it does, threads, signals."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import pyop
from pyop.interop.scipy import rhs, solve_ivp

integrate = pytest.importorskip("scipy.integrate")


def decay(t, y):
    return [-y[0], -2 * y[1]]


def lorenz(t, y, s, r, b):
    return [s * (y[1] - y[0]), y[0] * (r - y[2]) - y[1], y[0] * y[1] - b * y[2]]


def assert_by_scipy(reason, fun, *args, **kwargs):
    got, want = solve_ivp(fun, *args, **kwargs), integrate.solve_ivp(fun, *args, **kwargs)
    assert (got.driver, got.native) == ("scipy", False)
    assert reason in got.reason
    np.testing.assert_array_equal(got.t, want.t)
    np.testing.assert_array_equal(got.y, want.y)
    assert (got.nfev, got.status) == (want.nfev, want.status)


def test_what_only_scipy_does():
    y0, span = [1.0, 2.0], (0, 1)
    assert_by_scipy("method='LSODA'", decay, span, y0, "LSODA")
    assert_by_scipy("method=", decay, span, y0, integrate.RK45)
    assert_by_scipy("y0", lambda t, y: [-y[0], 1j * y[1]], span, np.array([1.0 + 1j, 2.0]))
    assert_by_scipy("vectorized", decay, span, y0, vectorized=True)
    assert_by_scipy("t_span", decay, (1, 1), y0)
    assert_by_scipy("y0", lambda t, y: y, span, np.zeros(0))
    assert_by_scipy("SciPy's alone", decay, span, y0, "BDF", jac_sparsity=np.eye(2))
    assert_by_scipy("shape", lambda t, y: -y[0], span, y0)  # SciPy broadcasts
    assert_by_scipy("shape", decay, span, np.array(y0), events=lambda t, y: y[:1] + 0.5)


def test_functions_that_cannot_be_compiled():
    seen = []

    def counts(t, y):
        seen.append(t)
        return [-y[0], -2 * y[1]]

    def writes(t, y):
        y = y.copy()
        y *= -1
        return y

    def writes_argument(t, y, a):
        a[0] += 1.0
        return [-y[0], -y[1]]

    def by_libraries(t, y):
        return [-v for v in y.tolist()]

    for fun in (counts, by_libraries):
        assert_by_scipy("has no plan", fun, (0, 1), [1.0, 2.0])
    got = solve_ivp(writes, (0, 1), [1.0, 2.0])
    np.testing.assert_array_equal(got.y, integrate.solve_ivp(writes, (0, 1), [1.0, 2.0]).y)
    a = np.zeros(1)
    got = solve_ivp(writes_argument, (0, 1), [1.0, 2.0], args=(a,))
    assert got.driver == "scipy"
    assert a[0] == got.nfev


@pytest.mark.parametrize(
    "more",
    [
        {"rtol": 0.0},
        {"atol": -1.0},
        {"atol": [1.0]},
        {"max_step": 0},
        {"first_step": 0},
        {"first_step": 2.0},
        {"t_eval": [0.5, 0.2]},
        {"t_eval": [0.5, 2.0]},
        {"t_eval": [[0.5]]},
        {"method": "Euler"},
        {"args": 3},
        {"y0": [np.nan, 1.0]},
        {"y0": [[1.0, 2.0]]},
        {"t_span": (0,)},
        {"min_step": 1.0},
        {"events": lambda t: 0},
        {"method": "BDF", "jac": np.eye(3)},
    ],
)
def test_arguments_that_scipy_refuses_or_warns_of(more):
    given = {"t_span": (0, 1), "y0": [1.0, 2.0], **more}
    outcomes = []
    for solve in (solve_ivp, integrate.solve_ivp):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                solve(decay, **given)
                outcome = None
            except Exception as error:
                outcome = type(error), str(error)
        outcomes.append((outcome, [str(w.message) for w in caught]))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0] != (None, [])


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF"])
def test_exceptions_of_the_function_come_out_as_they_are(method):
    class Own(Exception):
        pass

    @pyop.op("float64[] -> float64[]")
    def bounded(x):
        if x > 1.5:
            raise Own("too large")
        return x

    def grows(t, y):
        return [bounded(y[0])]

    with pytest.raises(Own, match="too large"):
        solve_ivp(grows, (0, 5), [1.0], method)

    def event(t, y):
        return bounded(y[0])

    with pytest.raises(Own, match="too large"):
        solve_ivp(lambda t, y: [1.0], (0, 5), [1.0], method, events=event)


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_derivatives_that_are_not_finite(method):
    got = solve_ivp(lambda t, y: [y[0] * np.nan], (0, 1), [1.0], method)  # SciPy does not end
    assert got.status == -1
    assert "not finite" in got.message

    def ends(t, y):
        return [1.0 / (1.0 - t) ** 2 + 0 * y[0]]

    for fun in (ends, lambda t, y: [np.where(t > 0.5, np.nan, 1.0) * y[0]]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            got, want = solve_ivp(fun, (0, 2), [1.0], method), integrate.solve_ivp(fun, (0, 2), [1.0], method)
        assert got.driver == "pyop"
        assert (got.status, got.message, got.nfev) == (want.status, want.message, want.nfev)
        np.testing.assert_array_equal(got.y, want.y)


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_matrices_that_are_not_finite_or_singular(method):
    for solve in (solve_ivp, integrate.solve_ivp):
        with pytest.raises(ValueError, match="infs or NaNs"):
            solve(lambda t, y: [y[0] * np.nan], (0, 1), [1.0], method, first_step=0.1)
    with pytest.raises(ValueError, match="jac=True"):  # SciPy does not end
        solve_ivp(decay, (0, 1), [0.0, 1.0], method, atol=0.0, first_step=0.1)


def test_floating_point_errors_are_numpys():
    def explodes(t, y):
        return [y[0] * y[0] * y[0]]

    for state in ("raise", "warn", "ignore"):
        outcomes = []
        for solve in (solve_ivp, integrate.solve_ivp):
            with warnings.catch_warnings(record=True) as caught, np.errstate(all=state, under="ignore"):
                warnings.simplefilter("always")
                try:
                    solve(explodes, (0, 1e3), [1e120], first_step=1.0)
                    outcomes.append(bool(caught))
                except FloatingPointError:
                    outcomes.append("raised")
        assert outcomes[0] == outcomes[1] == {"raise": "raised", "warn": True, "ignore": False}[state]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve_ivp(decay, (0, 1000), [1.0, 2.0], "DOP853")  # ends in nothing: no warnings of that


def test_a_nested_integration():
    @pyop.op("float64[] -> float64[]")
    def inner(x):
        return np.asarray(solve_ivp(lambda t, y: [-y[0]], (0, 1), [float(x)]).y[0, -1])

    got = solve_ivp(lambda t, y: [-inner(y[0])], (0, 1), [1.0])
    assert (got.driver, got.native, got.success) == ("pyop", False, True)
    assert got.y[0, -1] == pytest.approx(np.exp(-np.exp(-1.0)), rel=1e-2)


def test_threads_integrate_at_the_same_time():
    fun, results, errors = rhs(lorenz), {}, []

    def work(k):
        try:
            for _ in range(5):
                found = solve_ivp(fun, (0, 5), [1.0, 1.0, k], "DOP853", args=(10.0, 28.0, 8 / 3), rtol=1e-9)
                assert found.native
                results.setdefault(k, []).append(found.y[:, -1])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for k, found in results.items():
        want = integrate.solve_ivp(lorenz, (0, 5), [1.0, 1.0, k], "DOP853", args=(10.0, 28.0, 8 / 3), rtol=1e-9)
        for each in found:
            np.testing.assert_array_equal(each, want.y[:, -1])


def test_other_threads_run_meanwhile():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.002):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    solve_ivp(rhs(lorenz), (0, 40), [1.0, 1.0, 1.0], "RK23", args=(10.0, 28.0, 8 / 3), rtol=1e-9, atol=1e-10)
    took = time.perf_counter() - begin
    stop.set()
    thread.join()
    assert len(ticks) > took / 0.1


WAYS = {
    "explicit": {"events": lambda t, y, *args: y[0] - 2, "t_eval": np.linspace(0, 1, 9)},
    "continuous": {"method": "DOP853", "dense_output": True},
    "derived": {"method": "Radau", "jac": True},
    "differences": {"method": "BDF", "dense_output": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_kept(way):
    fun, calls = rhs(lorenz), 300
    grown = []
    for _ in range(3):  # the first fills caches
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(calls):
            solve_ivp(fun, (0, 1), [1.0, 1.0, 1.0], args=(10.0, 28.0, 8 / 3), **WAYS[way])
        gc.collect()
        grown.append(sys.getallocatedblocks() - before)
    assert min(grown) < calls / 2


def test_arguments_and_functions_are_let_go():
    array = np.ones(3)
    count = sys.getrefcount(array)
    for _ in range(5):
        solve_ivp(lambda t, y, a: -a * y, (0, 1), array, args=(array,))
    gc.collect()
    assert sys.getrefcount(array) == count

    def held(t, y):
        return [-array[0] * y[0]]

    reference = weakref.ref(held)
    solve_ivp(held, (0, 1), [1.0], events=lambda t, y: y[0] - 0.5)
    del held
    gc.collect()
    assert reference() is None


NATIVE, ARRAYS = "lambda t, y: [y[1], -y[0]]", "lambda t, y: np.roll(y, 1) * np.array([1.0, -1.0])"


@pytest.mark.parametrize("fun", [NATIVE, ARRAYS], ids=["native", "arrays"])
def test_ctrl_c_ends_a_long_integration(fun):
    program = f"""
        import os, signal, threading, time
        import numpy as np
        from pyop.interop.scipy import rhs, solve_ivp
        fun = rhs({fun})
        solve_ivp(fun, (0, 1), [1.0, 0.0], "DOP853")
        sent = []
        def send():
            time.sleep(0.5)
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send).start()
        try:
            solve_ivp(fun, (0, 1e9), [1.0, 0.0], "DOP853", rtol=1e-10, t_eval=[1e9])
        except KeyboardInterrupt:
            print(time.perf_counter() - sent[0])
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2.0  # of a machine that does much else: it looks each 30 ms


def test_daemon_threads_that_integrate_when_python_ends():
    program = f"""
        import threading, time
        from pyop.interop.scipy import rhs, solve_ivp
        fun = rhs({NATIVE})
        solve_ivp(fun, (0, 1), [1.0, 0.0], "DOP853")
        def integrate():
            solve_ivp(fun, (0, 1e9), [1.0, 0.0], "DOP853", rtol=1e-10, t_eval=[1e9])
        for _ in range(4):
            threading.Thread(target=integrate, daemon=True).start()
        time.sleep(0.2)
        """
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
