"""Containers with rules of their own, at every door: their own result, NumPy's, or an error that says what to write.

The table of docs/compiling.md, "Arrays of other libraries".
"""

import array
import ctypes
import re
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr

import pyop

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")


class Torch:
    """As torch's tensors: operators and a `std` of their own, and no array where a gradient is required."""

    def __init__(self, numbers, requires_grad=False):
        self.numbers = np.asarray(numbers, float)
        self.requires_grad = requires_grad

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self.numbers

    def __mul__(self, other):
        return Torch(self.numbers * np.asarray(other))

    __rmul__ = __mul__
    shape = property(lambda self: self.numbers.shape)

    def std(self):
        return float(self.numbers.std(ddof=1))


class Quantity(np.ndarray):
    """A subclass whose product is not NumPy's."""

    def __mul__(self, other):
        return "times"


class OnlyInterface:
    def __init__(self, numbers):
        self.__array_interface__ = np.asarray(numbers).__array_interface__
        self.numbers = numbers


class OnlyArray:
    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)

    def __array__(self, dtype=None, copy=None):
        return self.numbers


class OnlyDlpack:
    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)

    def __dlpack__(self, **kwargs):
        return self.numbers.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.numbers.__dlpack_device__()


X = np.array([1.0, 2.0, 3.0])

# Name: how to make it of X, and what the error says to write instead.
RULES = {
    "Series": (lambda: pd.Series(X.copy(), index=[2, 0, 1]), "to_numpy"),
    "Index": (lambda: pd.Index(X.copy()), "to_numpy"),
    "ExtensionArray": (lambda: pd.array(X.copy()), "to_numpy"),
    "DataArray": (lambda: xr.DataArray(X.copy(), dims="x"), "to_numpy"),
    "Variable": (lambda: xr.Variable("x", X.copy()), "to_numpy"),
    "unmasked": (lambda: np.ma.masked_array(X.copy()), "np.asarray"),
    "subclass": (lambda: X.copy().view(Quantity), "np.asarray"),
    "torch": (lambda: Torch(X.copy()), "np.asarray"),
}
# What no declared place takes either.
LOST = {
    "masked": (lambda: np.ma.masked_array(X.copy(), [False, True, False]), "filled"),
    "record": (lambda: Torch(X.copy(), requires_grad=True), "detach"),
}
# What holds numbers, but is no array of X's shape.
OTHER = {
    "DataFrame": (lambda: pd.DataFrame({"a": X}), "to_numpy"),
    "Dataset": (lambda: xr.Dataset({"a": ("x", X)}), "np.asarray"),
    "matrix": (lambda: np.matrix([X]), "np.asarray"),
    "sparse": (lambda: scipy.sparse.csr_array(np.diag(X)), "toarray"),
}
ALL = RULES | LOST | OTHER
MEMORY = {
    "memmap": lambda path: np.memmap(path, np.float64, "w+", shape=3),
    "ctypes": lambda _: (ctypes.c_double * 3)(*X),
    "__array_interface__": lambda _: OnlyInterface(X.copy()),
    "__array__": lambda _: OnlyArray(X.copy()),
    "__dlpack__": lambda _: OnlyDlpack(X.copy()),
}
SEQUENCES = {
    "array.array": lambda: array.array("d", X),
    "bytearray": lambda: bytearray(b"\1\2\3"),
    "memoryview": lambda: memoryview(X.copy()),
}

double = pyop.op("float64[n] -> float64[n]")(lambda x: x * 2)
graph = pyop.trace(lambda x: x * 2, "float64[n]")

DECLARED = {
    "op": double,
    "op in a graph": lambda x: pyop.compile(lambda y: double(x) + 0 * y)(X),
    "plan": graph.compile(),
    "run": lambda x: graph.run(feeds={graph.inputs[0]: x}),
    "compile(specs)": pyop.compile(lambda x: x * 2, "float64[n]"),
    "py_func": lambda x: pyop.py_func(lambda x: x * 2, [x], np.float64),
    "contrib.py_func": lambda x: pyop.contrib.py_func(lambda x: x * 2, [x], output_types=np.float64),
}


