"""What kind of object a result is, and what can be told by it: bools of Python's and of NumPy's, types, objects."""

from __future__ import annotations

import copy
import itertools
import sys
import warnings

import numpy as np
import pytest

import pyop

X, ZEROS = np.array([1.0, 2.0, 3.0]), np.zeros(3)
TABLE = {np.ndarray: 2.0, np.float64: 3.0, float: 4.0, int: 5.0}


def shown(result):
    """A result with all that can be told of it."""
    if isinstance(result, (list, tuple)):
        return type(result), [shown(part) for part in result]
    if type(result) is np.ndarray:
        return "array", result.dtype, result.shape, [shown(part) for part in result.ravel().tolist()]
    return type(result), repr(result)


def outcome(f, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(f(*copy.deepcopy(args)))
        except Exception as error:
            return "raises", type(error)


def agrees(f, *calls):
    """Three calls of one compiled function."""
    for options in ({}, {"fallback": True}):
        compiled = pyop.compile(f, **options)
        for args in calls:
            assert outcome(compiled, *args) == outcome(f, *args), args


@pytest.mark.parametrize("test", [np.allclose, np.array_equal, np.array_equiv])
@pytest.mark.parametrize(
    "use",
    [
        lambda b, x: x * 2 if b is True else x * 3,
        lambda b, x: x * 2 if b is not False else x * 3,
        lambda b, x: x * 2 if isinstance(b, bool) else x * 3,
        lambda b, x: [x, x * 2][b],
        lambda b, x: {True: x, False: x * 2}[b],
        lambda b, x: b + b,
        lambda b, x: ~b,
        lambda b, x: -b * x,
        lambda b, x: (b | False, b == 1, b, not b, f"{b}", "%s" % b, type(b).__name__),  # noqa: UP031
        lambda b, x: sum([b, b]),
        lambda b, x: np.where(b, x, x * 2),
        lambda b, x: x.sum() * b,
    ],
)
def test_a_bool_of_pythons_is_one(test, use):
    agrees(lambda x: use(test(x, X), x), (X,), (ZEROS,), (X,))


def test_it_is_a_decision_in_loops_and_derivatives():
    def f(x):
        total = x[0] * 0
        for k in range(12):
            total = total + [1.0, 2.0][np.array_equal(x * k, x * 3)] * x[0]
        return total

    agrees(f, (X,), (ZEROS,), (X,))
    slope = pyop.compile(pyop.grad(lambda x: x.sum() * (3.0 if np.allclose(x, X) is True else 2.0)))
    for x, wanted in ((X, 3.0), (ZEROS, 2.0), (X, 3.0)):
        np.testing.assert_array_equal(slope(x), np.full(3, wanted))


def test_where_no_contents_are_known_it_is_refused():
    with pytest.raises(TypeError, match=r"np\.isclose\(a, b\)"):
        pyop.trace(lambda x: x * (2 if np.allclose(x, x) is True else 3), X)


class Kind:
    scale = 3.0

    def name(self, x):
        return type(x).__name__, x * type(self).scale


@pytest.mark.parametrize(
    "f",
    [
        lambda x: [type(part).__name__ for part in (x, x.sum(), x.any(), x[..., 0], x.argmax(), x.shape, x.size)],
        lambda x: x * TABLE.get(type(x), 9.0) * TABLE[type(x.sum())],
        lambda x: x * (2 if type(x) in TABLE else 3),
        lambda x: x * len(f"{type(x)}") * len(repr(type(x))),
        lambda x: x * (2 if "float" in type(x.sum()).__name__ else 3),
        lambda x: (lambda: type(x).__name__)(),
        lambda x: list(map(lambda v: type(v).__qualname__, x)),  # noqa: C417
        Kind().name,
        lambda x: type(x.sum())(2),
        lambda x: (type("Made", (), {"x": 1}).x, isinstance(x, type), isinstance(float, type)),
        lambda x: [hasattr(x, name) for name in ("node", "spec", "graph", "name", "shape", "_key")],
        lambda x: (getattr(x, "name", "none"), getattr(x, "shape"), getattr(x.sum(), "spec", None)),  # noqa: B009
        lambda x: getattr(x, "node"),  # noqa: B009
    ],
)
def test_types_and_attributes_are_those_of_arrays(f):
    agrees(f, (X,), (ZEROS,), (X * 2,))


NUMBERS = [(2.5, -1.0, 0.5), (3, 0, -2), (1 + 2j, 0j, 3j), (True, False, True)]
NUMBERS += [tuple(np.dtype(d).type(k) for k in (3, 0, 1)) for d in ("i1", "u8", "f2", "f4", "f8", "c8", "?")]
NUMBERS += [tuple(np.array(k, d) for k in (3, 0, 1)) for d in ("i8", "f4", "f8")]


@pytest.mark.parametrize(
    "f",
    [
        *(lambda t, o=o: (t + o, type(t + o).__name__) for o in (np.int8(1), np.float32(2), np.True_, np.uint64(2))),
        *(lambda t, o=o: (t * o, o - t, t == o, t / o) for o in (np.int8(1), np.float16(2), np.complex64(2))),
        lambda t: divmod(t, np.int8(2)),
        lambda t: t ** np.int8(2),
        lambda t: (type(t).__name__, t.__class__.__name__, type(t * 2).__name__, type(np.sin(t)).__name__),
        lambda t: t * 2 if (t > 1) is True else t * 3,
        lambda t: TABLE.get(type(t), 9.0),
        lambda t: [hasattr(t, name) for name in ("_value", "_kind", "__array__", "__float__", "shape", "real")],
        lambda t: (t, [t], {"a": t}),
    ],
)
@pytest.mark.parametrize("numbers", NUMBERS, ids=lambda numbers: type(numbers[0]).__name__)
def test_numbers_and_scalars(f, numbers):
    agrees(f, *[(t,) for t in numbers])


def put(x):
    held = np.empty(2, object)
    held[0] = x
    return held


def filled(x):
    held = np.empty(2, object)
    held.fill(x.sum())
    return held


def nested(x):
    held = np.empty((), object)
    held[()] = [x]
    return {"held": (held, 1)}["held"]


def in_a_field(x):
    held = np.empty(1, [("a", object), ("b", float)])
    held["a"][0] = x
    return held["a"]


@pytest.mark.parametrize(
    "f", [put, filled, nested, in_a_field, lambda x: np.fromiter([x[0], x[1]], dtype=object), lambda x: put(x)[0] * 2]
)
def test_no_symbolic_array_is_left_among_objects(f):
    agrees(f, (X,), (ZEROS,), (X * 2,))


@pytest.mark.parametrize("sequence", [[1, 2], (1, 2), "ab", b"ab", []], ids=repr)
@pytest.mark.parametrize(
    "product", [lambda s, y: s * y, lambda s, y: y * s, lambda s, y: np.multiply(s, [1, 2]), lambda s, y: s + [1, 2]]
)
@pytest.mark.parametrize("scalar", [lambda x: x[0], lambda x: x.argmax(), lambda x: x.any(), lambda x: x.sum()])
def test_scalars_repeat_sequences(sequence, product, scalar):
    agrees(lambda x: product(scalar(x), sequence), (X,), (ZEROS,), (X * 2,))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * (2 if x.any() is np.True_ else 3),
        lambda x: x * (2 if np.False_ is not x.all() else 3),
        lambda x: x * (2 if any(v is np.True_ for v in x > 0) else 3),
    ],
)
def test_truths_of_numpy_are_not_compared_by_identity(f):
    for transformed in (pyop.compile(f), pyop.grad(f)):
        with pytest.raises(TypeError, match=r"np\.True_"):
            transformed(X)


