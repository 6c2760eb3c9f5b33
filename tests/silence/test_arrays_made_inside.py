"""Arrays that a function makes of no symbolic array, and writes Values into: as in NumPy, in every way of compiling."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

from .compare import differs
from .making import PROGRAMS, in_containers, large, literals, recurrence

WAYS: dict[str, dict[str, Any]] = {"compiled": {}, "unoptimized": {"optimize": False}, "threads": {"threads": 2}}


def leaves(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (list, tuple)) else [x]


def sharing(results: list[Any], like: list[Any]) -> list[list[bool]]:
    """Which results share memory, but for those that are scalars in `like`."""
    arrays = [x for x, y in zip(results, like, strict=True) if isinstance(y, np.ndarray)]
    return [[np.shares_memory(a, b) for b in arrays] for a in arrays]


def strides(a: np.ndarray) -> list[int]:
    """Along the axes where they mean something."""
    return [step for n, step in zip(a.shape, a.strides, strict=True) if n > 1 and a.size]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_in_numpy(f, way):
    compiled = pyop.compile(f, **WAYS[way])
    kept = []
    for x in (np.array([1.5, -2.0, 3.0, 0.25]), np.array([0.5, 2.0, -1.0, 4.0]), np.array([1.5, -2.0, 3.0])):
        for given in (x, x.astype("f4")):
            before = given.copy()
            want, got = f(given), compiled(given)
            assert not differs(want, got)
            assert np.array_equal(given, before)
            like = [given, *leaves(want)]
            assert sharing(like, like) == sharing([given, *leaves(got)], like)
            for a, b in zip(leaves(want), leaves(got), strict=True):
                if isinstance(a, np.ndarray):
                    assert (strides(a), a.flags.writeable) == (strides(b), b.flags.writeable)
            assert not any(np.shares_memory(a, b) for a in leaves(got) for b in kept if isinstance(a, np.ndarray))
            kept += [leaf for leaf in leaves(got) if isinstance(leaf, np.ndarray)]
            for leaf in leaves(got):
                if isinstance(leaf, np.ndarray):
                    leaf[...] = 99  # the caller's, and no part of the plan


def locked(x):
    y = np.zeros(3)
    y.flags.writeable = False
    return y, y


def shown_widely(x):
    y = np.broadcast_to(np.linspace(0.0, 1.0, 4), (2, 4))
    return y, y, np.zeros(2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [locked, shown_widely], ids=lambda f: f.__name__)
def test_what_nobody_may_write_into(f, way):
    x = np.ones(2)
    compiled = pyop.compile(f, **WAYS[way])
    for _ in range(2):
        want, got = f(x), compiled(x)
        assert not differs(want, got)
        assert got[0] is got[1]
        assert [a.flags.writeable for a in got] == [a.flags.writeable for a in want]


def test_a_trace_with_a_first_call_that_needs_none():
    def f(x, make):
        if not make:
            return x + 1
        y = np.zeros(2)
        y[0] = x[0]
        return y

    compiled = pyop.compile(f, static="make")
    x = np.ones(2)
    for make in (False, True, False, True):
        assert not differs(f(x, make), compiled(x, make))
    assert not differs(f(x[:1], False), compiled(x[:1], False))


CAPTURED = np.zeros(3)
TABLE = np.array([0.5, 1.5, 2.5, 3.5])
MATRIX = np.vstack([TABLE, TABLE + 1, TABLE * 2])


def looked_up(k):
    return TABLE[k % 4], TABLE[k[0] % 4], MATRIX[:, k % 3], MATRIX[k % 3], TABLE.take(k % 4)


def copied(k):
    y, z = TABLE.copy(), MATRIX * 2
    y[0] = k[0]
    z[1] = k[0]
    return y, z, TABLE, TABLE[1:], np.array(TABLE)


def by_default(k, w=TABLE):
    y = np.zeros(3)
    y[0] = k[0]
    y[1:] = w[:2]
    return y, float(w[2]), w


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [looked_up, copied, by_default], ids=lambda f: f.__name__)
def test_arrays_that_the_function_holds(f, way):
    compiled = pyop.compile(f, **WAYS[way])
    for k in (np.array([1, 2, 0]), np.array([3, 0, 1])):
        want, got = f(k), compiled(k)
        assert not differs(want, got)
        like = [TABLE, *leaves(want)]
        assert sharing(like, like) == sharing([TABLE, *leaves(got)], like)
    assert TABLE[0] == 0.5


def test_an_array_that_the_function_holds_is_looked_at_again():
    held = np.arange(4.0)
    compiled = pyop.compile(lambda k: held[k])
    k = np.array([1, 2])
    assert np.array_equal(compiled(k), [1, 2])
    held += 10
    assert np.array_equal(compiled(k), [11, 12])


class Keeper:
    def __init__(self, array):
        self.array = array

    def write(self):
        self.array[0] += 7.0


def test_an_array_that_is_written_elsewhere():
    held = np.arange(4.0)
    keeper = Keeper(held)

    def f(k):
        before = held[k]
        keeper.write()
        return before + held[k]

    k, first = np.array([0, 1]), held.copy()
    expected, written = f(k), held.copy()
    held[:] = first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        np.testing.assert_array_equal(pyop.compile(f)(k), expected)
    np.testing.assert_array_equal(held, written)


def numbers_are_known(x):
    t, w, s = np.zeros(2), np.arange(4.0), 0.0
    t[0] = x[0]
    for k in np.array([1, 2, 0]):
        s = s + x[k] * w[k]
    m = np.zeros(3, bool)
    m[::2] = True
    z = x * 1
    z[np.array([1, 0])] = 5
    z[m[: len(z)]] += 1
    y = z[m]
    numbers = float(w[2]), w[1:].tolist(), w[1].item(), complex(w[1])
    w[0] = x[1]
    return t, s, numbers, y, y.shape[0], z, w


def test_numbers_of_what_it_makes_are_known():
    for x in (np.array([1.5, -2.0, 3.0]), np.array([0.5, 2.0, -1.0])):
        assert not differs(numbers_are_known(x), pyop.compile(numbers_are_known)(x))


def test_a_library_gets_arrays_that_nobody_writes():
    linalg = pytest.importorskip("scipy.linalg")

    def f(x, late):
        y, a = np.zeros(2), np.eye(2) * 2
        y[0] = x[0]
        b = linalg.inv(a)
        if late:
            a[0] = x
        return y, b @ x, a

    x = np.array([1.0, 2.0])
    assert not differs(f(x, None), pyop.compile(f)(x, None))
    with pytest.warns(pyop.RetraceWarning, match="may be kept there; copy first"):
        assert not differs(f(x, True), pyop.compile(f)(x, True))


def test_numbers_that_a_derivative_is_asked_by_are_not():
    def f(x):
        y = np.zeros(2)
        y[0] = x[0]
        return y, pyop.grad(lambda v: v.tolist()[0] * v[1])(np.ones(2))

    with pytest.raises(TypeError, match=r"tolist\(\)"):
        pyop.compile(f)(np.ones(2))


def loss(v):
    y, m = np.zeros(len(v)), np.eye(2)
    y[0] = v[0]
    for k in range(1, len(v)):
        y[k] = y[k - 1] * 0.5 + v[k] ** 2
    m[0, 1] = v[1]
    z = np.array([y[0], y[-1], 2.0])
    return (y * np.arange(float(len(v)))).sum() + (z * z).sum() + (m @ m).sum()


def test_derivatives():
    x = np.array([1.5, -2.0, 3.0])

    def by_steps(f, x):
        steps = np.eye(len(x)) * 1e-6
        return np.array([(f(x + h) - f(x - h)) / 2e-6 for h in steps])

    want = by_steps(loss, x)
    for f in (pyop.grad(loss), lambda x: pyop.grad(loss)(x), lambda x: pyop.vjp(loss, x)[1](1.0)[0]):
        np.testing.assert_allclose(pyop.compile(f)(x), want, rtol=1e-6)
    value, slope = pyop.compile(lambda x: pyop.jvp(loss, (x,), (np.ones(3),)))(x)
    np.testing.assert_allclose((value, slope), (loss(x), want.sum()), rtol=1e-6)
    second = pyop.compile(lambda x: pyop.grad(lambda v: pyop.grad(loss)(v).sum())(x))(x)
    np.testing.assert_allclose(second, by_steps(lambda x: pyop.compile(pyop.grad(loss))(x).sum(), x), rtol=1e-5)


def test_no_derivative_comes_from_where_nothing_is_written():
    x = np.array([-1.0, 4.0, 0.0])
    for f in (
        lambda x: np.sqrt(x, out=np.zeros(3), where=x > 0).sum(),
        lambda x: np.sqrt(x, out=np.zeros_like(x), where=x > 0).sum(),
    ):
        np.testing.assert_array_equal(pyop.compile(pyop.grad(f))(x), [0, 0.25, 0])
        _, slope = pyop.compile(lambda x, f=f: pyop.jvp(f, (x,), (np.ones(3),)))(x)
        assert slope == 0.25


def test_nested_compiled_functions_and_plans_that_are_saved():
    inner = pyop.compile(recurrence)
    outer = pyop.compile(lambda x: (inner(x * 2), np.zeros(2)))
    x = np.array([1.5, -2.0, 3.0])
    assert not differs((recurrence(x * 2), np.zeros(2)), outer(x))
    plan = pickle.loads(pickle.dumps(pyop.compile(large).graph(x))).compile()
    for a, b in zip(large(x)[:4], plan(x)[:4], strict=True):
        assert not differs(a, b)


def test_captured_arrays_are_written_by_the_function_itself():
    def written(x):
        CAPTURED[0] = x[0]
        return CAPTURED

    for f in (written,):
        with pytest.warns(
            pyop.RetraceWarning, match=r"x\[key\] = y` at .*test_arrays_made_inside\.py:\d+ .* the function holds.*copy"
        ):
            assert pyop.compile(f)(np.ones(3)) is CAPTURED
    assert CAPTURED[0] == 1
    CAPTURED[0] = 0


COUNT = 0


def test_functions_that_bind_globals_run_themselves():
    def f(x):
        global COUNT
        COUNT = 1
        y = np.zeros(2)
        y[0] = x[0]
        return y

    assert COUNT == 0
    with pytest.warns(pyop.RetraceWarning, match=r"a\[k\] = value`"):
        np.testing.assert_array_equal(pyop.compile(f)(np.ones(3)), [1.0, 0.0])
    assert COUNT == 1


def test_a_variable_that_is_bound_anew_is_refused():
    make = np.zeros

    def switch():
        nonlocal make
        make = np.ones

    def use():
        return make(2)

    def f(x):
        y = use()
        y[0] = x[0]
        switch()
        return y, use()

    with pytest.warns(pyop.RetraceWarning, match="closure"):
        y, other = pyop.compile(f)(np.ones(3))
    np.testing.assert_array_equal([y, other], [[1.0, 0.0], [1.0, 1.0]])


def test_who_looks_at_globals_sees_what_is_there_now():
    space: dict[str, Any] = {"np": np}
    exec(
        "def change():\n    global scale\n    scale = 2.0\n"
        "def f(x):\n    change()\n    y = np.zeros(2)\n    y[0] = x[0] * scale\n    return y\n",
        space,
    )
    space["scale"] = 2.0
    compiled = pyop.compile(space["f"])
    assert compiled(np.ones(2))[0] == 2.0
    space["scale"] = 3.0
    assert compiled(np.ones(2))[0] == 2.0


NEED_NUMBERS = (recurrence, in_containers, literals)  # of their sizes


@pytest.mark.parametrize("f", [f for f in PROGRAMS if f not in NEED_NUMBERS], ids=lambda f: f.__name__)
def test_of_named_sizes(f):
    compiled = pyop.compile(f, "float64[n]")
    for x in (np.array([1.5, -2.0, 3.0, 0.25]), np.array([0.5, 2.0, -1.0])):
        assert not differs(f(x), compiled(x))


def sized(x):
    n = len(x)
    a = np.zeros(n)
    a[1:] = x[1:]
    b = np.ones((n, 2))
    b[:, 0] = x
    c = np.arange(n) * x
    d = np.eye(n)
    d[0] = x
    e = np.linspace(0, 1, n + 1)
    e[0] = x[0]
    f = np.full(n, x[0])
    f[0] = 0
    g = np.zeros(x.shape)
    g += x
    return a, b, c, d, e, f, g, np.array([x, x * 2])


@pytest.mark.parametrize("way", WAYS)
def test_symbolic_sizes(way):
    compiled = pyop.compile(sized, "float64[n]", **WAYS[way])
    for n in (4, 3, 1, 6):
        x = np.arange(n) + 0.5
        assert not differs(sized(x), compiled(x))
    assert compiled.cache_info().plans == 1


def test_an_array_of_no_dimension_that_is_made_inside_picks_a_copy():
    def f(x):
        made = np.zeros(3)
        made[0] = x[0, 0]
        y = x * 1.0
        copied = y[np.array(1)]
        copied += 1.0
        part = y[: np.array(2)]
        part *= 2.0
        row = y[np.array([1, 2])[0]]
        row -= 3.0
        return y, copied, part, row, made, y[np.array(1), 2]

    x = np.arange(9.0).reshape(3, 3)
    for options in ({}, {"optimize": False}, {"threads": 2}):
        for found, wanted in zip(pyop.compile(f, **options)(x), f(x), strict=True):
            assert np.array_equal(found, wanted)
