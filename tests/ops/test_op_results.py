"""What a function returns: adopted as it is, or an error."""

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

import pyop


def address(a):
    return a.__array_interface__["data"][0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(6.0),
        lambda: np.arange(12.0)[::2],
        lambda: np.arange(6.0)[::-1],
        lambda: np.arange(12.0).reshape(6, 2)[:, 1],
        lambda: np.frombuffer(bytearray(49), np.uint8)[1:].view(np.float64),
        lambda: np.frombuffer(bytes(48), np.float64),
        lambda: np.broadcast_to(3.0, 6),
    ],
)
def test_results_are_adopted_zero_copy_and_never_written(make):
    kept = make()
    before = kept.copy()
    op = pyop.op("float64[n] -> float64[n]")(lambda x: kept)
    got = op(np.ones(6))
    assert got is kept
    for _ in range(3):
        op(np.zeros(6))
    np.testing.assert_array_equal(kept, before)


@pytest.mark.parametrize("declaration", ["float64[n] -> float64[n]", "_ -> _", "float64[n] -> _[m!]", None])
def test_returning_the_argument_gives_back_the_callers_own_object(declaration):
    a = np.arange(4.0)
    frozen = np.broadcast_to(1.0, 4)
    op = pyop.op(lambda x: x, declaration) if declaration else pyop.op(lambda x: x)
    for x in (a, frozen):
        for _ in range(3):
            assert op(x) is x
    both = pyop.op(lambda x, y: (y, x), outputs=("_", "_"))
    assert both(a, frozen)[0] is frozen
    assert both(a, frozen)[1] is a
    assert both(a, a)[0] is a
    assert a.flags.writeable
    tree = pyop.op(lambda x: {"a": x, "b": [x]}, outputs={"a": "_", "b": ["_"]})(a)
    assert tree["a"] is a
    assert tree["b"][0] is a


def test_a_part_of_the_argument_is_a_view_of_the_callers_array():
    a = np.arange(4.0)
    got = pyop.op("float64[n] -> float64[m!]")(lambda x: x[1:])(a)
    assert address(got) == address(a[1:])
    a[1] = 7
    assert got[0] == 7


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.float64(2), "f8"),
        (2.0, "f8"),
        (2, "i8"),
        (True, "?"),
        (2j, "c16"),
        (np.float16(2), "f2"),
        (np.longdouble(2), "g"),
        (np.int8(2), "i1"),
        (np.datetime64("2020-01-01"), "M8[D]"),
        (np.str_("abc"), "U3"),
        ("abc", "U3"),
        (b"ab", "S2"),
        (np.void(b"abc"), "V3"),
        (10**30, "O"),
    ],
)
def test_scalars_become_rank_0_arrays(value, dtype):
    for op in (pyop.op(lambda x: value, outputs=pyop.Spec(dtype, ())), pyop.op(lambda x: value)):
        got = op(np.ones(2))
        assert type(got) is np.ndarray
        assert (got.shape, got.dtype) == ((), np.dtype(dtype))
        assert got[()] == value


def test_a_list_is_one_array_where_one_is_declared():
    op = pyop.op(lambda x: [[1.0, 2.0], [3.0, 4.0]], outputs="float64[m!,m!]")
    np.testing.assert_array_equal(op(1.0), [[1, 2], [3, 4]])
    assert pyop.op(lambda x: [], outputs="int32[0]")(1.0).dtype == np.int32
    assert pyop.op(lambda x: (x,), outputs="_")(1.0).shape == ()
    with pytest.raises(pyop.OutputError, match="cannot become an array"):
        pyop.op(lambda x: [[1.0], [2.0, 3.0]], outputs="float64")(1.0)


DTYPES = [
    "?",
    "i1",
    "u2",
    "f2",
    "f4",
    "g",
    "c8",
    "G",
    "M8[us]",
    "m8[s]",
    "U5",
    "S3",
    "V4",
    "O",
    "i4,f8",
    "(2,)f4,U2",
    "T",
]


@pytest.mark.parametrize("code", DTYPES)
def test_every_dtype_passes_as_it_is(code):
    dtype = np.dtypes.StringDType() if code == "T" else np.dtype(code)
    a = np.zeros(6, dtype)
    if code == "O":
        a[:] = [None, 1, "x", [], {}, object()]
    elif code in ("T", "U5"):
        a[:] = ["", "a", "long string beyond the short form"[:40], "b\0c", "é", "\U0001f600"]
    for x in (a, a[::2], a[::-1], a.reshape(2, 3), a[:0], a[0:1].reshape(())):
        for declared in (pyop.Spec(dtype), pyop.Spec("_"), pyop.Spec(dtype, x.shape)):
            op = pyop.op(lambda x: x.copy(), inputs=[declared], outputs=declared)
            for _ in range(3):
                got = op(x)
                assert got.dtype == x.dtype
                assert got.shape == x.shape
                assert repr(got.tolist()) == repr(x.tolist())
            assert pyop.op(lambda x: x, inputs=[declared], outputs=declared)(x) is x
    with pytest.raises(pyop.OutputError):
        pyop.op(lambda x: x, inputs=[pyop.Spec(dtype)], outputs="uint64")(a)


