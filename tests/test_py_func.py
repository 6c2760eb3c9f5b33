"""py_func: values in and out, and everything a function may return wrongly, in every way it can be called."""

import asyncio
import contextlib
import functools
import gc
import inspect
import re
import warnings

import numpy as np
import pytest
from py_func_ways import WAYS

import pyop

f32 = np.float32


@pytest.fixture(params=list(WAYS))
def call(request):
    return WAYS[request.param]


@contextlib.contextmanager
def output_error(*words):
    """An OutputError with these words in this order, that says which function and where it was used."""
    with pytest.raises(pyop.OutputError) as caught:
        yield caught
    text, at = str(caught.value), 0
    for word in words:
        at = text.find(word, at)
        assert at >= 0, f"{word!r} not found, or not in order, in:\n{text}"
    assert re.search(r"in (op|node) '\w+' \((declared|created) at .*test.*\.py:\d+\)", text), text


# --- values

DTYPES = [*np.typecodes["AllInteger"], "e", "f", "d", "F", "D", "?"]


@pytest.mark.parametrize("code", DTYPES)
def test_every_dtype_keeps_type_and_value(call, code):
    x = np.array([1, 0, 1], code)
    got = call(lambda a: a, [x], code)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 32, (2, 3)])
def test_any_shape(call, shape):
    seen = []
    got = call(lambda a: (seen.append((type(a), a.shape)), a + f32(1))[1], [np.ones(shape, f32)], "float32")
    assert seen == [(np.ndarray, shape)]
    assert isinstance(got, np.ndarray)
    assert got.shape == shape
    assert got.dtype == f32
    assert (got == 2).all()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(2.5, "float64"), (7, "int64"), (True, "bool"), (1 - 2j, "complex128"), (2**63, "uint64"), (f32(3), "float32")],
)
def test_a_number_gets_numpys_own_dtype(call, value, dtype):
    got = call(lambda: value, [], dtype)
    assert isinstance(got, np.ndarray)
    assert (got, got.dtype, got.shape) == (value, np.dtype(dtype), ())


@pytest.mark.parametrize(
    "dtype", [float, "float64", np.float64, np.dtype("f8"), "f8", "float64[]", pyop.Spec.parse("float64[]")]
)
def test_tout_may_be_spelt_as_numpy_has_it(call, dtype):
    assert call(lambda: 1.5, [], dtype) == 1.5
    assert call(lambda: 1.5, [], (dtype,)) == [1.5]


def test_one_a_list_or_nothing(call):
    assert isinstance(call(lambda: f32(1), [], "float32"), np.ndarray)
    for tout in (["float32"], ("float32",)):
        assert call(lambda: f32(1), [], tout) == [1]
        assert call(lambda: [f32(1)], [], tout) == [1]
        assert call(lambda: (f32(1),), [], tout) == [1]
    several = call(lambda x: [x, 2, "t"], [f32(1)], ("float32", "int64", "string"))
    assert isinstance(several, list)
    assert [a[()] for a in several] == [1, 2, b"t"]
    ran = []
    for result in (None, [], ()):
        assert call(lambda x, result=result: (ran.append(float(x)), result)[1], [f32(4)], []) is None
    assert ran == [4.0] * 3


def test_lists_inside_a_list_are_arrays(call):
    a, b = call(lambda: ([1.0, 2.0], [[1, 2], [3, 4]]), [], ["float64", "int64"])
    assert (a.tolist(), b.tolist()) == ([1, 2], [[1, 2], [3, 4]])


@pytest.mark.parametrize("dtype", ["float32", "int64", "string", "bool"])
def test_an_empty_list_has_the_declared_dtype(call, dtype):
    (flat,) = call(lambda: [[]], [], [dtype])
    (deep,) = call(lambda: [[[], []]], [], [dtype])
    assert (flat.shape, deep.shape) == ((0,), (2, 0))
    assert flat.dtype == deep.dtype == np.dtype(object if dtype == "string" else dtype)


