"""Loops over small vectors and matrices on a tape (csrc/plan/tape): the bits, warnings and errors of the function."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from . import block_programs
from .compare import equal
from .scalar_programs import outcome

RNG = np.random.default_rng(11)
X, Z = RNG.normal(size=4), RNG.normal(size=(150, 4))
A = RNG.normal(size=(4, 4)) * 0.4


def decay(x, a, z):
    for _ in range(len(z)):
        x = np.maximum(x * 0.999 + a[0], 0.0)
    return x


def filtered(x, a, z):
    p, out = np.eye(4), np.zeros((len(z), 4))
    for t in range(len(z)):
        x = a @ x
        p = a @ p @ a.T + 0.1 * np.eye(4)
        gain = p @ np.linalg.inv(p + np.eye(4))
        x = x + gain @ (z[t] - x)
        p = p - gain @ p
        out[t] = x
    return out, p, x


def solved(x, a, z):
    for t in range(len(z)):
        x = np.linalg.solve(a + 3 * np.eye(4), x + z[t])
    return x


def swapped(x, a, z):
    y = x * 2
    for t in range(len(z)):
        x, y = y, x * 0.5 + z[t]
    return x, y


def rows_of_itself(x, a, z):
    for t in range(1, len(z)):
        z[t] = z[t] * 0.5 + z[t - 1] * x
    return z[-1]


def shifted_row(x, a, z):
    for t in range(len(z)):
        z[t, 1:] = z[t, :-1]
    return x


def part_of_carried(x, a, z):
    for t in range(len(z)):
        x[t % 4] = z[t, 0] * 0.5
        x[1:3] = x[:2]
        x = x * 0.9
    return x


def transposed_and_carried(x, a, z):
    for t in range(len(z)):
        a = a.T * 0.9
        x = a @ x + z[t]
    return x, a


def view_kept(x, a, z):
    for t in range(len(z)):
        old = x
        x = x * 0.5 + z[t]
        x = x + old[::-1]
    return x


def nested(x, a, z):
    for t in range(len(z)):
        for k in range(3):
            x = np.tanh(a @ x + z[t] * k)
    return x


def way(x, a, z):
    for t in range(len(z)):
        if x[0] > 0:
            x = a @ x
            x = x * 1.5
        else:
            x = x + z[t]
    return x


def until(x, a, z):
    t = 0
    while x[0] < 30.0 and t < 100:
        x = x * 1.01 + 0.5
        t = t + 1
    return x, t


def dots(x, a, z):
    s = 0.0
    for t in range(len(z)):
        s = s * 0.5 + np.dot(x, z[t]) + x @ x
        x = z[t] / (1.0 + np.sqrt(x @ x))
    return s, x


def sums(x, a, z):
    s = 0.0
    for t in range(len(z)):
        s = s + np.sum(x * z[t]) + np.max(np.abs(z[t] - x))
        x = x * 0.5 + (a * x).sum(axis=1)
    return s, x


def picks(x, a, z):
    for t in range(len(z)):
        x[t % 4] = x[(t + 1) % 4] * 0.5 + a[0, 0]
        x = x + a[1]
    return x


def overflowing(x, a, z):
    for t in range(len(z)):
        x = x * 1000.0 + z[t]
    return x


def singular_in_the_middle(x, a, z):
    for t in range(len(z)):
        x = x + np.linalg.solve(a * (1.0 - t // 100), z[t])
    return x


def written_before_it_fails(x, a, z):
    out = np.zeros_like(z)
    for t in range(len(z)):
        z[t] = x
        out[t] = np.linalg.inv(np.eye(4) * (1.0 - t // 90))[0]
    return out


PROGRAMS = [
    decay, filtered, solved, swapped, rows_of_itself, shifted_row, part_of_carried, transposed_and_carried, view_kept,
    nested, way, until, dots, sums, picks, overflowing, singular_in_the_middle, written_before_it_fails,
]  # fmt: skip
LAYOUTS = {
    "as they are": lambda x: x.copy(),
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "fortran": lambda x: np.asfortranarray(x),
    "float32": lambda x: x.astype(np.float32),
    "not numbers": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 1, np.nan, x),
}


def called(f, layout, errstate):
    return outcome(f, [LAYOUTS[layout](v) for v in (X, A, Z)], errstate)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_the_function(program: Any, layout: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ways = [pyop.compile(program), pyop.compile(program, disable=["tape"])]
    for errstate in ({}, {"all": "raise"}, {"all": "ignore"}, {}):
        wanted = called(program, layout, errstate)
        for way in ways:
            found = called(way, layout, errstate)
            assert equal(wanted[1], found[1])
            assert wanted[2] == found[2]
            assert wanted[0] == found[0] if isinstance(wanted[0], str) else equal(wanted[0], found[0])


@pytest.mark.parametrize(
    "program", [decay, filtered, solved, swapped, nested, rows_of_itself, part_of_carried, dots, sums, picks]
)
def test_is_on_a_tape(program: Any) -> None:
    arguments = [X.copy(), A.copy(), Z.copy()]
    assert "a tape of" in str(pyop.compile(program).plan_for(*arguments).explain())


def test_results_have_memory_of_their_own() -> None:
    compiled = pyop.compile(filtered)
    first = compiled(X, A, Z)
    kept = [x.copy() for x in first]
    second = compiled(X * 2, A, Z)
    assert equal(kept, list(first))
    assert not any(np.shares_memory(x, y) for x in first for y in (*second, X, A, Z))
    assert all(x.flags.writeable and x.flags.owndata for x in first)


def test_other_shapes_and_named_sizes() -> None:
    compiled = pyop.compile(decay)
    named = pyop.compile(decay, "float64[n]", "float64[m,n]", "float64[20,n]")
    for n in (4, 7, 4, 70, 1):
        x, a, z = RNG.normal(size=n), RNG.normal(size=(3, n)), np.zeros((20, n))
        wanted = decay(x, a, z)
        assert equal(wanted, compiled(x, a, z))
        assert equal(wanted, named(x, a, z))


def test_kept_plans() -> None:
    plan = pickle.loads(pickle.dumps(pyop.compile(filtered).plan_for(X, A, Z)))
    assert equal(list(filtered(X, A, Z)), list(plan(X, A, Z)))


@pytest.mark.parametrize("seed", range(40))
def test_generated(seed: int) -> None:
    assert block_programs.difference(seed) is None
