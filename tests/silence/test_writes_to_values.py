"""Writes to Values, by key and by augmented assignment: seen by every name and every view, or refused; other writes are
refused, with a remedy."""

import contextlib

import numpy as np
import pytest

import pyop

from .compare import differs

X = np.array([1.5, -2.0, 3.0])


def same(f, *args):
    got, want = pyop.compile(f)(*args), f(*[a.copy() for a in args])
    for a, b in zip(
        got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True
    ):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


class Box:
    pass


def by_attribute(x):
    box = Box()
    box.v = x * 1
    y = box.v
    box.v += 1
    return y


def by_helper(x):
    def centre(a):
        a -= a.mean()

    y = x * 1
    centre(y)
    return y


def by_containers(x):
    y = x * 1
    items, named = [y], {"y": y}
    items[0] *= 2
    named["y"] += 1
    return y


def by_closure(x):
    y = x * 1

    def step():
        nonlocal y
        y += 1

    z = y
    step()
    return z


def half_way(x):
    y = x * 1
    z = y
    with contextlib.suppress(ValueError):
        y += 1
        y += np.ones(5)
    return z


def scalars_are_bound_anew(x):
    s = x.sum()
    t = s
    s += 1
    a = x[0]
    b = a
    a *= 3
    return s, t, a, b


def no_dimension(x):
    z = x.sum() + np.zeros((1,))
    z = z.reshape(())
    w = z
    z *= 2
    return w


