"""Memory that a function writes into: out= and mutates=."""

import numpy as np
import pytest

import pyop


def address(a):
    return a.__array_interface__["data"][0]


@pyop.op("float64[n] -> float64[n]")
def required(x, *, out):
    np.multiply(x, 2, out=out)


@pyop.op("float64[n] -> float64[n]")
def optional(x, *, out=None):
    return np.multiply(x, 2, out=out)


@pyop.op("float64[n] -> float64[n]")
def ignoring(x, *, out=None):
    return x * 2


@pyop.op("float64[n] -> float64[n]")
def shifting(x, *, out):
    """Reads what it has already overwritten, if they overlap."""
    for i in range(x.size):
        out[i] = x[i - 1]
    return out


@pytest.mark.parametrize("op", [required, optional, ignoring])
def test_out_is_filled_and_returned(op):
    a = np.arange(4.0)
    for out in (np.empty(4), np.empty(8)[::-2], np.empty((4, 3))[:, 1]):
        assert op(a, out=out) is out
        np.testing.assert_array_equal(out, a * 2)
    np.testing.assert_array_equal(op(a), a * 2)
    np.testing.assert_array_equal(op(a, out=None), a * 2)
    np.testing.assert_array_equal(a, np.arange(4.0))


def test_a_required_out_is_new_memory_of_the_declared_shape():
    first, second = required(np.ones(3)), required(np.ones(3))
    assert not np.shares_memory(first, second)
    assert first.flags.writeable
    assert first.flags.owndata


def test_the_function_writes_into_the_callers_out_itself():
    seen = []

    @pyop.op("float64[n] -> float64[n]")
    def look(x, *, out=None):
        seen.append(out)
        out[...] = x
        return out

    out = np.zeros(3)
    look(np.ones(3), out=out)
    assert seen[0] is out


