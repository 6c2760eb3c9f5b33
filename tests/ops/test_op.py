"""Declaring an op: every spelling, every kind of callable, every way to pass an argument."""

import copy
import functools
import inspect
import operator
import pickle

import numpy as np
import pytest

import pyop
from pyop import Spec

ONES = np.ones(3)


def double(x):
    return x * 2


def pair(x):
    return x, x * 2


as_op = pyop.op(double, "float64[n] -> float64[n]", name="as_op")


@pyop.op("float64[n], float64[n] -> float64[]")
def dot(x, y):
    """The inner product."""
    return np.dot(x, y)


class Model:
    scale = 3.0

    def __init__(self, scale=2.0):
        self.scale = scale

    @pyop.op("float64[n] -> float64[n]")
    def apply(self, x):
        return x * self.scale

    @classmethod
    @pyop.op("float64[n] -> float64[n]")
    def shared(cls, x):
        return x * cls.scale

    @staticmethod
    @pyop.op("float64[n] -> float64[n]")
    def static(x):
        return x + 1

    def __call__(self, x):
        return x - self.scale


@pytest.mark.parametrize(
    "declare",
    [
        lambda f: pyop.op(f, "float64[n] -> float64[n]"),
        lambda f: pyop.op("float64[n] -> float64[n]")(f),
        lambda f: pyop.op("f8[n]->f8[n]", name="g", stateful=True)(f),
        lambda f: pyop.op("T[n] -> T[n]")(f),
        lambda f: pyop.op("T[*s] -> T[*s]")(f),
        lambda f: pyop.op("float64 -> float64")(f),
        lambda f: pyop.op("_ -> _")(f),
        lambda f: pyop.op("(n)->(n)")(f),
        lambda f: pyop.op("(n)->(n)", dtype="float64")(f),
        lambda f: pyop.op("()->()", dtype="T")(f),
        lambda f: pyop.op(f),
        lambda f: pyop.op()(f),
        lambda f: pyop.op(outputs="float64[n!]")(f),
        lambda f: pyop.op(inputs="float64[n]", outputs="float64[n]")(f),
        lambda f: pyop.op(inputs=[Spec.parse("float64[n]")], outputs=Spec.parse("float64[n]"))(f),
        lambda f: pyop.op(inputs=[Spec("float64", (3,))], outputs=np.float64)(f),
        lambda f: pyop.op(like="x")(f),
        lambda f: pyop.op(like=0)(f),
        lambda f: pyop.op(inputs="float64[...]", like="x")(f),
        lambda f: pyop.op(pyop.Signature.parse("float64[n] -> float64[n]"))(f),
        lambda f: pyop.op(f, pyop.Signature.parse("float64[n] -> float64[n]")),
    ],
)
def test_every_spelling_of_a_declaration(declare):
    op = declare(double)
    assert isinstance(op, pyop.Op)
    got = op(ONES)
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, double(ONES))


@pytest.mark.parametrize("outputs", [("f8[n!]", "f8[n!]"), [np.float64, np.float64], "f8[n!], f8[n!]"])
def test_several_outputs_come_back_in_the_declared_container(outputs):
    got = pyop.op(outputs=outputs)(pair)(ONES)
    assert type(got) is (list if isinstance(outputs, list) else tuple)
    np.testing.assert_array_equal(got, pair(ONES))


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (np.sin, np.sin(ONES)),
        (np.negative, -ONES),
        (np.cumsum, np.cumsum(ONES)),
        (operator.neg, -ONES),
        (functools.partial(np.multiply, 4.0), ONES * 4),
        (functools.partial(np.add.reduce, keepdims=True), np.array([3.0])),
        (lambda x: x + 1, ONES + 1),
        (Model(5.0), ONES - 5),
        (Model(5.0).__call__, ONES - 5),
        (copy.copy, ONES),
        (np.ndarray.copy, ONES),
        (staticmethod(double), ONES * 2),
        (functools.lru_cache(lambda x: x), None),
    ],
    ids=lambda v: getattr(v, "__name__", type(v).__name__),
)
def test_every_kind_of_callable(fn, expected):
    op = pyop.op(fn, "float64[_] -> float64[_]")
    if expected is None:  # what the callable raises comes out as it is
        with pytest.raises(TypeError, match="unhashable"):
            op(ONES)
        return
    for _ in range(3):  # recycled views, warm caches
        np.testing.assert_array_equal(op(ONES), expected)
    assert op.__wrapped__ is fn


@pytest.mark.parametrize("fn", [3, None, classmethod(double), as_op])
def test_what_is_no_callable_is_refused(fn):
    with pytest.raises(TypeError, match=r"op|callable"):
        pyop.op(fn, "float64[n] -> float64[n]")


