"""Writes that plans do in the memory of the array itself, natively or by NumPy: at places that the graph computes, by
masks and lists, in place on matrices, over whole arrays. Held against NumPy: results, arguments, what shares memory,
errors, warnings."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import pyop
from pyop._tree import flatten

# --- at places that the graph computes


def rows(x, at):
    y = np.zeros_like(x)
    for k in at:
        y[k] += x[k - 1] * 2
        y[k, 1:] = x[k, :-1]
        y[k, 0] *= 3
    return y


def bounds(x, at):
    y = x.copy()
    for k in range(at.size - 1):
        y[k] *= x[0, at[k] :].sum().astype(x.dtype)
    return y, x[at[0] : at[1]] * 2, x[:, at[1] :].sum(), x[at[1], at[0] :: -1] + 1


def a_row_into_another(x, at):
    y = x + 1
    y[at[0]] = y[at[1]]
    y[at[1], 1:] = y[at[1], :-1]
    y[:, at[0]] = y[at[0], 0]
    return y, y[at[1]]


def a_row_of_another_dtype(x, at):
    y = np.zeros(x.shape, np.float32)
    y[at[0]] = x.real[at[1]]
    y[at[1], at[0]] = 7
    return y


def views_at_places(x, at):
    y = x * 1
    row = y[at[0]]
    part = y[1:, at[1]]
    y[at[0], 2] = 100
    part += 1
    return row, y, part


def a_column_at_a_place(x, at):
    y = x * 1
    y[..., at[0]] -= 2
    y[None, at[1]] = y[at[0], None]
    y[at[1] :][0] = 5
    return y


# --- in place on matrices


def matrices(x, at):
    y, z = x * 2, x.T * 2
    y += x
    z -= y.T
    y *= x[0]
    y[1:] -= x[:-1]
    y[:, 1:] += y[:, :-1] * 2
    z[1:, 1:] += x.T[:-1, :-1]
    return y, z


def divided(x, at):
    y = x * 1.5
    y[1:] /= x[:-1]
    y //= 2.0
    y %= x + 0.5
    return y


def of_another_dtype(x, at):
    y = x.astype(np.float32)
    y += x.real
    y[1:] += np.float64(1.5)
    return y


# --- whole arrays


def whole(x, at):
    y = np.empty_like(x)
    y[...] = x + 1
    z = np.zeros(x.shape, x.dtype)
    kept = z[0]
    z[:] = y * 2
    kept += 1
    w = np.empty(x.shape[::-1], x.dtype).T
    w[:] = x * 3
    return y, z, w, kept


def whole_and_kept(x, at):
    y = x + 1
    z = np.empty_like(x)
    z[:] = y
    z[0] = 9
    return y, z


# --- by masks, lists and functions


def masks(x, at):
    y = x * 1
    y[x.real > 0] = 2
    y[x.real < 0] += x[x.real < 0]
    y[1:][x[1:].real > 1] *= 3
    y[:, 0][y[:, 0].real > 0] = 0
    return y


def masks_of_views(x, at):
    y, z = x * 1, x.T * 1
    mask = x.real > 0.5
    part = y[1:, ::2]
    part[mask[1:, ::2]] = x[1:, ::2][mask[1:, ::2]]
    z[mask.T] = y[::-1, ::-1][mask]
    z[:, -1][~mask[-1][: z.shape[0]]] = 4
    y[mask] = y[mask][0]
    y[at[0]][mask[at[0]]] = 3
    z[mask.T] += 1
    return y, z, x.T[mask.T], x[mask][::2], part


def masks_of_rows_and_others(x, at):
    y = x * 1
    y[x[:, 0].real > 0] = 2
    y[1:, x[0].real > 0] = 1
    y[x.real > 1, None] = 0
    y[x.real > 2] = np.float16(2.5)
    y[x.real < -2] = [7]
    y[x.real < -3] = np.array([9])
    return y, x[x[:, 0].real > 0], x[x.real > 1e9], x[x.real > -1e9]


def masks_of_truths(x, at):
    y = x.real > 0
    z = y.copy()
    z[y] = False
    y[y] = ~y[y]
    z[~y] = x.real[~y] > 1
    y[z] = True
    return y, z, z[z]


def lists(x, at):
    y = x * 1
    y[at] += 1
    y[:, at] = x[0, 0]
    y[[0, 0, 1]] += x[:3]
    np.add.at(y, ([0, 0, 1], [1, 1, 0]), 2)
    np.add.at(y, at, x[at])
    return y


def functions(x, at):
    y = x.real * 1.0
    y.sort(axis=0)
    np.putmask(y, y > 0, [1.0, 2.0, 3.0])
    np.copyto(y[1:], y[:-1], where=y[1:] < 2)
    np.add(y, 1.0, out=y, where=y > 1)
    np.multiply(y[:, 1:], y[:, :-1], out=y[:, :-1])
    np.put(y, at, [5.0])
    np.place(y, y == 5.0, [7.0, 8.0])
    y[1:].sort()
    y.partition(1, axis=1)
    np.cumsum(y, axis=1, out=y)
    return y


def kept_before(x, at):
    y = x.real * 1.0
    before = y.copy()
    alias = y
    y.sort(axis=0)
    later = y + 0
    y[y > 0] = 1
    return before, alias, later


PROGRAMS = [rows, bounds, a_row_into_another, a_row_of_another_dtype, views_at_places, a_column_at_a_place, matrices]
PROGRAMS += [
    divided,
    of_another_dtype,
    whole,
    whole_and_kept,
    masks,
    masks_of_views,
    masks_of_rows_and_others,
    masks_of_truths,
    lists,
    functions,
    kept_before,
]

MATRIX = np.random.default_rng(5).normal(size=(6, 5)) * 4
LAYOUTS = {
    "rows": MATRIX.copy,
    "columns": lambda: np.asfortranarray(MATRIX),
    "steps": lambda: np.repeat(np.repeat(MATRIX, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda: MATRIX[::-1, ::-1].copy()[::-1, ::-1],
    "float32": lambda: MATRIX.astype(np.float32),
    "int64": lambda: (MATRIX * 10).astype(np.int64),
    "int8": lambda: (MATRIX * 30).astype(np.int8),
    "complex128": lambda: MATRIX + 1j * MATRIX[::-1],
    "read-only": lambda: _read_only(),
    "large": lambda: np.random.default_rng(6).normal(size=(90, 70)),
}
PLACES = [np.array([1, 3, 2]), np.array([-1, 0, 4]), np.array([2, 2, 0]), np.array([0, 9, 1])]


def _read_only():
    x = MATRIX.copy()
    x.flags.writeable = False
    return x


def outcome(f, *arguments):
    with warnings.catch_warnings(record=True) as told, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            result = f(*arguments)
        except Exception as error:
            return error, []
    return result, sorted({str(w.message).replace("scalar ", "") for w in told if w.category is RuntimeWarning})


def shared(arrays):
    return [np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2)]


def check(f, make, at):
    arguments = make(), at.copy()
    want, told = outcome(f, *arguments)
    for compiled in (pyop.compile(f), pyop.compile(f, optimize=False), pyop.compile(f, threads=2)):
        for _ in range(2):
            given = make(), at.copy()
            got, heard = outcome(compiled, *given)
            if isinstance(want, Exception):
                assert isinstance(got, type(want)), got
                continue
            assert not isinstance(got, Exception), got
            ours, theirs = flatten(got)[0], flatten(want)[0]
            for a, b in zip((*ours, *given), (*theirs, *arguments), strict=True):
                assert np.asarray(a).dtype == np.asarray(b).dtype
                assert np.shape(a) == np.shape(b)
                assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
            if f not in (a_row_into_another, views_at_places):  # y[k] is a copy for an integer that the graph computes
                assert shared(ours) == shared(theirs)
            assert heard == told


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_as_numpy_does(f, layout):
    check(f, LAYOUTS[layout], PLACES[0])


@pytest.mark.parametrize("f", [rows, bounds, a_row_into_another, views_at_places, a_column_at_a_place, lists])
@pytest.mark.parametrize("at", PLACES[1:])
def test_places_from_the_end_equal_ones_and_outside(f, at):
    check(f, LAYOUTS["rows"], at)
    check(f, lambda: MATRIX.copy(), at.astype(np.int32))
    check(f, lambda: MATRIX.copy(), at.astype(np.uint8))


def into(write):
    """A program that writes into what it has made, and returns it."""

    def program(x, at):
        y = x * 1
        write(y, x, at)
        return y

    return program


@pytest.mark.parametrize(
    "write",
    [
        lambda y, x, at: np.multiply(x, 2, out=y[:3]),
        lambda y, x, at: y.__iadd__(np.ones((2, 6, 5))),
        lambda y, x, at: y.__iadd__(x[:, :4]),
        lambda y, x, at: y.__setitem__(at, np.ones((2, 5))),
        lambda y, x, at: y.__setitem__(x > 0, [1.0, 2.0]),
        lambda y, x, at: y.__setitem__(np.array([True, False]), 1.0),
        lambda y, x, at: y.__setitem__(x[1:] > 0, 1.0),
        lambda y, x, at: y[x[1:] > 0],
        lambda y, x, at: y.__setitem__(at[0], np.ones(4)),
        lambda y, x, at: y.__setitem__(0, 1j),
        lambda y, x, at: y.__setitem__(at + 9, 1),
        lambda y, x, at: y.__setitem__(at[0] + 9, 1),
        lambda y, x, at: np.add.at(y, [0, 9], 1.0),
    ],
)
def test_errors_are_numpys(write):
    assert isinstance(outcome(into(write), MATRIX, PLACES[0])[0], Exception)
    check(into(write), LAYOUTS["rows"], PLACES[0])


def test_what_is_given_away_is_so_for_one_call():
    from pyop._core import take_over

    x = np.ones(3)
    assert not take_over(x)

    def f(x):
        y = x * 1
        y[y > 0] += 1
        return y

    compiled = pyop.compile(f)
    first = compiled(x)
    assert not take_over(first)
    kept = first.copy()
    compiled(x * 5)
    assert np.array_equal(first, kept)


def test_explain_says_so():
    def f(x, k):
        y = x * 1
        y[x > 0] = x[x > 0] * 2
        y[[0, 0]] = 1
        y[k] += x[k]
        return y

    text = str(pyop.compile(f).plan_for(MATRIX, np.int64(1)).explain())
    assert "picks by a mask" in text
    assert "writes by a mask" in text
    assert "written by NumPy, in place" in text
    assert "calls Python" not in text


def test_the_report_counts_what_is_in_place_and_what_is_copied():
    def f(x, n):
        y = np.zeros_like(x)
        y[1:] = x[:-1]  # in place
        y[x > 0] += 1  # in place
        kept = y * 1
        before = kept[1:]
        later = before + 0
        kept[0] = 2  # in place
        both = y + 1
        first = both.copy()
        both[[0, 0]] = 3  # in place
        for i in range(n):
            y[i] = y[i - 1] * x[0]  # in place, once
        x[0] = 3  # a copy: the argument is the caller's until the end
        return y, later, kept, both, first

    def counted(**options):
        report = pyop.compile(f, **options).plan_for(np.ones((60, 3)), 60).report()
        return report["updates_in_place"], report["copies"]

    assert counted() == (5, 1)
    assert counted(threads=2)[1] >= 1
    assert counted(disable=("in-place",))[0] < 5
    text = str(pyop.compile(f).plan_for(np.ones((60, 3)), 60).explain())
    assert "5 updates in place, 1 into copies" in text
    assert "with 1 updates in place, 0 into copies" in text
    assert "writes a part, into a copy" in text

    plain = pyop.compile(lambda x: x + 1).plan_for(np.ones(3)).report()
    assert (plain["updates_in_place"], plain["copies"]) == (0, 0)


def test_a_branch_of_a_loop_writes_into_the_array_that_is_carried():
    def f(x, at):
        y = np.zeros_like(x)
        kept = y[0]
        before = y + 1
        for i in range(x.shape[0]):
            if x[i, 0] > 0:
                y[i] = x[i] * 2
            elif x[i, 1] > 0:
                y[i, 1:] += x[i, :-1]
        return y, kept, before

    def both(x, at):
        y = x * 1
        z = x * 2
        for i in range(at.size):
            if x[i, 0] > 0:
                y[i] += z[i]
            else:
                z[i] -= y[i]
        return y, z, y + z

    for make in (lambda: np.random.default_rng(9).normal(size=(90, 40)), LAYOUTS["columns"], LAYOUTS["float32"]):
        check(f, make, PLACES[0])
        check(both, make, np.arange(make().shape[0]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_places_of_every_integer(dtype):
    def f(x, at):
        counts = np.zeros(9, np.int64)
        for i in range(at.size):
            counts[at[i]] += 1
        return counts, x[at[1]] + x[at[0], at[1]], x[at[0] :].sum()

    check(f, LAYOUTS["rows"], np.array([3, 1, 3, 3, 0, 2, 5, 5], dtype))
    if np.dtype(dtype).kind == "i":
        check(f, LAYOUTS["rows"], np.array([-3, -1, 3, -6, 0, 2, 5, 5], dtype))
    check(f, LAYOUTS["rows"], np.array([3, 1, 9, 3], dtype))
    if dtype is np.uint64:
        check(f, LAYOUTS["rows"], np.array([3, 2**64 - 1], dtype))
