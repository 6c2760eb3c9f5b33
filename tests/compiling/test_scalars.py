"""Numbers through compiled functions: NumPy's bits, types, warnings and errors (plan/quick/quick_numbers.h)."""

from __future__ import annotations

import json
import math
import pickle
import random
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

SPECIAL = [0.0, -0.0, 1.0, -2.5, 0.1, 3.0, 1e308, -1e308, 5e-324, 1e-200, math.inf, -math.inf, math.nan, 1e16, 0.5]
# With literals: what is computed of these alone is so once, when the function is traced.
UNARY = ["({} * 1.5)", "({} + 2)", "(0.5 - {})", "({} / np.pi)", "({} ** 2)", "np.where({} > 1, 2.0, 3.0)"]
UNARY += ["np.sin({})", "np.sqrt({})", "np.exp({})", "-{}", "abs({})", "np.abs({})", "np.log1p({})", "np.floor({})"]
BINARY = [
    *("({} + {})", "({} - {})", "({} * {})", "({} / {})", "({} ** 2 + {})", "({} < {})", "({} >= {})"),
    *("np.maximum({}, {})", "np.add({}, {})", "np.hypot({}, {})", "np.where({} > 0, {}, 1.5)"),
]
MAKE: list[Any] = [
    float,
    np.float64,
    lambda x: np.float32(x if not 1e38 < abs(x) < math.inf else 1e30),
    lambda x: np.array(x),
    lambda x: np.array(x if not 1e38 < abs(x) < math.inf else -1e30, "f4"),
    lambda x: np.int64(int(x) if abs(x) < 1e9 else -3),
    lambda x: np.array(int(x) if abs(x) < 1e9 else 2),
]


def expression(rng: random.Random, names: list[str], depth: int) -> str:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(names)
    if rng.random() < 0.4:
        return rng.choice(UNARY).format(expression(rng, names, depth - 1))
    return rng.choice(BINARY).format(expression(rng, names, depth - 1), expression(rng, names, depth - 1))


def bits(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(bits, x))
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype.char in "gG":  # there are bytes in it that mean nothing
            return type(x), x.dtype, x.shape, repr(x)
        return type(x), x.dtype, x.shape, x.tobytes() if not (x.dtype.kind in "fc" and np.isnan(x).any()) else "nan"
    return type(x), repr(x)


