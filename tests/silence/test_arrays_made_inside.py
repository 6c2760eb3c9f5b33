"""Arrays that a function makes of no symbolic array, and writes Values into: as in NumPy, in every way of compiling."""

from __future__ import annotations

import contextlib
import functools
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


PROGRAMS = [
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
                    assert (a.strides, a.flags.writeable) == (b.strides, b.flags.writeable)
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


def test_captured_arrays_and_those_of_others_stay_errors():
    def written(x):
        CAPTURED[0] = x[0]
        return CAPTURED

    def by_another(x):
        y = np.hanning(3)
        y[0] = x[0]
        return y

    for f in (written,):
        with pytest.raises(TypeError, match=r"a\[k\] = value` at .*test_arrays_made_inside\.py:\d+"):
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
