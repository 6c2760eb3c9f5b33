"""Python numbers as arguments of compiled functions."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import pyop

from .helpers import agree, outcome, same


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv, operator.pow, operator.mod, operator.lt])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "float64", "complex64"])
def test_python_numbers_are_weak_as_in_numpy(op, dtype):
    x = np.array([1, 2, 3], dtype)
    for direct in (op, lambda x, t: op(t, x), lambda x, t: op(x, t * 0.5) + t):
        compiled = pyop.compile(direct)
        for t in (2, 3, 2.0, -1.5, 0.5, 300, -2, 2j):
            agree(direct, compiled, x, t)


def test_numbers_computed_with_are_inputs_and_numbers_decided_by_are_static():
    smooth = pyop.compile(lambda x, t: np.sin(2 * t) * x + t**2 * np.where(x > t, x, t))
    branching = pyop.compile(lambda x, t: x if t > 1 else -x)
    for t in (0.5, 1.5, 2.5):
        same(smooth(np.ones(2), t), np.sin(2 * t) + t**2 * np.where(np.ones(2) > t, 1.0, t))
        same(branching(np.ones(2), t), np.ones(2) if t > 1 else -np.ones(2))
    assert smooth.cache_info().plans == 1
    rooted = pyop.compile(lambda x, t: x * t**0.5)  # of a negative number it is complex: the function itself runs
    for t in (0.5, 1.5, -2.5, 0.25):
        same(rooted(np.ones(2), t), np.ones(2) * t**0.5)
    assert rooted.cache_info().plans == 1
    assert pyop.compile(lambda x, t: math.sin(t) * x)(np.ones(1), 1.0) == math.sin(1.0)
    loop = pyop.compile(lambda x, n: sum(x * i for i in range(n)))
    assert [float(loop(np.ones(()), n)) for n in (3, 4, 3)] == [3.0, 6.0, 3.0]
    assert loop.cache_info()[:3] == (1, 2, 2)
    linear = pyop.compile(lambda t, y, k: np.cos(t * k) * y + t / 2.0)
    for t in (0.0, 0.25, 7.5):
        same(linear(t, np.ones(3), 2.0), np.cos(t * 2.0) * np.ones(3) + t / 2.0)
    assert linear.cache_info().plans == 1


def test_arithmetic_of_python_floats_is_pythons():
    def f(t, k):
        return [t + k, t - k, t * 2, 1.5 * t, 1 / k, t / k, -t, +t, abs(t), (t + 1) * (k - 1) / 3.0]

    compiled = pyop.compile(f)
    plan = compiled.plan_for(1.0, 2.0)
    assert plan.report()["native"] == plan.report()["instructions"]
    every = [0.0, -0.0, 1.0, -2.5, 1e308, 5e-324, math.inf, -math.inf, math.nan, 0.1, 1e16]
    for t in every:
        for k in every:
            want, got = outcome(f, t, k), outcome(compiled, t, k)
            assert repr(got) == repr(want)  # no warnings: pytest makes them errors
    assert compiled.cache_info().plans == 1


FLOATS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e308, -1e308, 5e-324, 1e-200, 0.1, 1e16, 3.0, -3.0, 1e200]
FLOATS += [math.inf, -math.inf, math.nan]


@pytest.mark.parametrize(
    "f",
    [
        *[lambda t, k=k: t**k for k in (2, 2.0, -1, 3, -2.0, 0, 1, 301, 2**70)],
        *[lambda t, k=k: k**t for k in (2, 2.5, 0, 0.0, 1)],
        *[lambda t, k=k: [t // k, t % k] for k in (1, 2.5, -0.7)],
        *[lambda t, k=k: [k // t, k % t] for k in (7, -7.5)],
        lambda t: divmod(t, 2.5),
        lambda t: divmod(-3, t),
        lambda t: [t // t, t % t],
        lambda t: round(t, 2),
        lambda t: [abs(t), -t, t**2 // 3 % 0.7],
        lambda t: np.where(t > 1, np.arange(3.0), -1.0),
        lambda t: np.where(t != t, np.ones(2), t),
        lambda t: np.where(t <= 2.5, t, -t),
    ],
)
def test_one_plan_does_for_every_float(f):
    compiled = pyop.compile(f)
    for t in FLOATS:
        want, got = outcome(f, t), outcome(compiled, t)
        assert repr(got) == repr(want)
        assert type(got) is type(want)
    # Where the first number is an error there is none until one is not.
    assert compiled.cache_info().plans == 1


@pytest.mark.parametrize("op", [operator.mul, operator.pow, operator.mod, divmod, operator.lt])
def test_a_number_and_a_scalar_compute_as_numpys_scalars(op):
    rows = np.random.default_rng(0).uniform(0.2, 9.0, (40, 2))
    for dtype in ("int8", "uint64", "float16", "float32", "float64", "complex64"):
        for f in (lambda x, t: op(x[0], t), lambda x, t: op(t, x[1])):
            compiled = pyop.compile(f)
            for x in rows.astype(dtype):
                for t in (2, -1, 100, 300, 2.5, 2.0, 1e300):
                    with np.errstate(all="raise"):
                        want, got = outcome(f, x, t), outcome(compiled, x, t)
                    assert repr(np.asarray(got).tolist()) == repr(np.asarray(want).tolist())


def test_a_number_that_comes_back_is_a_python_number():
    compiled = pyop.compile(lambda x, t, n: (t, n, t + 1.0, x, [t * 2.0]))
    x = np.ones(2)
    for t in (1.0, 2.5):
        got = compiled(x, t, 3)
        assert got[3] is x
        same(got, (t, 3, t + 1.0, x, [t * 2.0]))
    assert compiled.cache_info().plans == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x[n:],
        lambda x, n: x[[n, 1], None],
        lambda x, n: np.roll(x, n),
        lambda x, n: np.add.reduce(x, initial=n),
        lambda x, n: x.reshape(n, -1),
        lambda x, n: np.full(3, n) + x[:3],
        lambda x, n: np.linspace(0, n, 6) * x,
        lambda x, n: np.pad(x, (n, 0)),
        lambda x, n: np.concatenate([x, [n]]),
        lambda x, n: np.add(x, n, dtype="float32"),
        lambda x, n: np.polyval([n, 1], x),
        lambda x, n: {f"k{n}": x, n: max(n, 2)},
        lambda x, n: divmod(x, n),
        lambda x, n: np.isclose(x, n),
    ],
)
def test_wherever_a_number_is_needed_it_is_known(f):
    compiled = pyop.compile(f)
    for n in (2, 3, 2, 2.0):
        agree(f, compiled, np.arange(6.0), n)


class Celsius(np.float64):
    """A number of a class derived from one of NumPy's."""