@pytest.mark.parametrize(
    "f", [by_attribute, by_helper, by_containers, by_closure, half_way, scalars_are_bound_anew, no_dimension]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_name_sees_it(f, dtype):
    same(f, X.astype(dtype))


def operated(operator, target, other):
    space = {"target": target, "other": other}
    exec(f"alias = target\ntarget {operator} other", space)
    return space["alias"]


@pytest.mark.parametrize(
    ("operator", "dtype", "other"),
    [
        ("+=", np.float32, np.array([0.1, 0.2, 0.3])),
        ("*=", np.int8, 100),
        ("|=", np.bool_, np.array([True, False, True])),
        ("/=", np.float64, np.arange(1, 4)),
        ("**=", np.float32, 2),
        ("**=", np.float64, np.array([0.5, 2.0, 3.0])),
        ("//=", np.int32, 2),
        ("%=", np.int64, np.array([2, 3, 5])),
        ("<<=", np.int16, 1),
        ("*=", np.complex128, np.array([1 + 2j, 3 - 1j, 0.1j])),
        ("**=", np.complex64, 2),
        ("+=", np.float64, [1, 2, 3]),
    ],
)
def test_dtype_and_bits_are_the_targets(operator, dtype, other):
    same(lambda x: operated(operator, x * x.dtype.type(1), other), np.array([3, 1, 5]).astype(dtype))


@pytest.mark.parametrize(
    ("operator", "dtype", "other"),
    [
        ("/=", np.int32, 2),
        ("+=", np.float64, 1j),
        ("+=", np.bool_, 1),
        ("+=", np.float64, np.ones((2, 3))),
        ("+=", np.float64, np.ones(4)),
        ("+=", np.int32, np.ones(3)),
        ("@=", np.float64, np.ones((3, 2))),
    ],
)
def test_what_numpy_raises(operator, dtype, other):
    x = np.array([3, 1, 5]).astype(dtype)
    with pytest.raises((TypeError, ValueError)) as wanted:
        operated(operator, x.copy(), other)
    kind = next(t for t in type(wanted.value).__mro__ if not t.__name__.startswith("_"))
    with pytest.raises(kind):
        pyop.compile(lambda x: operated(operator, x.copy(), other))(x)


@pytest.mark.parametrize("make", [lambda y: np.broadcast_to(y, (2, 3)), lambda y: np.diagonal(np.outer(y, y))])
def test_read_only_views(make):
    def f(x):
        v = make(x * 1)
        v += 1
        return v

    for call in (f, pyop.compile(f)):
        with pytest.raises(ValueError, match="read-only"):
            call(X)


def test_a_read_only_argument_is_so_in_this_call_only():
    def f(x):
        try:
            x += 1
        except ValueError:
            return x * 2
        return x * 3

    x = X.copy()
    x.flags.writeable = False
    other = pyop.compile(f)
    assert np.array_equal(other(x), X * 2)
    assert np.array_equal(other(X.copy()), (X + 1) * 3)
    assert np.array_equal(x, X)


def argument(x):
    x += 1
    return x


def view_of_argument(x):
    v = x[::-1]
    v += 1
    return x


@pyop.op
def itself(x):
    return x


def opaque_result(x):
    y = itself(x * 1)
    y += 1
    return y


def under_an_opaque_result(x):
    y = x * 1
    z = itself(y)
    y += 1
    return z


HELD = np.ones(3)


def captured(x):
    global HELD
    HELD += x
    return HELD


@pytest.mark.parametrize(
    "f",
    [
        *(opaque_result, under_an_opaque_result),
    ],
)
def test_refused_with_lines_and_remedy(f):
    x, y = X.copy(), X.copy()
    with pytest.warns(pyop.RetraceWarning, match=r"test_writes_to_values\.py:\d+.*write `. = . \+ "):
        got = pyop.compile(f)(x)
    assert not differs(f(y), got)
    assert np.array_equal(x, y)


def test_an_array_of_the_module_is_written_by_the_function_itself():
    compiled = pyop.compile(captured)
    with pytest.warns(pyop.RetraceWarning, match=r"test_writes_to_values\.py:\d+.*writes"):
        compiled(X)
    compiled(X)
    np.testing.assert_array_equal(HELD, 1 + 2 * X)
    HELD[:] = 1


@pytest.mark.parametrize("f", [argument, view_of_argument])
def test_a_graph_has_no_caller_to_write_to(f):
    with pytest.raises(TypeError, match=r"test_writes_to_values\.py:\d+.*pyop\.compile.*write `. = . \+ "):
        pyop.trace(f, "float64[3]")


def setting(name, value):
    def write(y):
        setattr(y, name, value)

    return write


RUN_SPELLINGS = {
    "resize": lambda y: y.resize(6, refcheck=False),
    "median": lambda y: np.median(y, overwrite_input=True),
    "shape": setting("shape", (3, 1)),
    "dtype": setting("dtype", np.int64),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("spelling", RUN_SPELLINGS)
@pytest.mark.parametrize("caught", [False, True])
def test_functions_that_write_otherwise_run_themselves(spelling, caught):
    def f(x):
        y = x[::-1] * 1
        with contextlib.suppress(Exception) if caught else contextlib.nullcontext():
            RUN_SPELLINGS[spelling](y)
        return y

    compiled = pyop.compile(f)
    with pytest.warns(pyop.RetraceWarning, match=r"cannot be compiled .*\(.*Write what the error in brackets says"):
        found = compiled(X)
    for x in (X, X * 2.0):
        np.testing.assert_array_equal(compiled(x) if x is not X else found, f(x), strict=True)


REFUSED_SPELLINGS = {
    "shuffle": lambda y: np.random.default_rng(0).shuffle(y),
    "copyto of a plain array": lambda y: np.copyto(HELD, y),
    "put of a plain array": lambda y: np.put(HELD, 0, y[0]),
}


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("spelling", REFUSED_SPELLINGS)
def test_other_writes_are_refused_and_noted(spelling):
    def f(x):
        y = x * 1
        with contextlib.suppress(Exception):
            REFUSED_SPELLINGS[spelling](y)
        return y

    with pytest.warns(pyop.RetraceWarning, match=r"use|write|leave|declare"):
        np.testing.assert_array_equal(pyop.compile(f)(X), f(X))
    HELD[:] = 1


@pytest.mark.parametrize("transform", [pyop.value_and_grad, pyop.grad])
def test_inside_a_compiled_gradient(transform):
    def alias(y):
        z = y * 1.0
        w = z
        w *= 3.0
        return (z**2).sum()

    def its_argument(y):
        z = y
        z *= 3.0
        return (z**2).sum()

    for f, left in ((alias, X), (its_argument, 3 * X)):
        x = X.copy()
        found = pyop.compile(transform(f))(x)
        np.testing.assert_allclose(found[1] if isinstance(found, tuple) else found, 18 * X)
        np.testing.assert_array_equal(x, left)


def test_gradients_of_the_targets_dtype():
    def f(y):
        z = y.astype(np.float32)
        z *= np.array([0.5, 2.0, 4.0])
        return (z**2).sum()

    np.testing.assert_allclose(pyop.compile(pyop.grad(f))(X), 2 * X * [0.25, 4.0, 16.0])


def test_a_pullback_is_of_what_the_function_returned():
    def f(x):
        y, pull = pyop.vjp(lambda a: a * a, x)
        y *= 2
        return pull(np.ones(3))[0]

    np.testing.assert_array_equal(pyop.compile(f)(X), 2 * X)


def test_unknown_sizes_are_checked_when_the_plan_runs():
    g = pyop.trace(lambda x, y: operated("+=", x * 1, y), "float64[n]", "float64[m]")
    assert g.run(feeds={"x": X, "y": np.ones(1)}).tolist() == (X + 1).tolist()
    with pytest.raises(ValueError, match="broadcast"):
        g.run(feeds={"x": np.ones(1), "y": X})


@pytest.mark.parametrize("f", [lambda y, x: y.__iadd__(x), lambda y, x: y.__ipow__(x), lambda y, x: y.__imul__(x[0])])
def test_the_target_keeps_how_it_lies(f):
    """What lies otherwise is summed in another order."""
    given = np.asfortranarray(np.random.default_rng(3).standard_normal((37, 23))) ** 2
    other = np.random.default_rng(4).standard_normal((37, 23))

    def program(x, other):
        y = x * 1.5
        f(y, other)
        return y.sum(), y.ravel(order="K")

    for got, want in zip(pyop.compile(program)(given, other), program(given, other), strict=True):
        assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool", "int8"])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
def test_elements_are_read_and_written_wherever_they_lie(dtype: str, layout: str) -> None:
    def swapped(x: np.ndarray) -> tuple[np.ndarray, ...]:
        y = x * np.ones((), x.dtype)
        first = y[0, -1]
        y[0, -1] = y[-1, 0]
        y[-1, 0] = first
        before = y + np.zeros((), x.dtype)
        y[1, 1] = x[2, 0]
        return y, first, before, x[-3, 1], y[1, 1]

    whole = np.arange(24).reshape(6, 4).astype(dtype)
    x = {"C": whole[:3].copy(), "F": np.asfortranarray(whole[:3]), "strided": whole[::2, ::2], "reversed": whole[::-1]}[
        layout
    ]
    compiled = pyop.compile(swapped)
    for _ in range(3):
        for found, right in zip(compiled(x), swapped(x), strict=True):
            assert found.dtype == right.dtype
            np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_elements_at_positions_that_are_computed(dtype: str) -> None:
    def spread(x: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, ...]:
        y, k = x * np.ones((), x.dtype), at * 1
        before = y[k[0]]
        for i in range(3):
            y[k[i]] = y[k[i]] + x[k[2 - i]]
        kept = y + np.zeros((), x.dtype)
        y[k[1]] = x[0]
        return y, before, kept, y[k[1]]

    x = np.arange(1, 7).astype(dtype)
    compiled = pyop.compile(spread)
    for places in ([0, 1, 2], [5, 5, 5], [-1, 2, -6]):
        for found, right in zip(compiled(x[::-1], np.array(places)), spread(x[::-1], np.array(places)), strict=True):
            assert found.dtype == right.dtype
            np.testing.assert_array_equal(found, right)
    assert "calls Python" not in str(compiled.plan_for(x[::-1], np.array(places)).explain())
    for f in (spread, compiled):
        with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
            f(x[::-1], np.array([0, 6, 0]))