def test_foreign_byte_order_is_converted_both_ways():
    op = pyop.op("float64[n] -> float64[n]")(lambda x: x.byteswap().view(">f8") if x.dtype.isnative else None)
    a = np.arange(3.0)
    for x in (a, a.astype(">f8")):
        got = op(x)
        assert got.dtype.isnative
        np.testing.assert_array_equal(got, a)
    free = pyop.op(lambda x: x.astype(">i2"))
    assert free(a).dtype == np.dtype("=i2")
    record = np.array([(1, 2.0)], dtype=[("a", ">i4"), ("b", [("c", "<f8")])])
    for declared in ("_[n], _ -> _[n], bool[]", "T[n], _ -> T[n], bool[]", None):
        passes = pyop.op(lambda x, y: (x, x.dtype.isnative), declared or None, outputs=None if declared else ("_", "_"))
        for foreign in (record, a.astype(">f8")):
            got, native = passes(foreign, 1.0)
            assert native
            assert got.dtype.isnative
            assert got.tolist() == foreign.tolist()
    assert pyop.op("_ -> bool[]")(lambda x: x.dtype.isnative)(a.astype(">f8"))
    assert pyop.op("_ -> _")(lambda x: record)(a).dtype.isnative


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_become_plain_arrays_without_a_copy():
    op = pyop.op("float64 -> float64")(lambda x: x)
    kinds = []
    look = pyop.op("float64 -> float64[]")(lambda x: kinds.append(type(x)) or 0.0)
    for x in (np.matrix([[1.0, 2.0]]), np.ma.array([1.0, 2.0], mask=[0, 0]), np.array([1.0]).view(np.recarray)):
        look(x)
        got = op(x)
        assert type(got) is np.ndarray
        assert address(got) == address(np.asarray(x))
    assert set(kinds) == {np.ndarray}
    returned = pyop.op(lambda x: np.matrix([[1.0]]), outputs="float64[1,1]")(0.0)
    assert type(returned) is np.ndarray


def test_anything_numpy_can_view_is_accepted_without_a_copy():
    import array

    memory = array.array("d", [1.0, 2.0])
    where = []
    look = pyop.op("float64[n] -> float64[]")(lambda x: where.append(address(x)) or x.sum())
    assert look(memory) == 3
    assert look(memoryview(memory)) == 3
    assert where == [memory.buffer_info()[0]] * 2

    class Interface:
        data = np.arange(3.0)
        __array_interface__ = data.__array_interface__

    class Protocol:
        def __array__(self, dtype=None, copy=None):
            return np.arange(4.0)

    assert look(Interface()) == 3
    assert look(Protocol()) == 6
    assert look([1, 2.5, True]) == 4.5
    assert address(Interface.data) == where[2]


Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Box:
    low: object
    high: object


TREES = [
    (("_", "_"), lambda x: (x, x + 1)),
    (["_", "_"], lambda x: [x, x + 1]),
    ({"b": "_", "a": "_"}, lambda x: {"a": x + 1, "b": x}),
    ({"a": ["_", ("_",)], "c": {}}, lambda x: {"a": [x, (x + 1,)], "c": {}}),
    (Point("_", "_"), lambda x: Point(x, x + 1)),
    (Box("_", ["_"]), lambda x: Box(x, [x + 1])),
    ([("_", "_"), {}], lambda x: [(x, x + 1), {}]),
]


@pytest.mark.parametrize(("outputs", "fn"), TREES)
def test_trees_of_results(outputs, fn):
    x = np.arange(3.0)
    op = pyop.op(fn, outputs=outputs)
    got, expected = op(x), fn(x)
    assert type(got) is type(expected)
    if isinstance(got, dict):  # as declared
        expected = {key: expected[key] for key in outputs}
    assert repr(got) == repr(expected)
    # and the same through a graph
    assert repr(pyop.trace(op, "float64[3]").compile()(x)) == repr(expected)


@pytest.mark.parametrize(("inputs", "fn"), [(t, f) for t, f in TREES if isinstance(t, dict | Point | Box | list)])
def test_trees_of_arguments(inputs, fn):
    seen = []
    op = pyop.op(lambda tree: seen.append(tree) or 1.0, inputs=[inputs], outputs="float64[]", name="f")
    value = fn(np.arange(3.0))
    assert op(value) == 1
    expected = {key: value[key] for key in inputs} if isinstance(value, dict) else value
    assert repr(seen[0]) == repr(expected)
    for wrong in ([1.0], {"z": 1.0}, 1.0, None, (1.0, 2.0, 3.0)):
        with pytest.raises(pyop.InputError, match="argument 0 of op 'f'"):
            op(wrong)
    with pytest.raises(TypeError):
        op()
    with pytest.raises(TypeError):
        op(value, value)


def test_a_wrong_tree_names_where():
    op = pyop.op(lambda x: x, outputs={"a": "float64[3]", "b": ["float64[]"]}, name="f")
    op2 = pyop.op(lambda x: {"a": np.ones(3), "b": [np.int64(1)]}, outputs={"a": "float64[3]", "b": ["float64[]"]})
    with pytest.raises(pyop.OutputError, match="f"):
        op(1.0)
    with pytest.raises(pyop.OutputError, match=r"at: result\['b'\]\[0\]"):
        op2(1.0)
