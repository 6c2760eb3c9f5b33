"""Arrays of other libraries come in without a copy: the address, the layout and the dtype are theirs."""

from __future__ import annotations

import array
import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

import pyop


def address(x):
    return x.__array_interface__["data"][0]


@pyop.op("_ -> int64[]")
def where(x):
    """The address that the function sees."""
    return np.int64(address(x))


@pyop.op("_ -> _")
def itself(x):
    return x


WAYS = {
    "op": lambda x: where(x),
    "plan": pyop.trace(where, "_").compile(),
    "graph": lambda x: _run(x),
    "compiled, declared": pyop.compile(where, "_"),
}


def _run(x):
    g = pyop.Graph()
    given = g.input(name="x")
    with g:
        found = where(given)
    return g.run(found, {given: x})


def only(name, x):
    kind = type(f"Only_{name}", (), {"__init__": lambda self: setattr(self, "x", x)})
    if name == "dlpack":
        kind.__dlpack__ = lambda self, **options: x.__dlpack__(**options)
        kind.__dlpack_device__ = lambda self: x.__dlpack_device__()
    elif name == "dlpack of old":
        kind.__dlpack__ = lambda self, stream=None: x.__dlpack__()
        kind.__dlpack_device__ = lambda self: x.__dlpack_device__()
    elif name == "__array__":
        kind.__array__ = lambda self, dtype=None, copy=None: x
    else:
        setattr(kind, name, property(lambda self: getattr(x, name)))
    return kind()


LAYOUTS = {
    "contiguous": lambda: np.arange(6.0),
    "strided": lambda: np.arange(12.0)[::2],
    "negative strides": lambda: np.arange(6.0)[::-1],
    "transposed": lambda: np.arange(6.0).reshape(2, 3).T,
    "rank 0": lambda: np.array(3.5),
    "zero size": lambda: np.zeros((2, 0, 3)),
    "bool": lambda: np.array([True, False]),
    "complex": lambda: np.array([1 + 2j, 3]),
    "int8": lambda: np.arange(3, dtype="i1"),
    "uint64": lambda: np.arange(3, dtype="u8"),
    "float16": lambda: np.arange(3, dtype="f2"),
    "misaligned": lambda: np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float64),
    "read-only": lambda: np.frombuffer(bytes(24), np.float64),
}