def cube(x):
    return np.sum(x**3)


DIFFERENTIATED = {
    "grad": pyop.grad(cube),
    "value_and_grad": pyop.value_and_grad(cube),
    "vjp": lambda x: pyop.vjp(cube, x),
    "jvp": lambda x: pyop.jvp(cube, (x,), (X,)),
    "jacobian": pyop.jacobian(lambda x: x * x),
    "jacobian forward": pyop.jacobian(lambda x: x * x, mode="forward"),
    "hessian": pyop.hessian(cube),
    "hvp": lambda x: pyop.hvp(cube, (x,), (X,)),
    "vmap": pyop.vmap(lambda x: x * 2),
    "Tensor": pyop.Tensor,
    "cotangent": lambda x: pyop.vjp(lambda y: y * 2, X)[1](x),
    "tangent": lambda x: pyop.jvp(lambda y: y * 2, (X,), (x,)),
    "grad of a graph": pyop.grad(pyop.trace(cube, "float64[n]")),
    "grad, compiled": lambda x: pyop.compile(lambda y: pyop.vjp(lambda z: z * y, x)[0])(X),
}

# A container that the function got by another way, and something symbolic or recorded.
MEETINGS = {
    "x * c": lambda x, c: x * c,
    "c * x": lambda x, c: c * x,
    "x - c": lambda x, c: x - c,
    "x ** c": lambda x, c: x**c,
    "x < c": lambda x, c: np.where(x < c, x, 0.0),
    "add(x, c)": lambda x, c: np.add(x, c),
    "add(c, x)": lambda x, c: np.add(c, x),
    "add(x, 1, where=c)": lambda x, c: np.add(x, 1.0, where=c),
    "where": lambda x, c: np.where(x > 1, x, c),
    "clip": lambda x, c: np.clip(x, c, c),
    "stack": lambda x, c: np.stack([x, c]),
    "dot": lambda x, c: np.dot(x, c),
}
WAYS = {
    "compile": lambda f, c: pyop.compile(lambda x: f(x, c))(X),
    "trace": lambda f, c: pyop.trace(lambda x: f(x, c), "float64[3]").run(feeds={"x": X}),
    "grad": lambda f, c: pyop.grad(lambda x: np.sum(f(x, c)))(X),
    "jvp": lambda f, c: pyop.jvp(lambda x: np.sum(f(x, c)), (X,), (X,)),
    "argument of grad": lambda f, c: pyop.grad(lambda x, c: np.sum(f(x, c)))(X, c),
    "compiled grad": lambda f, c: pyop.compile(pyop.grad(lambda x: np.sum(f(x, c))))(X),
    "vmap": lambda f, c: pyop.vmap(lambda x: f(x, c))(np.stack([X, X])),
}

REMEDIES = (
    r"pass (x|np)|np\.stack|np\.where|x\.detach|t\.numpy|t\.detach|pyop\.op|convert it|xarray\.Dataset|"
    r"what is compiled returns|array of its own|one number|no rule|returned"
)


def refused(call, remedy):
    with pytest.raises(Exception) as caught:
        call()
    text = str(caught.value)
    assert isinstance(caught.value, TypeError | pyop.InputError | pyop.OutputError), text
    assert remedy in text, text
    return text


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("door", DECLARED)
def test_a_declared_array_is_made_of_a_container(door, name):
    found = DECLARED[door](RULES[name][0]())
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, X * 2)


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("door", [*DECLARED, "constant"])
def test_a_mask_or_a_gradient_is_lost_nowhere(door, name):
    make, remedy = LOST[name]
    refused(lambda: DECLARED.get(door, pyop.Graph().constant)(make()), remedy)
    if name == "masked":
        refused(lambda: DECLARED.get(door, pyop.Graph().constant)([make(), make()]), remedy)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("door", DIFFERENTIATED)
