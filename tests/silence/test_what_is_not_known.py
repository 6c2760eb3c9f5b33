"""What is known of a Value only when its graph runs (how many elements a mask picks) decides nothing in silence: in a
compiled function it has the number of each call, elsewhere it is refused.
"""

import numpy as np
import pytest

import pyop
from pyop._tree import flatten

from .compare import differs, runs_itself

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])


@pyop.op
def unsaid(x):
    return x * 2.0


BY_SIZES = {
    "empty": lambda x: x * 2.0 if x[x > 5].size == 0 else x,
    "truth of a size": lambda x: x[x > 0].mean() if x[x > 0].size else 0.0 * x,
    "a mean by hand": lambda x: x[x > 0].sum() / x[x > 0].size,
    "shapes compared": lambda x: x * 2.0 if x[x > 0].shape == (5,) else x,
    "shapes of two": lambda x: x * 2.0 if x[x > 0].shape != x.shape else x,
    "the first size": lambda x: x * 2.0 if x[x[:, 0] > 0].shape[0] > 1 else x,
    "a loop": lambda x: sum(x[0, k % 3] for k in range(x[x > 0].shape[0])),
    "np.shape": lambda x: x * 2.0 if np.shape(x[x > 0])[0] == 5 else x,
    "where": lambda x: x * 2.0 if np.where(x > 5)[0].size == 1 else x,
    "unique": lambda x: x * 2.0 if np.unique(x).size == x.size else x,
    "made of it": lambda x: np.zeros(x[x > 0].shape) + 1.0,
    "bytes": lambda x: x * 2.0 if x[x > 0].nbytes > 8 else x,
    "a caught error": lambda x: x * (1.0 / _or_one(lambda: float(x[x > 0].size))),
    "a text": lambda x: x * {"5": 2.0}.get(str(x[x > 0].size), 3.0),
    "a text of a shape": lambda x: x * 2.0 if f"{x[x > 0].shape}" == "(5,)" else x,
    "bits": lambda x: x * (x[x > 0].size & 1),
    "a caught operator": lambda x: x * _or_one(lambda: 1 << x[x > 0].size),
    "an array of that size": lambda x: np.zeros(x[x > 0].size) + 1.0,
    "a key": lambda x: x * {(5,): 2.0}.get(x[x > 0].shape, 3.0),
}
BY_OPS = {
    "dimensions": lambda x: x * 2.0 if unsaid(x).ndim == 2 else x,
    "a dtype": lambda x: x * 2.0 if unsaid(x).dtype == np.float64 else x,
    "a kind": lambda x: x * 2.0 if unsaid(x).dtype.kind == "f" else x,
    "a dtype passed on": lambda x: x.astype(unsaid(x).dtype),
    "a shape": lambda x: x * 2.0 if unsaid(x).shape == (2, 3) else x,
    "a shape unpacked": lambda x: (lambda n, m: x * n)(*unsaid(x).shape),
    "the size of an item": lambda x: x * 2.0 if unsaid(x).itemsize == 8 else x,
}


def _or_one(asked):
    try:
        return asked()
    except TypeError:
        return 1.0


@pytest.mark.parametrize("name", [name for name in BY_SIZES if "text" not in name])
def test_a_compiled_function_decides_by_sizes(name):
    f = BY_SIZES[name]
    compiled = pyop.compile(f)
    gradient = pyop.compile(lambda x: pyop.vjp(f, x)[0])
    for x in (X, -X, X, X + 3, X * 0 + 1):
        for way in (compiled, gradient):
            assert np.array_equal(way(x), f(x)), (name, way, x)


REFUSED = [(name, "trace") for name in [*BY_SIZES, *BY_OPS]]
REFUSED += [(name, way) for name in [*BY_OPS, "a text", "a text of a shape"] for way in ("compile", "gradient")]


@pytest.mark.parametrize(("name", "way"), REFUSED)
def test_it_decides_nothing(name, way):
    f = (BY_SIZES | BY_OPS)[name]
    made = {
        "trace": lambda: pyop.trace(f, "float64[2,3]"),
        "gradient": lambda: pyop.compile(lambda x: pyop.vjp(f, x)[0])(X),
    }
    said = r"not known when the graph is built.*(declare|use)|text of (the size|size 0) "
    if way == "compile":
        runs_itself(f, X, match=said)
        return
    with pytest.raises(TypeError, match=said):
        made[way]()


def test_what_is_known_is_known():
    def f(x):
        rows = x[x[:, 0] > 0]
        assert rows.ndim == 2
        assert rows.shape[1] == 3
        assert rows.dtype == np.float64
        assert rows.itemsize == 8
        assert isinstance(rows.shape[0], int)
        assert isinstance(rows.shape, tuple)
        print(rows.shape)
        return rows * rows.shape[1], x[x > 0].sum()

    for got, want in zip(pyop.compile(f)(X), f(X), strict=True):
        assert np.array_equal(got, want)


