"""Loops over single elements on a tape (csrc/plan/tape): the bits, warnings and errors of the function itself."""

from __future__ import annotations

import contextlib
import pickle
import signal
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from . import scalar_programs
from .compare import equal
from .scalar_programs import outcome

RNG = np.random.default_rng(7)
X = RNG.normal(size=40)
TABLE = RNG.normal(size=(12, 12))


def ewma(x):
    out = np.empty_like(x)
    out[0] = x[0]
    for t in range(1, len(x)):
        out[t] = 0.25 * x[t] + 0.75 * out[t - 1]
    return out


def thomas(x):
    n = len(x)
    c, d, y = np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(1, n):
        m = 2.5 - x[i] * c[i - 1]
        c[i] = x[i] / m
        d[i] = (x[i] - d[i - 1]) / m
    y[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        y[i] = d[i] - c[i] * y[i + 1]
    return y


def carried_number(x):
    s = x[0]
    for i in range(len(x)):
        s = s * 0.5 + x[i]
    return s


def seidel(a):
    n = len(a)
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j]) / 4.0


def with_functions(x):
    y = x * 1.0
    for i in range(1, len(x)):
        y[i] = np.exp(-np.abs(y[i - 1])) + np.sin(x[i]) * np.sqrt(x[i] * x[i]) + np.arctan2(x[i], 2.0)
    return y


