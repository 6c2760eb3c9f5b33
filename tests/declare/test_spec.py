"""Spec: text there and back, the spellings, and errors that point."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyop.declare.dims import Dim
from pyop.declare.spec import Late, Spec, Variadic

n, m = Dim("n"), Dim("m")

names = st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True)
sizes = st.one_of(
    st.integers(0, 2**63 - 1),
    names.map(Dim),
    st.builds(lambda a, b, c: Dim(a) * b + c, names, st.integers(-4, 4), st.integers(0, 9)).filter(
        lambda s: isinstance(s, Dim) or s >= 0
    ),
    st.builds(lambda a, b: (Dim(a) + 1) // Dim(b), names, names),
    st.none(),
    names.map(Late),
    st.just(Late()),
)
dtypes = st.one_of(
    st.none(),
    st.sampled_from(["T", "T1", "X", "float64", "f4", "complex64", "bool", "str", "U7", "bytes", "S3", "object", "V8"]),
    st.sampled_from(
        ["datetime64", "datetime64[s]", "timedelta64[25ms]", "float16", "longdouble", "StringDType", ">i4"]
    ),
)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    shape = draw(st.none() | st.lists(sizes, max_size=4))
    if shape is not None and draw(st.booleans()):
        shape.insert(draw(st.integers(0, len(shape))), draw(st.just(...) | names.map(Variadic)))
    return Spec(draw(dtypes), shape)


@given(specs())
def test_text_and_pickle_give_the_spec_back(spec: Spec) -> None:
    for again in (Spec.parse(str(spec)), pickle.loads(pickle.dumps(spec)), Spec(spec.dtype, spec.shape)):
        assert again == spec
        assert hash(again) == hash(spec)
    assert eval(repr(spec), {"Spec": Spec.parse}) == spec


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("float64[n, m+1]", "float64", (n, m + 1)),
        ("f8", "float64", None),
        ("f8[]", "float64", ()),
        ("[n]", None, (n,)),
        ("_[_]", None, (None,)),
        ("_", None, None),
        ("c8[n 3 *b]", "complex64", (n, 3, Variadic("b"))),
        ("i4[n *b]", "int32", (n, Variadic("b"))),
        ("i4[n * b]", "int32", (n * Dim("b"),)),
        ("i4[n*b]", "int32", (n * Dim("b"),)),
        ("i4[(n+1)*2, n - 1, -n+3, 7//2]", "int32", (2 * n + 2, n - 1, 3 - n, 3)),
        ("  f8 [ n ,3 ]  ", "float64", (n, 3)),
        ("datetime64[s]", "datetime64[s]", None),
        ("M8[s][n]", "datetime64[s]", (n,)),
        ("datetime64[n]", "datetime64", (n,)),
        ("object[...]", "object", (...,)),
        ("T[k!, _!]", "T", (Late("k"), Late())),
        ("?[]", "bool", ()),
        ("longlong[]", "int64", ()),
        ("<f4", "float32", None),
        (">f4", "float32", None),
    ],
)
def test_reading(text: str, dtype: str | None, shape: tuple | None) -> None:
    spec = Spec.parse(text)
    assert spec.shape == shape
    if dtype in (None, "T"):
        assert spec.dtype == dtype
    else:
        assert spec.dtype == np.dtype(dtype)
        assert spec.dtype.isnative


# The text, the character that the caret must be under, and what the message must say.
WRONG = [
    ("", 0, "expected a dtype"),
    ("f8[", 3, "expected a size"),
    ("f8[n", 4, "expected ',' or ']', got the end"),
    ("f8[n,]", 5, "expected a size"),
    ("f8[3n]", 4, "after a number"),
    ("f8[n//0]", 6, "other than 0"),
    ("f8[n**2]", 5, "expected a size"),
    ("flaot64[n]", 0, "did you mean 'float64'"),
    ("f8[n]x", 5, "expected the end"),
    ("f8[n, -1]", 6, "unknown size is written '_'"),
    ("f8[n?]", 4, "gufunc"),
    ("f8[n(m)]", 4, "expected ',' or ']'"),
    ("f8[n!+1]", 5, "expected ',' or ']'"),
    ("f8[..., *b]", 8, "at most one"),
    ("D1[n]", 0, "not a dtype"),
    ("a5[n]", 0, "not a dtype"),
    ("f8[n+]", 5, "expected a size"),
    ("f8[(n]", 5, "or ')'"),
    ("f8[9223372036854775808]", 3, "2**63-1"),
    ("f8[4611686018427387904*2]", 3, "64 bits"),
    ("(n)->()", 0, "expected a dtype"),
]


@pytest.mark.parametrize(("text", "position", "message"), WRONG)
def test_wrong_text_points_at_the_character(text: str, position: int, message: str) -> None:
    with pytest.raises(ValueError) as error:
        Spec.parse(text)
    first, shown, caret = str(error.value).split("\n")
    assert message in first
    assert shown == "    " + text
    assert caret == " " * (4 + position) + "^"


@pytest.mark.parametrize(
    "text",
    [
        "f8[" + "(" * 100_000,
        "f8[" + "(" * 9_000 + "n" + ")" * 9_000 + "]",
        "f8[" + "9" * 9_999 + "]",
        "f8[" + "*".join(f"(a{i}+b{i})" for i in range(300)) + "]",
        "f8[" + "//".join(["n", *(f"m{i}" for i in range(300))]) + "]",
        "f8[" + "-" * 9_998 + "]",
        "f8[" + ",".join("n" * 65) + "]",
        "x" * 10_000,
        "f8[n\0]",
        "f8[é]",
        "日本[n]",
        "f8[\ud800]",
        "f8[n" + "\N{ARABIC-INDIC DIGIT ONE}" + "]",
    ],
)
def test_hostile_text(text: str) -> None:
    with pytest.raises(ValueError, match="expected") as error:
        Spec.parse(text)
    shown = str(error.value)
    assert shown.isprintable() or shown.replace("\n", "").isprintable()
    assert len(shown) < 500


def test_long_text_is_shown_around_the_error() -> None:
    text = "f8[" + ",".join(f"n{i}" for i in range(40)) + ",+]"
    with pytest.raises(ValueError) as error:
        Spec.parse(text)
    _, shown, caret = str(error.value).split("\n")
    assert shown.startswith("    ...")
    assert shown[len(caret) - 1] == "+"


def test_spellings() -> None:
    expected = Spec("float64", (3, n))
    assert Spec.make("f8[3,n]") == expected
    assert Spec.make(("f8", (3, "n"))) == expected
    assert Spec.make((np.float64, [3, n])) == expected
    assert Spec.make(expected) is expected
    for anything in ("float64", np.float64, np.dtype("f8"), np.dtype(">f8"), float, np.dtypes.Float64DType):
        assert Spec.make(anything) == Spec(np.dtype(float))
    assert Spec.make(None) == Spec()
    assert Spec.make(np.zeros((2, 3), "f4")) == Spec("f4", (2, 3))
    assert Spec.of([[1.0], [2.0]]) == Spec("f8", (2, 1))
    assert Spec.of(np.float32(1)) == Spec("f4", ())
    structured = np.dtype([("x", "f8"), ("y", "i4")])
    assert Spec(structured).dtype == structured
    assert Spec("f8", ["_", "...", "n!"]).shape == (None, ..., Late("n"))


@pytest.mark.parametrize("wrong", [3, 1.5, [1], {}, object(), list, np.flexible, b"f8", (1, 2, 3)])
def test_no_spec(wrong: object) -> None:
    with pytest.raises(TypeError):
        Spec.make(wrong)


@pytest.mark.parametrize("shape", [3, "n", (1.5,), ({},), (b"n",)])
def test_no_shape(shape: object) -> None:
    with pytest.raises(TypeError, match="size"):
        Spec("f8", shape)


@pytest.mark.parametrize("shape", [(-1,), (2**63,), (..., Variadic("b")), ("n n",), ("",)])
def test_impossible_shape(shape: tuple) -> None:
    with pytest.raises(ValueError):
        Spec("f8", shape)


def test_properties() -> None:
    assert Spec.parse("f8[n,3]").ndim == 2
    assert Spec.parse("f8[n,...]").ndim is None
    assert Spec.parse("f8").ndim is None
    assert Spec.parse("str").text
    assert not Spec.parse("U5").text
    assert not Spec.parse("T").text
    # A type variable is never what NumPy would read in its letter.
    assert Spec("T") != Spec("StringDType")
    with pytest.raises(AttributeError, match="immutable"):
        Spec().dtype = None
