"""Conditions in recorded loops: each arm once, whatever it computes; and Python's numbers in loops."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pyop

from .compare import equal


def best(x):
    """Keep the largest, which is Python's 0.0 where nothing is larger."""
    found = 0.0
    where = (-1, -1)
    for i in range(len(x)):
        if x[i] > found:
            found = x[i]
            where = (i, i + 1)
    return found, where


def many(x):
    s, t = 0.0, 0
    for k in range(len(x)):
        if x[k] > 0.5:
            s = s - 1.0
            t += 1
        if x[k] > 0.7:
            s += x[k]
        if x[k] > 0.8:
            t -= 2
        if x[k] > 0.2:
            s *= 0.5
        if x[k] > 0.6:
            s += 2.0
        if x[k] > 0.9:
            t = 0
    return s, t


def hysteresis(x):
    state, ups = False, 0
    out = np.zeros(len(x), dtype=bool)
    for k in range(len(x)):
        if not state and x[k] > 0.8:
            state = True
            ups += 1
        elif state and x[k] < 0.2:
            state = False
        out[k] = state
    return out, ups


def histogram(x):
    out = np.zeros(7, dtype=np.int64)
    for v in x:
        if v < 0.1 or v >= 0.9:
            continue
        out[int((v - 0.1) / 0.8 * 7)] += 1
    return out


def two_pointers(x):
    i, j, count = 0, len(x) - 1, 0
    while i < j:
        s = x[i] + x[j]
        if s < 1.0:
            i += 1
        elif s > 1.2:
            j -= 1
        else:
            count += 1
            i += 1
            j -= 1
    return count, i, j


def bisection(x):
    a, b = 0.0, 4.0
    for k in range(200):
        m = 0.5 * (a + b)
        f = m**3 - x[0] * m - 2.0
        if f == 0.0 or (b - a) / 2 < 1e-12:
            return m, k
        if f > 0:
            b = m
        else:
            a = m
    return m, k


def clipped(x):
    s = up = 0.0
    for v in x:
        s = max(s + v - 0.5, 0.0)
        up = s if s > up else up
        if 0.2 < v <= 0.4 and not up > 3:
            continue
        s = min(s, 2.0)
    return s, up


def by_math(x):
    s = 0.0
    for k in range(len(x)):
        s = s * 0.5 + math.exp(-x[k]) * math.sqrt(float(x[k])) + math.floor(x[k] * 10) % 3
        x[k] = round(s) + abs(k - 5) + k // 2
        s += math.hypot(x[k], s) - math.hypot(s, 1.0, x[k]) + math.radians(x[k]) + math.remainder(s, 0.3)
    return s, math.degrees(s)


def looked_up(x):
    table, gear, rates = [1, 5, 2], 0, (0.5, 1.5, 2.5)
    for k in range(len(x)):
        if x[k] > 0.6 and gear < 2:
            gear += 1
        elif x[k] < 0.3 and gear > 0:
            gear -= 1
        x[k] = rates[gear] * table[k % 3]
    return gear


def short_inside(x):
    for i in range(len(x)):
        for j in range(3):
            if x[i] * j > 0.7:
                x[i] = -j
                break
        else:
            x[i] += 10
    return x.sum()


PROGRAMS = [best, many, hysteresis, histogram, two_pointers, bisection, clipped, by_math, looked_up, short_inside]


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("f", PROGRAMS)
def test_one_plan_does_for_all_data(f, options):
    compiled = pyop.compile(f, **options)
    for seed in range(6):
        plain, given = (np.sort(np.random.default_rng(seed).uniform(size=40)) for _ in range(2))
        if seed % 2:
            np.random.default_rng(seed).shuffle(plain)
            given[:] = plain
        assert equal(compiled(given), f(plain))
        assert given.tobytes() == plain.tobytes()
    assert compiled.cache_info().misses <= 2  # what is returned may be Python's number or NumPy's
    nodes = compiled.plan_for(given).graph.nodes
    assert any(type(node.function).__name__ == "Loop" for node in nodes)