def told(f: Any, args: tuple[Any, ...], how: str) -> Any:
    """What a call returns or raises, and the warnings that it gives, in some order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # That a weak number underflows as a float32 is told of by a plan alone.
        with np.errstate(all=how, under="ignore"):  # type: ignore[call-overload]
            try:
                got = bits(f(*args))
            except (ArithmeticError, ValueError, TypeError, LookupError):
                return "raises", None  # which of two errors comes first is not promised
    return got, sorted(str(w.message) for w in caught if w.category is RuntimeWarning)


def compare(seed: int) -> None:
    rng = random.Random(seed)
    names = ["a", "b", "c"][: rng.randint(1, 3)]
    text = expression(rng, names, rng.randint(1, 4))
    if rng.random() < 0.2:
        text = f"({text}, {expression(rng, names, 2)})"
    source = f"lambda {', '.join(names)}: {text}"
    f, compiled = eval(source), pyop.compile(eval(source))
    needed: set[str] = set()
    for kind in range(2):
        make = [rng.choice(MAKE) for _ in names]
        for turn in range(4):
            args = tuple(m(rng.choice(SPECIAL)) for m in make)
            how = rng.choice(["ignore", "warn", "raise"])
            with warnings.catch_warnings(record=True) as while_traced:
                warnings.simplefilter("always")
                try:
                    nodes = compiled.plan_for(*args).report()["instructions"]
                except Exception:
                    nodes = 1  # the calls below say what is to be said of it
            # What is computed of numbers alone that are needed is, once, when traced.
            needed |= {*map(repr, args)} if while_traced or not nodes else set()
            how = how if needed.isdisjoint(map(repr, args)) else "ignore"
            got, want = told(compiled, args, how), told(f, args, how)
            with pyop.profile():  # the general way
                assert told(compiled, args, how) == got, (seed, source, args, how, kind, turn)
            # Of equal operations, which are one in a plan, one warns.
            once = [(x, texts and sorted(set(texts))) for x, texts in (got, want)]
            assert once[0] == once[1], (seed, source, args, how, kind, turn)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_expressions_of_numbers_are_numpys(first):
    for seed in range(first, first + 20):
        compare(seed)


@pytest.mark.campaign
def test_many_random_expressions_of_numbers():
    for seed in range(1000, 11000):
        compare(seed)


def called(f: Any, *args: Any) -> Any:
    """A compiled function that has been called often enough to go the shortest way."""
    compiled = pyop.compile(f)
    for _ in range(3):
        compiled(*args)
    return compiled


def test_results_are_scalars_where_numpys_are():
    x = np.arange(4.0)
    for f in (np.sum, lambda x: x[1], lambda x: (x.max(), x * 2), lambda x: {"a": x.mean(), "b": 1}):
        got, want = called(f, x)(x), f(x)
        assert repr(got) == repr(want)
    total = called(np.sum, x)
    assert hash(total(x)) == hash(6.0)
    assert json.dumps(total(x)) == "6.0"
    assert type(pyop.compile(np.sum, scalars=False)(x)) is np.ndarray
    into = np.zeros(())
    assert total(x, out=into) is into
    assert into == 6.0
    first, second = np.zeros(()), np.zeros(4)
    pair = called(lambda x: (x.sum(), x * 2), x)
    assert pair(x, out=(first, second))[0] is first
    restored = pickle.loads(pickle.dumps(pyop.compile(np.sum, scalars=False)))
    assert type(restored(x)) is np.ndarray


def test_arrays_of_no_dimension_stay_arrays():
    for f in (lambda t: np.where(t > 0, t, 2.0), lambda t: np.copy(t), lambda t: t[...] if hasattr(t, "shape") else t):
        for t in (np.array(1.5), 2.0):
            assert repr(called(f, t)(t)) == repr(f(t))


def test_numbers_of_other_types_take_their_own_way():
    class Mine(float):
        pass

    f = lambda a, b: a * b + 1.0
    compiled = called(f, 2.0, 3.0)
    for a in (
        3,
        True,
        np.float64(2),
        np.float32(2),
        np.array(2.0),
        2**70,
        Mine(2),
        1j,
        np.bool_(True),
        np.longdouble(2),
    ):
        try:
            want = f(a, 3.0)
        except TypeError:
            continue
        if type(a) is Mine:
            with pytest.raises(TypeError):
                compiled(a, 3.0)
            continue
        assert bits(compiled(a, 3.0)) == bits(want)
    whole = called(lambda n: n * n + 1, 3)
    assert whole(10**6) == 10**12 + 1
    assert whole(2**70) == 2**140 + 1
    assert whole(2**40) == 2**80 + 1  # beyond what a tape computes with
    nan = np.frombuffer(np.uint64(0x7FF8_0000_0000_1234).tobytes())[0]
    assert called(lambda x: x * 1.0, np.float64(1))(nan).tobytes() == nan.tobytes()


def test_floating_point_errors_are_numpys():
    f = lambda x: np.log(x) + 1.0
    compiled = called(f, 2.0)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        assert compiled(0.0) == -math.inf
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in log"):
        compiled(0.0)
    seen: list[Any] = []
    with np.errstate(all="call", call=lambda *of: seen.append(of)):
        compiled(0.0)
    with np.errstate(all="ignore"):
        assert compiled(0.0) == -math.inf
    assert [of[0] for of in seen] == ["divide by zero"]
    assert compiled(1.0) == 1.0
    assert called(lambda x: x * 1e300, 1.0)(1e300) == math.inf  # Python's: no warning
    with pytest.raises(ZeroDivisionError):
        called(lambda x: 1.0 / x, 1.0)(0.0)


def test_flags_of_before_are_not_these_calls_own():
    compiled = called(lambda x: np.sin(x) * 2.0, 0.5)
    for _ in range(3):
        with np.errstate(all="ignore"):
            np.float64(1e308) * np.array([1e308])
        1e308 * 1e308
        assert compiled(0.5) == np.sin(0.5) * 2.0
        assert called(lambda x: x * 2.0, np.ones(3))(np.ones(3))[0] == 2.0


@pytest.mark.filterwarnings("ignore:.*needs argument:pyop.RetraceWarning")
def test_branches_globals_and_disable():
    scope: dict[str, Any] = {"np": np, "k": 2.0}
    f = eval("lambda x: np.sin(x) * k if x > 1.0 else x - k", scope)
    compiled = pyop.compile(f)
    for x in (0.5, 2.0, 3.0, 0.5, 0.25, 5.0, np.float64(2), np.float64(0.5), np.float64(3)):
        assert bits(compiled(x)) == bits(f(x))
    scope["k"] = 3.0
    for x in (0.5, 2.0, np.float64(2)):
        assert bits(compiled(x)) == bits(f(x))
    straight = called(eval("lambda x: x * k", scope), 2.0)
    scope["k"] = 5.0
    assert straight(2.0) == 10.0
    with pyop.disable():
        assert straight(3.0) == 15.0
    with pyop.Graph() as g:
        x = g.input("float64[]")
        assert isinstance(straight(x), pyop.Value)
    straight.clear_cache()
    assert [straight(t) for t in (1.0, 2.0, 3.0)] == [5.0, 10.0, 15.0]
    assert straight.cache_info()[:2] == (2, 1)


def test_decisions_by_arrays_of_no_dimension():
    f = lambda x, t: x * 2.0 if x > t else x / t
    compiled = pyop.compile(f)
    for x in (1.0, 3.0, 5.0, 0.5, 7.0):
        for make in (np.array, np.float64):
            assert bits(compiled(make(x), make(2.0))) == bits(f(make(x), make(2.0)))


def test_threads_and_recursion():
    compiled = called(lambda x: np.cos(x) * x + 1.0, 0.5)
    wrong: list[float] = []

    def work(k: int) -> None:
        for i in range(2000):
            x = k + i / 7
            if compiled(x) != np.cos(x) * x + 1.0:
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_are_objects_of_their_own():
    compiled = called(lambda x: np.sin(x) * 2, 0.5)
    got = [compiled(float(k)) for k in range(40)]
    assert got == [np.sin(float(k)) * 2 for k in range(40)]
    arrays = pyop.compile(lambda x: np.sin(x) * 2, scalars=False)
    kept = [arrays(float(k)) for k in range(40)]
    assert [float(x) for x in kept] == got
    kept[0][...] = 5.0
    assert arrays(0.0) == 0.0


def test_answers_are_bools_of_pythons():
    x = np.linspace(0, 1, 5)
    for f in (
        lambda x: np.allclose(x, x),
        lambda x: np.array_equal(x, x + 1),
        lambda x: np.array_equiv(x, x[:1]),
        lambda x: (np.allclose(x, x), x.sum(), {"same": np.array_equal(x, x)}),
    ):
        compiled = pyop.compile(f)
        for _ in range(3):
            assert repr(compiled(x)) == repr(f(x))
    assert json.dumps(pyop.compile(lambda x: np.allclose(x, x))(x)) == "true"
