"""What other runtimes ask of an exported model: names, contexts, arguments, the order of what has effects."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402


@pyop.op("float64[n], float64[n] -> float64[n]")
def product(x, y):
    return x * y


@product.vjp
def _(ct, x, y):
    return ct * y, ct * x


@pyop.op("float64[n] -> float64[]")
def energy(x):
    return pyop.saved(np.sum(x * x), slope=2 * x)


@energy.vjp
def _(ct, x, *, saved):
    return ct * saved.slope


def session(model, functions=None):
    """The model in stock onnxruntime, by onnxruntime-extensions."""
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxruntime_extensions")
    options = ort.SessionOptions()
    if any(node.domain == "ai.onnx.contrib" for node in model.graph.node):
        options.register_custom_ops_library(pyop.onnx.register_extensions(model, functions))
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def test_several_gradients_of_one_call_are_nodes_of_different_names():
    graph = pyop.trace(lambda x, y: pyop.jacobian(lambda x: product(x, y))(x), "float64[3]", "float64[3]")
    model = pyop.onnx.export(graph)
    names = [node.name for node in model.graph.node]
    assert sum(node.op_type == "PythonOpGrad" for node in model.graph.node) == 3
    assert len(set(names)) == len(names)
    again = pyop.onnx.load(model)
    with again:
        again.output({"sum": product(again.outputs["stack"][0], again.outputs["stack"][1])})
    names = [node.name for node in pyop.onnx.export(again).graph.node]
    assert len(set(names)) == len(names)


def test_nothing_is_said_of_the_context():
    graph = pyop.trace(lambda x: (energy(x), pyop.grad(energy)(x), product(x, x)), "float64[3]")
    model = pyop.onnx.export(graph)
    contexts = {node.output[0] for node in model.graph.node if node.op_type == "PythonOp"}
    assert len(contexts) == 3
    assert not contexts & {info.name for info in (*model.graph.value_info, *model.graph.output)}
    np.testing.assert_array_equal(pyop.onnx.load(model).compile()(x=np.arange(3.0))["energy_vjp"], [0.0, 2.0, 4.0])


def test_an_op_that_saves_residuals_runs_in_onnxruntime():
    model = pyop.onnx.export(pyop.trace(lambda x: energy(x) + 1.0, "float64[3]"), dialect="extensions")
    (node,) = [node for node in model.graph.node if node.domain == "ai.onnx.contrib"]
    assert len(node.output) == 1
    assert session(model).run(None, {"x": np.arange(3.0)})[0] == 6.0


def test_a_missing_folder_is_named_and_not_the_part(tmp_path):
    graph = pyop.trace(lambda x: x + 1, "float64[n]")
    path = tmp_path / "nowhere" / "g.onnx"
    for write in (lambda: pyop.onnx.export(graph, path), lambda: graph.save(path)):
        with pytest.raises(FileNotFoundError) as error:
            write()
        assert error.value.filename == str(path)
        assert "part-" not in str(error.value)
        assert "os.makedirs" in error.value.__notes__[0]
