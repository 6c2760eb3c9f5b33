"""Functions of the user's that are found behind attributes, in containers and in variables, and make arrays that they
write into: they are traced like those that are called by a global name.
"""

import functools
import warnings

import numpy as np
import pytest

import pyop

from .compare import differs

X = np.array([1.5, -2.0, 3.0, 0.25])


def filled(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i] * 2
    return y


class Layer:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        y = np.zeros_like(x)
        for i in range(len(x)):
            y[i] = np.tanh(x[i] * self.w)
        return y

    def first(self, x):
        y = np.zeros(2)
        y[:] = x[:2]
        y[0] += self.w
        return y

    @staticmethod
    def last(x):
        y = np.empty(1)
        y[0] = x[-1]
        return y

    @classmethod
    def made(cls, x):
        y = np.ones(3)
        y[1] = x[1]
        return y + cls.offset

    offset = 0.5

    @property
    def scaled(self):
        return self.first

    def __hidden(self, x):
        y = np.zeros(2)
        y[0] = x[0]
        return y

    def hidden(self, x):
        return self.__hidden(x) + list(map(self.__hidden, [x]))[-1], (lambda z: self.__hidden(z))(x)


class Deeper(Layer):
    def first(self, x):
        return super().first(x) * 3


class Net:
    def __init__(self):
        self.layers = [Layer(0.5), Layer(-0.2)]
        self.named = {"first": Deeper(2.0).first, "filled": filled}

    def run(self, x):
        for layer in self.layers:
            x = layer(x)
        tail = self.tail
        return tail(x), self.named["first"](x)

    def tail(self, x, depth=2):
        y = np.zeros(len(x))
        y += x
        return self.tail(y * 2, depth - 1) if depth else y


layer, deeper, net = Layer(1.5), Deeper(2.5), Net()
net.compiled = pyop.compile(filled)
functions = [filled]


def by_method(x):
    return layer.first(x), deeper.first(x)


def by_class(x):
    return Layer.last(x), layer.last(x), Deeper.made(x), Layer.first(deeper, x)


def by_call(x):
    return layer(x) + Layer(0.5)(x)


def by_container(x):
    return functions[0](x), net.named["filled"](x)


def by_variable(x):
    f = deeper.scaled
    return f(x), [g(x) for g in (f, filled)]


def by_nested(x):
    def inner(z, of=layer.first):
        return of(z) + layer.first(z)

    return inner(x), (lambda z: layer.first(z))(x)


def by_getattr(x):
    return getattr(layer, "fir" + "st")(x)


def by_choice(x):
    other = (tail := net.tail)(x) + tail(x)
    return (layer.first if len(x) > 3 else deeper.first)(x), (None or layer.last)(x), other


def by_function(x):
    twice = functools.reduce(net.tail, (1, 0), x)
    return list(map(layer.first, [x, x * 2])), twice, [*filter(layer.last, [x])]


def by_local_class(x):
    class Local:
        def __inner(self, z):
            return layer.first(z)

        def run(self, z):
            return self.__inner(z)

    return Local().run(x)


def by_global_object(x):
    return [layer(z) for z in (x, x * 2)], net.compiled(x)


by_lambda = lambda x: layer.first(x)[0] + net.tail(x)
FORMS = [
    by_method,
    by_class,
    by_call,
    by_container,
    by_variable,
    by_nested,
    by_getattr,
    by_lambda,
    net.run,
    layer.hidden,
]
FORMS += [by_choice, by_function, by_local_class, by_global_object]


@pytest.mark.parametrize("f", FORMS, ids=lambda f: f.__name__)
def test_a_plan_without_a_word(f):
    compiled = pyop.compile(f)
    for x in (X, X * 2, X[:3]):
        assert not differs(f(x.copy()), compiled(x.copy()))
    assert compiled.cache_info().plans == 2


def test_what_changes_is_seen():
    """Attributes of instances and classes, methods of both, items of what they hold."""
    own = Net()
    own.layers = [Deeper(0.5), Layer(0.25)]

    class Mine(Net):
        pass

    mine = Mine()
    mine.layers = own.layers
    compiled = pyop.compile(mine.run)
    changes = [
        lambda: setattr(own.layers[0], "w", 3.0),
        lambda: setattr(mine, "tail", lambda x: np.negative(x)),
        lambda: mine.named.update(first=layer.first),
        lambda: mine.layers.append(filled),
        lambda: delattr(mine, "tail"),
        lambda: setattr(Mine, "tail", lambda self, x: x + self.layers[0].w),
        lambda: mine.layers.pop(0),
    ]
    for change in [lambda: None, *changes]:
        change()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pyop.RetraceWarning)
            for _ in range(2):
                assert not differs(mine.run(X), compiled(X))


class Counting:
    def __init__(self):
        self.calls = 0

    def step(self, x):
        self.calls += 1
        y = np.zeros(2)
        y[0] = x[0] * self.calls
        return y


class Keeping:
    def step(self, x):
        y = np.zeros(2)
        y[0] = x[0]
        self.last = y
        return y + 1


def test_methods_that_change_their_object():
    counting, keeping = Counting(), Keeping()
    counts, plain = pyop.compile(lambda x: counting.step(x)), Counting()
    for _ in range(3):
        assert not differs(plain.step(X), counts(X))
    assert counting.calls == plain.calls == 3
    compiled = pyop.compile(lambda x: keeping.step(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        for x in (X, X * 2):
            assert not differs(Keeping().step(x), compiled(x))
            assert not differs(np.array([x[0], 0.0]), keeping.last)


def test_errors_are_those_of_the_function():
    class Strict:
        def step(self, x):
            y = np.zeros(2)
            y[5] = x[0]
            return y

    strict = Strict()
    with pytest.raises(IndexError, match="out of bounds") as caught:
        pyop.compile(lambda x: strict.step(x))(X)
    assert any(entry.name == "step" and str(entry.path).endswith(__file__) for entry in caught.traceback)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pyop.compile(lambda x: strict.nothing(x))(X)
    with pytest.raises(TypeError, match="not callable"):
        pyop.compile(lambda x: net.layers(x))(X)


@pytest.mark.parametrize("kind", ["read-only", "empty"])
def test_an_argument_that_is_written_with_itself(kind):
    """NumPy says that it cannot be written, whatever would be."""

    def onto_itself(x):
        x[:1] = x[:1]
        return len(x)

    compiled = pyop.compile(onto_itself)
    x = X[:0].copy() if kind == "empty" else X.copy()
    assert compiled(x) == onto_itself(x)
    x.flags.writeable = False
    for f in (onto_itself, compiled):
        with pytest.raises(ValueError, match="read-only"):
            f(x)


def test_what_only_has_the_name_of_a_function_that_calls():
    """An array of the user's is given to `np.add.reduce` and to functions of theirs, and stays an array."""
    weights = np.array([1.0, 2.0, 4.0, 8.0])

    def filter(values, step):
        return values[::step]

    def f(x):
        own = weights
        y = np.zeros(4)
        y[1:] = x[1:]
        return y * float(np.add.reduce(own)) + float(filter(own, 2)[1]) * functools.reduce(layer.first, [], x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not differs(f(X), pyop.compile(f)(X))
