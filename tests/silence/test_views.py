"""Which functions return their argument or a view of it: NumPy is asked about every function that has a rule, so that
one that is not known to do so makes this fail, and no write is lost: it is seen through the one as through the other,
or refused."""

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


def is_watched(value, others):
    """Whether a write to the Value, or to one that it may show, is refused, or seen by one of the others."""
    if value._is_scalar or any(value._is_related(other) for other in others):
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
                assert is_watched(value, inputs), case.id
                assert any(is_watched(x, [value]) for x in inputs), case.id
    assert len(seen) > 30


@pytest.mark.parametrize(("func", "args", "kwargs"), EXTRA)
def test_named(func, args, kwargs):
    sharing, values, inputs = shared(func, args, kwargs)
    assert any(sharing)
    assert all(is_watched(value, inputs) for value, is_shared in zip(values, sharing, strict=True) if is_shared)
    assert any(is_watched(x, values) for x in inputs)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing_that_gives_views(key):
    sharing, values, inputs = shared(lambda x: x[key], (np.ones((3, 2)),), {})
    assert sharing == [True]
    assert [is_watched(values[0], inputs), is_watched(inputs[0], values)] == [True, True]


@pytest.mark.parametrize("key", COPIES, ids=repr)
def test_indexing_that_copies(key):
    sharing, values, inputs = shared(lambda x: x[key], (np.ones((3, 2)),), {})
    assert sharing == [False]
    assert [is_watched(values[0], inputs), is_watched(inputs[0], values)] == [False, False]


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


def written(x):
    """Adds one to the last element of an array, in place."""
    x[(-1,) * x.ndim] += 1


def after_a_write(func, args, kwargs, which, to_base):
    """What bases and results hold when an element of a base, or of a result, was written."""
    found = func(*args, **kwargs)
    bases = [a for a in arrays(args) if not isinstance(a, np.generic)]
    results = [a for a in arrays(found) if not isinstance(a, np.generic)]
    written((bases if to_base else results)[which])
    return bases + results


@pytest.mark.parametrize("to_base", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_write_is_seen_as_numpy_shows_it_or_refused(order, to_base):
    """Of every function with a rule, whether it makes a view, a copy, or either by how its argument lies."""
    right = refused = 0
    for func, args, kwargs in [*((c.func, c.args, c.kwargs) for c in cases), *EXTRA]:
        given = [a for a in arrays(args) if type(a) is np.ndarray and a.dtype.kind in "iufc"]
        if not given or len(given) != len(arrays(args)) or any(a.size == 0 for a in given):
            continue
        graph = pyop.Graph()
        try:
            plain = replaced_arrays(args, lambda a: np.array(a, order=order))
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                want = after_a_write(func, plain, kwargs, 0, to_base)
            got = after_a_write(func, fresh(args, graph), kwargs, 0, to_base)
            feeds = {x: np.array(a, order=order) for x, a in zip(graph.inputs, given, strict=True)}
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                got = graph.run(got, feeds)
        except (TypeError, ValueError, IndexError, AssertionError, AttributeError):
            refused += 1
            continue
        right += 1
        for a, b in zip(got, want, strict=True):
            assert np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"), (func, args, kwargs)
    assert right > (100 if to_base else 60), (right, refused)


def replaced_arrays(x, by):
    if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
        return type(x)(replaced_arrays(item, by) for item in x)
    return by(x) if isinstance(x, np.ndarray) else x