@pytest.mark.parametrize(
    "protocol", ["dlpack", "dlpack of old", "__array__", "__array_interface__", "__array_struct__"]
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_by_every_protocol(protocol, layout):
    x = LAYOUTS[layout]()
    if protocol == "dlpack of old" and not x.flags.writeable:
        pytest.skip("NumPy hands out no read-only array by the unversioned DLPack")
    found = itself(only(protocol, x))
    assert (found.dtype, found.shape, found.tobytes()) == (x.dtype, x.shape, x.tobytes())
    if x.size:
        assert (address(found), found.strides) == (address(x), x.strides)
        assert np.shares_memory(found, x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("protocol", ["dlpack", "dlpack of old", "__array__", "__array_interface__"])
def test_all_entry_points_take_the_same(way, protocol):
    x = np.arange(4.0)
    assert WAYS[way](only(protocol, x)) == address(x)


PRODUCERS = {
    "torch": lambda: _torch("arange(6, dtype=torch.float64)"),
    "torch strided": lambda: _torch("arange(12, dtype=torch.float64)[::2]"),
    "torch rank 0": lambda: _torch("tensor(2.5, dtype=torch.float64)"),
    "torch bool": lambda: _torch("tensor([True, False])"),
    "torch complex": lambda: _torch("ones(3, dtype=torch.complex64)"),
    "torch int16": lambda: _torch("ones(3, 2, dtype=torch.int16).T"),
    "torch bfloat16": lambda: _torch("ones(3, dtype=torch.bfloat16)"),
    "torch float8": lambda: _torch("ones(3).to(torch.float8_e4m3fn)"),
    "array.array": lambda: _buffer(array.array("d", [1, 2, 3])),
    "memoryview": lambda: _buffer(memoryview(bytearray(24)).cast("d")),
    "ctypes": lambda: _buffer((ctypes.c_double * 3)(1, 2, 3)),
    "pyarrow float64": lambda: _arrow("float64", [1.5, 2.5]),
    "pyarrow int32": lambda: _arrow("int32", [1, 2]),
    "pyarrow slice": lambda: _arrow("int16", [1, 2, 3, 4], slice(1, 3)),
    "pyarrow timestamp": lambda: _arrow("timestamp[us]", [1, 2]),
    "jax": lambda: _jax(np.arange(3, dtype=np.float32)),
    "jax bfloat16": lambda: _jax(np.ones(3), "bfloat16"),
}


def _torch(text):
    torch = pytest.importorskip("torch", reason="needs torch")
    x = eval(f"torch.{text}", {"torch": torch})
    expected = x.to(torch.float32).numpy() if x.dtype in (torch.bfloat16, torch.float8_e4m3fn) else x.numpy()
    return x, x.data_ptr(), expected, tuple(s * x.element_size() for s in x.stride())


def _buffer(x):
    view = np.frombuffer(x, np.float64)
    return x, address(view), view, view.strides


def _arrow(dtype, values, part=slice(None)):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    x = pyarrow.array(values, pyarrow.type_for_alias(dtype))[part]
    expected = x.to_numpy()
    at = x.buffers()[1].address + (part.start or 0) * expected.itemsize
    return x, at, expected, expected.strides


def _jax(x, dtype=None):
    jnp = pytest.importorskip("jax.numpy", reason="needs JAX")
    x = jnp.asarray(x, dtype)
    return x, x.unsafe_buffer_pointer(), np.asarray(x).astype(np.float32), None


@pytest.mark.parametrize("name", PRODUCERS)
def test_each_producer_keeps_its_memory(name):
    x, at, expected, strides = PRODUCERS[name]()
    assert where(x) == at
    assert WAYS["plan"](x) == at
    assert WAYS["compiled, declared"](x) == at
    found = itself(x)
    assert found.shape == expected.shape
    assert strides is None or found.strides == strides
    assert not found.flags.writeable or hasattr(x, "tobytes") or isinstance(x, ctypes.Array)
    same = found if found.dtype == expected.dtype else found.astype(np.float32)
    np.testing.assert_array_equal(same, expected)


def test_types_of_ml_dtypes_are_declared_and_checked():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes")
    torch = pytest.importorskip("torch", reason="needs torch")
    double = pyop.op("bfloat16[n] -> bfloat16[n]")(lambda x: x + x)
    found = double(torch.tensor([1.5, 2.0], dtype=torch.bfloat16))
    assert found.dtype == ml_dtypes.bfloat16
    assert found.tolist() == [3.0, 4.0]
    with pytest.raises(pyop.InputError, match=r"float32\[2\], but expects bfloat16\[n\]"):
        double(np.ones(2, np.float32))
    assert pyop.trace(double, "bfloat16[n]").compile()(found).tolist() == [6.0, 8.0]
    assert str(pyop.Spec.parse("float8_e5m2[n]")) == "float8_e5m2[n]"


# --- lifetime


class Watched(np.ndarray):
    """An array that can be watched: its memory is gone when it is."""


def test_memory_lives_as_long_as_a_view_and_no_longer():
    x = np.arange(5.0).view(Watched)
    gone = weakref.ref(x)
    found = pyop.from_dlpack(only("dlpack", x))
    owner = found[1:]
    del found, x
    gc.collect()
    assert gone() is not None
    assert owner.sum() == 10
    del owner
    gc.collect()
    assert gone() is None


def test_an_argument_that_is_kept_stays_good():
    torch = pytest.importorskip("torch", reason="needs torch")
    kept = []
    keep = pyop.op("float64[n] -> int64[]")(lambda x: kept.append(x) or np.int64(0))
    for k in range(40):
        keep(torch.full((1000,), float(k), dtype=torch.float64))
    gc.collect()
    assert [float(x.sum()) for x in kept] == [1000.0 * k for k in range(40)]


def test_the_last_reference_dies_on_another_thread():
    torch = pytest.importorskip("torch", reason="needs torch")
    for _ in range(30):
        held = [pyop.from_dlpack(torch.ones(1000, dtype=torch.float64)), itself(torch.ones(3))]
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        assert held == []


def test_calls_keep_nothing():
    torch = pytest.importorskip("torch", reason="needs torch")
    x = torch.ones(8, dtype=torch.float64)
    count = lambda: torch._C._storage_Use_Count(x.untyped_storage()._cdata)
    before = count()
    for _ in range(200):
        where(x)
        with pytest.raises(pyop.InputError):
            where(torch.ones(3, requires_grad=True))
    itself(x)
    gc.collect()
    assert count() == before


# --- from_dlpack


def test_from_dlpack_copies_when_asked():
    x = np.arange(4.0)
    assert np.shares_memory(pyop.from_dlpack(x), x)
    assert np.shares_memory(pyop.from_dlpack(only("dlpack", x), copy=False), x)
    copy = pyop.from_dlpack(only("dlpack", x), copy=True)
    assert not np.shares_memory(copy, x)
    copy[0] = 9
    assert x[0] == 0


def test_from_dlpack_is_writable_where_the_producer_says_so():
    torch = pytest.importorskip("torch", reason="needs torch")
    x = torch.zeros(3)
    pyop.from_dlpack(x)[1] = 5
    assert x.tolist() == [0, 5, 0]
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    assert not pyop.from_dlpack(only("dlpack", frozen)).flags.writeable
    assert not pyop.from_dlpack(frozen).flags.writeable
    assert not pyop.from_dlpack(only("dlpack of old", np.ones(2))).flags.writeable


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pyop.from_dlpack([1.0]), TypeError, "expected an array with __dlpack__, got list: np.asarray"),
        (lambda: pyop.from_dlpack(np.ones(2), device="cuda"), ValueError, "an ndarray is on the CPU"),
        (lambda: pyop.from_dlpack(np.ones(2), copy="yes"), TypeError, "copy= is True, False or None"),
    ],
)
def test_what_from_dlpack_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", ["dlpack", "dlpack of old", "__array__", "__array_interface__", "__array_struct__"])
def test_tensors_go_by_the_same_table(name):
    x = np.arange(3.0)
    given = only(name, x)
    assert address(pyop.Tensor(given).numpy()) == address(x)
    tensor = pyop.Tensor(given, requires_grad=True)
    (tensor * tensor).sum().backward()
    assert tensor.grad.tolist() == [0.0, 2.0, 4.0]