def test_instance_class_and_static_methods():
    a, b = Model(2.0), Model(7.0)
    np.testing.assert_array_equal(a.apply(ONES), ONES * 2)
    np.testing.assert_array_equal(b.apply(x=ONES), ONES * 7)
    np.testing.assert_array_equal(Model.apply(b, ONES), ONES * 7)
    np.testing.assert_array_equal(Model.shared(ONES), ONES * 3)
    np.testing.assert_array_equal(a.shared(ONES), ONES * 3)
    np.testing.assert_array_equal(Model.static(ONES), ONES + 1)
    np.testing.assert_array_equal(a.static(ONES), ONES + 1)
    with pytest.raises(pyop.InputError, match=r"'x'.*apply.*int64\[3\].*expects float64\[n\]"):
        a.apply(np.arange(3))
    with pytest.raises(TypeError, match="call it on an instance"):
        Model.apply()


def test_a_bound_op_keeps_its_instance_alive_and_overrides_work():
    class Child(Model):
        @pyop.op("float64[n] -> float64[n]")
        def apply(self, x):
            return super().apply(x) + 1

    bound = Child(4.0).apply
    np.testing.assert_array_equal(bound(ONES), ONES * 5)


def test_an_op_looks_like_its_function():
    assert (dot.__name__, dot.__qualname__, dot.__module__, dot.__doc__) == (
        "dot",
        "dot",
        __name__,
        "The inner product.",
    )
    assert list(inspect.signature(dot).parameters) == ["x", "y"]
    assert dot.name == "dot"
    assert dot.parameters == ("x", "y")
    assert dot.origin == f"{__file__}:{dot.__wrapped__.__code__.co_firstlineno}"
    assert "dot" in repr(dot)
    assert "float64[n], float64[n] -> float64[]" in repr(dot)
    assert not dot.stateful
    assert pyop.op(double, stateful=True).stateful


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_ops_pickle_by_import_path(protocol):
    assert pickle.loads(pickle.dumps(dot, protocol)) is dot
    assert pickle.loads(pickle.dumps(Model.apply, protocol)) is Model.apply
    bound = pickle.loads(pickle.dumps(Model(6.0).apply, protocol))
    np.testing.assert_array_equal(bound(ONES), ONES * 6)


@pytest.mark.parametrize("op", [as_op, pyop.op(functools.partial(double)), pyop.op(np.sin, name="sine")])
def test_ops_without_an_import_path_pickle_by_what_they_are_made_of(op):
    made = pickle.loads(pickle.dumps(op))
    assert (made.name, made.spec, made.stateful, made.__doc__) == (op.name, op.spec, op.stateful, op.__doc__)
    np.testing.assert_array_equal(made(ONES), op(ONES))


def test_ops_of_functions_without_an_import_path_need_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")

    @pyop.op("float64[n] -> float64[]")
    def power(x, *, k=2):
        return pyop.saved(np.sum(x**k), slope=k * x ** (k - 1))

    @power.vjp
    def power_vjp(ct, x, *, saved):
        return ct * saved.slope

    @pyop.op
    def pairs(x):
        return np.stack([x[:-1], x[1:]], axis=1)

    @pairs.abstract
    def _(x):
        return pyop.Spec(x.dtype, (x.shape[0] - 1, 2))

    for local in (pyop.op(lambda x: x), power, pairs):
        with pytest.raises((pickle.PicklingError, AttributeError), match=r"<locals>|<lambda>"):
            pickle.dumps(local)
    made, made_pairs = pickle.loads(cloudpickle.dumps((power, pairs)))
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(pyop.grad(lambda x: made(x, k=3))(x), 3 * x**2)
    assert pyop.trace(made_pairs, "float64[n]").outputs.shape == (pyop.Dim("n") - 1, 2)
    np.testing.assert_array_equal(made_pairs(x), pairs(x))


@pytest.mark.parametrize("op", [dot, as_op, pyop.op(lambda x: x), pyop.op(functools.partial(double)), pyop.op(np.sin)])
def test_an_op_copies_as_a_function_does(op):
    assert copy.copy(op) is op
    assert copy.deepcopy(op) is op
    assert copy.deepcopy({"op": op})["op"] is op


def test_parameters_by_position_by_name_and_by_default():
    @pyop.op("float64[n], float64[], float64[] -> float64[n]")
    def line(x, slope, offset=0.5):
        return x * slope + offset

    np.testing.assert_array_equal(line(ONES, 2.0), ONES * 2.5)
    np.testing.assert_array_equal(line(ONES, slope=2.0), ONES * 2.5)
    np.testing.assert_array_equal(line(offset=1.0, slope=2.0, x=ONES), ONES * 3)
    for args, kwargs, words in [
        ((ONES,), {}, "misses argument 1 \\('slope'\\)"),
        ((), {"slope": 1.0}, "misses argument 0 \\('x'\\)"),
        ((ONES, 1.0, 2.0, 3.0), {}, "takes 3 array arguments \\(x, slope, offset\\), but got 4"),
        ((ONES, 1.0), {"slope": 1.0}, "'slope' twice"),
        ((ONES, 1.0), {"speed": 1.0}, "no parameter 'speed'"),
        ((ONES, 1.0), {"out": ONES}, "out"),
    ]:
        with pytest.raises(TypeError, match=words):
            line(*args, **kwargs)


