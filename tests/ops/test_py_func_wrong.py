"""py_func: everything a function may return wrongly, in every way it can be called."""

import asyncio
import contextlib
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
        with output_error("Unsupported object type coroutine", "1-th value returned by lambda"):
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
