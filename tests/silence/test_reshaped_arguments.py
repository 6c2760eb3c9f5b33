"""Arguments that are written, and of which ``reshape`` and ``ravel`` show a view or a copy, by how the caller's lie."""

import warnings

import numpy as np
import pytest

import pyop

LAYOUTS = {
    "by rows": lambda r: r.normal(size=(4, 6)),
    "by columns": lambda r: np.asfortranarray(r.normal(size=(4, 6))),
    "with steps": lambda r: r.normal(size=(4, 12))[:, ::2],
    "turned": lambda r: r.normal(size=(6, 4)).T,
    "backwards": lambda r: r.normal(size=(4, 6))[::-1],
}


def copies_of_turned(a):
    t = np.reshape(np.transpose(np.reshape(a, (2, 2, 6)), (1, 0, 2)), (4, 6)) * 2
    a[:] = t


def written_through(a):
    r, s, t, u = a.ravel(), a.reshape(-1), a.T.ravel(), a.T.reshape(-1)
    a[0], r[5], t[7], u[8] = 1, 2, 4, 5
    s[6] += 3
    return r * 1, s * 1, t * 1, u * 1


def of_parts(a):
    b, c = a[1:3].reshape(-1), a[:, 1:3].reshape(-1)
    b[0], c[0], a[1, 1] = 100, 50, 7
    return b.sum(), c.sum(), a.reshape(-1).copy()


def in_a_loop(a):
    for i in range(10):
        v = a.reshape(2, -1)
        w = v.T.reshape(-1)
        a[...] = w.reshape(a.shape) * 0.5 + i
    return (w.sum(),)


def read_after_it(a):
    k = a.swapaxes(0, 1).reshape(-1)
    a.reshape(2, 2, 6)[1, 1] = 4
    a *= 2
    return (k * 1,)


def returned(a):
    r = a.reshape(-1)
    a[0] = 1
    return r, r[1:]


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("f", [copies_of_turned, written_through, of_parts, in_a_loop, read_after_it, returned])
def test_whatever_the_callers_array_lies_like(f, options):
    compiled = pyop.compile(f, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed, name in enumerate([*LAYOUTS, *LAYOUTS]):
            mine, theirs = (LAYOUTS[name](np.random.default_rng(seed)) for _ in range(2))
            wanted, found = f(mine), compiled(theirs)
            assert np.array_equal(mine, theirs), name
            for x, y in zip(wanted or (), found or (), strict=True):
                assert np.array_equal(x, y), name
                assert np.shares_memory(x, mine) == np.shares_memory(y, theirs), name
    # What is returned and may be the caller's array goes by its memory: there the function itself runs.
    assert len(caught) == (f is returned)