@pytest.mark.parametrize("dtype", [*"?bhilqBHILQefdgFDG", Celsius])
def test_numpys_scalars_are_taken_as_arrays_of_their_own(dtype):
    scalar = np.dtype(dtype).type if isinstance(dtype, str) else dtype
    f = pyop.compile(lambda t, x: (t, x * t, np.add(t, t)))
    x = np.arange(3.0, dtype=np.float32)
    kept = []
    for value in (1, 0, 1, 1):
        t = scalar(value)
        given = np.asarray(t)
        found = f(t, x)
        kept.append(([a.copy() for a in found], found))
        for a, b in zip(found, (given, x * given[()], np.add(given, given)), strict=True):
            assert a.dtype == np.asarray(b).dtype
            assert np.array_equal(a, b)  # bytes would show the padding of longdouble
    assert f.cache_info().plans == 1
    assert all(np.array_equal(a, b) for then, now in kept for a, b in zip(then, now, strict=True))


@pytest.mark.parametrize("given", [np.timedelta64(3, "D"), np.datetime64("2020-01-01"), np.str_("a"), np.bytes_(b"a")])
def test_dates_and_texts_of_numpy_are_scalars_to_the_function(given):
    def f(x, s):
        return x * 2.0 if isinstance(s, np.generic) and np.isscalar(s) else x

    compiled = pyop.compile(f)
    for _ in range(2):
        assert np.array_equal(compiled(np.ones(2), given), f(np.ones(2), given))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.datetime64("2020-01-01", "D"), np.datetime64("2020-01-01", "h")),  # equal, of another unit
        (np.timedelta64("NaT", "D"), np.timedelta64(1, "D")),
        (np.float64(0.0), np.float64(-0.0)),
        (np.float32(1), np.float64(1)),
    ],
)
def test_static_scalars_of_numpy_are_told_apart(a, b):
    @pyop.compile(static="s")
    def f(x, s):
        return x + np.copysign(1.0, s) if isinstance(s, np.floating) else x + np.array([0], s.dtype).itemsize, s

    x = np.ones(2)
    for given in (a, b, a):
        result, same = f(x, given)
        assert np.array_equal(result, f.__wrapped__(x, given)[0])
        assert same is given or (type(same), same.dtype, same.tobytes()) == (type(given), given.dtype, given.tobytes())


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_a_number_times_an_element_is_native_and_warns_as_scalars_do(dtype):
    def recurrence(x, a):
        s = x[0]
        for t in range(1, 4):
            s = a * x[t] + (1.0 - a) * s
        return s / a

    compiled = pyop.compile(recurrence)
    x = np.array([1.0, 2.0, 3.0, 4.0], dtype)
    for a in (0.3, 0.5, 0.0, 1e300):
        if a < 1e38 or dtype != "float32":
            agree(recurrence, compiled, x, a)
    assert dtype == "complex128" or "calls Python" not in str(compiled.plan_for(x, 0.3).explain())


