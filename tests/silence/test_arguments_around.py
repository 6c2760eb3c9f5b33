"""Functions that write into their arguments, and what is around them: containers, threads, plans, other functions."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pyop

from .arguments import array
from .test_arguments_written import bump, held_against_numpy, inner


@dataclass
class Particles:
    at: Any
    speed: Any


def moved(p, forces, dt):
    p.speed += forces["f"] * dt
    p.at[:] = p.at + p.speed
    for f in forces["list"]:
        f *= 0.0
    return p.at


def test_in_containers():
    def make(seed):
        pair = [array("f8[3]", seed + k) for k in range(5)]
        return [Particles(*pair[:2]), {"f": pair[2], "list": pair[3:]}, 0.5]

    other = pyop.compile(moved)
    held_against_numpy(moved, other, make)
    assert other.cache_info().hits == 2
    pair = np.ones(3)
    plain, mine = ([Particles(a, a), {"f": a, "list": [a]}, 0.5] for a in (pair.copy(), pair.copy()))
    assert np.array_equal(moved(*plain), other(*mine))
    assert np.array_equal(plain[0].at, mine[0].at)


def test_the_argument_is_the_callers_array():
    f = pyop.compile(lambda x: bump(x))
    x = np.zeros(3)
    assert f(x) is x
    g = pyop.compile(lambda x: (bump(x)[1:], x.T, x))
    part, turned, whole = g(x)
    part[0] = 9.0
    assert whole is x
    assert x[1] == 9.0
    assert turned.base is x
    assert part.flags.writeable
    assert turned.flags.writeable


def test_what_shares_memory_with_what_the_function_holds():
    held = np.ones(4)

    def f(x):
        x += held
        x *= held
        return x.sum()

    other = pyop.compile(f)
    other(np.zeros(4))
    assert other(held) == 16.0
    assert np.array_equal(held, [4.0] * 4)
    assert other(np.zeros(4)) == 64.0


def test_arrays_of_others(tmp_path):
    f = pyop.compile(lambda x: bump(x).sum())
    mapped = np.memmap(tmp_path / "m", dtype=float, mode="w+", shape=(3,))
    assert f(mapped) == 3.0
    assert np.array_equal(mapped, [1.0] * 3)
    locked = np.memmap(tmp_path / "m", dtype=float, mode="r", shape=(3,))
    with pytest.raises(ValueError, match="read-only"):
        f(locked)
    own = np.zeros((2, 2)).view(type("Own", (np.ndarray,), {}))
    assert f(own) == 4.0
    assert (own == 1).all()

    class Lends:
        def __init__(self):
            self.numbers = np.zeros(3)

        def __array__(self, dtype=None, copy=None):
            return self.numbers.copy()

        def __setitem__(self, key, value):
            self.numbers[key] = value

    def write(x):
        x[0] = 5.0

    lends = Lends()
    pyop.compile(write)(lends)
    assert lends.numbers[0] == 5.0


def test_declared_arguments():
    f = pyop.compile(bump, "float64[n]", "float64")
    x = np.zeros(3)
    assert f(x, 2.0) is x
    assert np.array_equal(x, [2.0] * 3)
    with pytest.raises(pyop.InputError):
        f(np.zeros(3, np.float32), 2.0)
    with pytest.raises(TypeError):
        f([0.0, 0.0], 2.0)  # as the function itself does


def test_out():
    f = pyop.compile(lambda x: (x * 2, bump(x)[1:]))
    x, out = np.ones(3), (np.zeros(3), np.zeros(2))
    got = f(x, out=out)
    assert got[0] is out[0]
    assert got[1] is out[1]
    assert np.array_equal(out[0], [2.0] * 3)
    assert np.array_equal(out[1], [2.0] * 2)
    with pytest.raises(pyop.InputError, match="out="):
        f(x, out=(np.zeros(3), np.zeros(7)))
    assert np.array_equal(x, [2.0] * 3)
    f(x, out=(x, None))
    assert np.array_equal(x, [4.0] * 3)
    row = np.zeros((2, 3))
    f(np.broadcast_to(np.ones(3), (3,)).copy(), out=(row[0], row[1, 1:]))
    assert np.array_equal(row, [[2.0] * 3, [0.0, 2.0, 2.0]])


def test_errors_leave_what_numpy_leaves():
    def f(x, y):
        x += 1
        x /= y
        x -= 1

    other = pyop.compile(f)
    x, plain = np.ones(3), np.ones(3)
    other(x, np.ones(3))
    f(plain, np.ones(3))
    with np.errstate(divide="raise"):
        for g, a in ((f, plain), (other, x)):
            with pytest.raises(FloatingPointError):
                g(a, np.array([1.0, 0.0, 2.0]))
    assert np.array_equal(x, plain)


def test_effects_are_not_done_twice():
    drawn = []

    @pyop.op("-> float64[3]", stateful=True)
    def noise():
        drawn.append(1)
        return np.ones(3)

    @pyop.op
    def fails(x):
        if len(drawn) > 1:
            raise OverflowError("later")
        return x * 1

    @pyop.compile
    def f(x):
        x += noise()
        x += fails(x * 1)

    x = np.zeros(3)
    f(x)
    assert np.array_equal(x, [2.0] * 3)
    with pytest.raises(OverflowError) as caught:
        f(x)
    assert len(drawn) == 2
    assert np.array_equal(x, [2.0] * 3)
    assert any("as they were before the call" in note for note in caught.value.__notes__)


def test_plans_and_graphs():
    f = pyop.compile(lambda x, y: bump(x, y)[1:])
    plan, x = f.plan_for(np.zeros(3), np.ones(3)), np.zeros(3)
    again = [pickle.loads(pickle.dumps(x)) for x in (plan, plan.graph)]
    for made in (plan, plan.graph.compile(), again[0], again[1].compile()):
        x[:] = 0
        part = made(x, np.ones(3))
        assert np.shares_memory(part, x)
        assert np.array_equal(x, [1.0] * 3)
        with pytest.raises(pyop.InputError, match=r"'x' of the plan.*shares memory.*call the compiled function"):
            made(x, x)
    with pytest.raises(pyop.GraphError, match=r"writes into its input 'x'.*compile"):
        plan.graph.run(feeds={"x": x, "y": x})
    with pytest.raises(pyop.GraphError, match=r"writes into its input 'x'.*return"):
        plan.graph.save("nowhere")
    with pytest.raises(pyop.GraphError, match=r"writes into its input 'x'"):
        pyop.grad(plan.graph)


def test_what_may_be_a_view_or_a_copy():
    def late(x):
        x += 1
        return x.reshape(-1)

    def early(x):
        y = x.reshape(-1)
        y += 1

    x = np.zeros((2, 2))
    with pytest.warns(pyop.RetraceWarning, match=r"return a copy"):
        assert np.shares_memory(pyop.compile(late)(x), x)
    assert np.array_equal(x, np.ones((2, 2)))
    x[:] = 0
    pyop.compile(early)(x)
    assert x.all()


def test_inside_other_functions():
    @pyop.compile
    def outer(x):
        y = x * 1
        inner(y)
        return y

    assert np.array_equal(outer(np.ones(3)), [3.0, 1.0, 1.0])

    @pyop.compile
    def both(x, y):
        y *= 2
        return pyop.grad(lambda x: (x * x * y).sum())(x)

    x, y = np.ones(3), np.ones(3)
    assert np.array_equal(both(x, y), [4.0] * 3)
    assert np.array_equal(y, [2.0] * 3)


def test_threads_do_not_meet():
    f = pyop.compile(lambda x: bump(x, 1.0).sum())
    arrays = [np.zeros(100) for _ in range(4)]
    threads = [threading.Thread(target=lambda a=a: [f(a) for _ in range(200)]) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((a == 200).all() for a in arrays)
