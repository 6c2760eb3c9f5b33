"""Loops whose bodies read and write more than arrays and numbers, each written down once."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest

import pyop
from pyop.loops import rolled

from .compare import equal

X = np.linspace(0.1, 1.0, 10)


def congruence(x, n):
    """A NumPy scalar that is carried, within a ``with``."""
    out = np.empty(n, np.uint64)
    state = np.uint64(12345)
    with np.errstate(over="ignore"):
        for i in range(n):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            out[i] = state >> np.uint64(33)
    return out, state, x * 2


def scalar_that_begins_anew(x, n):
    """A NumPy scalar that an iteration may set again."""
    y, largest = x * 1.0, np.float64(0.0)
    for i in range(n):
        largest = np.float64(0.0) if y[i % 10] > 0.7 else largest + y[i % 10]
        y[i % 10] += largest
    return y, largest


def handled_before(x, n):
    """A ``try`` that the loop is not in."""
    y = x * 1.0
    try:
        y = y.reshape(2, 5)
    except ValueError:
        y = y[:5]
    for i in range(n):
        y[0] = y[1] * 0.5 + i
    return y


def within_two(x, n):
    y = x * 1.0
    with contextlib.nullcontext() as nothing, np.errstate(divide="ignore"):
        for i in range(n):
            y[i % 10] = 1.0 / (y[i % 10] + i)
    return y, nothing


class Planet:
    scale = 0.5

    def __init__(self, place, speed):
        self.place = place
        self.speed = speed
        self.steps = 0
        self.trail = [0.0, place * 0.0]

    def pull(self):
        return -self.place / np.sqrt(self.place @ self.place + 1.0) ** 3

    def kick(self, dt):
        self.speed += self.scale * dt * self.pull()

    def drift(self, dt):
        self.place = self.place + dt * self.speed
        self.steps += 1

    @property
    def energy(self):
        return 0.5 * self.speed @ self.speed

    def plot(self):  # nobody calls it
        print(self)


@dataclasses.dataclass(slots=True)
class Filter:
    mean: object
    gain: float = 0.5

    def update(self, x):
        self.mean += self.gain * (x - self.mean)
        return self.mean


def methods(x, n):
    planet, energies = Planet(x * 1.0, x[::-1] * 0.1), np.zeros(n)
    for i in range(n):
        planet.kick(0.1)
        planet.drift(0.1)
        energies[i] = planet.energy
    return planet.place, planet.speed, planet.steps, energies


def slots(x, n):
    smooth, out = Filter(x[0]), np.zeros(n)
    for i in range(n):
        out[i] = smooth.update(x[i % 10])
        if out[i] > 0.6:
            smooth.gain = 0.25
    return out, smooth.mean, smooth.gain


def items(x, n):
    """A list and a dict whose items are bound anew, and change places."""
    state, table = [x * 1.0, x * 2.0, 0.0], {"t": 0.0, "k": 1}
    for i in range(n):
        state[0], state[1] = state[1], state[0] * 0.5 + table["t"]
        state[2] = state[2] + state[0][i % 10]
        table["t"] += 0.125
        table["k"] += 2
    return state, table["t"], table["k"]


def constant_lists(x, n):
    weights, order = [0.5, 0.25, -0.25], [2, 0, 1]
    layers = [np.outer(x, x), np.eye(10) * 0.5]
    y = x * 1.0
    for _ in range(n):
        for layer in layers:
            y = np.tanh(layer @ y)
        for k, weight in zip(order, weights, strict=True):
            y[k] += weight
    return y


def two_names_of_one_object(x, n):
    one = Planet(x * 1.0, x * 0.0)
    other, pair = one, (one, one.trail)
    for i in range(n):
        one.place[i % 10] = 0.5
        other.place = other.place * 0.9
        pair[1][0] += pair[0].place[0]
    return one.place, other.place, one.trail


def ranges_of_the_count(x, n):
    y = np.zeros(n)
    for i in range(n):
        k = i % 10
        y[i] = (np.arange(k) * x[:k]).sum() + np.ones((k, 2)).sum() + np.linspace(0.0, 1.0, k).sum()
    return y


ONE_NODE = [congruence, scalar_that_begins_anew, handled_before, within_two, methods, slots, items, constant_lists]
ONE_NODE += [two_names_of_one_object]


def grows_a_list(x, n):
    y, seen = x * 1.0, []
    for i in range(n):
        y = y * 0.9
        seen.append(y[i % 10])
    return y, seen


def sets_what_was_not(x, n):
    """Attributes that come, shadow one of the class, and go."""
    planet = Planet(x * 1.0, x * 0.0)
    for i in range(n):
        planet.scale = 0.25
        planet.fresh = planet.place[i % 10]
        planet.kick(planet.fresh)
        del planet.scale
    return planet.speed, planet.fresh, planet.scale


def objects_made_in_the_body(x, n):
    state = Filter(x * 1.0)
    for _ in range(n):
        new = Filter(state.mean * 0.5)
        new.mean[0] = state.mean[1]
        state = new
    return state.mean


class Loud:
    """It notes what is read of it."""

    def __init__(self):
        self.read = 0

    def __getattr__(self, name):
        vars(self)["read"] += 1
        return 0.5


def notes_what_is_read(x, n):
    loud, y = Loud(), x * 1.0
    for _ in range(n):
        y *= loud.gain
    return y, loud.read


ALL = [*ONE_NODE, ranges_of_the_count, grows_a_list, sets_what_was_not, objects_made_in_the_body, notes_what_is_read]


@pytest.mark.parametrize("options", [{}, {"optimize": False}], ids=str)
@pytest.mark.parametrize("program", ALL, ids=lambda f: f.__name__)
def test_bits_are_those_of_the_function(program, options):
    f = pyop.compile(program, **options)
    for n in (9, 12, 30):
        for x in (X, X[::-1].copy(), X - 0.5, X):
            got, wanted = f(x.copy(), n), program(x.copy(), n)
            assert equal(got, wanted), n


@pytest.mark.parametrize("program", ONE_NODE, ids=lambda f: f.__name__)
def test_compiling_takes_no_longer_for_more_iterations(program, recorded):
    assert recorded(program, X, 12) == recorded(program, X, 2_000) != []


def test_errors_are_caught_around_a_loop():
    """Where the loop is in a ``try``, it is what it is."""

    def f(x, n):
        y = x * 1.0
        try:
            for i in range(n):
                y[i] = i
        except IndexError:
            y[0] = -1.0
        finally:
            y[1] = 5.0
        return y

    compiled = pyop.compile(f)
    for n in (9, 10, 11, 30):
        assert equal(compiled(X, n), f(X, n))


def test_an_argument_that_changes_places_is_that_argument():
    def f(x, y):
        y = y + x
        for _ in range(9):
            x, y = y, x
        return y

    x = np.ones(4)
    compiled = pyop.compile(f)
    assert compiled(x, x) is f(x, x) is x


def test_what_a_body_has_set_is_put_back_where_the_trace_raises():
    class Held:
        def __init__(self):
            self.k, self.items = 0, [1.0, 2.0]

    def make(held):
        def f(x, n):
            y = x * 1.0
            for i in range(n):
                held.k += 1
                held.items[0] = 3.0
                held.items.append(y[i])
                y = y.reshape(7, 3)
            return y

        return f

    plain, traced = Held(), Held()
    with pytest.raises(ValueError, match="cannot reshape"):
        make(plain)(X, 20)
    with pytest.raises(ValueError, match="cannot resh"):
        pyop.compile(make(traced))(X, 20)
    assert (traced.k, traced.items) == (plain.k, plain.items) == (1, [3.0, 2.0, X[0]])


def largest(x, n):
    best, where = 0.0, (0, -1)
    for i in range(n):
        if x[i % 10] * i > best:
            best, where = x[i % 10] * i, (i, 2 * i)
    return best, where, best * x


def largest_of_a_table(x, n):
    table, best, where = np.outer(x, x), 0, (0, 0)
    for i in range(n):
        for j in range(10):
            if table[i % 10, j] > best:
                best, where = table[i % 10, j], (i, j)
    return best, where


def set_back(x, n):
    best = worst = 0.0
    for i in range(n):
        best = x[i % 10] if x[i % 10] > best else best
        if best > 0.8:
            best = 0.0
        worst = min(worst, x[i % 10])
    return best, worst


@pytest.mark.parametrize("program", [largest, largest_of_a_table, set_back], ids=lambda f: f.__name__)
def test_a_number_may_stay_what_it_is(program, monkeypatch):
    unrolled, give_up = [], rolled.Rolled._unrolled
    monkeypatch.setattr(rolled.Rolled, "_unrolled", lambda self: unrolled.append(self.key) or give_up(self))
    f = pyop.compile(program)
    for x in (X, -X, X[::-1].copy(), -X, X * 0.5, X):
        found, wanted = f(x, 30), program(x, 30)
        assert equal(found, wanted)
        assert type(found[0]) is type(wanted[0])
        assert type(found[1]) is type(wanted[1]) or type(wanted[1]) is np.float64
    assert not unrolled or program is set_back


def drain(y, stack, n):
    for _ in range(n):
        y[stack.pop()] += 1.0


def forget(y, table, n):
    for _ in range(n):
        y += table.pop("once")


@pytest.mark.parametrize("n", [9, 20])
def test_what_a_body_takes_away_is_no_error_of_the_functions(n):
    def f(x, n):
        y = x * 1.0
        try:
            drain(y, [k % 4 for k in range(12)], n)
        except IndexError:
            y[0] = -1.0
        try:
            forget(y, {"once": 2.0, "more": 3.0}, n)
        except KeyError:
            y[1] = -2.0
        return y

    assert equal(pyop.compile(f)(X, n), f(X, n))
