"""Small arrays through compiled functions: what the shortest way (plan/quick/quick_arrays.h) may not get wrong."""

from __future__ import annotations

import gc
import math
import random
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import pyop


def f(a, b):
    return a * b + b - 0.5 * a


def called(function: Any, *args: Any, **kwargs: Any) -> Any:
    compiled = pyop.compile(function)
    for _ in range(3):
        compiled(*args, **kwargs)
    return compiled


def layouts(rng: random.Random, n: int) -> Any:
    """An array of n elements that lies in some way."""
    base = np.array([rng.uniform(-3, 3) for _ in range(4 * n + 8)])
    buffer = np.zeros(8 * n + 1, np.uint8)
    misaligned = buffer[1:].view("f8")
    misaligned[:] = base[:n]
    read_only = base[:n].copy()
    read_only.flags.writeable = False
    return rng.choice(
        [base[:n].copy(), base[: 2 * n : 2], base[:n][::-1], base[2 : n + 2], misaligned, read_only]
        + [base[:n].astype(">f8"), base[:n].astype("f4"), base[0], base[0].item(), np.array(base[0]), base[:1].copy()]
        + [base[: 2 * n].reshape(2, n), np.asfortranarray(base[: 2 * n].reshape(2, n)), (base[:n] * 3).astype(int)]
    )


