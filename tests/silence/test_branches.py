"""Functions that decide by the contents of arrays: compiled, each call goes the way that the function goes."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyop
from pyop.compiling.plainly import MOST_PATHS

Function = Callable[..., Any]


def truth_of_a_sum(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


def until_small(x):
    n = 0
    while np.abs(x).max() > 0.3:
        x = x * 0.5
        n += 1
    return x, n


def pythons_max(x):
    return max(x[0], x[1]), min(x), sorted(x)


def breaks(x):
    y = x.copy()
    for k in range(len(y)):
        if y[k] < 0:
            break
        y[k] = -y[k]
    else:
        return y + 100
    return y


def element_of_a_list(x):
    return [10, 20, 30][int(np.argmax(x))] * x


def index_of_a_list(x):
    return ["a", "b", "c"][np.argmax(x)], x


def range_of_an_element(x):
    s = x * 0
    for _ in range(int(np.abs(x[0]))):
        s += x
    return s


def slice_to(x):
    return x[: int(np.sum(x > 0))]


def logic(x):
    both = x[0] > 0 and x[1] > 0
    one = x[0] > 1 or not x[2] > 0
    return (x + 1 if both else x - 1) * (2 if one else 3)


def chained(x):
    return x * 2 if -1 < x[0] < 1 else x


def is_in(x):
    return x[0] in (1.0, 2.0), x * (x[1] in [0.0, 2.0])


def asserts(x):
    assert np.all(x > -5), "too small"
    return np.sqrt(np.abs(x))


def raises(x):
    y = x + 1
    if np.any(y > 3):
        raise ValueError("large")
    return y


def nans(x):
    if np.isnan(x).any():
        return np.nan_to_num(x)
    if x[0] == x[0]:
        return x
    return -x


def after_a_write(x):
    y = x * 1
    y[0] = 3
    if y.sum() > 3:
        y[1:] += 1
    z = y[1:]
    z *= 2
    if z[0] > 0:
        y -= 1
    return y


def nested(x):
    def inner(z):
        return z * 2 if z[0] > 0 else z

    return inner(x) + inner(-x)


def masked(x):
    y = x[x > 0]
    return y.sum() if y.size else x.sum()


def length_of_a_mask(x):
    return len(x[x > 0]), x * 2


def mean_of_a_mask(x):
    y = x[x > 0]
    return y.sum() / y.size if y.size > 1 else x


def rows_of_a_mask(x):
    return [v * 2 for v in x[x > 0]]


def shape_of_a_mask(x):
    y = x[x > 0]
    return np.ones(y.shape) + y


def ambiguous(x):
    if x > 0:
        return x
    return -x


def ambiguous_mask(x):
    if x[x > 0]:
        return x
    return -x


def an_argument_of_numpy(x):
    return np.sum(np.outer(x, x), axis=int(x[0] > 0))


FUNCTIONS: list[Function] = [v for v in list(globals().values()) if getattr(v, "__module__", None) == __name__]


def inputs() -> list[np.ndarray]:
    given = [np.array(v, float) for v in ([1, 2, 3], [-1, -2, -3], [2, -1, 0], [0, 0, 0], [3, 1, 2], [np.nan, 1, 2])]
    return [*given, np.array([-7.0, 1, 1]), *given[::-1], given[0], given[1], given[0]]


def outcome(f: Function, *args: Any) -> Any:
    """What a call gives, or raises, and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            result = error
    mine = [str(w.message) for w in caught if not issubclass(w.category, pyop.RetraceWarning)]
    return result, mine


def check_same(want: Any, got: Any) -> None:
    if isinstance(want, Exception):
        assert type(got) is type(want)
        assert str(got) == str(want)
    elif isinstance(want, tuple | list):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for a, b in zip(want, got, strict=True):
            check_same(a, b)
    elif isinstance(want, np.ndarray | np.generic):
        assert np.asarray(got).dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    else:
        assert got == want


