"""Functions that make arrays and write into them, for test_arrays_made_inside.py."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import zeros as zeros_of_numpy


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