def told(function: Any, *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = function(*args, **kwargs)
    texts = [str(w.message) for w in caught if w.category is RuntimeWarning]
    got = got if isinstance(got, tuple) else (got,)
    return [(type(x), np.asarray(x).dtype.str, np.shape(x), np.asarray(x).tobytes()) for x in got], sorted(texts)


@pytest.mark.parametrize("function", [f, lambda a, b: np.exp(a) * b, lambda a, b: (a + b, np.sqrt(a * b)), np.hypot])
def test_arrays_of_any_layout_are_numpys(function):
    rng = random.Random(5)
    for n in (1, 2, 3, 10, 64):
        compiled = called(function, np.ones(n), np.ones(n))
        for _ in range(60):
            a, b = layouts(rng, n), layouts(rng, n)
            try:
                want = told(function, a, b)
            except ValueError:
                continue
            for _ in range(2):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", pyop.RetraceWarning)
                    assert told(compiled, a, b) == want


def test_results_into_arrays_that_overlap_the_arguments():
    a, b = np.arange(1.0, 11.0), np.linspace(0.0, 1.0, 10)
    compiled = called(f, a, b, out=np.empty(10))
    memory = np.arange(40.0)
    for start in range(15):
        for shift in (0, 1, 3):
            memory[:] = np.arange(40.0)
            x, y, out = memory[start : start + 10], memory[start + shift : start + shift + 10], memory[8:18]
            want = f(x, y)
            assert compiled(x, y, out=out) is out
            np.testing.assert_array_equal(out, want)
    big = called(f, np.ones(500), np.ones(500), out=np.empty(500))
    memory = np.arange(1000.0)
    want = f(memory[:500], memory[100:600])
    np.testing.assert_array_equal(big(memory[:500], memory[100:600], out=memory[50:550]), want)
    for wrong in (np.empty(9), np.empty(10, "f4"), np.empty((1, 10)), [0.0] * 10):
        with pytest.raises(pyop.InputError):
            compiled(a, b, out=wrong)
    read_only = np.empty(10)
    read_only.flags.writeable = False
    with pytest.raises(pyop.InputError, match="read-only"):
        compiled(a, b, out=read_only)
    strided = np.zeros(20)[::2]
    np.testing.assert_array_equal(compiled(a, b, out=strided), f(a, b))
    np.testing.assert_array_equal(compiled(a, b, out=None), f(a, b))


def test_targets_anywhere_beside_arguments_of_other_sizes():
    """Bounds are first compared by the largest argument: what lies near, but apart, is written at once all the same."""

    def mixed(a, b, s):
        return a * s + b

    memory, rng = np.zeros(64), random.Random(8)
    for n in (2, 5, 8):
        compiled = called(mixed, np.ones(n, "f8"), np.ones(n, "f4"), np.array(2.0), out=np.empty(n))
        halves = memory.view("f4")
        for _ in range(120):
            memory[:] = np.arange(64.0)
            i, k, p = (rng.randrange(64 - n) for _ in range(3))
            j = rng.randrange(128 - n)
            a, b, s, out = memory[i : i + n], halves[j : j + n], memory[p : p + 1].reshape(()), memory[k : k + n]
            want = mixed(a, b, s)
            assert compiled(a, b, s, out=out) is out
            np.testing.assert_array_equal(out, want)


def test_what_out_may_not_be_is_said_as_by_the_general_way():
    def said(function, *args: Any, **kwargs: Any) -> tuple[type, str]:
        with pytest.raises(Exception) as caught:
            function(*args, **kwargs)
        return caught.type, str(caught.value)

    a, b = np.arange(10.0), np.ones(10)
    quick, general = called(f, a, b, out=np.empty(10)), called(f, a, b, out=np.empty(10))
    read_only = np.empty(10)
    read_only.flags.writeable = False
    wrong = [np.empty(9), np.empty((1, 10)), np.empty(10, "f4"), np.empty(10, "O"), read_only, [0.0] * 10, 5, (b, b)]
    wrong += [np.empty(10).view(np.matrix), np.empty(())]
    for out in wrong:
        before = quick(a, b).tobytes()
        with pyop.profile():  # the general way
            want = said(general, a, b, out=out)
        assert said(quick, a, b, out=out) == want
        assert quick(a, b).tobytes() == before
    assert said(quick, a, b, output=b)[0] is TypeError
    assert said(quick, a, b, out=b, other=b)[0] is TypeError
    name = "".join(["o", "u", "t"])  # no interned one
    assert quick(a, b, **{name: read_only.copy()}).tobytes() == f(a, b).tobytes()


def test_every_call_is_counted_once():
    compiled, a = called(f, np.ones(10), np.ones(10)), np.ones(10)
    number = called(lambda x: x * x - 1.0, 2.0)
    for function, calls in (
        (compiled, [(a, a), (a[::-1], a), (np.array([1e300] * 10), np.array([1e300] * 10)), (a, a)]),
        (number, [(0.5,), (1e300,), (2.5,)]),
    ):
        for args in calls:
            before = function.cache_info()
            with np.errstate(all="ignore"):
                kept = [function(*args) for _ in range(5)]
            after = function.cache_info()
            assert after.hits - before.hits == 5, args
            assert after.misses == before.misses
            del kept


def test_a_function_that_goes_while_it_is_called():
    """A result that is weakly referred to makes room for another one, and takes the last reference to the function."""
    a = np.arange(10.0)
    held = [called(f, a, a)]
    result = held[0](a, a)
    gone = weakref.ref(result, lambda _: held.clear())
    del result
    kept = []
    for _ in range(20):
        if held:
            kept.append(held[0](a, a))
    assert gone() is None
    assert not held
    for result in kept:
        np.testing.assert_array_equal(result, f(a, a))


def test_written_arguments():
    def step(a, b, out):
        np.subtract(a * b, a, out=out)

    compiled = called(step, np.ones(10), np.ones(10), np.empty(10))
    memory, plain = np.arange(60.0), np.arange(60.0)
    rng = random.Random(2)
    for _ in range(60):
        i, j, k = (rng.randrange(50) for _ in range(3))
        memory[:], plain[:] = np.arange(60.0), np.arange(60.0)
        step(plain[i : i + 10], plain[j : j + 10], plain[k : k + 10])
        assert compiled(memory[i : i + 10], memory[j : j + 10], memory[k : k + 10]) is None
        np.testing.assert_array_equal(memory, plain)
    a, out = np.full(10, 1e200), np.full(10, 7.0)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow encountered in multiply"):
        compiled(a, a, out)
    assert (out == 7.0).all()  # NumPy raises before it writes
    with pytest.warns(RuntimeWarning, match="overflow encountered in multiply"):
        compiled(a, a, out)
    assert np.isinf(out).all()
    u = np.arange(10.0)
    grow = called(lambda u, v: u.__iadd__(v * 2.0) is None, np.ones(10), np.ones(10))
    grow(u, np.ones(10))
    np.testing.assert_array_equal(u, np.arange(10.0) + 2.0)


def test_errors_of_elements_are_numpys():
    compiled = called(lambda a, b: a / b + 1.0, np.ones(4), np.ones(4))
    zero = np.array([1.0, 0.0, 2.0, 3.0])
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide") as caught:
        assert compiled(np.ones(4), zero)[1] == math.inf
    assert len(caught) == 1
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(np.ones(4), zero)
    with np.errstate(all="ignore"):
        assert compiled(np.ones(4), zero)[1] == math.inf
    small = called(lambda a: a * 1e-200, np.ones(4))
    assert small(np.full(4, 1e-200))[0] == 0.0  # an underflow is nothing by default
    with np.errstate(under="raise"), pytest.raises(FloatingPointError):
        small(np.full(4, 1e-200))


def test_results_are_arrays_of_their_own():
    compiled = called(f, np.ones(10), np.ones(10))
    kept = [compiled(np.full(10, float(k)), np.ones(10)) for k in range(60)]
    for k, x in enumerate(kept):
        np.testing.assert_array_equal(x, f(np.full(10, float(k)), np.ones(10)))
    view = compiled(np.ones(10), np.ones(10))[2:5]
    compiled(np.zeros(10), np.zeros(10))
    compiled(np.zeros(10), np.zeros(10))
    np.testing.assert_array_equal(view, f(np.ones(3), np.ones(3)))
    result = compiled(np.ones(10), np.ones(10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from NumPy 2.5 on
        result.shape = (2, 5)
    assert compiled(np.ones(10), np.ones(10)).shape == (10,)


def test_a_cache_that_is_cleared_while_a_result_is_made():
    compiled = called(f, np.ones(10), np.ones(10))
    result = compiled(np.ones(10), np.ones(10))
    gone = weakref.ref(result, lambda _: compiled.clear_cache())
    del result
    for k in range(6):
        kept = compiled(np.full(10, float(k)), np.ones(10))
        np.testing.assert_array_equal(kept, f(np.full(10, float(k)), np.ones(10)))
        held = [compiled(np.ones(10), np.ones(10)) for _ in range(3)]
    del held, gone
    gc.collect()


def test_declared_arguments_of_other_sizes():
    compiled = pyop.compile(f, "float64[n], float64[n]")
    for n in (10, 10, 10, 12, 10, 3, 3, 10):
        np.testing.assert_array_equal(compiled(np.ones(n), np.arange(float(n))), f(np.ones(n), np.arange(float(n))))
    with pytest.raises(pyop.InputError):
        compiled(np.ones(10), np.ones(9))
    with pytest.raises(pyop.InputError):
        compiled(np.ones(10, "f4"), np.ones(9))


def test_a_profile_sees_these_calls():
    compiled = called(f, np.ones(10), np.ones(10))
    with pyop.profile() as p:
        compiled(np.ones(10), np.ones(10))
    assert "group" in str(p) or "multiply" in str(p)


def test_into_buffers():
    plan = pyop.trace(f, "float64[10]", "float64[10]").compile()
    a, b, out = np.arange(10.0), np.linspace(0.0, 1.0, 10), np.empty(10)
    bound = plan.into(out)
    assert bound.plan is plan
    assert bound.buffers is out
    for k in range(4):
        assert bound(a + k, b) is out
        np.testing.assert_array_equal(out, f(a + k, b))
    assert bound(b=b, a=a) is out
    np.testing.assert_array_equal(out, f(a, b))
    assert bound(out, out) is out
    x = f(a, b)
    np.testing.assert_array_equal(out, f(x, x))
    with pytest.raises(pyop.InputError):
        bound(a, np.ones(3))
    with pytest.raises(TypeError, match="bound to the arrays"):
        bound(a, b, out=out)
    with pytest.raises(TypeError):
        bound(a)
    for wrong in (np.empty(9), np.empty(10, "f4"), np.empty((1, 10)), [0.0] * 10, np.broadcast_to(0.0, 10)):
        with pytest.raises(pyop.InputError, match="into"):
            plan.into(wrong)
    with pytest.raises(pyop.InputError, match="one array for each"):
        plan.into()
    with pytest.raises(pyop.InputError, match=r"of class .*matrix"):
        plan.into(np.empty(10).view(np.matrix))
    with pytest.raises(pyop.InputError, match="has none: call it"):
        pyop.compile(lambda u: u.__setitem__(0, 5.0)).plan_for(np.zeros(3)).into()


def test_into_several_buffers_and_large_ones():
    plan = pyop.trace(lambda x: (x + 1.0, {"s": np.sum(x)}), "float64[n]").compile()
    n = 10**6
    first, total = np.empty(n), np.empty(())
    bound = plan.into(first, total)
    assert bound.buffers == (first, total) or bound.buffers[0] is first
    x = np.arange(float(n))
    got = bound(x)
    assert got[0] is first
    assert got[1] is total
    assert total == x.sum()
    np.testing.assert_array_equal(first, x + 1.0)
    with pytest.raises(pyop.InputError, match="share memory"):
        pyop.trace(lambda x: (x + 1.0, x * 2.0), "float64[10]").compile().into(x[:10], x[5:15])


def test_a_loop_of_bound_plans_allocates_nothing():
    import tracemalloc

    n = 10**6
    plan = pyop.trace(lambda x, v: x + 0.5 * v, f"float64[{n}]", f"float64[{n}]").compile()
    here, there, v = np.zeros(n), np.zeros(n), np.ones(n)
    forth, back = plan.into(there), plan.into(here)
    back(forth(here, v), v)
    tracemalloc.start()
    try:
        for _ in range(3):
            back(forth(here, v), v)
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
    assert here[0] == 4.0