def test_transformations_refuse(door, name):
    make, remedy = ALL[name]
    refused(lambda: DIFFERENTIATED[door](make()), remedy)


@pytest.mark.parametrize("name", ALL)
def test_an_undeclared_compile_runs_the_function_itself(name):
    make = ALL[name][0]
    seen = []

    @pyop.compile
    def f(x, y):
        seen.append(type(x))
        return x * 2.0 if not isinstance(x, Torch) else x.std()

    c = make()
    want = f.__wrapped__(c, X)
    for _ in range(2):
        got = f(c, X)
        assert type(got) is type(want)
        assert repr(got) == repr(want)
    assert seen == [type(c)] * 3
    assert f.cache_info().plans == 0


def test_alignment_and_missing_values_are_those_of_pandas():
    a, b = pd.Series([1.0, 2.0, 3.0], index=[0, 1, 2]), pd.Series([1.0, 2.0, 3.0], index=[2, 1, 0])
    pd.testing.assert_series_equal(pyop.compile(lambda a, b: a - b)(a, b), a - b)
    holes = pd.Series([1.0, np.nan, 3.0])
    assert pyop.compile(np.mean)(holes) == 2.0
    assert pyop.compile(lambda x: x.std())(a) == a.std() == 1.0
    rows, columns = xr.DataArray([1.0, 2.0], dims="r"), xr.DataArray([1.0, 2.0, 3.0], dims="c")
    assert pyop.compile(lambda a, b: a * b)(rows, columns).shape == (2, 3)
    total = pyop.compile(lambda p: p["a"] - p["b"])  # inside of other containers
    pd.testing.assert_series_equal(total({"a": a, "b": b}), a - b)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("meeting", MEETINGS)
@pytest.mark.parametrize("way", WAYS)
def test_a_container_that_meets_an_array_is_not_stripped(way, meeting, name):
    make = ALL[name][0]
    f = MEETINGS[meeting]
    try:
        want = np.sum(f(X, make()))
    except Exception:
        want = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas, about what it does with objects it does not know
            got = WAYS[way](f, make())
    except Exception as error:
        got = error
    if isinstance(got, Exception):  # NumPy's own error, or one that says what to write
        assert want is None or re.search(REMEDIES, str(got)), got
    else:  # its own product, which is no number; an Index has no alignment, and pd.array computes with what is recorded
        own = way.endswith(("grad", "jvp")) and name in ("Index", "ExtensionArray")
        own = own or (way == "compile" and type(got) is type(f(X, make())))  # the function itself has run
        assert own or (meeting, name) in (("c * x", "subclass"), ("add(c, x)", "Index")), got
        if name == "ExtensionArray" and way in ("grad", "jvp"):  # the derivative of the sum is right
            np.testing.assert_array_equal(got if way == "grad" else got[1], np.ones(3) if way == "grad" else X.sum())


def test_only_containers_that_are_met_are_refused():
    series, masked = pd.Series(X, index=[2, 0, 1]), np.ma.masked_array(X, [0, 1, 0])
    np.testing.assert_array_equal(pyop.compile(lambda x: x * series.to_numpy() + masked.mean())(X), X * X + 2.0)
    np.testing.assert_array_equal(pyop.grad(lambda x, s: np.sum(x * s.to_numpy()))(X, series), X)
    plain = pyop.Tensor(X)
    assert (plain * masked).mask.tolist() == [False, True, False]