LAYOUTS = {
    "fortran": np.asfortranarray,
    "transposed": lambda b: b.T,
    "reversed": lambda b: b[:, ::-1],
    "strided": lambda b: b[::2, 1:],
    "broadcast": lambda b: np.broadcast_to(b[0], (5, 4)),
    "big endian": lambda b: b.astype(">f4"),
    "read-only": lambda b: (b.setflags(write=False), b)[1],
    "unaligned": lambda b: np.frombuffer(b"\0" + b.tobytes(), np.uint8)[1:].view("<f4").reshape(b.shape),
    "matrix": lambda b: b.view(np.matrix),
    "masked": lambda b: np.ma.masked_array(b, b > 3),
    "memoryview": memoryview,
    "memmap-like": lambda b: b.view(type("Sub", (np.ndarray,), {})),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_goes_out_and_in(call, layout):
    def make():
        return LAYOUTS[layout](np.arange(12, dtype=f32).reshape(3, 4))

    want = np.array(np.ma.getdata(make()), f32)
    got = call(make, [], "float32")
    assert type(got) is np.ndarray
    assert got.dtype == f32
    assert got.dtype.isnative
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(call(lambda a: a * f32(1), [make()], "float32"), want)


def test_the_returned_array_is_not_copied(call):
    mine = np.arange(1000.0)
    assert np.shares_memory(call(lambda: mine, [], "float64"), mine)
    first, second = call(lambda x: (x, x), [mine], ["float64", "float64"])
    assert first.tolist() == second.tolist() == mine.tolist()


def test_anything_callable(call):
    class Adder:
        def __call__(self, v):
            return v + f32(1)

        def method(self, v):
            return v + f32(2)

        @staticmethod
        def static(v):
            return v + f32(3)

        @classmethod
        def of_class(cls, v):
            return v + f32(4)

    x = [f32([1])]
    functions = [Adder(), Adder().method, Adder.static, Adder.of_class, functools.partial(np.add, f32(5)), np.negative]
    assert [float(call(f, x, "float32")[0]) for f in functions] == [2, 3, 4, 5, 6, -1]
    assert call(len, x, "int64") == 1
    assert call(pyop.op(lambda v: v + f32(9)), x, "float32") == [10]


def test_inputs_are_what_numpy_makes_arrays_of(call):
    kinds = [3, 2.5, True, 1j, [1, 2], (1.0, 2.0), np.float32(1), range(3), np.ma.masked_array([1, 2])]
    assert [a.dtype.char for a in map(np.asarray, kinds)] == call(
        lambda *args: [[a.dtype.char for a in args]], [np.asarray(k) for k in kinds], ["string"]
    )[0].astype(str).tolist()
    assert pyop.py_func(lambda *args: [[type(a) is np.ndarray for a in args]], kinds, ["bool"])[0].all()


def test_many_inputs_and_outputs(call):
    out = call(lambda *a: list(a), [np.int64(k) for k in range(100)], ["int64"] * 100)
    assert [int(x) for x in out] == list(range(100))


# --- what is returned wrongly


def test_dtype_is_not_cast(call):
    def loss(x):
        return 1.5

    with output_error(
        "0-th value returned by loss is double, but expects float", "returned: float64[] (from a float)", "return"
    ):
        call(loss, [f32(1)], "float32")
    with output_error("1-th value returned by", "is double, but expects float"):
        call(lambda: (f32(1), 2.0), [], ["float32", "float32"])
    with output_error("is int64, but expects string"):
        call(lambda: 3, [], "string")
    with output_error("is string, but expects int64"):
        call(lambda: "3", [], "int64")
    with output_error("is bool, but expects int64"):
        call(lambda: True, [], "int64")


def test_declared_shapes_are_checked(call):
    with output_error("0-th value returned by", "float64[2]", "but expects float64[3]"):
        call(lambda: np.zeros(2), [], "float64[3]")
    with output_error("1-th value returned by", "float64[3]", "n = 2"):
        call(lambda: (np.zeros(2), np.zeros(3)), [], ["float64[n]", "float64[n]"])


@pytest.mark.parametrize(
    ("result", "got", "declared"),
    [
        (None, 0, "float32"),
        (None, 0, ["float32"]),
        (None, 0, ["float32", "float32"]),
        (1.5, 1, []),
        ([1.0, 2.0], 2, "float64"),
        ((1.0, 2.0), 2, ["float64"]),
        ([], 0, "float64"),
        ([1.0], 1, ["float64"] * 3),
        (np.zeros(3), 1, ["float64"] * 3),
    ],
)
def test_count(call, result, got, declared):
    def wrong():
        return result

    expected = len(declared) if isinstance(declared, list) else 1
    with output_error(f"wrong returns {got} values, but expects to see {expected} values."):
        call(wrong, [], declared)


def generator():
    yield 1


@pytest.mark.parametrize("dtype", ["float32", "int64", "string"])
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: [None], "NoneType"),
        (dict, "dict"),
        (lambda: {"a": 1}, "dict"),
        (lambda: {1.0}, "set"),
        (generator, "generator"),
        (object, "object"),
        (lambda: 2**64, "int"),
        (lambda: [[2**64]], "int"),
        (lambda: np.array([b"a", 3], object), "int"),
        (lambda: np.array([None], object), "NoneType"),
        (lambda: np.array(None), "NoneType"),
        (lambda: np.array([3, 4], object), "int"),
        (lambda: [[1.0, None]], "float"),
        (lambda: [[b"a", 1.0]], "float"),
        (lambda: int, "type"),
        (lambda: iter([1.0]), "list_iterator"),
    ],
)
def test_objects_are_rejected_by_type(call, make, kind, dtype):
    with output_error(f"Unsupported object type {kind}", "0-th value returned by"):
        call(lambda: make(), [], [dtype])


