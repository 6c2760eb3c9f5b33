"""What a declaration says it takes: cast=, and kinds of dtypes such as "floating"."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyop

DTYPES = [np.dtype(code) for code in "?bBhHiIlLefdgFDG"]


@pyop.op("float64[n], float64[n] -> float64[n]", cast="safe")
def added(x, y):
    assert x.dtype == y.dtype == np.float64
    return x + y


@added.vjp
def _(ct, x, y):
    return ct, ct


halved = pyop.op(lambda x: x / 2, "float32[n] -> float32[n]", name="halved", cast="same_kind")


@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.sampled_from(["no", "safe", "same_kind"]))
def test_arguments_are_cast_where_numpy_says_so(have, want, cast):
    inputs = pyop.Signature.make(inputs=[(want, (None,))], outputs=(want, (None,)))
    itself = pyop.op(lambda x: x, inputs, name="itself", cast=cast)
    x = np.ones(3, have)
    plan = pyop.trace(itself, "_").compile()
    known = None
    if have == want or (cast != "no" and np.can_cast(have, want, casting=cast)):
        known = pyop.trace(itself, str(pyop.Spec(have, (3,)))).compile()
        for call in (itself, plan, known, pyop.compile(itself)):
            found = call(x)
            assert (found.dtype, found.tolist()) == (want, x.astype(want).tolist())
    else:
        for call in (itself, plan, pyop.compile(itself)):
            with pytest.raises(pyop.InputError, match="cast"):
                call(x)


def test_nothing_is_cast_that_is_no_number():
    strings = pyop.op(lambda x: x, "str[n] -> str[n]", name="strings", cast="safe")
    with pytest.raises(pyop.InputError, match="expects str"):
        strings(np.ones(3))
    dates = pyop.op(lambda x: x, "float64[n] -> float64[n]", name="dates", cast="same_kind")
    with pytest.raises(pyop.InputError, match="a duration is no number"):
        dates(np.ones(2, "m8[s]"))
    objects = pyop.op(lambda x: x, "object[n] -> object[n]", name="objects", cast="safe")
    with pytest.raises(pyop.InputError, match="expects object"):
        objects(np.ones(2))


def test_results_are_never_cast():
    wrong = pyop.op(lambda x: x.astype("f4"), "float64[n] -> float64[n]", name="wrong", cast="safe")
    with pytest.raises(pyop.OutputError, match="nothing is cast silently"):
        wrong(np.ones(2))


def test_gradients_are_cast_back():
    x, y = np.arange(3, dtype="f4"), np.arange(3.0)
    loss = lambda x, y: np.sum(added(x, y) * np.float64(2))
    for call in (pyop.grad(loss), pyop.compile(pyop.grad(loss))):
        found = call(x, y)
        assert (found.dtype, found.tolist()) == (np.float32, [2, 2, 2])
    value, pull = pyop.vjp(added, x, y)
    assert value.tolist() == [0, 2, 4]
    assert [g.dtype for g in pull(np.ones(3))] == [np.float32, np.float64]
    t = pyop.Tensor(x, requires_grad=True)
    added(t, y).sum().backward()
    assert t.grad.dtype == np.float32


def test_in_graphs_and_pickles():
    graph = pyop.trace(lambda x: added(x, x), "int32[n]")
    assert (graph.outputs.dtype, graph.outputs.ndim) == ("float64", 1)
    assert graph.compile()(np.arange(3, dtype="i4")).tolist() == [0, 2, 4]
    assert pickle.loads(pickle.dumps(added)) is added
    signature = added.spec
    again = pickle.loads(pickle.dumps(signature))
    assert (again, again.cast) == (signature, "safe")
    assert again != pyop.Signature.parse("float64[n], float64[n] -> float64[n]")
    loaded = pickle.loads(pickle.dumps(pyop.trace(added, "_", "_")))
    assert loaded.compile()(np.arange(2), np.arange(2.0)).tolist() == [0, 2]


def test_in_files(tmp_path):
    pytest.importorskip("onnx", reason="files are models of ONNX")
    kept = tmp_path / "graph.pyop"
    pyop.trace(added, "_", "_").save(kept)
    assert pyop.load(kept).compile()(np.arange(2), np.arange(2.0)).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"cast": "unsafe"}, ValueError, "would silently lose values"),
        ({"cast": "maybe"}, ValueError, "numpy.can_cast"),
        ({"device": "cuda"}, ValueError, 'device= is "any"'),
    ],
)
def test_what_a_declaration_refuses(options, error, text):
    with pytest.raises(error, match=text):
        pyop.op("float64[n] -> float64[n]", **options)(lambda x: x)
    with pytest.raises(TypeError, match="has none"):
        pyop.op(lambda x: x, outputs="float64[n]", cast="safe")


# --- kinds

KINDS = {
    "floating": np.floating,
    "integer": np.integer,
    "signedinteger": np.signedinteger,
    "unsignedinteger": np.unsignedinteger,
    "inexact": np.inexact,
    "complexfloating": np.complexfloating,
    "number": np.number,
}


@given(st.sampled_from(sorted(KINDS)), st.sampled_from([*DTYPES, np.dtype("M8[s]"), np.dtype("m8[s]"), np.dtype("O")]))
def test_kinds_are_numpys(kind, dtype):
    itself = pyop.op(lambda x: x, f"{kind}[n] -> {kind}[n]", name="itself")
    x = np.zeros(3, dtype)
    text = str(pyop.Spec(dtype, (3,)))
    # NumPy has timedelta64 among the signed integers, which no function of integers means.
    if np.issubdtype(dtype, KINDS[kind]) and dtype.kind != "m":
        assert itself(x) is x
        graph = pyop.trace(itself, text)
        assert graph.outputs.dtype == dtype
        assert graph.compile()(x).dtype == dtype
    else:
        with pytest.raises(pyop.InputError, match=rf"expects {kind}\[n\]"):
            itself(x)
        with pytest.raises(pyop.InputError, match=kind):
            pyop.trace(itself, text)
        with pytest.raises(pyop.InputError, match=kind):
            pyop.trace(itself, "_").compile()(x)


def test_a_kind_is_one_dtype_in_a_call():
    both = pyop.op(lambda x, y: x + y, "floating[n], floating[n] -> floating[n]", name="both")
    assert both(np.ones(2, "f4"), np.ones(2, "f4")).dtype == np.float32
    with pytest.raises(pyop.InputError, match=r"expects floating\[n\] \(n = 2, floating = float32\)"):
        both(np.ones(2, "f4"), np.ones(2))
    with pytest.raises(pyop.OutputError, match="floating = float32"):
        pyop.op(lambda x: x.astype("f8"), "floating[n] -> floating[n]")(np.ones(2, "f4"))
    assert str(both.spec) == "floating[n], floating[n] -> floating[n]"
    assert pickle.loads(pickle.dumps(both.spec)) == both.spec
    assert str(pyop.Spec(np.floating, ("n",))) == "floating[n]"


def test_types_of_ml_dtypes_are_of_their_kinds():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes")
    itself = pyop.op(lambda x: x, "floating[n] -> floating[n]", name="itself")
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
        assert itself(np.ones(2, dtype)).dtype == dtype
    with pytest.raises(pyop.InputError, match="expects floating"):
        itself(np.ones(2, ml_dtypes.int4))


@pytest.mark.parametrize(
    "make", [lambda: pyop.trace(np.sin, "floating[n]"), lambda: pyop.compile(np.sin, "inexact[n]")]
)
def test_inputs_of_graphs_have_no_kind(make):
    with pytest.raises(TypeError, match="is a kind, for declarations of ops"):
        make()


# --- remedies fit the object


def test_the_remedy_is_in_the_words_of_the_library():
    itself = pyop.op(lambda x: x, "float64[n] -> float64[n]", name="itself")
    plan = pyop.trace(itself, "float64[n]").compile()
    given = {
        r"pass x\.astype\(float64\)": np.ones(2, "i4"),
        r"a date is no number: pass the time since one": np.zeros(2, "M8[s]"),
        r"a duration is no number: pass it in a unit": np.zeros(2, "m8[s]"),
    }
    for name, text, x in _foreign():
        given[text] = x
        assert name
    for text, x in given.items():
        for call in (itself, plan):
            with pytest.raises(pyop.InputError, match=text) as caught:
                call(x)
            assert "astype(float)" not in str(caught.value)
    with pytest.raises(pyop.InputError, match=r'or declare the op with cast="safe"'):
        itself(np.ones(2, "i4"))
    with pytest.raises(pyop.InputError, match=r'cast="safe" does not allow this: pass x\.astype'):
        added(np.ones(2, "c8"), np.ones(2))
    whole = pyop.op(lambda x: x, "int64[n] -> int64[n]", name="whole")
    with pytest.raises(pyop.InputError, match=r"pass np\.asarray\(x\)\.astype\(int64\)"):
        whole([1.5, 2.5])


def _foreign():
    try:
        import torch
    except ImportError:
        pass
    else:
        yield "torch", r"pass x\.to\(torch\.float64\)", torch.ones(2)
    try:
        import pyarrow
    except ImportError:
        pass
    else:
        yield "pyarrow", r"pass x\.cast\('float64'\)", pyarrow.array([1, 2])
    try:
        import pandas
    except ImportError:
        pass
    else:
        yield "pandas", r"pass x\.to_numpy\(dtype=float64\)", pandas.Series([1, 2])
