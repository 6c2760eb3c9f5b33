"""py_func: values in and out, in every way it can be called."""

import functools

import numpy as np
import pytest
from py_func_ways import WAYS

import pyop

f32 = np.float32


@pytest.fixture(params=list(WAYS))
def call(request):
    return WAYS[request.param]


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
    assert seen == [(np.ndarray if shape else np.float32, shape)]
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
    if layout != "masked":  # whose mask a result loses, as in TensorFlow; an argument is refused
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
    types = pyop.py_func(lambda *args: [[type(a) is np.ndarray for a in args]], kinds, ["bool"])[0].tolist()
    assert types == [np.ndim(k) > 0 for k in kinds]


def test_what_has_no_dimension_is_a_scalar_as_in_tensorflow(call, tmp_path):
    numbers = [np.bool_(True), np.int8(3), f32(2.5), np.complex128(1j), np.array(2.0, ">f8")]
    seen = []
    call(lambda *args: (seen.extend(args), 0.0)[1], [*numbers, "text", b"bytes"], "float64")
    assert [type(x) for x in seen] == [np.bool_, np.int8, np.float32, np.complex128, np.float64, bytes, bytes]
    assert seen == [*numbers, b"text", b"bytes"]

    np.save(tmp_path / "image.npy", np.ones((2, 2), f32))
    image = call(lambda item: np.load(item.decode()), [str(tmp_path / "image.npy")], "float32")
    assert image.shape == (2, 2)
    assert call(lambda x: x, [f32(3)], "float32").shape == ()


def test_a_shape_is_declared_and_not_set():
    with pyop.Graph() as g:
        value = pyop.numpy_function(np.sin, [g.input("float32[2]")], np.float32)
        with pytest.raises(AttributeError, match=r"declared where the Value is made.*Tout='float32\[28,28,3\]'"):
            value.set_shape([2])
        assert pyop.numpy_function(np.sin, [g.inputs[0]], "float32[2]").shape == (2,)


def test_many_inputs_and_outputs(call):
    out = call(lambda *a: list(a), [np.int64(k) for k in range(100)], ["int64"] * 100)
    assert [int(x) for x in out] == list(range(100))
