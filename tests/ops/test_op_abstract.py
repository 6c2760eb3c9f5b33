"""@op.abstract: output specs that a function computes."""

import numpy as np
import pytest

import pyop
from pyop import Spec


def make(fn, rule, **options):
    op = pyop.op(fn, **options)
    op.abstract(rule)
    return op


def test_several_outputs_trees_and_statics():
    def rule(x, *, k):
        return {"head": Spec(x.dtype, (k,)), "rest": [Spec(x.dtype, (x.shape[0] - k,)), Spec("int64", ())]}

    op = make(lambda x, *, k: {"head": x[:k], "rest": [x[k:], len(x)]}, rule)
    a = np.arange(5.0)
    for k in (0, 2, 5, 2):
        got = op(a, k=k)
        assert got["head"].shape == (k,)
        assert got["rest"][0].shape == (5 - k,)
        assert got["rest"][1] == 5
    g = pyop.trace(lambda x: op(x, k=2), "float64[n]")
    assert str(g.outputs["rest"][0].spec) == "float64[n-2]"
    assert g.compile()(a)["rest"][0].tolist() == [2, 3, 4]
    with pytest.raises(TypeError, match="'k'"):
        op(a)


def test_the_same_number_of_another_type_is_another_question():
    """1, 1.0 and True are equal, and so are their hashes."""

    def rule(x, *, by):
        return Spec(np.result_type(x.dtype, type(by)), x.shape)

    op = make(lambda x, *, by: x * np.asarray(by), rule)
    a = np.arange(3, dtype="i8")
    for by in (1, 1.0, True, 1j, 1, 1.0):
        np.testing.assert_array_equal(op(a, by=by), a * np.asarray(by))
        assert op(a, by=by).dtype == np.result_type(a, np.asarray(by))

    zeros = make(lambda x, *, by: np.asarray(by[0]), lambda x, *, by: Spec(type(by[0]), ()))
    for by in ((1,), (1.0,), (True,)):
        assert zeros(a, by=by) == 1


def test_the_rule_is_asked_once_for_the_same_question():
    asked = []

    def rule(x, *, axis=0):
        asked.append((x, axis))
        return Spec(x.dtype, x.shape)

    op = make(lambda x, *, axis=0, other=None: x + 0, rule)
    for _ in range(5):
        op(np.ones(3), other=object())
    assert len(asked) == 1
    op(np.ones(4))
    op(np.ones(3, "f4"))
    op(np.ones(3), axis=1)
    assert len(asked) == 4
    op(np.ones(3), axis=[1])  # not hashable
    assert asked[-1][1] == [1]


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda x: 3, TypeError, "must return specs, but returned 3"),
        (lambda x: "float64[", TypeError, "must return specs"),
        (lambda x: "float32[_]", pyop.OutputError, r"is float64\[3\], but expects float32"),
        (lambda x: Spec("float64", (4,)), pyop.OutputError, r"is float64\[3\], but expects float64\[4\]"),
        (lambda x: (Spec(), Spec()), pyop.OutputError, "returns 1 values, but expects to see 2"),
        (lambda: Spec(), TypeError, "argument"),
        (lambda x, y: Spec(), TypeError, "argument"),
    ],
)
def test_a_wrong_rule(answer, error, words):
    op = make(lambda x: x + 0, answer, name="f")
    for _ in range(2):
        with pytest.raises(error, match=words):
            op(np.ones(3))


def test_an_exception_of_the_rule_is_noted_once():
    error = LookupError("nothing known")

    def rule(x):
        raise error

    op = make(lambda x: x, rule, name="f")
    with pytest.raises(LookupError) as caught:
        op(np.ones(3))
    assert caught.value is error
    (note,) = error.__notes__
    assert "'f'" in note


def test_declared_inputs_are_checked_before_the_rule_is_asked():
    def rule(x):
        return Spec("float64", (x.shape[0], x.shape[1]))

    op = make(lambda x: x + 0, rule, inputs="float64[n,m]", name="f")
    assert op(np.ones((2, 3))).shape == (2, 3)
    with pytest.raises(pyop.InputError, match=r"float64\[3\], but expects float64\[n,m\]"):
        op(np.ones(3))


def test_out_and_abstract():
    def double(x, *, out):
        return np.multiply(x, 2, out=out)

    op = make(double, lambda x: Spec(x.dtype, x.shape))
    a, out = np.arange(3.0), np.empty(3)
    assert op(a, out=out) is out
    assert out.tolist() == [0, 2, 4]
    assert op(a).tolist() == [0, 2, 4]
    with pytest.raises(pyop.InputError, match=r"out= .*float64\[2\].*float64\[3\]"):
        op(a, out=np.empty(2))


def test_mutates_and_abstract():
    def bump(x):
        x += 1
        return x

    op = make(bump, lambda x: Spec(x.dtype, x.shape), mutates="x")
    a = np.zeros(3)
    assert op(a).tolist() == [1, 1, 1]
    assert a.tolist() == [0, 0, 0]


def test_what_cannot_have_a_rule():
    with pytest.raises(TypeError, match="declares its outputs"):
        pyop.op("float64[n] -> float64[n]")(lambda x: x).abstract(lambda x: Spec())
    with pytest.raises(TypeError, match="callable"):
        pyop.op(lambda x: x).abstract(3)


def test_a_rule_may_be_replaced_even_while_the_op_runs():
    op = pyop.op(lambda x: [op.abstract(lambda x: Spec(x.dtype, x.shape)) for _ in range(3)] and x + 1)
    op.abstract(lambda x: Spec("float64"))
    for _ in range(100):
        np.testing.assert_array_equal(op(np.ones(3)), np.ones(3) + 1)

    def nested(x):
        op2.abstract(lambda y: Spec("int64"))
        return Spec("float64")

    op2 = make(lambda x: x + 0, nested)
    op2(np.ones(2))
    with pytest.raises(pyop.OutputError, match="int64"):
        op2(np.ones(2))


def test_symbolic_sizes_pass_through_the_rule():
    def rule(x):
        return Spec(x.dtype, (x.shape[0] - 1, 2, None)), Spec.parse("float64[m!]"), Spec(), Spec("int64")

    op = make(lambda x: None, rule)
    outputs = pyop.trace(op, "int64[n]").outputs
    assert [str(v.spec) for v in outputs] == ["int64[n-1,2,_]", "float64[_]", "_", "int64"]
