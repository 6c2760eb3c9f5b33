"""onnxruntime-extensions as a consumer: it calls our Python functions. (For standard operators see test_export.py.)"""

import numpy as np
import pytest

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxruntime_extensions")

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402

from . import graphs  # noqa: E402


def scaled(x, k, shift):
    return x * k + shift, x.argmax()


def test_python_functions_run_in_stock_onnxruntime():
    op = pyop.op(inputs=["float64[n]"], outputs=("float64[n]", "int64[]"))(
        lambda x, *, k, shift=0.25: scaled(x, k, shift)
    )
    fn = op.__wrapped__

    def build(x):
        (a, i), (b, _) = op(np.sin(x), k=2), op(x, k=3, shift=1.1)
        return a + b, i, graphs.dot(x, x, k=4)

    graph = pyop.trace(build, "float64[n]")
    model = pyop.onnx.export(graph, dialect="extensions", names={fn: "tests.scaled"})
    assert {node.domain for node in model.graph.node} == {"", "ai.onnx.contrib"}
    options = ort.SessionOptions()
    options.register_custom_ops_library(pyop.onnx.register_extensions(model, {"tests.scaled": fn}))
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).normal(size=5)
    for got, expected in zip(session.run(None, {"x": x}), graph.compile()(x), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-15)


def test_text_is_a_constant_there():
    def joined(x, *, mode="wrap", names=("a",)):
        assert (type(mode), type(names)) == (str, tuple)
        return x + len(mode) * 100 + len("".join(names))

    op = pyop.op("float64[n] -> float64[n]")(joined)
    graph = pyop.trace(lambda x: op(x) + op(x, mode="é\0'", names=("ab", "")), "float64[n]")
    model = pyop.onnx.export(graph, dialect="extensions", names={op: "tests.joined"})
    options = ort.SessionOptions()
    options.register_custom_ops_library(pyop.onnx.register_extensions(model, {"tests.joined": joined}))
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = np.arange(3.0)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], graph.compile()(x))
    with pytest.raises(ValueError, match=r"argument mode= is str .*the dialect 'extensions' text"):
        pyop.onnx.export(graph, names={op: "tests.joined"})


def test_what_onnxruntime_extensions_cannot_pass_is_an_error():
    op = pyop.op("float16[n] -> float16[n]")(lambda x: x)
    graph = pyop.trace(lambda x: op(x), "float16[n]")
    with pytest.raises(ValueError, match="cannot pass to Python"):
        pyop.onnx.export(graph, dialect="extensions", names={op.__wrapped__: "f"})


def test_an_unknown_function_is_an_error_before_a_session_is_made():
    op = pyop.op("float64[n] -> float64[n]")(lambda x: x)
    graph = pyop.trace(lambda x: op(x), "float64[n]")
    model = pyop.onnx.export(graph, dialect="extensions", names={op.__wrapped__: "nobody.knows"})
    with pytest.raises(LookupError, match=r"nobody\.knows"):
        pyop.onnx.register_extensions(model)


def test_operators_of_several_models_stand_beside_each_other():
    def power(x, *, k):
        return x**k

    op = pyop.op("float64[n] -> float64[n]")(power)

    def session(k, functions):
        graph = pyop.trace(lambda x: op(x, k=k), "float64[n]")
        model = pyop.onnx.export(graph, dialect="extensions", names={power: "tests.power"})
        options = ort.SessionOptions()
        options.register_custom_ops_library(pyop.onnx.register_extensions(model, functions))
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    x = np.arange(3.0)
    sessions = [(k, session(k, {"tests.power": power})) for k in (2, 3, 2)]
    for k, made in sessions:
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x**k)
    with pytest.raises(ValueError, match="known in this process already"):
        session(2, {"tests.power": lambda x, *, k: x})