@pytest.mark.parametrize("name", MEMORY)
def test_what_only_offers_its_memory_is_an_array(name, tmp_path):
    def make():
        made = MEMORY[name](tmp_path / "m")
        if name == "memmap":
            made[:] = X
        return made

    for call in DECLARED.values():
        np.testing.assert_array_equal(call(make()), X * 2)
    compiled = pyop.compile(lambda x: x * 2)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(make()), X * 2)
    assert compiled.cache_info().plans == 1
    made, k = make(), 1.0
    by_keyword = pyop.compile(lambda v, k: v * k)
    for _ in range(2):
        np.testing.assert_array_equal(by_keyword(k=k, v=made), X)
    timed = pyop.compile(lambda v: v[:1] * 1 if time.perf_counter() > 0 else v)
    with pytest.warns(pyop.RetraceWarning, match="reads a clock|perf_counter"):
        np.testing.assert_array_equal(timed(make()), X[:1])
    np.testing.assert_array_equal(timed(make()), X[:1])
    if name != "__dlpack__":  # no function of NumPy takes these
        np.testing.assert_array_equal(pyop.grad(cube)(make()), 3 * X**2)
        np.testing.assert_array_equal(pyop.vmap(lambda x: x * 2)(make()), X * 2)
        np.testing.assert_array_equal(pyop.Tensor(make()).numpy(), X)


def test_memory_that_is_written_is_written_where_it_lies():
    def first(v, x):
        v[0] = 7.0
        return x * 2

    for memory in ((ctypes.c_double * 3)(*X), memoryview(X.copy())):
        compiled = pyop.compile(first)
        for _ in range(2):
            memory[0] = 0.0
            np.testing.assert_array_equal(compiled(memory, X), X * 2)
            assert memory[0] == 7.0


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_of_python_are_memory_where_an_array_is_declared(name):
    made = SEQUENCES[name]()
    numbers = np.asarray(made)
    double = pyop.op("_[n] -> _[n]")(lambda x: x * 2)
    np.testing.assert_array_equal(double(made), numbers * 2)
    repeated = pyop.compile(lambda x: x == x)(made)  # Python's ==, not NumPy's
    assert repeated is True
    assert pyop.compile(np.sum)(made) == np.sum(numbers)


def test_a_list_is_a_container_of_its_items():
    compiled = pyop.compile(lambda x: np.stack(x) * 2)
    np.testing.assert_array_equal(compiled([1.0, 2.0]), [2.0, 4.0])
    np.testing.assert_array_equal(double([1.0, 2.0, 3.0]), X * 2)
    assert [float(g) for g in pyop.grad(lambda x: x[0] * x[1])([2.0, 3.0])] == [3.0, 2.0]


@pytest.mark.parametrize("name", ALL)
def test_out_is_an_array(name):
    @pyop.op("float64[n] -> float64[n]")
    def f(x, *, out=None):
        return np.multiply(x, 2.0, out=out)

    for call in (f, graph.compile(), pyop.compile(lambda x: x * 2)):
        refused(lambda call=call: call(X, out=ALL[name][0]()), "writable ndarray")


@pytest.mark.parametrize("name", RULES | LOST)
def test_what_an_op_returns_is_an_array_of_all_of_it(name):
    make, remedy = (RULES | LOST)[name]

    def returned():
        return pyop.op("float64[n] -> float64[n]")(lambda x: make())(X)

    if name in LOST:
        refused(returned, remedy)
        refused(lambda: pyop.op("float64[n] -> _")(lambda x: [make(), make()])(X), remedy)
    else:
        np.testing.assert_array_equal(returned(), X)
    refused(lambda: pyop.compile(lambda x: make())(X), "returns arrays, numbers")

    class Leave(pyop.Function):
        @staticmethod
        def forward(ctx, x):
            return make()

    if name in ("unmasked", "subclass"):
        assert type(Leave.apply(pyop.Tensor(X, requires_grad=True)).numpy()) is np.ndarray
    else:
        refused(lambda: Leave.apply(pyop.Tensor(X, requires_grad=True)), remedy)


def test_plans_word_what_is_no_array_as_ops_do():
    import datetime

    for foreign, remedy in (
        (scipy.sparse.csr_array(np.eye(2)), "toarray"),
        ([datetime.datetime(2020, 1, 1)], "an array of float64"),
        (None, "an array of float64"),
    ):
        for call in (double, graph.compile()):
            text = refused(lambda call=call, foreign=foreign: call(foreign), remedy)
            assert "cannot become an array: NumPy makes objects of it, but float64 is expected" in text
