"""`with pyop.disable():` and PYOP_DISABLE run compiled functions plainly."""

import asyncio
import subprocess
import sys
import threading

import numpy as np
import pytest

import pyop
from pyop._core import Value, graph_being_built


def counting():
    calls = []

    @pyop.compile
    def f(x):
        # type(x) itself is NumPy's while f is traced
        calls.append(np.ndarray if graph_being_built() is None else Value)
        return x * 2.0

    return f, calls


X = np.arange(3.0)


def test_the_function_itself_runs_at_every_call():
    f, calls = counting()
    with pyop.disable():
        np.testing.assert_array_equal(f(X), X * 2.0)
        f(X)
    assert calls == [np.ndarray, np.ndarray]
    assert f.cache_info().plans == 0


def test_plans_stay_and_serve_again():
    f, calls = counting()
    f(X)
    traced = len(calls)
    with pyop.disable():
        f(X)
    assert calls[traced:] == [np.ndarray]
    f(X)
    assert len(calls) == traced + 1
    assert f.cache_info()[:3] == (1, 1, 1)


def test_what_cannot_be_traced_runs():
    f = pyop.compile(lambda x: 2.0 if type(x) is np.ndarray else 0.0)
    with pytest.raises(TypeError):
        f(X)
    with pyop.disable():
        assert f(X) == 2.0


def test_no_checks_of_specs():
    f = pyop.compile(lambda x: x + 1.0, "float64[3]")
    with pyop.disable():
        assert f(2.0) == 3.0
        assert f(np.ones((2, 2))).shape == (2, 2)


def test_out_is_written():
    f, _ = counting()
    out = np.zeros(3)
    with pyop.disable():
        assert f(X, out=out) is out
        np.testing.assert_array_equal(out, X * 2.0)
        with pytest.raises(TypeError, match=r"out= needs an array of the shape \(3,\) and dtype float64"):
            f(X, out=np.zeros(2))
        with pytest.raises(TypeError, match="out= has 2 arrays, and the result has 1"):
            f(X, out=(out, out))


def test_nested_and_reused():
    f, calls = counting()
    off = pyop.disable()
    with off, off:
        with pyop.disable():
            pass
        f(X)
    assert calls == [np.ndarray]
    f(X)
    assert calls[1] is not np.ndarray


def test_an_exception_ends_it():
    f, calls = counting()
    with pytest.raises(KeyError), pyop.disable():
        raise KeyError
    f(X)
    assert np.ndarray not in calls


def test_left_without_being_entered():
    with pytest.raises(RuntimeError, match="was not entered"):
        pyop.disable().__exit__(None, None, None)


def test_a_thread_has_its_own():
    f, calls = counting()
    with pyop.disable():
        thread = threading.Thread(target=f, args=(X,))
        thread.start()
        thread.join()
    assert calls
    assert np.ndarray not in calls


def test_a_task_has_its_own():
    f, calls = counting()
    entered, done = asyncio.Event(), asyncio.Event()

    async def plainly():
        with pyop.disable():
            entered.set()
            await done.wait()
            f(X)

    async def compiled():
        await entered.wait()
        f(X)
        assert np.ndarray not in calls
        done.set()

    async def both():
        await asyncio.gather(plainly(), compiled())

    asyncio.run(both())
    assert calls[-1] is np.ndarray


def test_as_decorator():
    f, calls = counting()

    @pyop.disable()
    def g(x):
        """Doubled."""
        return f(x)

    @pyop.disable()
    async def h(x):
        return f(x)

    g(X)
    asyncio.run(h(X))
    assert calls == [np.ndarray, np.ndarray]
    assert g.__doc__ == "Doubled."
    with pytest.raises(TypeError, match=r"write `with pyop.disable\(\):` inside"):

        @pyop.disable()
        def each():
            yield


def test_plan_for_makes_a_plan_all_the_same():
    f, _ = counting()
    with pyop.disable():
        np.testing.assert_array_equal(f.plan_for(X)(X), X * 2.0)


@pytest.mark.parametrize(("value", "plain"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_environment(value, plain, monkeypatch):
    monkeypatch.setenv("PYOP_DISABLE", value)
    code = (
        "import numpy as np, pyop\n"
        "f = pyop.compile(lambda x: [kinds.append(pyop._core.graph_being_built() is None), x + 1][1])\n"
        "kinds = []\n"
        "f(np.ones(2)); print(kinds[-1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(plain)