# --- nothing is lost


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")  # torch's own, at its first make_dual
def test_a_tangent_is_not_lost():
    torch = pytest.importorskip("torch", reason="needs torch")
    forward_ad, x = torch.autograd.forward_ad, torch.ones(3, dtype=torch.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        for call in (itself, pyop.from_dlpack, WAYS["plan"], WAYS["compiled, declared"]):
            with pytest.raises((TypeError, BufferError), match=r"has a tangent.*unpack_dual\(x\)\.primal"):
                call(dual)
            with pytest.raises((TypeError, BufferError), match=r"has a tangent|with __dlpack__"):
                call([dual, dual])
            assert call(forward_ad.unpack_dual(dual).primal) is not None
            assert call(x) is not None


def test_a_gradient_is_not_lost():
    torch = pytest.importorskip("torch", reason="needs torch")
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    for call in (itself, pyop.from_dlpack, WAYS["plan"], WAYS["compiled, declared"], pyop.Tensor):
        with pytest.raises((TypeError, BufferError), match=r"requires a gradient.*x\.detach\(\)"):
            call(x)
    assert itself(x.detach()).tolist() == [1, 1, 1]
    mine = pyop.Tensor(np.ones(3), requires_grad=True)
    with pytest.raises(BufferError, match="would lose its history"):
        pyop.from_dlpack(mine)
    assert np.shares_memory(pyop.from_dlpack(mine.detach()), mine.numpy())
    with pytest.raises(TypeError, match="no memory until its graph runs"):
        pyop.from_dlpack(pyop.Graph().input("float64[3]"))


def test_a_sign_or_conjugate_that_is_not_carried_out_is_refused():
    torch = pytest.importorskip("torch", reason="needs torch")
    z = torch.tensor([1 + 2j, 3 + 4j]).conj()
    for call in (itself, pyop.from_dlpack):
        with pytest.raises((TypeError, BufferError), match=r"x\.resolve_conj\(\)"):
            call(z)
        with pytest.raises((TypeError, BufferError), match=r"x\.resolve_neg\(\)"):
            call(z.imag)
    assert itself(z.resolve_conj()).tolist() == [1 - 2j, 3 - 4j]


def test_nulls_never_become_nan():
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    for x in (pyarrow.array([1, None]), pyarrow.array([1.5, None]), pyarrow.nulls(2)):
        with pytest.raises(pyop.InputError, match=r"null.*fill"):
            itself(x)
    with pytest.raises(pyop.InputError, match="1 nulls, and NumPy would make NaN of them"):
        itself(pyarrow.chunked_array([[1.5], [None]]))
    assert itself(pyarrow.chunked_array([[1.5], [2.5]])).tolist() == [1.5, 2.5]
    assert np.isnan(itself(pyarrow.array([1.0, float("nan")]))[1])
    assert itself(pyarrow.array([True, False, True])[1:]).tolist() == [False, True]
    assert itself(pyarrow.array([1, 2], pyarrow.date32())).dtype == "M8[D]"


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int64[pyarrow]", "double[pyarrow]"])
def test_missing_values_of_pandas_never_become_nan(dtype):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    x = pandas.Series([1, None], dtype=dtype)
    for container in (x, x.to_frame()):
        with pytest.raises(pyop.InputError, match="missing values of a dtype of its own"):
            itself(container)
    whole = itself(pandas.Series([1, 2], dtype=dtype))
    assert whole.tolist() == [1, 2]
    assert np.isnan(itself(pandas.Series([1.0, np.nan]))[1])


def test_sparse_tensors_say_what_to_do():
    torch = pytest.importorskip("torch", reason="needs torch")
    with pytest.raises(pyop.InputError, match=r"it is sparse: pass x\.to_dense\(\)") as caught:
        itself(torch.ones(3).to_sparse())
    assert "frame #" not in str(caught.value)


def test_results_of_other_libraries_come_out_as_arrays():
    torch = pytest.importorskip("torch", reason="needs torch")
    made = []

    @pyop.op("float64[n] -> float64[n]")
    def doubled(x):
        made.append(torch.from_numpy(x.copy()) * 2)
        return made[-1]

    found = doubled(np.arange(3.0))
    assert type(found) is np.ndarray
    assert address(found) == made[-1].data_ptr()
    with pytest.raises(pyop.OutputError, match="requires a gradient"):
        pyop.op("float64[n] -> float64[n]")(lambda x: torch.ones(2, dtype=torch.float64, requires_grad=True))(
            np.ones(2)
        )