def chosen(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = np.where(x[i] > 0.0, np.maximum(x[i], 0.5), np.minimum(x[i - 1], x[i]))
    return y


def counted(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[-i] * i
    return y


def divides(x):
    y = x * 1.0
    for i in range(1, len(x)):
        y[i] = x[i] / x[i - 1]
    return y


def grows(x):
    y = x * 1.0
    for i in range(1, len(x)):
        y[i] = y[i - 1] * 1e30
    return y


def out_of_bounds(x):
    y = x * 1.0
    for i in range(50):
        y[i] = y[i] * 0.5
    return y


def nine(x):
    y = x * 1.0
    for i in range(1, 9):
        y[i] = y[-i] * 0.5 + x[i]
    return y


def table_of_best(k):
    best = np.zeros((len(k), len(k)), np.int32)
    for i in range(len(k) - 1, -1, -1):
        for j in range(i + 1, len(k)):
            best[i, j] = max(best[i, j - 1], best[i, j])
            if i < j - 1 and k[i] % 3 == k[j] % 3:
                best[i, j] = max(best[i, j], best[i, j - 1] + 1)
    return best


def picked(k):
    table = np.zeros((9, 9))
    for i in range(1, len(k)):
        a, b = k[i] % 9, k[i - 1] // 7
        table[a, b] = table[b, a] + k[i]
    return table


def bits(k):
    crc = 0xFFFF
    for i in range(len(k)):
        crc = crc ^ (0xFF & k[i])
        if crc & 1:
            crc = (crc >> 1) ^ 0x8408
    return crc


def escapes(c):
    z = c[0] * 1.0
    sizes = np.zeros(len(c))
    for i in range(1, len(c)):
        z = z * z + c[i]
        sizes[i] = abs(z)
        z = z * c[i] * (0.5 + 0.25j)
    return z, sizes


def sums(k):
    total = np.zeros_like(k)
    for i in range(1, len(k)):
        total[i] = total[i - 1] + k[i] * k[i]
    return total


PROGRAMS: dict[str, tuple[Any, list[Any]]] = {
    "ewma": (ewma, [X]),
    "thomas": (thomas, [X]),
    "a number": (carried_number, [X]),
    "seidel": (seidel, [TABLE]),
    "functions": (with_functions, [X]),
    "where": (chosen, [X]),
    "counter": (counted, [X]),
    "integers": (sums, [np.arange(20)]),
    "best": (table_of_best, [np.arange(11)]),
    "picked": (picked, [np.arange(40) * 5 % 37]),
    "negative picked": (picked, [np.arange(40) * 5 % 37 - 30]),
    "bits": (bits, [np.arange(12, dtype=np.uint16)]),
    "small integers": (sums, [np.arange(20, dtype=np.int8)]),
    "single": (ewma, [X.astype(np.float32)]),
    "complex": (ewma, [X + 1j]),
    "complex scalars": (escapes, [X[:30] + 1j * X[10:]]),
    "complex scalars that grow": (escapes, [X[:30] * 5 + 1j * X[10:]]),
    "complex infinities": (escapes, [np.where(np.arange(30) == 9, np.inf, X[:30] + 1j * X[10:])]),
    "strided": (ewma, [np.repeat(X, 2)[::2]]),
    "backwards": (ewma, [X[::-1]]),
    "fortran": (seidel, [np.asfortranarray(TABLE)]),
    "nan": (chosen, [np.where(np.arange(40) % 7 == 0, np.nan, X)]),
    "denormal": (ewma, [X * 1e-310]),
}
# Loops of so few iterations are unrolled: a tape of instructions that stand one behind the other.
UNROLLED = {
    name: (program, [x[:6, :6] if x.ndim == 2 else x[:7] for x in args]) for name, (program, args) in PROGRAMS.items()
}
PROGRAMS |= {f"{name}, unrolled": case for name, case in UNROLLED.items()}
WAYS: dict[str, dict[str, Any]] = {"compiled": {}, "threads": {"threads": 2}, "slow": {"optimize": False}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_of_the_function(name, way):
    program, args = PROGRAMS[name]
    f = pyop.compile(program, **WAYS[way])
    for _ in range(3):
        wanted, found = (outcome(g, args, {}) for g in (program, f))
        assert equal(found[:2], wanted[:2])
        assert found[2] == wanted[2]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith(("complex", "bits"))])
def test_it_is_a_tape(name):
    program, args = PROGRAMS[name]
    args = [x.copy("K") for x in args]
    f = pyop.compile(program)
    f(*args)
    text = str(f.plan_for(*args).explain())
    assert "on a tape" in text if name.endswith("unrolled") else "tape of" in text
    steps = pyop.compile(program, disable=["tape"])
    steps(*args)
    text = str(steps.plan_for(*args).explain())
    assert "tape of" not in text
    assert "on a tape" not in text


@pytest.mark.parametrize("state", [{}, {"all": "warn"}, {"all": "raise"}, {"all": "ignore"}, {"over": "raise"}])
@pytest.mark.parametrize("program", [divides, grows, out_of_bounds, with_functions])
def test_errors_and_warnings_in_the_middle(program, state):
    x = np.ones(40)
    x[[3, 20, 33]] = 0.0
    f = pyop.compile(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(IndexError):
            f(x.copy())
    for _ in range(2):
        wanted, found = (outcome(g, [x], state) for g in (program, f))
        assert type(wanted[0]) is type(found[0])
        assert equal(found[1], wanted[1])
        assert found[2] == wanted[2]
        assert wanted[0] == found[0] if isinstance(wanted[0], str) else equal(wanted[0], found[0])


def test_the_iteration_that_raised_is_named():
    with pytest.raises(IndexError, match="index 40 is out of bounds") as raised:
        pyop.compile(out_of_bounds)(X)
    assert any("in the iteration 40 of" in note for note in getattr(raised.value, "__notes__", [])) or not hasattr(
        raised.value, "add_note"
    )


def decides(x):
    y = x * 1.0
    for i in range(1, 6):
        if x[i] > 0.5:
            y[i] = y[i - 1] / x[i]
        else:
            y[i] = y[i - 1] / (x[i] - x[i - 1])
    return y


def test_a_guard_that_does_not_hold_takes_the_other_path():
    f = pyop.compile(decides)
    cases = [np.linspace(a, b, 6) for a, b in ((0.0, 1.0), (1.0, 0.0), (0.6, 2.0), (0.0, 0.1), (0.3, 0.3), (0.0, 1.0))]
    for _ in range(2):
        for x in cases:
            wanted, found = (outcome(g, [x], {}) for g in (decides, f))
            assert equal(found[:2], wanted[:2])
            assert found[2] == wanted[2]
    assert "on a tape" in str(f.plan_for(cases[-1]).explain())


def test_what_a_tape_in_the_middle_leaves_to_others():
    def f(x, y):
        y[0] = x[0] + x[1]
        y[1] = y[0] * x[2]
        whole = np.cumsum(y)
        y[2] = whole[1] + x[0]
        y[3] = y[2] * y[2]
        z = y.copy()
        z[0] = y[3]
        z[1] = z[0] - y[2]
        old = z * 2.0
        z[2] = old[1] + z[1]
        return whole, z, old, x[3] * x[4], y[1]

    for args in ([X[:6], X[6:12]], [X[:6], np.repeat(X[:6], 2)[::2]], [X[:6].astype(np.float32), X[:6]]):
        g = pyop.compile(f)
        for _ in range(3):
            wanted, found = (outcome(h, args, {}) for h in (f, g))
            assert equal(found[:2], wanted[:2])
    assert "on a tape" in str(g.plan_for(*args).explain())


def test_results_of_two_runs_are_apart():
    def f(x):
        y = np.zeros(3)
        y[0] = x[0] + 1.0
        y[1] = y[0] * 2.0
        return y, y[1] + 1.0

    g = pyop.compile(f)
    kept = [g(np.full(2, float(k))) for k in range(5)]
    assert equal(kept, [f(np.full(2, float(k))) for k in range(5)])
    assert not any(np.shares_memory(a[0], b[0]) for k, a in enumerate(kept) for b in kept[:k])


def test_arguments_that_are_one_array():
    def f(a, b):
        for i in range(1, len(a)):
            a[i] = b[i - 1] + 1.0

    for make in (lambda: (X.copy(),) * 2, lambda: (lambda x: (x[1:], x[:-1]))(X.copy()), lambda: (X.copy(), X.copy())):
        g = pyop.compile(f)
        for _ in range(3):
            wanted, found = make(), make()
            f(*wanted)
            g(*found)
            assert equal(found, wanted)


def test_what_is_read_behind_the_write_is_what_was_there():
    def f(x):
        y = x * 1.0
        last = x[0]
        for i in range(1, len(x)):
            before = y[i]
            y[i] = last * 0.5
            last = before
        return y, last

    assert equal(pyop.compile(f)(X), f(X))


def test_no_iterations():
    def f(x):
        y = x * 1.0
        s = 2.5
        for i in range(len(x), 50):
            y[i] = s
            s = s * y[i]
        return y, s

    for n in (50, 51, 42, 49):
        x = np.linspace(0.0, 1.0, n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted, found = (outcome(g, [x], {}) for g in (f, pyop.compile(f)))
        assert wanted[0] == found[0] if isinstance(wanted[0], str) else equal(found[0], wanted[0])


def test_named_sizes_and_pickles():
    f = pyop.compile(nine, "float64[n]")
    for n in (9, 40, 10):
        assert equal(f(X[:n]), nine(X[:n]))
    plan = f.plan_for(X)
    assert "tape of" in str(plan.explain())
    assert equal(pickle.loads(pickle.dumps(plan))(X), nine(X))
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        f(X[:5])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of a timer are POSIX")
def test_a_long_tape_looks_for_signals():
    def f(x):
        for _ in range(1_000_000):
            for i in range(1, len(x)):
                x[i] = x[i - 1] * 0.5 + 1.0
        return x

    g = pyop.compile(f)
    x = np.zeros(2000)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.6)
    try:
        with pytest.raises(KeyboardInterrupt):
            g(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_nest_that_writes_few_elements_very_often_is_undone():
    def f(x):
        y = x * 1.0
        for i in range(9):
            for j in range(35_000):
                for k in range(1, 10):
                    y[k] = y[k - 1] * 0.5 + j
            y[0] = y[9] / x[i]
        return y

    x = np.linspace(1.0, 2.0, 10)
    x[7] = 0.0
    made = [pyop.compile(f, disable=disable) for disable in ([], ["tape"])]
    for g in made:
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            g(x)
    found, wanted = (outcome(g, [x], {}) for g in made)
    assert equal(found[0], wanted[0])
    assert found[2] == wanted[2]
    assert "tape of" in str(made[0].plan_for(x).explain())


def test_random_programs():
    tapes = [0, 0]
    found = [scalar_programs.difference(seed, tapes) for seed in range(60)]
    assert [text for text in found if text and " tape " in text.splitlines()[0]] == []
    assert tapes[0] >= 8