def test_what_is_no_number_is_pythons_error():
    def root(x):
        s = 0.0
        for v in x:
            s += math.sqrt(v)
        return s

    def counts(x):
        out = np.zeros(10, dtype=int)
        for v in x:
            out[int(v * 10)] += 1
        return out

    for f, bad, error in ((root, -1.0, ValueError), (counts, np.nan, ValueError), (counts, np.inf, OverflowError)):
        compiled = pyop.compile(f)
        compiled(np.full(20, 0.5))
        x = np.full(20, 0.5)
        x[7] = bad
        with pytest.raises(error):
            f(x)
        with pytest.raises(error):
            compiled(x)
        with pytest.raises(IndexError):
            pyop.compile(counts)(np.full(20, 1.5))


def test_a_largest_int_is_one_of_python():
    def f(x):
        k = 1
        for i in range(len(x)):
            if x[i] > 0.5:
                k = k * 3
        return k

    compiled = pyop.compile(f)
    for n in (5, 39, 40, 41, 60):
        x = np.zeros(60)
        x[:n] = 1.0
        assert compiled(x) == f(x) == 3**n


def test_a_loop_that_decides_in_each_iteration_runs_as_it_is():
    def f(x):
        kept = []
        for v in x:
            if v > 0.5:
                kept.append(v)
            elif v > 0.25:
                kept.append("few")
        return len(kept)

    compiled = pyop.compile(f)
    x = np.random.default_rng(0).uniform(size=1000)
    with pytest.warns(pyop.RetraceWarning, match=r"test_conditions.py:\d+ in each iteration, since the loop around it"):
        assert compiled(x) == f(x)
    assert compiled.cache_info().misses == 1


def test_a_count_that_is_left_in_an_object_is_a_number():
    class Counted:
        def __init__(self):
            self.n = 0
            self.table = [0.5, 0.25]

        def f(self, x):
            y = 0.0
            for k in range(len(x)):
                if x[k] > 0.5:
                    self.n += 1
                y += self.table[k % 2] * x[k]
            return y, self.n

    plain, other = Counted(), Counted()
    compiled, x = pyop.compile(other.f), np.linspace(0.0, 1.0, 12)
    for _ in range(4):
        assert equal(compiled(x), plain.f(x))
        assert type(other.n) is int


def test_a_table_is_what_it_holds_now():
    table = [1.0, 2.0, 3.0]

    def f(x):
        s = 0.0
        for k in range(len(x)):
            s += table[int(x[k])]
        return s

    compiled, x = pyop.compile(f), np.array([0.0, 1.0, 2.0, -1.0] * 4)
    assert equal(compiled(x), f(x))
    table[1] = 50.0
    assert equal(compiled(x), f(x))
    table.append(7.0)
    assert equal(compiled(x), f(x))
    with pytest.raises(IndexError, match="list index out of range"):
        compiled(x + 9.0)


def test_hypot_has_pythons_bits():
    numbers = np.random.default_rng(0)

    @pyop.compile
    def f(x, y, z):
        two, three = np.empty(len(x)), np.empty(len(x))
        for k in range(len(x)):
            two[k] = math.hypot(x[k], y[k])
            three[k] = math.hypot(x[k], y[k], z[k])
        return two, three

    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1.7e308, 3.0]
    for scale in (0, 1, 20, 320):
        x, y, z = numbers.uniform(-1, 1, (3, 500)) * 10.0 ** numbers.uniform(-scale, min(scale, 308), (3, 500))
        x[:9], y[9:18], x[30:39], z[30:39] = special, special, special, special[::-1]
        two, three = f(x, y, z)
        assert two.tolist() == pytest.approx(
            [math.hypot(*v) for v in zip(x, y, strict=True)], rel=0, abs=0, nan_ok=True
        )
        wanted = [math.hypot(*v) for v in zip(x, y, z, strict=True)]
        assert three.tolist() == pytest.approx(wanted, rel=0, abs=0, nan_ok=True)


def test_functions_of_math_are_pickled():
    program = """
import math, pickle, subprocess, sys
import numpy as np, pyop
given = pickle.loads(bytes.fromhex(sys.stdin.read())) if len(sys.argv) > 1 else None
x = np.linspace(0.1, 1.0, 5)
if given is None:
    f = pyop.compile(lambda x: x * math.exp(x[0]) + math.atan2(x[1], 2.0) + math.hypot(x[0], x[1], x[2]))
    f(x)
    sent = pickle.dumps(f.plan_for(x)).hex()
    done = subprocess.run([sys.executable, "-c", PROGRAM, "there"], input=sent, capture_output=True, text=True)
    print(done.stdout.strip() == repr(f(x).tolist()), done.stderr)
else:
    print(given(x).tolist())
"""
    program = f"PROGRAM = {program!r}\n{program}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["True"], done.stdout + done.stderr


