"""Which functions return their argument or a view of it: NumPy is asked about every function that has a rule, so that
one that is not known to do so makes this fail, and no `+=` loses a write."""

import warnings

import numpy as np
import pytest
from numpy_cases import cases

import pyop

EXTRA = [
    (np.einsum, ("ij->ji", np.ones((2, 3))), {}),
    (np.einsum, ("ii->i", np.ones((3, 3))), {}),
    (np.meshgrid, (np.ones(2), np.ones(3)), {"copy": False}),
    (np.linalg.matrix_power, (np.eye(3), 1), {}),
    (np.astype, (np.ones(3), np.float64), {"copy": False}),
    (np.diff, (np.ones(3), 0), {}),
    (np.rot90, (np.ones((2, 3)), 2), {}),
    (np.real, (np.ones(3) + 1j,), {}),
    (np.imag, (np.ones(3) + 1j,), {}),
    (np.real, (np.ones(3),), {}),
    (np.ravel, (np.ones((2, 3)),), {}),
    (np.apply_over_axes, (np.sum, np.ones((2, 3)), []), {}),
]
KEYS = [0, slice(1, None), ..., None, (None, 0), (slice(None), 1), (0, ...), (slice(None, None, -1),)]
COPIES = [[0, 1], np.array([0, 1]), np.array([True, False, True]), ([0], slice(None)), True]


def arrays(x):
    if isinstance(x, (tuple, list)):
        return [a for item in x for a in arrays(item)]
    if isinstance(x, dict):
        return arrays(list(x.values()))
    return [x] if isinstance(x, (np.ndarray, np.generic, pyop.Value)) else []


def is_watched(value):
    """Whether a write to the Value, or to one that it may show, is refused."""
    if value._is_scalar:
        return True
    try:
        value._check_writable("+=")
    except (TypeError, ValueError):
        return True
    return False


def fresh(x, graph):
    """Values that the graph computes, in the place of arrays."""
    if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
        return type(x)(fresh(item, graph) for item in x)
    if isinstance(x, np.ndarray):
        return np.copy(graph.input(pyop.Spec(x.dtype, x.shape)))
    return x


def shared(func, args, kwargs):
    """Calls it both ways: whether a result shares memory in NumPy, and whether each is watched in a graph."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = arrays(func(*args, **kwargs))
    given = arrays(args) + arrays(kwargs)
    sharing = [isinstance(a, np.ndarray) and a.size > 0 and any(np.shares_memory(a, b) for b in given) for a in found]
    inputs = fresh(args, pyop.Graph())
    values = arrays(func(*inputs, **kwargs))
    assert len(values) == len(sharing)
    return sharing, values, arrays(inputs)


def test_every_function_with_a_rule():
    seen = set()
    for case in cases:
        try:
            sharing, values, inputs = shared(case.func, case.args, case.kwargs)
        except (TypeError, ValueError, AssertionError):
            continue  # what has to be concrete is not
        for is_shared, value in zip(sharing, values, strict=True):
            if is_shared and type(value) is pyop.Value:
                seen.add(case.func)
                assert is_watched(value), case.id
                assert any(is_watched(x) for x in inputs), case.id
    assert len(seen) > 30


@pytest.mark.parametrize(("func", "args", "kwargs"), EXTRA)
def test_named(func, args, kwargs):
    sharing, values, inputs = shared(func, args, kwargs)
    assert any(sharing)
    assert all(is_watched(value) for value, is_shared in zip(values, sharing, strict=True) if is_shared)
    assert any(is_watched(x) for x in inputs)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing_that_gives_views(key):
    sharing, values, inputs = shared(lambda x: x[key], (np.ones((3, 2)),), {})
    assert sharing == [True]
    assert [is_watched(values[0]), is_watched(inputs[0])] == [True, True]


@pytest.mark.parametrize("key", COPIES, ids=repr)
def test_indexing_that_copies(key):
    sharing, values, inputs = shared(lambda x: x[key], (np.ones((3, 2)),), {})
    assert sharing == [False]
    assert [is_watched(values[0]), is_watched(inputs[0])] == [False, False]


@pytest.mark.parametrize(
    "make", [lambda y: y.copy(), lambda y: y.flatten(), lambda y: y + 0, lambda y: y.astype(float), np.sort, np.copy]
)
def test_copies_are_free(make):
    with pyop.Graph() as g:
        y = g.input("float64[3]") * 2
        z = make(y)
        y += 1
        z *= 2
    assert g.run([y, z], {g.inputs[0]: [1.0, 2.0, 3.0]})[0].tolist() == [3.0, 5.0, 7.0]


def test_a_view_that_nobody_can_read_any_more_is_no_hindrance():
    def f(x):
        y = x * 1
        v = y[1:]
        s = v.sum()
        del v
        y += s
        return y

    x = np.arange(3.0)
    np.testing.assert_array_equal(pyop.compile(f)(x), f(x))