WAYS: dict[str, dict[str, Any]] = {
    "compiled": {},
    "optimize=False": {"optimize": False},
    "threads=2": {"threads": 2},
    "disable": {"disable": ["loops", "merge"]},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_call_goes_its_way(f: Function, way: str, dtype: Any) -> None:
    compiled = pyop.compile(f, **WAYS[way])
    for x in inputs():
        given = x.astype(dtype)
        want, warned = outcome(f, given.copy())
        got, warned_here = outcome(compiled, given)
        check_same(want, got)
        assert warned == warned_here
        np.testing.assert_array_equal(given, x.astype(dtype))


def test_a_path_has_one_plan() -> None:
    f = pyop.compile(truth_of_a_sum)
    for _ in range(5):
        f(np.ones(3))
        f(-np.ones(3))
    assert f.cache_info().misses == 2
    assert f.cache_info().plans == 1


def test_what_another_path_computes_is_not_computed() -> None:
    calls: list[str] = []

    @pyop.op("float64[n] -> float64[n]")
    def one(x):
        calls.append("one")
        return x + 1

    @pyop.op("float64[n] -> float64[n]")
    def two(x):
        calls.append("two")
        return x + 2

    f = pyop.compile(lambda x: one(x) if x[0] > 0 else two(x))
    for x in (np.ones(2), -np.ones(2)):
        f(x)  # traced
    calls.clear()
    for x in (np.ones(2), -np.ones(2), np.ones(2)):
        f(x)
    assert calls == ["one", "two", "one"]


@pytest.mark.parametrize("threads", [1, 2])
def test_warnings_come_once_and_from_the_path_that_runs(threads: int) -> None:
    def f(x, y):
        z = np.log(x)
        if y.sum() > 0:
            return z + np.sqrt(y)
        return z - np.sqrt(-y) + 1 / y

    compiled = pyop.compile(f, threads=threads)
    for y in (np.ones(3), -np.ones(3), np.array([1.0, -1, 3]), np.zeros(3), np.ones(3)):
        for x in (np.ones(3), np.zeros(3)):
            want, warned = outcome(f, x, y)
            got, warned_here = outcome(compiled, x, y)
            np.testing.assert_array_equal(got, want)
            assert set(warned) == set(warned_here)
            if threads == 1:
                assert warned == warned_here


def test_an_exception_behind_a_decision_is_not_raised_before_it() -> None:
    def f(a):
        if np.linalg.det(a) == 0:
            return np.zeros_like(a)
        return np.linalg.inv(a)

    compiled = pyop.compile(f)
    for a in (np.eye(2), np.zeros((2, 2)), np.eye(2) * 2, np.zeros((2, 2))):
        np.testing.assert_array_equal(compiled(a), f(a))


def test_too_many_paths_run_the_function_itself() -> None:
    def f(x):
        return x * len("," * int(x[0]))

    compiled = pyop.compile(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(3 * MOST_PATHS):
            np.testing.assert_array_equal(compiled(np.array([k, 2.0])), f(np.array([k, 2.0])))
    (warning,) = caught
    assert warning.category is pyop.RetraceWarning
    assert f"{f.__code__.co_filename}:{f.__code__.co_firstlineno + 1}" in str(warning.message)
    assert "np.where" in str(warning.message)
    assert compiled.cache_info().misses == MOST_PATHS + 1
    out = np.empty(2)
    assert compiled(np.array([50.0, 2.0]), out=out) is out
    np.testing.assert_array_equal(out, [2500, 100])
    with pytest.raises(TypeError, match="out= needs an array"):
        compiled(np.array([50.0, 2.0]), out=np.empty(3))
    with pytest.raises(TypeError, match="the function itself runs"):
        compiled.plan_for(np.array([50.0, 2.0]))


def test_a_stateful_op_is_called_once() -> None:
    calls = []

    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def log(x):
        calls.append(x.copy())
        return x

    @pyop.compile
    def f(x):
        y = log(x)
        return y if y[0] > 0 else -y

    with pytest.warns(pyop.RetraceWarning, match="'log', which is stateful, before it decides"):
        f(np.ones(2))
    f(-np.ones(2))
    assert len(calls) == 2

    @pyop.compile
    def g(x):
        return log(x) if x[0] > 0 else log(-x)

    calls.clear()
    for k, x in enumerate((np.ones(2), -np.ones(2), np.ones(2))):
        np.testing.assert_array_equal(g(x), np.ones(2))
        assert len(calls) == k + 1


def test_named_sizes_and_declared_arguments() -> None:
    f = pyop.compile(truth_of_a_sum, "float64[n]")
    for x in ([1, 2], [-1.0, -2, 3], np.array([-3.0, 1]), [5.0]):
        np.testing.assert_array_equal(f(x), truth_of_a_sum(np.asarray(x, float)))
    with pytest.raises(pyop.InputError):
        f(np.ones((2, 2)))
    many = pyop.compile(lambda x: x * len("," * int(x[0])), "float64[n]")
    for k in range(MOST_PATHS):
        many([k, 1])
    with pytest.warns(pyop.RetraceWarning):
        many([MOST_PATHS, 1])
    for k in range(MOST_PATHS + 3):
        np.testing.assert_array_equal(many([k, 1]), [k * k, k])
    with pytest.raises(pyop.InputError):
        many(np.ones((2, 2)))


def test_python_numbers_that_only_one_path_needs() -> None:
    def f(x, t):
        if x[0] > 0:
            return x * (2 if t > 1 else 3)
        return x * t

    compiled = pyop.compile(f)
    for t in (0.5, 1.5, 2.5, 0.5, 1.5):
        for x in (-np.ones(2), np.ones(2), -np.ones(2)):
            np.testing.assert_array_equal(compiled(x, t), f(x, t))


def test_globals_that_change_between_paths() -> None:
    box = {"k": 2.0}

    def f(x):
        return x * box["k"] if x[0] > 0 else x + box["k"]

    compiled = pyop.compile(f)
    for k in (2.0, 3.0, 2.0):
        box["k"] = k
        for x in (np.ones(2), -np.ones(2), np.ones(2)):
            np.testing.assert_array_equal(compiled(x), f(x))


def test_compiled_in_compiled() -> None:
    inner = pyop.compile(truth_of_a_sum)
    outer = pyop.compile(lambda x: inner(x) + inner(-x) if x[0] != 0 else inner(x))
    plain = lambda x: truth_of_a_sum(x) + truth_of_a_sum(-x) if x[0] != 0 else truth_of_a_sum(x)
    for x in inputs():
        np.testing.assert_array_equal(outer(x), plain(x))


def test_gradients_are_those_of_the_path() -> None:
    def loss(x):
        return np.sum(x * x) if x.sum() > 0 else np.sum(3 * x)

    def slope(x):
        return 2 * x if x.sum() > 0 else np.full_like(x, 3)

    ways = {
        "compile(grad)": pyop.compile(pyop.grad(loss)),
        "grad(compile)": pyop.grad(pyop.compile(loss)),
        "value_and_grad": lambda x: pyop.compile(pyop.value_and_grad(loss))(x)[1],
        "jvp": lambda x: np.array([pyop.compile(lambda x, v: pyop.jvp(loss, (x,), (v,)))(x, e)[1] for e in np.eye(3)]),
        "vjp": pyop.compile(lambda x: pyop.vjp(loss, x)[1](1.0)[0]),
        "twice": pyop.compile(lambda x: pyop.grad(lambda y: np.sum(pyop.grad(loss)(y) * y) / 2)(x)),
    }
    for name, way in ways.items():
        for x in (np.array([1.0, 2, 3]), -np.ones(3), np.array([2.0, 1, 4]), -np.ones(3)):
            want = slope(x) if name != "twice" else (2 * x if x.sum() > 0 else np.full_like(x, 1.5))
            np.testing.assert_array_equal(way(x), want, err_msg=name)


def test_vmap_over_a_branch_is_refused() -> None:
    for way in (pyop.vmap(truth_of_a_sum), pyop.compile(pyop.vmap(truth_of_a_sum))):
        with pytest.raises(TypeError, match=r"np\.where"):
            way(np.ones((2, 3)))


def test_graphs_by_hand_have_no_arrays_to_decide_by() -> None:
    with pytest.raises(TypeError, match=r"has no numbers until its graph runs: choose by value with np\.where"):
        pyop.trace(truth_of_a_sum, "float64[3]")


def test_a_plan_says_that_it_is_of_one_path() -> None:
    f = pyop.compile(truth_of_a_sum)
    plan = f.plan_for(np.ones(3))
    other = f.plan_for(-np.ones(3))
    assert plan is not other
    np.testing.assert_array_equal(plan(np.full(3, 2.0)), np.full(3, 4.0))
    with pytest.raises(pyop.PyopError, match=r"a condition is True at .*test_branches\.py:\d+; in this"):
        plan(-np.ones(3))
    assert "leaves unless it is true" in str(plan.explain())


def test_threads_that_go_different_ways() -> None:
    f = pyop.compile(until_small)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        g = np.random.default_rng(seed)
        for _ in range(150):
            x = g.standard_normal(3) * 4
            (a, n), (b, m) = f(x), until_small(x)
            if not np.array_equal(a, b) or n != m:
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_arrays_of_the_trace_are_let_go() -> None:
    f = pyop.compile(truth_of_a_sum)
    x = np.ones(3)
    f(x)
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None


def test_a_long_loop_ends_in_the_function_itself() -> None:
    def f(x):
        seen = []
        while x[0] > 0:
            x = x - 1.0
            seen.append([])
        return len(seen)

    compiled = pyop.compile(f)
    with pytest.warns(pyop.RetraceWarning, match="more than 50000 things"):
        assert compiled(np.array([30000.0])) == 30000
    assert compiled(np.array([100.0])) == 100


def test_a_path_that_raises_behind_a_write_is_traced_once() -> None:
    def f(x):
        x *= 2
        if x[0] < 0:
            raise ValueError("negative")
        x -= 1

    compiled = pyop.compile(f)
    for x in (np.ones(2), -np.ones(2), np.ones(2), -np.ones(2), np.full(2, -3.0)):
        plain = x.copy()
        want, _ = outcome(f, plain)
        got, _ = outcome(compiled, x)
        check_same(want, got)
        np.testing.assert_array_equal(x, plain)
    assert compiled.cache_info().misses == 2