KNOTS = np.linspace(0.0, 1.0, 9)
ONE_PLAN = {
    "np.interp": lambda x, t: np.interp(t, KNOTS, KNOTS**2) * x,
    "np.array": lambda x, t: np.array([t, 2 * t]) + x[:2],
    "np.dot": lambda x, t: np.dot(x, t),
    "np.searchsorted": lambda x, t: np.searchsorted(KNOTS, t) + x,
    "np.round": lambda x, t: np.round(t, 2) * x,
    "np.linspace": lambda x, t: np.linspace(t, 2.0, 5),
    "np.append": lambda x, t: np.append(x, t),
    "np.gradient": lambda x, t: np.gradient(x, t),
    "np.quantile": lambda x, t: np.quantile(x, abs(t)),
    "np.polyval": lambda x, t: np.polyval([1.0, 2.0], t),
    "max": lambda x, t: max(t, 0.25, -t) * x,
    "min": lambda x, t: [min(t, 0.25), x],
    "power": lambda x, t: (t * t) ** 1.5 * x,
    "math": lambda x, t: math.exp(t) * math.hypot(t, 1) * x + math.atan2(t, 2.0),
}
SEVERAL = {
    "if": lambda x, t: x if t > 0.3 else -x,
    "int": lambda x, t: x * int(t * 10),
    "text": lambda x, t: x * len(f"{t:.1f}"),
    "piecewise": lambda x, t: np.piecewise(x, [x < t], [lambda v: v * t, 1.0]),
    "rows": lambda x, t: np.apply_along_axis(lambda row: row * t, 0, x),
}
TIMES = (0.5, 0.125, 0.75, 0.3, 0.9, 0.0625, 1.0)


@pytest.mark.parametrize("dtype", ["float64", "int16", "float32", "complex128"])
@pytest.mark.parametrize("name", ONE_PLAN)
def test_functions_that_take_numbers_take_all_of_them(name, dtype):
    x = (np.arange(1, 6) * 2).astype(dtype)
    compiled = pyop.compile(ONE_PLAN[name])
    narrow = dtype in ("float32", "complex128") and name.startswith("np.")  # where a number is weaker than an array
    for t in TIMES[:3] if narrow else (*TIMES, -0.5):
        try:
            want = ONE_PLAN[name](x, t)
        except TypeError:
            assert dtype == "complex128"
            return
        for a, b in zip(*[r if isinstance(r, list) else [r] for r in (compiled(x, t), want)], strict=True):
            assert type(a) is type(b)
            same(a, b)
    assert narrow or compiled.cache_info().plans == 1


@pytest.mark.parametrize("name", SEVERAL)
def test_where_a_number_is_needed_the_function_itself_runs_in_the_end(name):
    f, x, runs = SEVERAL[name], np.arange(1.0, 6.0), []

    def counted(x, t):
        runs.append(1)
        return f(x, t)

    compiled = pyop.compile(counted)
    for t in TIMES[:3]:
        same(compiled(x, t), f(x, t))
    with pytest.warns(pyop.RetraceWarning, match=r"needs argument 't', a Python number.*static=\('t',\)"):
        same(compiled(x, TIMES[3]), f(x, TIMES[3]))
    plans = compiled.cache_info().plans
    runs.clear()
    for t in TIMES * 3:
        same(compiled(x, t), f(x, t))
    assert compiled.cache_info().plans == plans
    assert len(runs) <= 3 * len(TIMES)  # no trace among them
    for k, t in enumerate(TIMES):  # nor for arrays of other shapes, however many calls there were
        same(compiled(x[: 3 + k % 2], t), f(x[: 3 + k % 2], t))
    assert compiled.cache_info().plans <= plans + 2 * 4


def test_a_number_that_comes_again_and_again_has_a_plan_for_each_value():
    compiled = pyop.compile(lambda x, t: x if t > 0.3 else -x)
    x = np.ones(2)
    for t in TIMES:
        for _ in range(12):
            same(compiled(x, t), x if t > 0.3 else -x)
    assert compiled.cache_info().plans == len(TIMES)


def test_arrays_in_functions_that_numpy_calls_are_not_kept():
    def f(x):
        y = x.sum()
        return np.piecewise(x, [x < 3], [lambda v: v * y, 1.0])

    x = np.arange(6.0)
    with pytest.warns(pyop.RetraceWarning, match="reads an array of the graph"):
        same(pyop.compile(f)(x), f(x))
    with pytest.raises(
        TypeError, match=r"<lambda> is given to a function of NumPy.* reads an array of the graph.*np\.where"
    ):
        pyop.trace(f, "float64[6]").run(feeds={"x": x})