def test_parameters_with_defaults_behind_the_declared_inputs_are_static():
    @pyop.op("float64[n] -> float64[n]")
    def scaled(x, by=3.0, plus=0.0, *, minus=0.0):
        return x * by + plus - minus

    assert (scaled.parameters, scaled.statics) == (("x",), ("by", "plus", "minus"))
    np.testing.assert_array_equal(scaled(ONES), ONES * 3)
    np.testing.assert_array_equal(scaled(ONES, plus=1.0, minus=0.5), ONES * 3 + 0.5)
    traced = pyop.compile(lambda x: scaled(x, by=2.0) + scaled(x))
    np.testing.assert_array_equal(traced(ONES), ONES * 5)
    for call in (lambda: scaled(ONES, 2.0), lambda: pyop.compile(lambda x: scaled(x, 2.0))(ONES)):
        with pytest.raises(
            TypeError, match=r"takes 1 array argument \(x\), but got 2; .*\(by, plus, minus\) are given by name"
        ):
            call()
    with pytest.raises(TypeError, match="no parameter 'bye'"):
        scaled(ONES, bye=2.0)

    with pytest.raises(TypeError, match=r"write `\*, by=3.0`"):
        scaled.vjp(lambda ct, x, by=3.0: ct * by)
    scaled.vjp(lambda ct, x, *, by: ct * by)
    np.testing.assert_array_equal(pyop.grad(lambda x: scaled(x, by=2.0).sum())(ONES), ONES * 2)
    np.testing.assert_array_equal(pyop.compile(pyop.grad(lambda x: scaled(x).sum()))(ONES), ONES * 3)

    class Scale:
        @pyop.op("float64[n] -> float64[n]")
        def of(self, x, by=3.0):
            return x * by

    np.testing.assert_array_equal(Scale().of(ONES, by=2.0), ONES * 2)
    # What NumPy's functions have by position, but for out=, which ops take where the function has it by keyword.
    norm = pyop.op("float64[n] -> float64[]")(np.linalg.norm)
    assert norm(ONES, ord=1) == ONES.sum()
    with pytest.raises(TypeError, match="no parameter 'out'"):
        pyop.op("float64[n] -> float64[n]")(np.sin)(ONES, out=ONES)


def test_static_keyword_parameters():
    seen = []

    @pyop.op("float64[n] -> float64[n]")
    def power(x, *, exponent, shift=0, label=None):
        seen.append((exponent, shift, label))
        return x**exponent + shift

    assert power.statics == ("exponent", "shift", "label")
    marker = object()
    power(ONES, exponent=2)
    power(x=ONES, shift=1, exponent=3, label=marker)
    assert seen == [(2, 0, None), (3, 1, marker)]
    assert seen[1][2] is marker
    with pytest.raises(TypeError, match="misses the keyword argument 'exponent'"):
        power(ONES)
    with pytest.raises(TypeError, match="no parameter 'degree'"):
        power(ONES, exponent=2, degree=1)
    with pytest.raises(TypeError, match="takes 1 array argument"):
        power(ONES, 2)


def test_any_keyword_and_any_number_of_arrays():
    @pyop.op(outputs="float64[]")
    def total(*arrays, **options):
        return sum((a.sum() for a in arrays), 0.0) + len(options)

    assert total() == 0
    assert total(ONES, ONES, ONES) == 9
    assert total(*[ONES] * 40, a=1, b=2) == 122
    assert total(**{"a b": 1, "": 2}) == 2


@pytest.mark.parametrize("n", [0, 1, 2, 4, 5, 8, 40])
def test_any_arity(n):
    names = [f"a{i}" for i in range(n)]
    fn = eval(f"lambda {', '.join(names)}: {' + '.join(names) or '0.0'}")
    op = pyop.op(fn, inputs=[Spec("float64", ())] * n, outputs="float64[]")
    values = [float(i) for i in range(n)]
    assert op(*values) == sum(values)
    assert op(**dict(zip(names, values, strict=True))) == sum(values)
    assert op(*map(np.float64, values)) == sum(values)
    with pytest.raises(TypeError):
        op(*values, 1.0)


def test_no_outputs():
    calls = []
    op = pyop.op(calls.append, outputs=(), stateful=True)
    assert op(ONES) is None
    assert len(calls) == 1
    with pytest.raises(pyop.OutputError, match="returns 1 values, but expects to see 0"):
        pyop.op(double, outputs=())(ONES)


@pytest.mark.parametrize("name", ["", "a b", "-x", "x\0", "a" * 3 + "\n"])
def test_a_wrong_name_is_refused(name):
    with pytest.raises(ValueError, match="not a valid name"):
        pyop.op(double, name=name)
