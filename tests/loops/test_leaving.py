"""Loops that end by what they compute: ``while``, ``break``, ``return``, ``raise`` and ``else``, recorded once."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pyop

from .compare import equal


def converges(x):
    err = 1.0
    count = 0
    while err > 1e-10 and count < 50:
        y = 0.5 * (x + 2.0 / x)
        err = np.abs(y - x).max()
        x = y
        count += 1
    return x, count


def breaks(x):
    for k in range(100):  # noqa: B007
        y = 0.5 * (x + 2.0 / x)
        err = np.abs(y - x).max()
        x = y
        if err < 1e-12:
            break
    else:
        k = -1
    return x, k, err


def returns(x):
    x = x + 0.0
    for k in range(100):
        y = 0.5 * (x + 2.0 / x)
        if np.abs(y - x).max() < 1e-12:
            return y, k
        x = y
    return x, -1


def endless(x):
    k = 0
    while True:
        y = 0.5 * (x + 2.0 / x)
        k += 1
        if np.abs(y - x).max() < 1e-12:
            break
        x = y
    return y, k


def inserted(x):
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x * 2


def first_smaller(x):
    count = 0
    for i in range(len(x)):
        for j in range(i):
            if x[j] > x[i]:
                count += 1
                break
        else:
            count += 10
    return count


def bubbles(x):
    n = len(x)
    while True:
        swapped = False
        for i in range(n - 1):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]
                swapped = True
        if not swapped:
            break
    return x + 1


def found_in_two(x):
    for i in range(len(x)):
        for j in range(len(x)):
            if x[i] * x[j] > 0.5:
                return i, j
    return -1, -1


def raises(x):
    for k in range(30):  # noqa: B007
        x = x * 1.5
        if x[0] > 1e4:
            raise ValueError("too large")
    return x, k


def left_by_an_else(x):
    s, k = 0.0, 0
    for i in range(12):
        if i > 2:
            s += x[0]
        else:
            k = 0
            while k < 5 and x[0] > 1.5:
                k += 1
            else:
                if x[0] < 1.2:
                    break
                if i == 1:
                    continue
        s += x[1] * i
    return s, k


LOOPS = [converges, breaks, returns, endless, inserted, first_smaller, bubbles, found_in_two, raises]


def called(f, x):
    try:
        return f(x)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("f", [*LOOPS, left_by_an_else])
def test_bits(f, options):
    compiled = pyop.compile(f, **options)
    for seed in range(4):
        plain, given = (np.random.default_rng(seed).uniform(0.01, 1.0, size=10) * (1 + 3 * seed) for _ in range(2))
        wanted, found = called(f, plain), called(compiled, given)
        assert equal(found, wanted)
        assert given.tobytes() == plain.tobytes()


@pytest.mark.parametrize("f", [f for f in LOOPS if f is not raises])
def test_one_plan_does_for_all_numbers_of_iterations(f):
    if f is returns and sys.version_info >= (3, 14):
        pytest.skip(
            "a frame of CPython 3.14 holds what a variable was before it was put back: who else does is unknown"
        )
    compiled = pyop.compile(f)
    for scale in (1.0, 7.0, 1e3, 1e6):
        compiled(np.random.default_rng(1).uniform(0.5, 1.0, size=10) * scale)
    x = np.ones(10)
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(x).graph.nodes)


@pytest.mark.parametrize("f", [converges, breaks, endless])
def test_gradients(f):
    x = np.random.default_rng(0).uniform(0.5, 2.0, size=4)

    def loss(x):
        return (f(x)[0] * np.arange(1.0, 5.0)).sum()

    found = pyop.compile(pyop.grad(loss))(x)
    step = 1e-6
    for k in range(4):
        e = np.eye(4)[k] * step
        assert found[k] == pytest.approx((loss(x + e) - loss(x - e)) / (2 * step), abs=1e-6)


def test_two_names_of_one_array_behind_the_loop():
    def f(x):
        x = x * 1.0
        for _ in range(20):
            y = x * 0.5
            if y[0] < 0.1:
                break
            x = y
        x += 1.0
        return x, y

    for start in (0.05, 1.0, 1e9):
        assert equal(pyop.compile(f)(np.full(3, start)), f(np.full(3, start)))


def test_what_no_iteration_has_bound_is_not_bound():
    def f(x):
        while x[0] > 1.0:
            y = x * 0.5
            x = y
        return y

    compiled = pyop.compile(f)
    assert equal(compiled(np.full(2, 8.0)), f(np.full(2, 8.0)))
    with pytest.raises(UnboundLocalError):
        compiled(np.zeros(2))


def test_a_function_that_looks_at_its_variables_has_those_that_it_was_written_with():
    def f(x):
        n = 0
        while n < 20:
            x = x * 1.01
            n += 1
        return x, len(dir())

    assert pyop.compile(f)(np.ones(2))[1] == f(np.ones(2))[1] == 2


def test_a_loop_that_begins_with_a_python_number_is_peeled():
    def f(x):
        value = 0.0
        for _ in range(50):
            new = (x * 0.5).sum()
            x = x * 0.9
            if abs(new - value) < 1e-3:
                break
            value = new
        return value, x

    compiled = pyop.compile(f)
    for start in (0.0, 1.0, 50.0):
        assert equal(compiled(np.full(4, start)), f(np.full(4, start)))
    assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(np.ones(4)).graph.nodes)


def test_a_loop_too_long_to_be_unrolled_is_known_early():
    steps = []

    def f(x):
        seen = []
        for k in range(30000):
            steps.append(k)
            seen.append(x * k + 1.0)
        return seen[-1]

    compiled = pyop.compile(f)
    with pytest.warns(pyop.RetraceWarning, match="more than 50000 things"):
        assert equal(compiled(np.ones(3)), f(np.ones(3)))
    assert len(steps) < 61000  # NumPy twice, and a few iterations


def over_a_few(x):
    stock, given, order = np.full(3, 2.0), np.zeros(3), []
    for k in range(len(x)):
        left = float(x[k])
        for shelf in (2, 1, 0):
            taken = min(left, stock[shelf] * 0.5)
            stock[shelf] -= taken
            given[shelf] += taken
            left -= taken
            if left <= 0:
                break
        else:
            order.append(k)
        for a, b in ((0, 1), (1, 2), (2, 0)):
            if stock[a] > stock[b] + 0.3:
                stock[a], stock[b] = stock[b], stock[a]
                break
        stock = stock + 0.1
    return stock, given, order


def over_a_few_of_all_kinds(x):
    found = []
    for k in range(len(x)):
        for word in ("a", "b", 3, None):
            if x[k] > 0.5 and word != "a":
                break
        for v in (1, 2.5, True):
            if v * x[k] > 0.7:
                break
        found.append(k if v == 1 else -k)
    return found, word


# From CPython 3.14 on the frame may hold the arrays that its variables hold: these do not change places in a loop.
CHANGES_PLACES = sys.version_info < (3, 14)


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("f", [over_a_few, over_a_few_of_all_kinds])
def test_a_loop_over_a_few_constants_is_left(f):
    compiled = pyop.compile(f)
    for seed in range(6):
        x = np.random.default_rng(seed).uniform(size=50)
        assert equal(compiled(x), f(x))
    if f is over_a_few and CHANGES_PLACES:
        assert any(type(node.function).__name__ == "Loop" for node in compiled.plan_for(x).graph.nodes)