def test_a_coroutine_is_rejected_and_closed(call):
    async def work():
        await asyncio.sleep(0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with output_error("Unsupported object type coroutine", "work"):
            call(work, [], "float64")
        with output_error("Unsupported object type coroutine", "work"):
            call(lambda: [np.float64(1), work(), work()], [], ["float64"] * 3)
        with output_error("returns 1 values, but expects to see 0"):
            call(work, [], [])
        with output_error("expected a dict", "got one value of type coroutine"):
            pyop.contrib.py_func(work, output_types={"a": "float64"})
        gc.collect()
    kept = []
    with output_error("Unsupported object type coroutine"):
        call(lambda: kept.append(work()) or kept[0], [], "float64")
    assert inspect.getcoroutinestate(kept[0]) == inspect.CORO_CLOSED


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.zeros(2, [("a", "i4")]), "0-th"),  # however the fields are told
        (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
        (np.array([1], "m8[s]"), "timedelta64"),
        (np.zeros(2, np.longdouble), "longdouble" if np.dtype("g").itemsize == 8 else "float128"),
        (np.zeros(2, np.clongdouble), "complex"),
        (np.zeros(2, "V3"), "void"),
    ],
    ids=lambda v: v.dtype.str if isinstance(v, np.ndarray) else v,
)
def test_dtypes_that_tensors_cannot_have(call, value, name):
    for dtype in ("float32", "string"):
        with output_error("Unsupported numpy type", name):
            call(lambda: value, [], [dtype])


def test_ragged(call):
    with output_error("inhomogeneous", "0-th value returned by") as caught:
        call(lambda: [[[1.0], [2.0, 3.0]]], [], ["float64"])
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_array_like_that_fails_to_convert(call):
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("no luck")

    with output_error("no luck", "0-th value returned by") as caught:
        call(lambda: Broken(), [], "float64")
    assert isinstance(caught.value.__cause__, RuntimeError)

    class Interrupted:
        def __array__(self, dtype=None, copy=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(lambda: Interrupted(), [], "float64")
