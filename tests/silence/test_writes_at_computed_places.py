"""Writes at places that the graph computes: slices with computed bounds, lists of places, exchanged rows."""

import warnings

import numpy as np
import pytest

import pyop

from .compare import differs
from .in_all_ways import MATRIX, attempt, check, check_derivatives, kind_of

RNG = np.random.default_rng(3)
# Inside, empty, from the end, the wrong way round, and beyond both ends.
BOUNDS = [(1, 3), (2, 2), (-3, -1), (3, 1), (0, 20), (-20, 2), (4, 9)]


def from_here(x, k):
    x[k[0] :] = 0.0
    return x


def up_to_here(x, k):
    x[: k[1]] += 1.5
    return x


def between(x, k):
    i, j = k
    x[i:j:2] = 7.0
    return x[i:j]


def turned_round(x, k):
    x[k[0] : k[1]] = x[k[0] : k[1]][::-1]
    return x


def shifted(x, k):
    x[k[0] + 1 :] = x[k[0] : -1]
    return x


def columns(x, k):
    x[1:, k[0] : k[1]] = x[:-1, k[0] : k[1]]
    x[None, ..., k[1] :] *= 2
    return x


def columns_of_chosen_rows(x, k):
    x[np.array([0, 2]), k[0] : k[1]] = 1.0
    x[x[:, 0] > 0, k[0] :] = 2.0
    return x


def view_of_a_view(x, k):
    v = x[k[0] :]
    w = v[: k[1]]
    w[:, ::2] = 4.0
    return v, w


def list_of_places(x, k):
    places = [k[0], 1]
    x[places] = [[1.0], [2.0]]
    places[0] = 0
    x[places, [k[0], k[1]]] += 1.0
    return x


def of_another_size(x, k):
    x[k[0] : k[1]] = np.ones((2, 1))
    return x


PROGRAMS = [from_here, up_to_here, between, turned_round, shifted, columns, columns_of_chosen_rows]
PROGRAMS += [view_of_a_view, list_of_places, of_another_size]


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}])
def test_writes_at_computed_places(f, options):
    compiled = pyop.compile(f, **options)
    for bounds in BOUNDS:
        for dtype in (np.int64, np.uint8, np.int16):
            k = np.array(bounds).astype(dtype)
            want_x, got_x = MATRIX.copy(), MATRIX.copy()
            want, got = attempt(f, want_x, k), attempt(compiled, got_x, k)
            if isinstance(want, Exception):
                assert isinstance(got, kind_of(want)), (bounds, dtype, want, got)
            else:
                assert not differs(want, got), (bounds, dtype, differs(want, got))
            assert not differs(want_x, got_x), (bounds, dtype)


@pytest.mark.parametrize("f", PROGRAMS)
def test_they_are_plans(f):
    """None of them runs itself, nor is traced again."""
    traced = []

    def counted(x, k):
        traced.append(1)
        return f(x, k)

    compiled = pyop.compile(counted)
    for bounds in [(1, 3), (0, 2), (2, 4)]:
        compiled(MATRIX.copy(), np.array(bounds))
    before = len(traced)
    compiled(MATRIX.copy(), np.array([1, 3]))
    assert len(traced) == before
    assert compiled.cache_info().plans == 1


