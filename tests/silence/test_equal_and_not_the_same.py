"""Hold apart what is equal and not the same: keys, statics and held things (1, True, 1.0), and dtypes with metadata."""

import numpy as np
import pytest

import pyop

X = np.arange(3.0)
ALIKE = [
    (1, True, 1.0, np.float64(1), np.int64(1), 1 + 0j),
    (0, False, 0.0, -0.0),
    ((1, 2), (True, 2), (1.0, 2)),
    (frozenset([1]), frozenset([True])),
]
AS_ARGUMENTS = {
    "key": (lambda k: {k: X}, lambda d: [(repr(k), v + 1) for k, v in d.items()]),
    "key within": (lambda k: {"a": [{k: X}]}, lambda d: [(repr(k), v + 1) for k, v in d["a"][0].items()]),
    "two keys": (lambda k: {"b": X, k: X * 2}, lambda d: [(repr(k), v + 1) for k, v in d.items()]),
}


def same(got, want):
    assert repr(got) == repr(want)


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("alike", ALIKE, ids=repr)
@pytest.mark.parametrize("way", AS_ARGUMENTS)
def test_keys_of_arguments(way, alike):
    make, f = AS_ARGUMENTS[way]
    compiled = pyop.compile(f)
    for k in alike * 2:
        same(compiled(make(k)), f(make(k)))
    unread = pyop.compile(lambda d: d)
    for k in alike * 2:
        same(unread(make(k)), make(k))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("alike", ALIKE, ids=repr)
def test_statics(alike):
    for f in (lambda v, k: (v * 2, repr(k)), lambda v, k: (v * 2, {k: v})):
        compiled = pyop.compile(f, static="k")
        for k in alike * 2:
            same(compiled(X, k), f(X, k))
            same(compiled(X, (0, k)), f(X, (0, k)))


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("alike", ALIKE, ids=repr)
def test_what_a_function_holds(alike):
    held, keys, items = [None], {}, set()

    def f(v):
        return v + 1, repr(held[0]), [(repr(k), v * a) for k, a in keys.items()], [repr(k) for k in items]

    compiled = pyop.compile(f)
    for k in alike * 2:
        held[0] = k
        keys.clear()
        keys[k] = 2.0
        items.clear()
        items.add(k)
        same(compiled(X), f(X))


WITH = np.dtype("f8", metadata={"unit": "m"})
OF_ONE = {
    "the same": lambda v: v,
    "sum": lambda v: v + 1,
    "copy": lambda v: v.copy(),
    "view": lambda v: v[1:],
    "like": lambda v: np.zeros_like(v),
    "astype": lambda v: v.astype(v.dtype),
    "joined": lambda v: np.concatenate([v, v]),
    "reduced": lambda v: v.sum(),
    "metadata": lambda v: v.dtype.metadata,
    "written": lambda v: np.add(v, 1, out=v),
}


@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize("first", [True, False])
def test_metadata_of_dtypes(name, first):
    f = OF_ONE[name]
    compiled = pyop.compile(f)
    for with_metadata in (first, not first, first):
        x = np.array([1.0, 2.0], WITH if with_metadata else "f8")
        got, want = compiled(x.copy()), f(x.copy())
        same(got, want)
        if hasattr(want, "dtype"):
            assert got.dtype.metadata == want.dtype.metadata
