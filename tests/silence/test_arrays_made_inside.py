"""Arrays that a function makes of no symbolic array, and writes Values into: as in NumPy, in every way of compiling."""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import zeros as zeros_of_numpy

import pyop

from .compare import differs


def recurrence(x):
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


def rows(x):
    out = np.empty((3, x.shape[0]), x.dtype)
    out[1] = x
    out[0] = out[1] * 2
    out[2] = 1
    return out


def summed(x):
    acc = np.zeros(3)
    acc += x[:3]
    acc -= 1
    return acc, np.ones(2)


def used_before_and_after(x):
    y = np.zeros(len(x))
    a = x + y
    y[0] = 5
    b = x + y
    y[-1] = x[0]
    return a, b, x + y, y


def aliases(x):
    y = np.ones((2, len(x)))
    v, w = y[1], y.T
    v[0] = x[0]
    w[-1] *= 3
    v += 1
    return y, v.sum(), w * 1


def in_containers(x):
    made = [np.zeros(2) for _ in range(3)]
    for k, row in enumerate(made):
        row[0] = x[k % len(x)]
        row[1] += k
    return made


def casting(x):
    a = np.zeros(2, np.int8)
    a[0] = 3
    b = np.full(2, 7, dtype="f4")
    b[:1] = x[:1]
    b += x[0]
    return a, b


def not_written(x):
    y = np.zeros(len(x))
    y[:1] = x[:1]
    return np.ones(2), np.full((2, 2), 1.5), np.zeros(3, "c16"), y


def of_no_dimension(x):
    z = np.zeros(())
    z[...] = x.sum()
    z += 1
    return z


def helper(v):
    t = zeros_of_numpy(3, v.dtype)
    t[0] = v[0]
    t[1:] += v[-1]
    return t


def by_helpers(x):
    return list(map(helper, [x, x * 2])), functools.partial(helper, x)(), [helper(v) for v in (x, x)]


def closure() -> Callable[..., Any]:
    make, scale = np.zeros, 3.0

    def inner(n, make=make):
        return make(n) + scale

    def outer(x):
        y = inner(len(x))
        y[0] = x[0]
        nested = lambda n: np.ones(n)
        z = nested(2)
        z[1] = y[0]
        return y, z

    return outer


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args) * 2

    return wrapper


@doubled
def decorated(x):
    y = np.zeros(len(x))
    y[:] = x
    return y


def imported_inside(x):
    import numpy
    from numpy import ones

    y, z = numpy.zeros(len(x)), ones(2)
    y[0] = z[0] = x[0]
    return y, z


def by_name(x):
    y = getattr(np, "zeros")(len(x))  # noqa: B009
    y[0] = x[0]
    return y


def identity_of_functions(x, make=np.zeros):
    y = make(2)
    y[0] = x[0]
    return y if make is np.zeros and zeros_of_numpy is np.zeros and make == zeros_of_numpy else y * 100


def caught(x):
    y = np.zeros(2)
    with contextlib.suppress(TypeError, ValueError):
        y[0] = x[0]
    return y


def texts_and_objects(x):
    y = np.zeros(2)
    y[0] = x[0]
    names = np.zeros(2, "U3")
    names[0] = "abc"
    held = np.zeros(2, object)
    held[0] = "abc"
    return (y, 1) if names[0] == held[0] else (y, 2)


def literals(x):
    a = np.array([x[0], 1, x[-1]])
    a += 1
    b = np.array([[x[0], 1], [2, x[1]]])
    b[0, 0] = 5
    c = np.array([x, x * 2])
    c[1] += c[0]
    d = np.array((x[:2], [1, 2]))
    e = np.array([[[x[0]]], [[np.float32(3)]]])
    return a, b, c, d, e, np.array([x[0], x[0] > 1]), np.array([x])


def literals_with_dtype(x):
    a = np.array([x[0], 2.7], dtype=int)
    b = np.array([x, x], dtype="f4")
    c = np.array([1, x[0]], dtype=complex)
    d = np.array([x[0], 1.0], ndmin=2)
    e = np.array([[x[0], 1], [2, 3]], order="F")
    return a, b, c, d, e


def copies(x):
    y = np.array(x)
    y[0] = 7
    z = np.array(x, dtype="f4")
    z[1] = 3
    w = np.copy(x)
    w *= 2
    s = np.array(x.sum())
    s += 1
    v = np.array(y, ndmin=2)
    v[0, 0] += 1
    return y, z, w, s, v, np.array([x[0]])[0]


def no_copies(x):
    t = np.zeros(2)
    t[0] = x[0]
    y = x * 2
    a = np.asarray(y)
    a[0] = 5
    b = np.asanyarray(y)
    b += 1
    c = np.array(y, copy=None)
    c[-1] = t[0]
    d = np.asarray(y, dtype="f2")
    d[0] = 1
    return y, a is y, b is y, c is y, d


