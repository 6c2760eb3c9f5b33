"""Arrays of other devices: an error that says what to do, or handed on as they are to ops with device="any"."""

from __future__ import annotations

import numpy as np
import pytest

import pyop


class OnGpu:
    """An array of CuPy's kind, whose memory nobody here can read."""

    def __init__(self, shape, dtype="float32", device=(2, 0)):
        self.shape, self.dtype, self.place = shape, np.dtype(dtype), device

    def __dlpack__(self, **options):
        raise AssertionError("its memory is not to be asked for")

    def __dlpack_device__(self):
        return self.place

    def __array__(self, *args, **options):
        raise AssertionError("nor is this")

    def get(self):
        return np.zeros(self.shape, self.dtype)


@pyop.op("float32[n], float32[n] -> float32[n]", device="any")
def first(x, y):
    return x


@pyop.op("float32[n] -> float32[n]")
def on_cpu(x):
    return x


def test_without_it_a_device_is_an_error_that_says_what_to_do():
    x = OnGpu((3,))
    compiled = pyop.compile(on_cpu, "float32[n]")
    for call in (on_cpu, pyop.trace(on_cpu, "float32[n]").compile(), compiled, pyop.from_dlpack):
        with pytest.raises(
            (TypeError, BufferError), match=r"on device cuda, and pyop computes on the CPU: pass x\.get"
        ):
            call(x)
    with pytest.raises(pyop.InputError, match=r'or declare the op with device="any"'):
        on_cpu(x)


def test_with_it_the_array_goes_through():
    x, y = OnGpu((3,)), OnGpu((3,))
    assert first(x, y) is x
    assert first(x=x, y=y) is x
    assert first(x, np.ones(3, np.float32)) is x
    plain = np.ones(3, np.float32)
    assert first(plain, y).tolist() == [1, 1, 1]
    assert first(plain, plain).tolist() == [1, 1, 1]


def test_arguments_are_checked_by_what_they_say():
    with pytest.raises(pyop.InputError, match=r"n is 3 already, not 4"):
        first(OnGpu((3,)), OnGpu((4,)))
    with pytest.raises(pyop.InputError, match="the dtype is float64, not float32"):
        first(OnGpu((3,), "float64"), OnGpu((3,)))
    with pytest.raises(pyop.InputError, match="not float32"):
        first(np.ones(3), OnGpu((3,)))
    silent = OnGpu((3,))
    silent.dtype = "a dtype of its own"
    with pytest.raises(pyop.InputError, match="without a shape and dtype to check"):
        first(silent, silent)


def test_results_are_checked_and_arguments_are_read_only():
    wrong = pyop.op("float32[n] -> float32[n]", device="any")(lambda x: OnGpu((4,)))
    with pytest.raises(pyop.OutputError, match=r"float32\[4\], but expects float32\[3\]"):
        wrong(OnGpu((3,)))
    uploaded = pyop.op("float32[n] -> float32[n]", device="any")(lambda x: OnGpu(x.shape))
    assert uploaded(np.ones(2, np.float32)).shape == (2,)
    several = pyop.op("float32[n] -> float32[n], float32[]", device="any")(lambda x: (x, x.get()[0]))
    a, b = several(OnGpu((2,)))
    assert (a.shape, b.shape) == ((2,), ())
    writes = pyop.op("float32[n], float32[n] -> float32[n]", device="any")(lambda x, y: y.fill(0))
    with pytest.raises(ValueError, match="read-only"):
        writes(OnGpu((2,)), np.ones(2, np.float32))
    fails = pyop.op("float32[n] -> float32[n]", device="any", name="fails")(lambda x: x.missing)
    with pytest.raises(AttributeError, match="missing") as caught:
        fails(OnGpu((2,)))
    assert "in op 'fails'" in caught.value.__notes__[0]


def test_torch_without_data():
    torch = pytest.importorskip("torch", reason="needs torch")
    x = torch.empty(3, device="meta")
    with pytest.raises(pyop.InputError, match=r"on device meta.*pass a tensor that has data"):
        on_cpu(x)
    assert first(x, x) is x
    doubled = pyop.op("float32[n] -> float32[n]", device="any")(lambda x: x * 2)
    assert doubled(x).device.type == "meta"


def test_in_graphs_such_an_op_computes_on_the_cpu():
    plain = np.ones(3, np.float32)
    plan = pyop.trace(first, "float32[n]", "float32[n]").compile()
    assert plan(plain, plain).tolist() == [1, 1, 1]
    with pytest.raises(pyop.InputError, match="on device cuda"):
        plan(OnGpu((3,)), plain)


@pytest.mark.parametrize(
    ("text", "options", "what"),
    [
        ("(n)->(n)", {}, "a gufunc declaration"),
        ("float32[n] -> float32[n]", {"mutates": "x"}, "mutates="),
        (None, {"inputs": [("float32[n]", "float32[n]")], "outputs": "float32[n]"}, "trees of arrays"),
    ],
)
def test_what_it_does_not_go_with(text, options, what):
    with pytest.raises(TypeError, match=what):
        pyop.op(text, device="any", **options)(lambda x: x)
    with pytest.raises(TypeError, match="takes no out="):
        out = pyop.op("float32[n] -> float32[n]", device="any")(lambda x, *, out=None: x)
        out(OnGpu((2,)), out=np.ones(2, np.float32))