@pytest.mark.parametrize("op", [required, shifting])
@pytest.mark.parametrize(
    "window", [(slice(0, 4), slice(0, 4)), (slice(0, 4), slice(1, 5)), (slice(1, 5), slice(3, None, -1))]
)
def test_out_may_overlap_an_argument(op, window):
    memory = np.arange(6.0)
    x, out = memory[window[0]], memory[window[1]]
    expected = op(x.copy())
    assert op(x, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("op", [required, optional, ignoring])
@pytest.mark.parametrize(
    ("out", "words"),
    [
        (np.empty(3), r"float64\[3\].*float64\[n\] \(n = 4\)"),
        (np.empty((1, 4)), r"float64\[1,4\]"),
        (np.empty((2, 4)), r"float64\[2,4\]"),
        (np.empty(4, "f4"), "float32"),
        (np.empty(4, ">f8"), "byte order"),
        (np.empty(4, "c16"), "complex128"),
        (np.broadcast_to(np.empty(1), 4), "writable"),
        ([0.0] * 4, "list"),
        (np.empty(4).view(np.recarray), "recarray"),
        ((np.empty(4), np.empty(4)), "tuple of 1"),
        ((), "tuple of 1"),
    ],
)
def test_a_wrong_out_is_refused_before_anything_runs(op, out, words):
    before = np.array(out, copy=True)
    with pytest.raises(pyop.InputError, match=words):
        op(np.ones(4), out=out)
    np.testing.assert_array_equal(np.asarray(out), before)


def test_out_of_unknown_shape():
    @pyop.op("float64[n] -> float64[m!]")
    def twice(x, *, out=None):
        got = np.concatenate([x, x])
        if out is not None:
            out[...] = got
        return got

    out = np.empty(6)
    assert twice(np.ones(3), out=out) is out
    assert twice(np.ones(3)).shape == (6,)

    @pyop.op("float64[n] -> float64[m!]")
    def needs(x, *, out):
        out[...] = 1

    with pytest.raises(pyop.OutputError, match="shape is not known before the call"):
        needs(np.ones(3))
    needs(np.ones(3), out=out)
    with pytest.raises(ValueError, match="broadcast"):
        twice(np.ones(3), out=np.empty(5))


def test_a_result_that_does_not_fit_out_is_an_error():
    """No silent cast, no silent broadcast, though the declaration leaves dtype and shape open."""
    op = pyop.op(outputs="_")(lambda x, *, out=None: x * 1.5)
    a = np.ones(4)
    for out in (np.zeros(4, int), np.zeros((3, 4)), np.zeros(4, "f4")):
        with pytest.raises(pyop.OutputError, match="out="):
            op(a, out=out)
        assert not out.any()
    assert op(a, out=np.zeros(4))[0] == 1.5


def test_a_tuple_of_outs():
    @pyop.op("float64[n] -> float64[n], float64[]")
    def stats(x, *, out=None):
        if out is None:
            return x - x.mean(), x.mean()
        out[0][...] = x - x.mean()
        out[1][...] = x.mean()
        return None

    x = np.arange(4.0)
    outs = np.empty(4), np.empty(())
    got = stats(x, out=outs)
    assert type(got) is tuple
    assert got[0] is outs[0]
    assert got[1] is outs[1]
    for g, e in zip(got, stats(x), strict=True):
        np.testing.assert_array_equal(g, e)
    for bad in (outs[0], outs[:1], list(outs), outs[::-1], (*outs, outs[0])):
        with pytest.raises(pyop.InputError, match="out="):
            stats(x, out=bad)


def test_an_op_without_out():
    op = pyop.op("float64[n] -> float64[n]")(lambda x: x + 1)
    with pytest.raises(TypeError, match="out"):
        op(np.ones(2), out=np.ones(2))


@pytest.mark.parametrize("declare", ["float64[n], float64[n] -> float64[n]", None])
def test_mutates_leaves_the_callers_array_alone(declare):
    @pyop.op(declare, mutates="x") if declare else pyop.op(like="x", mutates=("x",))
    def axpy(x, y):
        x += y
        return x

    a, b = np.arange(3.0), np.ones(3)
    for x in (a, a[::-1], np.broadcast_to(2.0, 3), a.copy(order="F")):
        before = x.copy()
        np.testing.assert_array_equal(axpy(x, b), before + 1)
        np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(axpy(a, a), a * 2)
    np.testing.assert_array_equal(axpy(y=a, x=a), a * 2)
    with pytest.raises(ValueError, match="read-only"):
        pyop.op("float64[n], float64[n] -> float64[n]", mutates="x")(lambda x, y: y.fill(0))(a, b)


def test_mutates_in_a_plan():
    seen = []

    @pyop.op("float64[n] -> float64[n]", mutates="x")
    def bump(x):
        seen.append(address(x))
        x += 1
        return x

    made = []

    @pyop.op("float64[n] -> float64[n]")
    def make(x):
        y = x * 2
        made.append(address(y))
        return y

    a = np.arange(5.0)
    plan = pyop.trace(lambda x: bump(x), "float64[n]").compile()
    np.testing.assert_array_equal(plan(a), a + 1)
    np.testing.assert_array_equal(a, np.arange(5.0))

    plan = pyop.trace(lambda x: bump(make(x)), "float64[n]").compile()
    for _ in range(3):
        np.testing.assert_array_equal(plan(a), a * 2 + 1)
        assert seen[-1] == made[-1]  # a dying temporary: no copy

    plan = pyop.trace(lambda x: (lambda t: (bump(t), t))(make(x)), "float64[n]").compile()
    for _ in range(3):
        bumped, kept = plan(a)
        np.testing.assert_array_equal(bumped, a * 2 + 1)
        np.testing.assert_array_equal(kept, a * 2)

    plan = pyop.trace(lambda x: (lambda t: (bump(t), bump(bump(t)), t.sum()))(make(x)), "float64[n]").compile()
    one, two, total = plan(a)
    np.testing.assert_array_equal(one, a * 2 + 1)
    np.testing.assert_array_equal(two, a * 2 + 2)
    assert total == (a * 2).sum()


def test_mutates_never_reaches_what_a_function_kept():
    """A temporary that its producer, or a node that only read it, still refers to is not private."""
    kept = []
    keep = pyop.op("float64[n] -> float64[n]", stateful=True)(lambda x: kept.append(x * 2) or kept[-1])
    look = pyop.op("float64[n] -> float64[]", stateful=True)(lambda x: kept.append(x[1:]) or x.sum())

    @pyop.op("float64[n] -> float64[n]", mutates="x")
    def bump(x):
        x += 1
        return x

    a = np.arange(5.0)
    plan = pyop.trace(lambda x: bump(keep(x)), "float64[n]").compile()
    np.testing.assert_array_equal(plan(a), a * 2 + 1)
    np.testing.assert_array_equal(kept[0], a * 2)

    def build(x):
        t = keep(x)
        return look(t), bump(t)

    plan = pyop.trace(build, "float64[n]").compile()
    total, bumped = plan(a)
    np.testing.assert_array_equal(bumped, a * 2 + 1)
    np.testing.assert_array_equal(kept[-1], (a * 2)[1:])
    assert total == (a * 2).sum()


@pytest.mark.parametrize("name", ["z", "k", ("x", "z"), "out"])
def test_mutates_names_an_array_parameter(name):
    with pytest.raises(ValueError, match="mutates="):
        pyop.op(mutates=name)(lambda x, *, k=1, out=None: x)