def test_the_size_of_an_object_is_refused():
    agrees(lambda x: sys.getsizeof(x), (X,))
    with pytest.raises(TypeError, match="__sizeof__"):
        pyop.trace(lambda x: x * sys.getsizeof(x), X)


def summed_up(y, t):
    w = np.reshape(t, 1)
    w += 1
    return y * t, np.broadcast_to(w[0] + t, (2,))


REPEATED = {
    "of a number": lambda y, t: np.broadcast_to(1.5, (2, 3)),
    "of an array": lambda y, t: (y, np.broadcast_to(np.arange(3.0), (2, 3))),
    "of an argument": lambda y, t: np.broadcast_to(t + 1, (2,)),
    "of what is computed": lambda y, t: (y * 2, np.broadcast_to(y.sum(), (4,))),
    "of what is written": summed_up,
    "beside its base": lambda y, t: (lambda a: (a, np.broadcast_to(a, (2, 3)), y))(np.zeros(3) + t),
}


@pytest.mark.parametrize("name", REPEATED)
def test_arrays_that_repeat_elements(name):
    f = REPEATED[name]
    compiled = pyop.compile(f)
    y = np.ones((2, 3))
    for t in (2, 2, 3.5, 2):
        got, want = compiled(y, t), f(y, t)
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for a, b in pairs:
            np.testing.assert_array_equal(a, b)
            assert (a.strides, a.flags.writeable) == (b.strides, b.flags.writeable)


def with_a_loop(x):
    for k in range(2):
        x = x + k
    a = np.broadcast_to(1.5, x.shape)
    return a, a, a[0], a[:1, :1], a.T, np.broadcast_to(1.5, x.shape), x


def of_a_count(x):
    a = np.broadcast_to(len(x), x.shape)
    return a, a.T, a, a[0:1], np.broadcast_to(2.0, (3,)), a[1], x * 2


@pytest.mark.parametrize("f", [with_a_loop, of_a_count])
def test_arrays_that_repeat_elements_and_their_views_are_one_memory(f):
    compiled, x = pyop.compile(f), np.ones((2, 3))
    for _ in range(3):
        got, want = compiled(x), f(x)
        for i, j in itertools.combinations(range(len(want)), 2):
            assert (got[i] is got[j]) == (want[i] is want[j]), (i, j)
            assert np.shares_memory(got[i], got[j]) == np.shares_memory(want[i], want[j]), (i, j)
        assert [y.flags.writeable for y in got] == [y.flags.writeable for y in want]
        got[0].shape = got[0].shape  # the object is the caller's own


SCALE = 0.5


@pytest.mark.parametrize("way", ["twice", "a view", "an alias"])
def test_of_equal_arrays_each_keeps_its_own_names(way):
    f = {
        "twice": lambda x: (lambda a, b: ([a, b], b))(x * 2, x * 2),
        "a view": lambda x: (lambda a, b: ([a, b], b[::-1]))(x * SCALE, x * SCALE),
        "an alias": lambda x: (lambda a, b: ([a, b], [np.asarray(b), a.T]))(x + 1, x + 1),
    }[way]
    compiled, x = pyop.compile(f), np.arange(3.0)
    for _ in range(2):
        for arrays in (compiled(x), f(x)):
            (a, b), rest = arrays
            rest = rest if isinstance(rest, list) else [rest]
            assert not np.shares_memory(a, b)
            assert np.shares_memory(b, rest[0])
            assert not np.shares_memory(a, rest[0])
            assert way != "an alias" or (np.shares_memory(a, rest[1]) and rest[0] is b)
            assert way != "twice" or rest[0] is b