def test_who_writes_a_graph_sees_none():
    with pyop.Graph() as g:
        x = g.input("float64[2,3]")
        y = x[x > 0]
    assert y.shape == (None,)
    assert (y.size, y.ndim) == (None, 1)


BY_NAMED_SIZES = {
    "a number": lambda x, y: x * 2.0 if x.shape[0] == 5 else x,
    "another number": lambda x, y: x * 2.0 if x.shape[0] != 5 else x,
    "a number of NumPy": lambda x, y: x * 2.0 if np.int64(5) == x.shape[0] else x,
    "a float": lambda x, y: x * 2.0 if x.shape[0] == 5.0 else x,
    "a shape": lambda x, y: x * 2.0 if x.shape == (5,) else x,
    "shapes of two": lambda x, y: x * 2.0 if x.shape == y.shape else x,
    "in": lambda x, y: x * 2.0 if x.shape[0] in (3, 5) else x,
    "size": lambda x, y: x * 2.0 if x.size == 5 else x,
    "a text": lambda x, y: x * {"5": 2.0}.get(str(x.shape[0]), 3.0),
    "a formatted text": lambda x, y: x * {"5": 2.0}.get(f"{x.shape[0]}", 3.0),
    "parity": lambda x, y: x * 2.0 if x.shape[0] % 2 == 1 else x,
    "bits": lambda x, y: x * (x.shape[0] & 1),
    "a power": lambda x, y: x * x.shape[0] ** 2,
    "a key": lambda x, y: x * {5: 2.0}.get(x.shape[0], 3.0),
    "a shape in a set": lambda x, y: x * 2.0 if x.shape in {(5,)} else x,
    "a caught operator": lambda x, y: x * _or_one(lambda: x.shape[0] << 1),
    "order": lambda x, y: x * 2.0 if x.shape[0] > 3 else x,
    "truth": lambda x, y: x * 2.0 if x.size else x,
    "len": lambda x, y: x * 2.0 if len(x) == 5 else x,
    "a caught error": lambda x, y: x * _or_one(lambda: float(x.shape[0])),
}


@pytest.mark.parametrize("name", BY_NAMED_SIZES)
def test_a_named_size_decides_nothing(name):
    f = BY_NAMED_SIZES[name]
    with pytest.raises(TypeError, match=r"symbolic.*(Compute with it|declare a number|decide by values)"):
        pyop.trace(f, "float64[n]", "float64[m]")
    declared = pyop.compile(f, "float64[n], float64[m]")
    with pytest.warns(pyop.RetraceWarning, match="symbolic"):
        got = declared(np.ones(5), np.ones(5))
    assert not differs(f(np.ones(5), np.ones(5)), got)


def test_what_is_known_of_named_sizes_is_known():
    def f(x, y):
        assert x.shape == y.shape
        assert x.shape[0] + 1 != y.shape[0]
        assert x.shape != (x.shape[0], 1)
        assert x.shape[0] is not None
        assert isinstance(x.shape[0], int)
        assert not isinstance(x.shape[0], float)
        print(x.shape, f"{x.shape[0]} numbers")
        return np.concatenate([x, y]) * x.shape[0]

    plan = pyop.trace(f, "float64[n]", "float64[n]").compile()
    assert np.array_equal(plan(np.ones(5), np.ones(5)), f(np.ones(5), np.ones(5)))


RETURNED = {
    "a size": lambda x: np.unique(x).size,
    "among others": lambda x: (x[x > 0].size, {"shape": np.argwhere(x > 0).shape, "bytes": x[x > 0].nbytes}, x + 1.0),
    "twice": lambda x: [np.nonzero(x > 0)[0].size] * 2,
    "what is computed of it": lambda x: (x[x > 0].size + 1, -x[x > 0].size, max(x[x > 0].size, 2)),
    "written": lambda x: _written(x, x[x > 0].size),
}


def _written(x, n):
    x = x.copy()
    x[0] = n
    return x


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("name", RETURNED)
def test_sizes_that_are_returned_are_numbers(name, options):
    f = RETURNED[name]
    compiled = pyop.compile(f, **options)
    for x in (X, -X, 0.0 * X, X):
        wanted, found = f(x), compiled(x)
        if isinstance(wanted, np.ndarray):
            assert np.array_equal(found, wanted)
            continue
        numbers = [y for y in flatten(found)[0] if not isinstance(y, np.ndarray)]
        assert {type(n) for n in numbers} == {int}
        assert repr(found) == repr(wanted)


def test_the_type_of_a_size_is_that_of_a_number():
    assert pyop.compile(lambda x: type(x[x > 0].size))(X) is int