def eliminated(x):
    """LU with pivots: rows change places where they are not in place already."""
    a = x[:, :4] * 1.0
    for k in range(3):
        p = k + np.argmax(np.abs(a[k:, k]))
        a[[k, p]] = a[[p, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def cut_off(x):
    y = x * 1.0
    i = np.argmax(y[0])
    y[0, i:] *= 0.5
    y[1, : i + 1] = y[0, : i + 1]
    y[2, i : i + 2] += y[2, i : i + 2] ** 2
    return y


@pytest.mark.parametrize("f", [eliminated, cut_off])
def test_in_all_ways(f):
    check(f, layouts=("rows", "columns", "steps", "float32", "complex128"), named=None)
    check_derivatives(f)


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")  # which rows are exchanged is another matter in each call
def test_pivots_in_a_loop():
    def solve(a, b):
        n = len(b)
        for k in range(n):
            p = k + np.argmax(np.abs(a[k:, k]))
            if p != k:
                a[[k, p]] = a[[p, k]]
                b[[k, p]] = b[[p, k]]
            for i in range(k + 1, n):
                f = a[i, k] / a[k, k]
                a[i, k:] -= f * a[k, k:]
                b[i] -= f * b[k]
        return a, b

    compiled = pyop.compile(solve)
    for seed in range(4):
        a, b = np.random.default_rng(seed).standard_normal((9, 9)), RNG.standard_normal(9)
        want, got = solve(a.copy(), b.copy()), compiled(a.copy(), b.copy())
        assert not differs(want, got)


def test_named_sizes():
    f = pyop.compile(from_here, "float64[n,m], int64[2]")
    for n in (4, 6):
        x = RNG.standard_normal((n, 3))
        assert not differs(from_here(x.copy(), np.array([2, 0])), f(x.copy(), np.array([2, 0])))


def test_out_of_bounds_though_nobody_reads_it():
    def unread(x, k):
        y = x * 1.0
        y[k[0]] = 3.0
        z = x * 2.0
        z[[k[0], k[1]]] = 0.0
        return x + 1.0

    f = pyop.compile(unread)
    assert not differs(unread(MATRIX, np.array([1, 2])), f(MATRIX, np.array([1, 2])))
    for k in ([4, 0], [0, -5]):
        with pytest.raises(IndexError, match="out of bounds"):
            f(MATRIX, np.array(k))


def too_large(x):
    y = x.copy()
    y[0] *= y.sum()
    return x + 1


def too_large_in_a_loop(x):
    y = x.copy()
    for i in range(50):
        y[i % 3] = y[i % 3] + y.sum()
    return x + 1


def too_large_of_a_float(x):
    y = x.copy()
    y[1] = y[0] * 2.5
    return x + 1


def of_unknown_size(x):
    picked = x[x > 1]
    picked[2] = 0
    return x + 1


def of_unknown_size_in_a_loop(x):
    counts = np.bincount(x % 4)
    for i in range(4):
        counts[i] = 7
    return x + 1


def computed_in_a_loop(x):
    y = x.copy()
    for i in range(3):
        y[np.argmin(x) + i] = 1
    return x + 1


UNREAD = [too_large, too_large_in_a_loop, too_large_of_a_float, of_unknown_size]
UNREAD += [of_unknown_size_in_a_loop, computed_in_a_loop]


@pytest.mark.parametrize("f", UNREAD, ids=lambda f: f.__name__)
def test_what_cannot_be_written_though_nobody_reads_it(f):
    right, wrong = np.array([1, 2, 3], np.int8), np.array([100, 90, 2], np.int8)
    if f in (of_unknown_size, of_unknown_size_in_a_loop):
        right, wrong = np.array([2, 3, 7], np.int8), np.array([1, 2, 1], np.int8)
    if f is too_large_in_a_loop:
        right = np.zeros(3, np.int8)
    compiled = pyop.compile(f)
    for x in (right, wrong, right):
        want, got = attempt(f, x), attempt(compiled, x)
        assert isinstance(want, Exception) == (x is wrong)
        assert type(got) is type(want)
        assert isinstance(got, Exception) or not differs(want, got)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_complex_numbers_into_real_arrays(dtype):
    """NumPy drops the imaginary part, and says so."""

    def into(x, z):
        x[0] = z[0]
        x[1:3] = 1j * z[1:3]
        x[3:] *= 2
        return x * 2

    def outcome(f):
        x, z = np.arange(6).astype(dtype), np.arange(6) * (1 + 2j)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made = f(x, z)
        return (x, made), [(w.category, str(w.message)) for w in told]

    f = pyop.compile(into)
    for _ in range(2):
        want, warned = outcome(into)
        got, told = outcome(f)
        assert not differs(want, got)
        assert told == warned


def test_a_bound_that_is_none():
    def by_float(x):
        y = x * 1.0
        y[x[0] :] = 0.0
        return y

    with pytest.raises(TypeError), pytest.warns(pyop.RetraceWarning):
        pyop.compile(by_float)(np.ones(3))
