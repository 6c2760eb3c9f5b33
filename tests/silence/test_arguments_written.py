"""Functions that write into their arguments: results, arguments with the memory around them, and who shows whose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyop
from pyop._core import graph_being_built

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


@pyop.compile
def inner(y):
    y[0] *= 3.0


@case("f8[3,3]")
def in_helpers(x):
    bump(x[0])
    bump(bump(x), 2.0)
    inner(x.T)
    return bump(x[1:, 1])


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
            calls.append(graph_being_built() is None)
            return f(*args)

        other = pyop.compile(counted)
        given = [make(seed) for seed in (1, 2, 3)]
        for args in given:
            run(other, args)
        raises = ("raises_while_traced", "raises_unread", "integers_divided")
        assert any(calls) is (name in (*itself, *raises, "of_swapped_bytes")), name


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


def test_one_element_with_a_stride():
    # NumPy's loop of complex products has fused ones for elements that lie side by side, and goes by the stride.
    def f(x, y, out):
        np.multiply(x, y, out=out)

    compiled = pyop.compile(f)
    for seed in range(200):
        x, y = array("c16[1]", seed), array("c16[1]", seed + 1)
        wanted, got = x.copy()[::-1], x.copy()[::-1]
        f(x, y, wanted)
        compiled(x, y, got)
        assert got.tobytes() == wanted.tobytes()


def test_views_of_what_is_written_that_are_returned_twice_are_one_object():
    def f(x):
        x[0] = 2.0
        view = x[1:]
        return [view, view, x, x, x[1:], {"again": view}]

    def same(result):
        parts = [*result[:5], result[5]["again"]]
        return [[a is b for b in parts] for a in parts]

    for run in (pyop.compile(f), pyop.compile(f, fallback=True)):
        x = np.arange(3.0)
        result = run(x)
        assert same(result) == same(f(np.arange(3.0)))
        assert result[2] is x
        assert result[0].base is x
