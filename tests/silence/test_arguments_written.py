"""Functions that write into their arguments: results, arguments with the memory around them, and who shows whose."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyop

from .arguments import array
from .compare import arrays_in, differs, owner

WAYS: dict[str, Any] = {
    "compiled": pyop.compile,
    "unoptimized": lambda f: pyop.compile(f, optimize=False),
    "threads": lambda f: pyop.compile(f, threads=2),
    "named": lambda f: pyop.compile(f, *[spec(a) for a in CASES[f.__name__][1](1)]),
}
CASES: dict[str, Any] = {}


def spec(a):
    return pyop.Spec(a.dtype, tuple(f"n{size}" for size in a.shape))


def case(*texts, make=None):
    def add(f):
        CASES[f.__name__] = f, make or (lambda seed: [array(text, seed + k) for k, text in enumerate(texts)])
        return f

    return add


def run(f, args):
    try:
        return f(*args), None
    except Exception as error:
        return None, error


def aliases(result, args):
    """Which arrays of results and arguments are one, and which share memory."""
    arrays = [*arrays_in(result), *arrays_in(args)]
    return [(i, j, a is b, np.shares_memory(a, b)) for i, a in enumerate(arrays) for j, b in enumerate(arrays) if i < j]


def memory(args):
    return [owner(a) for a in arrays_in(args)]


def held_against_numpy(f, other, make, seeds=(1, 2, 1)):
    """Calls with other values; what comes back is kept, and written into."""
    for seed in seeds:
        mine, plain = make(seed), make(seed)
        want, expected = run(f, plain)
        got, error = run(other, mine)
        assert type(error) is type(expected), (error, expected)
        assert not differs(memory(plain), memory(mine), "arguments")
        assert not differs(want, got)
        if error is None and not any(isinstance(x, np.generic) for x in (want if isinstance(want, tuple) else [want])):
            assert aliases(want, plain) == aliases(got, mine)


@case("f8[5]")
def augmented(x):
    x += 1


@case("f8[5]", "f8[5]")
def step(u, v):
    u[1:-1] = v[1:-1] * 0.5
    v[:] = u


@case("f8[4,3]", "f8[3]")
def rows_and_views(x, y):
    before = x * 2
    for k, row in enumerate(x):
        row *= y + k
    x.T[0] = 5.0
    x[::-1] += y
    return before, x, x[1:], x.T, x[0], x.sum()


@case("f4[3,4] F", "f8[4]")
def casts(x, y):
    x += y
    x[1] = y
    return x, y


@case("i8[4] neg")
def integers_divided(x):
    x += 1
    x /= 2


@case("f8[]", "f8[]")
def of_no_dimension(x, y):
    x += y
    y[...] = x * 2
    return x, y


@case("f8[0]", "f8[2,0]")
def of_size_zero(x, y):
    x += 1
    y[...] = 2
    return x, y.T


@case("f8[4]", "f8[4]")
def exchanged(x, y):
    tmp = x.copy()
    x[:] = y
    y[:] = tmp
    return tmp


@case("f8[4]", "f8[4]")
def rebound(x, y):
    x += 1
    x = x * 2
    x[0] = 5
    y, x = x, y
    x *= 3
    return x, y


@case("c16[3]", "f8[3]")
def parts_of_complex(z, x):
    z *= 2
    z[1:] = x[1:]
    return z, z.real


@case("f8[6]")
def overlapping_within(x):
    x[1:] = x[:-1] + 1
    x[::2] = x[1::2]
    x[:] = x[::-1]
    return x * 1


def bump(a, by=1.0):
    a += by
    return a


@case("f8[3,3]")
def in_helpers(x):
    bump(x[0])
    bump(bump(x), 2.0)
    inner(x.T)
    return bump(x[1:, 1])


@pyop.compile
def inner(y):
    y[0] *= 3.0


@case("f8[4]", "i8[]")
def raises_half_way(x, k):
    x += 1
    x[k + 2] = 0
    x += 1
    return x


@case("f8[4]")
def raises_while_traced(x):
    x += 1
    x[9] = 0


@case("f8[3,3]")
def raises_unread(x):
    v = x * 0
    x += 1
    np.linalg.inv(v)
    return x


@case("?[4]", "i1[4]")
def small_kinds(b, i):
    b ^= True
    b[1:] |= i[1:] > 0
    i *= 100
    i[b] = 3
    return i.astype(float)


@case("f8[3] ro", "f8[3]")
def read_only(x, y):
    y += 1
    x += y


@case(make=lambda seed: [a := array("f8[3]", seed), a])
def given_twice(x, y):
    x += 1
    y *= 2
    return x + y, x


@case(make=lambda seed: [(a := array("f8[6]", seed))[:4], a[2:]])
def given_overlapping(x, y):
    x += y
    y[0] = 7.0
    return x, x[2:]


@case(make=lambda seed: [(a := array("f8[4,2]", seed))[:, 0], a[:, 1]])
def given_interleaved(x, y):
    x += y
    y -= x
    return x


@case(make=lambda seed: [np.lib.stride_tricks.as_strided(array("f8[6]", seed), (4, 3), (8, 8)), np.ones(3)])
def overlaps_itself(x, y):
    x += y
    return x[1]


@case("f8[3] swap", "f8[3]")
def of_swapped_bytes(x, y):
    x += y
    return y


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_as_numpy(name, way):
    f, make = CASES[name]
    if way == "named" and name in ("of_swapped_bytes", "raises_while_traced", "rows_and_views"):
        pytest.skip("what is declared cannot be so, or must be known")
    held_against_numpy(f, WAYS[way](f), make)


def test_every_program_but_those_that_cannot_runs_as_a_plan():
    itself = {"given_twice", "given_overlapping", "given_interleaved", "overlaps_itself", "read_only"}
    for name, (f, make) in CASES.items():
        calls = []

        def counted(*args, f=f, calls=calls):
            calls.append(args)
            return f(*args)

        other = pyop.compile(counted)
        given = [make(seed) for seed in (1, 2, 3)]
        for args in given:
            run(other, args)
        ran = sum(all(type(a) is np.ndarray for a in args) for args in calls)
        raises = ("raises_while_traced", "raises_unread", "integers_divided")
        assert bool(ran) is (name in (*itself, *raises, "of_swapped_bytes")), name


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


def test_what_may_be_a_view_or_a_copy_is_refused():
    def late(x):
        x += 1
        return x.reshape(-1)

    def early(x):
        y = x.reshape(-1)
        y += 1

    for f in (late, early):
        x = np.zeros((2, 2))
        with pytest.raises(TypeError, match=r"copy"):
            pyop.compile(f)(x)
        assert not x.any()


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


def program(x, y):
    old = x[1:] * 2.0
    x[:-1] += y[1:]
    v = x[::-1]
    v[0] = 3.0
    y *= 0.5
    return old, v, x


def windows(base, starts, steps, size):
    found = []
    for start, by in zip(starts, steps, strict=True):
        stop = start + by * (size - 1)
        found.append(base[start : (stop + (1 if by > 0 else -1)) if stop + by // abs(by) >= 0 else None : by])
    return found


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 20), min_size=2, max_size=2),
    st.lists(st.sampled_from([1, 2, 3, -1, -2]), min_size=2, max_size=2),
    st.integers(1, 5),
    st.booleans(),
)
def test_windows_of_one_array(starts, steps, size, locked):
    if any(not 0 <= start + by * (size - 1) < 32 for start, by in zip(starts, steps, strict=True)):
        return

    def make(seed):
        x, y = windows(array("f8[32]", seed), starts, steps, size)
        y.flags.writeable = not locked
        return [x, y]

    held_against_numpy(program, COMPILED, make)


COMPILED = pyop.compile(program)