def brackets(codes):
    partner, stack = np.full(len(codes), -1), np.zeros(len(codes), np.int64)
    top = mistakes = 0
    for i in range(len(codes)):
        c = int(codes[i])
        if c == 40:
            stack[top] = i
            top += 1
        elif c == 41:
            if top == 0:
                mistakes += 1
            else:
                top -= 1
                j = int(stack[top])
                partner[i] = j
                partner[j] = i
    return partner, mistakes, top


def alarms(x):
    out = np.zeros((len(x), 2))
    count = since = 0
    up = down = 0.0
    for i in range(len(x)):
        up, down = up + x[i], down - x[i]
        since = since + 1 if up > 0.5 else 0
        if up > 1.0:
            out[count, 0], out[count, 1] = i, i * since - since + 1
            count += 1
            up = 0.0
        elif down > 1.0:
            out[count, 0], out[count, 1] = -i, since
            count += 1
            down = 0.0
    return out, count


@pytest.mark.parametrize("f", [brackets, alarms])
def test_arrays_that_nested_arms_write_stay_where_they_lie(f):
    r = np.random.default_rng(3)
    given = [r.choice([40, 41, 97], 60) if f is brackets else r.normal(size=60) for _ in range(4)]
    g = pyop.compile(f)
    for x in given:
        assert equal(g(x), f(x))
    assert "tape of" in str(g.plan_for(given[0]).explain())


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")  # the function itself runs
def test_a_comparison_of_what_may_be_a_python_number_is_pythons_where_that_is():
    def f(x, c):
        s, flag, n = 1.5, False, 0
        for i in range(len(x)):
            if x[i] > c:
                s = s + x[i]
            flag = s > 2
            if flag:
                n += 1
        return s, flag, n, not flag

    g = pyop.compile(f)
    for x in (np.zeros(20), np.ones(20), np.linspace(-1, 1, 20)):
        for c in (0.5, 2.0):
            assert repr(g(x, c)) == repr(f(x, c))


def test_a_number_of_the_caller_may_stay_one():
    def f(x, c):
        s, low = c / 2, -c
        for i in range(len(x)):
            if x[i] > 5:
                s = x[i]
            low = max(low, x[i] - 9.0)
        return s, low, 1.0 / s**3

    g = pyop.compile(f)
    for x in (np.zeros(20), np.full(20, 6.0), np.full(20, 200.0), np.zeros(20, np.float32)):
        for c in (3.0, 3, np.float64(3.0)):
            assert repr(g(x, c)) == repr(f(x, c))


def in_an_arm(x):
    s = 0.0
    for k in range(12):
        if x[k % 3] > 1e9:
            s += np.sqrt(-1.0) + np.log(0.0)
        s += x[k % 3]
    return s


def in_a_loop_that_may_be_empty(x):
    s, k = 0.0, 0
    while x[k % 3] > 1e9 and k < 100:
        s += np.float64(1.0) / np.float64(0.0)
        k += 1
    for _ in range(int(x[0] > 1e9)):
        s += np.sqrt(np.float64(-1.0))
    return s


def in_an_expression(x):
    s = 0.0
    for k in range(12):
        s += np.log(-1.0) if x[k % 3] > 1e9 else x[k % 3]
    return s


@pytest.mark.parametrize("f", [in_an_arm, in_a_loop_that_may_be_empty, in_an_expression])
def test_what_is_known_warns_where_it_is_run_alone(f):
    compiled = pyop.compile(f)
    for x in (np.arange(3.0), np.array([0.0, 2e9, 1.0]), np.full(3, 2e9), np.arange(3.0)):
        found = []
        for run in (f, compiled):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = run(x)
            told = {str(w.message) for w in caught if w.category is RuntimeWarning}
            found.append((repr(result), told))
        assert found[0] == found[1]