def ranges(x):
    a = np.arange(4.0)
    a += x[0]
    b = np.eye(2)
    b[0, 1] = x[1]
    c = np.linspace(0, 1, len(x))
    c[1:] *= x[1:]
    d = np.identity(2, x.dtype)
    d[0] += x[:2]
    e = np.tri(2) * x[0]
    f = np.hanning(3)
    f[0] = x[2]
    g, h = np.meshgrid(np.arange(2), np.arange(3))
    g = g + x[0]
    h[0] = 2
    return a, b, c, d, e, f, g, h


def of_arrays_made_inside(x):
    t = np.arange(4.0)
    y = np.sqrt(t)
    y[0] = x[0]
    z = t * 2 + 1
    z[1] = x[1]
    w = np.concatenate([t, [1.0]])
    w[-1] = x[2]
    v = np.outer(t, t)
    v[0] = x[0]
    return y, z, w, v, t


def ordered(x):
    y = np.zeros((2, 3), order="F")
    y[0] = x[0]
    z = np.zeros((2, 3), order="F")
    w = np.outer(x, x).T
    return y, z, np.ones((2, 3)).T, np.array([w, w * 3]), np.array([w, w]).sum()


def filled_with_a_value(x):
    y = np.full((2, 2), x[0])
    y[0] = 1
    z = np.full(len(x), x)
    z[0] = 2
    return y, z, np.full(2, x[0], dtype="f8")


def large(x):
    y = np.zeros((200, 300))
    y[1] = x[0]
    z = np.full((300, 300), 2.5, dtype="f4")
    z[:, 0] = x[1]
    w = np.full((100, 300), np.arange(300.0))
    w[0] = x[2]
    v = np.empty((300, 300))
    v[...] = x[0]
    return y, z, w, v, np.ones((300, 300)), np.zeros((300, 300), order="F"), np.arange(90000.0)


def shown(x):
    y = np.arange(6.0).reshape(2, 3)
    z = np.zeros(3)
    z[0] = x[0]
    w = np.sin(y)
    return y, y[1], y.T, z, w, w[0], [z, z]


PROGRAMS = [
    large, shown,
    literals, literals_with_dtype, copies, no_copies, ranges, of_arrays_made_inside, ordered, filled_with_a_value,
    recurrence, rows, summed, used_before_and_after, aliases, in_containers, casting, not_written, of_no_dimension,
    by_helpers, closure(), decorated, imported_inside, by_name, identity_of_functions, caught, texts_and_objects,
]  # fmt: skip
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


def test_an_array_that_is_written_elsewhere_is_refused():
    held = np.arange(4.0)
    keeper = Keeper(held)

    def f(k):
        before = held[k]
        keeper.write()
        return before + held[k]

    with pytest.raises(TypeError, match="an array that it holds"):
        pyop.compile(f)(np.array([0, 1]))
    assert held[0] == 0.0


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
    with pytest.raises(TypeError, match="may be kept there; copy first"):
        pyop.compile(f)(x, True)


def test_numbers_that_a_derivative_is_asked_by_are_not():
    def f(x):
        y = np.zeros(2)
        y[0] = x[0]
        return y, pyop.grad(lambda v: float(v[0]) * v[1])(np.ones(2))

    with pytest.raises(TypeError, match=r"float\(\)"):
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


def test_nested_compiled_functions_and_plans_that_are_saved():
    inner = pyop.compile(recurrence)
    outer = pyop.compile(lambda x: (inner(x * 2), np.zeros(2)))
    x = np.array([1.5, -2.0, 3.0])
    assert not differs((recurrence(x * 2), np.zeros(2)), outer(x))
    plan = pickle.loads(pickle.dumps(pyop.compile(large).graph(x))).compile()
    for a, b in zip(large(x)[:4], plan(x)[:4], strict=True):
        assert not differs(a, b)


def test_captured_arrays_and_those_of_others_stay_errors():
    def written(x):
        CAPTURED[0] = x[0]
        return CAPTURED

    for f in (written,):
        with pytest.raises(
            TypeError, match=r"x\[key\] = y` at .*test_arrays_made_inside\.py:\d+ .* the function holds.*copy"
        ):
            pyop.compile(f)(np.ones(3))
    assert not CAPTURED.any()


COUNT = 0


def test_functions_that_bind_globals_keep_the_error():
    def f(x):
        global COUNT
        COUNT = 1
        y = np.zeros(2)
        y[0] = x[0]
        return y

    with pytest.raises(TypeError, match=r"a\[k\] = value`"):
        pyop.compile(f)(np.ones(3))
    assert COUNT == 0


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

    with pytest.raises(TypeError, match="closure"):
        pyop.compile(f)(np.ones(3))


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
