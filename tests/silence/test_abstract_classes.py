"""Abstract classes and names of methods tell arrays from scalars, as in NumPy, though one class stands for both."""

import numbers
import threading
import typing
from collections import abc

import numpy as np
import pytest

import pyop

X = np.array([1.5, -2.0, 3.0])
AliasOfTyping = typing.Iterable
PairOfTyping = (list, typing.Hashable)


def agrees(f, *args):
    """Compiled, the function goes the way it goes with arrays."""
    np.testing.assert_array_equal(pyop.compile(f)(*args), f(*args))


KINDS = (
    *(abc.Iterable, abc.Sized, abc.Container, abc.Collection, abc.Sequence, abc.Reversible, abc.Hashable),
    *(typing.SupportsFloat, typing.SupportsIndex, typing.SupportsAbs, numbers.Number),
)
NAMES = (
    *("__len__", "__iter__", "__contains__", "__setitem__", "__delitem__", "__getitem__", "__index__", "__iadd__"),
    *("__matmul__", "__reversed__", "__round__", "__array__", "__float__", "dot", "argpartition"),
)


def seen(x):
    """What a function can ask of an array, of what it computes of it and of its elements."""
    answers = []
    for v in (x, x * 2, x[1:], x[:0], x[..., 0], x[0], x.sum(), x @ x, np.argmax(x), (x > 0).any()):
        answers += [isinstance(v, kind) for kind in KINDS]
        answers += [hasattr(v, name) and callable(getattr(v, name)) for name in NAMES]
        answers += [v.__hash__ is None, np.iterable(v), np.isscalar(v)]
        for ask in (len, iter, reversed, lambda v: [*v], lambda v: v.__len__(), lambda v: v.__iter__()):
            try:
                found = ask(v)
                answers.append(found if isinstance(found, int) else None)
            except (TypeError, AttributeError) as error:
                answers.append(type(error))
    return answers


def traced(f):
    pyop.compile(f)(X)


def graphed(f):
    with pyop.Graph() as g:
        f(g.input("float64[3]"))


def reversed_mode(f):
    pyop.grad(f)(X)


def forward_mode(f):
    pyop.jvp(f, (X,), (X,))


@pytest.mark.parametrize("way", [traced, graphed, reversed_mode, forward_mode])
def test_abstract_classes_and_names_tell_arrays_from_scalars(way):
    found = threading.local()

    def f(x):
        found.answers = seen(x)
        return x.sum()

    way(f)
    assert found.answers == seen(X)


# An example has __index__ whatever its dtype.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not typing.SupportsIndex])
def test_examples_of_vmap_are_of_the_same_abstract_classes(kind):
    def f(x):
        return x * (2 if isinstance(x, kind) else 3) * (5 if isinstance(x[0], kind) else 7)

    np.testing.assert_array_equal(pyop.vmap(f)(X[None]), f(X)[None])


def test_what_has_no_hash_or_parts_raises_as_in_numpy():
    def key(x):
        try:
            return x * len({x: 1})
        except TypeError:
            return x * 2

    def parts(x):
        try:
            return x * sum(1 for _ in x[0])
        except TypeError:
            return x * (2 if not np.iterable(x[0]) else 3)

    def inside(x):
        try:
            return x * (3 if 1.0 in x[0] else 5)
        except TypeError:
            return x * 2

    for f in (key, parts, inside):
        agrees(f, X)
        np.testing.assert_array_equal(pyop.vmap(f)(X[None]), f(X)[None])
        np.testing.assert_array_equal(pyop.jvp(f, (X,), (X,))[1], f(X))
        np.testing.assert_array_equal(pyop.grad(lambda x, f=f: f(x).sum())(X), [2, 2, 2])


def test_graphs_and_sets_still_go_by_values_and_tensors():
    with pyop.Graph() as g:
        x = g.input("float64[3]", name="x")
        y = x * 2
    np.testing.assert_array_equal(g.run(y, {x: X}), X * 2)
    assert len({x, y, x}) == 2
    t = pyop.Tensor(X, requires_grad=True)
    assert len({t: 1, t.detach(): 2}) == 2
    for array in (x, t):
        with pytest.raises(AttributeError):
            array[0].__len__()
        assert array.__len__() == len(array) == len([*array]) == 3
    assert 3.0 in t
    assert 4.0 not in t
    assert t.__contains__(-2.0)
    with pytest.raises(TypeError, match=r"np\.isin"):
        assert 3.0 in x


def test_what_may_be_an_array_or_a_scalar_has_no_parts_to_ask_for():
    @pyop.op("float64[3] -> ?")
    def same(x):
        return x

    for name in ("__len__", "__iter__", "__setitem__"):
        compiled = pyop.compile(lambda x, name=name: x * (2 if hasattr(same(x)[0], name) else 3))
        said = r"arrays have it and scalars have not.*use np\.ndim"
        with pytest.warns(pyop.RetraceWarning, match=said), pytest.raises(pyop.OutputError, match="expects bool"):
            compiled(X)  # of the op, as it returns something else than it declares


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * (2 if isinstance(x, typing.Iterable) else 3),
        lambda x: x * (2 if isinstance(x[0], (list, typing.Sized)) else 3),
        lambda x: x * (2 if isinstance(x[0], AliasOfTyping) else 3),
        lambda x: x * (2 if isinstance(x[0], PairOfTyping) else 3),
        lambda x: x * (2 if isinstance(x, typing.SupportsRound) else 3),
        lambda x: x * (2 if issubclass(type(x), np.ndarray) else 3),
        lambda x: x * (2 if issubclass(type(x[0]), abc.Iterable) else 3),
        lambda x: x * (2 if type(x).__name__ == "ndarray" else 3),
        lambda x: x * (2 if type(x[0]).__name__ in ("float64", "float32") else 3),
        lambda x: x * (2 if type(x).__module__ == "numpy" else 3),
    ],
)
def test_what_asks_the_type_alone_is_refused(f):
    for way in (pyop.compile(f), pyop.vmap(f), lambda x: pyop.jvp(f, (x,), (x,)), pyop.grad(lambda x: f(x).sum())):
        with pytest.raises(TypeError, match=r"test_abstract_classes\.py:\d+ .*write isinstance\(x, "):
            way(X)
