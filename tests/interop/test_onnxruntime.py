"""Ops and plans that ONNX Runtime calls: `pyop.interop.onnxruntime`."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import pyop
from tests.interop.ten_ops import CASES

ort = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

from pyop.interop.onnxruntime import register  # noqa: E402


def model(name, inputs, outputs, *, nodes=1, domain="pyop", **attributes):
    """A model of one node, or of a chain of one input and output: dtypes, in and out."""
    typed = [
        [helper.make_tensor_value_info(f"{side}{k}", helper.np_dtype_to_tensor_dtype(np.dtype(d)), None)
         for k, d in enumerate(dtypes)]
        for side, dtypes in (("x", inputs), ("y", outputs))
    ]  # fmt: skip
    chain = []
    for k in range(nodes):
        into = [f"x{j}" for j in range(len(inputs))] if k == 0 else [f"m{k}"]
        out = [f"y{j}" for j in range(len(outputs))] if k == nodes - 1 else [f"m{k + 1}"]
        chain.append(helper.make_node(name, into, out, name=f"node {k}", domain=domain, **attributes))
    graph = helper.make_graph(chain, "g", *typed)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)])
    made.ir_version = 9
    return made.SerializeToString()


def session(op, name, inputs, outputs, options=None, copy=False, **told):
    options = ort.SessionOptions() if options is None else options
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(
        model(name, inputs, outputs, **told), register(op, options, copy=copy), providers=["CPUExecutionProvider"]
    )


def run(made, *arrays):
    return made.run(None, {f"x{k}": a for k, a in enumerate(arrays)})


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of means of nothing
@pytest.mark.parametrize("n", [4, 0, 1])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ten_ops(case, n):
    arguments = case.made(n)
    if case.name == "writes":
        with pytest.raises(TypeError, match=r"writes into 'x'"):
            register(case.op)
        return
    expected = case.op(*arguments, **case.statics)
    leaves = list(expected.values()) if isinstance(expected, dict) else [expected]
    made = session(
        case.op, case.op.name, [a.dtype for a in arguments], [np.asarray(y).dtype for y in leaves], **case.statics
    )
    found = run(made, *arguments)
    for y, wanted in zip(found, leaves, strict=True):
        if case.exact:
            assert same(y, np.asarray(wanted))
        else:
            assert ((y - arguments[0] >= 0) & (y - arguments[0] < 1)).all()


DTYPES = ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_dtypes_and_shapes(dtype, shape):
    twice = pyop.op(lambda x: (x.T, x), "T[...] -> T[...], T[...]", name="twice")
    x = np.arange(6).astype(dtype)[: int(np.prod(shape))].reshape(shape)
    for y, wanted in zip(run(session(twice, "twice", [dtype], [dtype] * 2), x), (x.T, x), strict=True):
        assert same(y, wanted)


@pytest.mark.parametrize("sizes", ["n", "3"])
def test_a_plan_is_handed_the_memory(sizes):
    graph = pyop.trace(lambda x, y: {"a": np.sin(x) * y, "b": x.sum()}, f"float64[{sizes}]", f"float64[{sizes}]")
    x, y = np.random.default_rng(0).normal(size=(2, 3))
    expected = graph.compile()(x, y)
    for each in (graph, graph.compile()):
        a, b = run(session({"f": each}, "f", ["f8"] * 2, ["f8"] * 2), x, y)
        assert same(a, expected["a"])
        assert same(b, np.asarray(expected["b"]))


def test_no_copy_and_read_only():
    seen = []

    @pyop.op("float64[n] -> float64[n]")
    def look(x):
        seen.append((x.ctypes.data, x.flags.writeable))
        return x + 1

    x = np.arange(5000.0)
    bound = session(look, "look", ["f8"], ["f8"])
    assert same(run(bound, x)[0], x + 1)
    assert seen == [(x.ctypes.data, False)]

    @pyop.op("float64[n] -> float64[n]")
    def write(x):
        x[0] = 1
        return x

    with pytest.raises(Exception, match="read-only"):
        run(session(write, "write", ["f8"], ["f8"]), x)
    assert x[0] == 0


def test_an_argument_that_is_kept():
    kept = []

    @pyop.op("float64[n] -> float64[n]")
    def keep(x):
        kept.append(x)
        return x * 2

    with pytest.raises(Exception, match=r"keep has kept an argument.*copy=True"):
        run(session(keep, "keep", ["f8"], ["f8"]), np.ones(3))
    kept.clear()
    assert same(run(session(keep, "keep", ["f8"], ["f8"], copy=True), np.ones(3))[0], np.full(3, 2.0))
    assert same(np.array(kept[0]), np.ones(3))


def test_errors_name_op_and_node_and_the_session_goes_on():
    @pyop.op("float64[n] -> float64[n]")
    def picky(x):
        if x[0] < 0:
            raise LookupError("no such thing")
        return x if x[0] < 5 else x[:1] if x[0] < 6 else x.astype("f4") if x[0] < 7 else None

    made = session(picky, "picky", ["f8"], ["f8"])
    for first, words in [(-1.0, "LookupError: no such thing"), (5.0, "OutputError"), (6.0, "float32"), (7.0, "None")]:
        with pytest.raises(Exception, match=words) as caught:
            run(made, np.array([first, 0]))
        assert "node 0" in str(caught.value)
        assert "picky" in str(caught.value)
        assert same(run(made, np.array([1.0, 2.0]))[0], np.array([1.0, 2.0]))
    with pytest.raises(Exception, match=r"InputError"):
        run(made, np.ones((2, 2)))


def test_keyboard_interrupt():
    @pyop.op("float64[n] -> float64[n]")
    def stop(x):
        raise KeyboardInterrupt

    made = session(stop, "stop", ["f8"], ["f8"])
    with pytest.raises(KeyboardInterrupt):
        try:
            run(made, np.ones(2))
        except KeyboardInterrupt:
            raise
        except Exception:
            for _ in range(1000):
                pass


def test_attributes():
    seen = []

    @pyop.op("float64[n] -> float64[n]")
    def told(x, *, k, f=1.5, text="none", many=()):
        seen.append((k, f, text, many))
        return x * k

    run(session(told, "told", ["f8"], ["f8"], k=3), np.ones(2))
    run(session(told, "told", ["f8"], ["f8"], k=2, f=0.25, text="grün", many=[1, 2]), np.ones(2))
    run(session(told, "told", ["f8"], ["f8"], k=2, many=[0.5]), np.ones(2))
    assert seen == [(3, 1.5, "none", ()), (2, 0.25, "grün", (1, 2)), (2, 1.5, "none", (0.5,))]
    with pytest.raises(Exception, match="needs 'k'"):
        session(told, "told", ["f8"], ["f8"])


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("str[n] -> str[n]", "dtype"),
        ("complex128[n] -> complex128[n]", "complex128"),
        ("float64[n] -> object[n]", "object"),
        (None, "not declared"),
    ],
)
def test_refusals(declared, words):
    with pytest.raises(TypeError, match=words):
        register(pyop.op(lambda x: x, declared, name="f") if declared else pyop.op(lambda x: x, name="f"))


def test_other_refusals():
    op = pyop.op(lambda x: x, "float64[n] -> float64[n]", name="f")
    with pytest.raises(ValueError, match="name 'f'"):
        register([op, op])
    with pytest.raises(TypeError, match="got int"):
        register([3])
    with pytest.raises(Exception, match=r"registered by pyop.interop.onnxruntime.register"):
        ort.SessionOptions().register_custom_ops_library(pyop._core.__file__)


def test_sessions_outlive_ops_and_threads_share_them():
    def make(k):
        op = pyop.op(lambda x: x * k, "float64[n] -> float64[n]", name="scale")
        return session(op, "scale", ["f8"], ["f8"], nodes=3)

    made = [make(k) for k in range(4)]
    gc.collect()
    wrong = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(50):
            k, x = random.integers(4), random.normal(size=random.integers(0, 40))
            if not same(run(made[k], x)[0], x * k * k * k):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_subnormals_stay():
    half = pyop.op(lambda x: x / 2, "float64[n] -> float64[n]", name="half")
    options = ort.SessionOptions()
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    x = np.array([np.finfo("f8").tiny, -0.0, np.inf, 5e-324 * 4])
    assert same(run(session(half, "half", ["f8"], ["f8"], options=options), x)[0], x / 2)
