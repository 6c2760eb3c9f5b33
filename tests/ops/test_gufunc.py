"""Ops declared on core dimensions, against NumPy's own gufuncs and np.vectorize."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyop

SEED = np.random.default_rng(0)


def numbers(*shape, dtype="f8"):
    return SEED.standard_normal(shape).astype(dtype)


def sort_of(fn):
    try:
        return fn()
    except (ValueError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (4, 1, 3)),
        ((5, 1, 2), (4, 2)),
        ((0, 3), (3,)),
        ((2, 0), (2, 0)),
        ((1, 3), (7, 3)),
    ],
)
def test_inner_product_as_vecdot(x, y):
    calls = []

    @pyop.op("(n),(n)->()")
    def inner(a, b):
        calls.append((a.shape, b.shape))
        return np.dot(a, b)

    a, b = numbers(*x), numbers(*y)
    expected = np.vecdot(a, b)
    got = inner(a, b)
    np.testing.assert_allclose(got, expected)
    assert got.dtype == expected.dtype
    assert set(calls) <= {(x[-1:], y[-1:])}
    assert len(calls) == expected.size


SHAPES = [
    (),
    (3,),
    (2,),
    (2, 3),
    (3, 2),
    (1, 3),
    (3, 1),
    (4, 2, 3),
    (4, 3, 2),
    (1, 3, 2),
    (0, 3, 2),
    (5, 1, 2, 3),
    (2, 0),
    (0, 2),
]


@pytest.mark.parametrize("x", SHAPES)
@pytest.mark.parametrize("y", SHAPES)
def test_optional_dimensions_as_matmul(x, y):
    op = pyop.op(np.matmul, "(m?,n),(n,p?)->(m?,p?)")
    a, b = numbers(*x), numbers(*y)
    expected, got = sort_of(lambda: np.matmul(a, b)), sort_of(lambda: op(a, b))
    if isinstance(expected, type):
        assert got is pyop.InputError
        return
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize(
    ("signature", "fn", "shapes"),
    [
        ("(m,m),(m,n)->(m,n)", np.linalg.solve, [(3, 3), (3, 2)]),
        ("(m,m),(m,n)->(m,n)", np.linalg.solve, [(5, 1, 3, 3), (4, 3, 2)]),
        ("(m,m)->()", np.linalg.det, [(4, 3, 3)]),
        ("(n),(m)->(n,m)", np.outer, [(2, 3), (4, 1, 5)]),
        ("(n)->(m!)", lambda x: np.repeat(x, 2), [(4, 3)]),
        ("(n)->(n),()", lambda x: (x * 2, x.sum()), [(4, 3, 2)]),
        ("(3),(3)->(3)", np.cross, [(4, 3), (2, 1, 3)]),
        ("(),()->()", np.add, [(4, 1), (3,)]),
        ("(n),(n|1)->(n)", np.add, [(4, 5), (4, 1)]),
    ],
)
def test_against_vectorize(signature, fn, shapes):
    arrays = [numbers(*s) for s in shapes]
    got = pyop.op(fn, signature)(*arrays)
    if "|" in signature or "!" in signature:  # which np.vectorize does not know
        expected = np.array([fn(*rows) for rows in zip(*arrays, strict=True)])
    else:
        expected = np.vectorize(fn, signature=signature)(*arrays)
    for g, e in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, expected)), strict=True):
        assert g.shape == e.shape
        np.testing.assert_allclose(g, e)


def test_the_core_is_the_callers_memory_read_only_at_its_strides():
    a = np.arange(60.0).reshape(3, 4, 5).transpose(1, 0, 2)[::-1, :, ::2]
    seen = []

    @pyop.op("(n)->()")
    def look(x):
        seen.append((x.__array_interface__["data"][0], x.strides, x.flags.writeable))
        return x.sum()

    np.testing.assert_array_equal(look(a), a.sum(-1))
    expected = [(a[i].__array_interface__["data"][0], a[i].strides, False) for i in np.ndindex(a.shape[:-1])]
    assert seen == expected


def test_leading_dimensions_of_size_zero():
    op = pyop.op(lambda x, y: 1 / 0, "(n),(m)->(n,m),()")
    got = op(numbers(0, 3), numbers(5, 1, 2))
    assert [g.shape for g in got] == [(5, 0, 3, 2), (5, 0)]
    assert pyop.op(np.dot, "(n),(n)->()")(numbers(4, 0), numbers(0)).tolist() == [0.0] * 4
    typed = pyop.op(lambda x: 1 / 0, "(n)->()", dtype=["float32", "int16"])(numbers(0, 3, dtype="f4"))
    assert (typed.shape, typed.dtype) == ((0,), np.int16)
    with pytest.raises(pyop.OutputError, match="whose shape only a call can tell"):
        pyop.op(np.unique, "(n)->(k!)")(numbers(0, 3))


def test_all_calls_of_a_loop_must_agree():
    op = pyop.op(lambda x: np.float64(1) if x[0] == 0 else np.int64(1), "(n)->()", name="fickle")
    with pytest.raises(pyop.OutputError, match=r"fickle is int64\[\] in call 1 .*first was float64\[\]"):
        op(np.arange(6).reshape(3, 2))
    op = pyop.op(lambda x: np.ones(1 + int(x[0])), "(n)->(k!)")
    with pytest.raises(pyop.OutputError, match=r"float64\[2\]"):
        op(np.arange(3.0).reshape(3, 1))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ((numbers(3), numbers(4)), r"'y'.* float64\[4\].*n = 3"),
        ((numbers(2, 3), numbers(4, 3)), r"'y'.*float64\[4,3\].*leading ones that broadcast"),
        ((1.0, numbers(3)), r"'x'.*float64\[\]"),
    ],
)
def test_wrong_arguments(arrays, words):
    @pyop.op("(n),(n)->()")
    def inner(x, y):
        return np.dot(x, y)

    with pytest.raises(pyop.InputError, match=words):
        inner(*arrays)


def test_dtypes_of_a_gufunc():
    op = pyop.op(np.dot, "(n),(n)->()", dtype="T")
    assert op(np.arange(3, dtype="i2"), np.arange(6, dtype="i2").reshape(2, 3)).dtype == np.int16
    with pytest.raises(pyop.InputError, match="float64"):
        op(np.arange(3, dtype="i2"), np.arange(3.0))


def test_exceptions_have_one_note_and_the_op_works_on():
    @pyop.op("(n)->()")
    def picky(x):
        if x[0] > 1:
            raise LookupError(x[0])
        return x.sum()

    for _ in range(3):
        with pytest.raises(LookupError) as caught:
            picky(np.arange(4.0).reshape(4, 1))
        assert len(caught.value.__notes__) == 1
    assert picky(np.ones((2, 2))).tolist() == [2, 2]


def scale(x, *, out=None):
    if out is None:
        return x * 2
    np.multiply(x, 2, out=out)
    return None


def scale_required(x, *, factor=2, out):
    return np.multiply(x, factor, out=out)


@pytest.mark.parametrize("fn", [scale, scale_required])
def test_out_of_a_loop(fn):
    op = pyop.op(fn, "(n)->(n)", dtype="float64")
    a = numbers(4, 1, 3)
    np.testing.assert_array_equal(op(a), a * 2)
    np.testing.assert_array_equal(op(np.empty((0, 3))), np.empty((0, 3)))
    for out in (np.zeros((4, 1, 3)), np.zeros((4, 2, 6))[:, :1, ::-2]):
        assert op(a, out=out) is out
        np.testing.assert_array_equal(out, a * 2)
    with pytest.raises(pyop.InputError, match=r"out= .*float64\[4,1,2\]"):
        op(a, out=np.zeros((4, 1, 2)))
    for bad in (np.zeros((1, 1, 3)), np.zeros((4, 1, 3), "f4"), np.zeros((5, 4, 1, 3)), np.zeros(3), [[1.0]]):
        with pytest.raises(pyop.InputError, match="out="):
            op(a, out=bad)
    b = a.copy()
    assert op(b, out=b[::-1]) is not None  # overlapping, in reverse
    np.testing.assert_array_equal(b[::-1], a * 2)


def test_several_outs_and_statics():
    @pyop.op("(n)->(n),()", dtype="float64")
    def both(x, *, k, out):
        out[0][...] = x * k
        return out[0], x.sum()  # the second is copied to its place

    a = numbers(4, 3)
    first, second = np.zeros((4, 3)), np.zeros(4)
    got = both(a, k=3.0, out=(first, second))
    assert got[0] is first
    assert got[1] is second
    np.testing.assert_allclose(first, a * 3)
    np.testing.assert_allclose(second, a.sum(1))
    made = both(a, k=3.0)
    np.testing.assert_allclose(made[0], first)


def test_each_call_of_a_loop_mutates_memory_of_its_own():
    @pyop.op("(n),()->()", mutates="x")
    def eat(x, y):
        x += y
        return x.sum()

    a, b = numbers(3), numbers(5)
    before = a.copy()
    np.testing.assert_allclose(eat(a, b), a.sum() + 3 * b)
    np.testing.assert_array_equal(a, before)
    g = pyop.trace(lambda x, y: eat(x * 1, y), "float64[3]", "float64[m]")
    np.testing.assert_allclose(g.compile()(a, b), a.sum() + 3 * b)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_random_loops_as_vectorize(data):
    sizes = {n: data.draw(st.integers(0, 3)) for n in "nm"}
    cores = data.draw(st.lists(st.lists(st.sampled_from("nm"), max_size=2), min_size=1, max_size=3))
    bound = sorted({n for core in cores for n in core})
    result = data.draw(st.lists(st.sampled_from(bound), max_size=2)) if bound else []
    loop = data.draw(st.lists(st.integers(0, 3), max_size=3))
    arrays = []
    for core in cores:
        lead = loop[data.draw(st.integers(0, len(loop))) :]
        lead = [data.draw(st.sampled_from([1, s])) for s in lead]
        arrays.append(numbers(*lead, *[sizes[n] for n in core]))
    signature = ",".join(f"({','.join(c)})" for c in cores) + f"->({','.join(result)})"

    def fn(*xs):
        return np.full([sizes[n] for n in result], sum(float(x.sum()) for x in xs))

    got = pyop.op(fn, signature)(*arrays)
    lead = np.broadcast_shapes(*[a.shape[: a.ndim - len(c)] for a, c in zip(arrays, cores, strict=True)])
    assert got.shape == (*lead, *[sizes[n] for n in result])
    if got.size:
        np.testing.assert_allclose(got, np.vectorize(fn, signature=signature)(*arrays))
