"""Text in the py_func family: UTF-8 bytes in object arrays, whatever it came as, nothing cut and nothing added."""

import gc
import sys

import numpy as np
import pytest
from py_func_ways import WAYS

import pyop


@pytest.fixture(params=list(WAYS))
def call(request):
    return WAYS[request.param]


def objects(*items):
    return np.array(items, dtype=object)


GERMAN = "gr\u00fc\u00df \u6771 \U0001f600"

RETURNS = {
    "bytes": (lambda: b"ab", b"ab"),
    "bytes with NUL": (lambda: b"\0a\0\0", b"\0a\0\0"),
    "not UTF-8": (lambda: b"\xff\xfe", b"\xff\xfe"),
    "empty": (lambda: "", b""),
    "str": (lambda: GERMAN, GERMAN.encode()),
    "str with NUL": (lambda: "\0a\0\0", b"\0a\0\0"),
    "list": (lambda: [["a\0", "\u00e9"]], [b"a\0", "\u00e9".encode()]),
    "nested list": (lambda: [[[b"a\0"], [b"bb"]]], [[b"a\0"], [b"bb"]]),
    "bytes and str": (lambda: [[b"a\0", "\u00e9"]], [b"a\0", "\u00e9".encode()]),
    "object array": (lambda: objects(b"raw\0", "t\u00e9xt"), [b"raw\0", "t\u00e9xt".encode()]),
    "object scalar": (lambda: np.array("x\0", object), b"x\0"),
    "no items": (lambda: np.empty((0, 2), object), []),
    "S array": (lambda: np.array([b"abc", b"d\0"], "S5"), [b"abc", b"d"]),
    "U array": (lambda: np.array([GERMAN, "x"]), [GERMAN.encode(), b"x"]),
    "big-endian U array": (lambda: np.array([GERMAN, "x"]).astype(">U9"), [GERMAN.encode(), b"x"]),
    "strided U array": (lambda: np.array([["a", "b"], ["c", "d"]]).T[::-1], [[b"b", b"d"], [b"a", b"c"]]),
    "np.str_": (lambda: np.str_("\u00e9"), "\u00e9".encode()),
    "np.bytes_": (lambda: np.bytes_(b"ab"), b"ab"),
    "subclass of str": (lambda: type("Name", (str,), {})("n\0"), b"n\0"),
    "subclass of bytes": (lambda: type("Raw", (bytes,), {})(b"n\0"), b"n\0"),
    "StringDType": (lambda: np.array(["\u00e9", "a\0"], np.dtypes.StringDType()), ["\u00e9".encode(), b"a\0"]),
    "bytearray": (lambda: bytearray(b"ab"), None),
}


@pytest.mark.parametrize("kind", [k for k, (_, want) in RETURNS.items() if want is not None])
def test_returned_text(call, kind):
    make, want = RETURNS[kind]
    for tout in ("string", [str], "object", "bytes"):
        got = call(make, [], tout)
        got = got[0] if isinstance(tout, list) else got
        assert got.dtype == object
        assert got.tolist() == want
        assert all(type(item) is bytes for item in got.ravel())


def test_a_shape_of_text(call):
    assert call(lambda: [["a", "b"]], [], ["str[2]"])[0].tolist() == [b"a", b"b"]
    with pytest.raises(pyop.OutputError, match=r"but expects object\[3\]"):
        call(lambda: [["a", "b"]], [], ["str[3]"])


ARGUMENTS = {
    "object array": (objects(b"raw\0", "\u00e9"), [b"raw\0", "\u00e9".encode()]),
    "U array": (np.array(["\u00e9", "b"]), ["\u00e9".encode(), b"b"]),
    "S array": (np.array([b"a", b"bc"]), [b"a", b"bc"]),
    "str": (GERMAN, GERMAN.encode()),
    "bytes with NUL": (b"a\0", b"a\0"),
    "str with NUL": ("a\0", b"a\0"),
    "list": (["a", "\u00e9"], [b"a", "\u00e9".encode()]),
    "list with NUL": (["a\0", b"b\0"], [b"a\0", b"b\0"]),
    "StringDType": (np.array(["\u00e9"], np.dtypes.StringDType()), ["\u00e9".encode()]),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_text_arrives_as_bytes(call, kind):
    given, want = ARGUMENTS[kind]
    seen = []

    def look(x):  # text without dimensions comes as bytes, as from TensorFlow
        seen.append(x if type(x) is bytes else (x.dtype, x.tolist(), x.flags.writeable))
        return x

    got = call(look, [given], "string")
    assert seen == [want if type(want) is bytes else (np.dtype(object), want, False)]
    assert got.tolist() == want


def test_text_between_two_functions(call):
    def chain(x):
        return pyop.py_func(lambda b: b.decode() + "!\0", [pyop.py_func(lambda b: b, [x], "string")], "string")

    assert call(chain, ["\u00e9"], "string").item() == "\u00e9!\0".encode()


@pytest.mark.parametrize(
    "value",
    ["\ud800", objects("a\udfff"), np.array(["\ud800"]), [["ok", "\ud800"]]],
    ids=["str", "object", "U", "list"],
)
def test_a_lone_surrogate_is_no_text(call, value):
    with pytest.raises(pyop.OutputError, match=r"(?s)utf-8.*surrogates not allowed.*0-th value returned by") as caught:
        call(lambda: value, [], ["string"])
    assert isinstance(caught.value.__cause__, UnicodeEncodeError)
    with pytest.raises(pyop.InputError, match=r"argument 0.* cannot become"):
        pyop.py_func(lambda x: x, [value if not isinstance(value, list) else value[0]], "string")


@pytest.mark.parametrize("value", [objects(b"a", 3), objects(None), objects("a", ["b"])])
def test_objects_that_are_no_text(call, value):
    kind = type(next(item for item in value.ravel() if not isinstance(item, str | bytes))).__name__
    with pytest.raises(pyop.OutputError, match=f"Unsupported object type {kind}"):
        call(lambda: value, [], "string")


def test_a_bytearray_is_numbers(call):
    assert call(lambda: bytearray(b"ab"), [], "uint8").tolist() == [97, 98]


def test_much_text_does_not_leak(call):
    text = [f"item {k} \u00e9".encode() for k in range(1000)]
    array = objects(*text)
    got = call(lambda x: x, [array], "string")
    assert got.tolist() == text
    del got
    gc.collect()
    counts = [sys.getrefcount(item) for item in text[:10]]
    for _ in range(5):
        call(lambda x: x, [array], "string")
    gc.collect()
    assert [sys.getrefcount(item) for item in text[:10]] == counts
