"""Graphs in files, pickles and copies: nothing is lost, and the results keep every bit."""

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyop
from pyop._tree import flatten

from . import graphs

HERE = Path(__file__).parent


def assert_same_bits(got, expected):
    (mine, structure), (theirs, wanted) = flatten(got), flatten(expected)
    assert structure == wanted
    for a, b in zip(mine, theirs, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


def described(graph):
    return [
        (
            node.name,
            node.kind,
            (node.stateful, node.origin, node.kind == "py" and (node._lends, node._of_scalars, node._form)),
            [(str(value.spec), value._text, value._is_scalar) for value in node.outputs],
            [v.name for v in node.inputs],
        )
        for node in graph.nodes
    ]


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_pickles_and_copies_are_the_same_graph(name):
    graph = graphs.build(name)
    args = graphs.arguments(graph)
    expected = graph.compile()(*args)
    for made in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert made is not graph
        assert described(made) == described(graph)
        assert_same_bits(made.compile()(*args), expected)
    plan = pickle.loads(pickle.dumps(graph.compile(threads=2, disable=["fuse"])))
    assert plan.threads == 2
    assert_same_bits(plan(*args), expected)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Every graph saved here, and run in another process."""
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("graphs")
    for name in graphs.GRAPHS:
        graphs.build(name).save(folder / f"{name}.onnx")
    program = (
        "import sys, pickle, pathlib, pyop, importlib\n"
        "graphs = importlib.import_module(sys.argv[2])\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).glob('*.onnx')):\n"
        "    graph = pyop.load(path)\n"
        "    path.with_suffix('.pickle').write_bytes(pickle.dumps(graph.compile()(*graphs.arguments(graph))))\n"
    )
    command = [sys.executable, "-c", program, str(folder), graphs.__name__]
    path = [str(HERE.parent), *(entry for entry in sys.path if entry)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": ":".join(path)},
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_a_saved_graph_gives_the_same_bits_in_another_process(name, saved):
    graph = graphs.build(name)
    expected = graph.compile()(*graphs.arguments(graph))
    assert_same_bits(pickle.loads((saved / f"{name}.pickle").read_bytes()), expected)
    loaded = pyop.load(saved / f"{name}.onnx")
    assert described(loaded) == described(graph)
    assert loaded.name == graph.name


def test_a_file_shows_the_source_of_its_functions(saved):
    onnx = pytest.importorskip("onnx")
    entries = {entry.key: entry.value for entry in onnx.load(saved / "ops.onnx").metadata_props}
    assert "return np.dot(x, y) * k" in json.loads(entries["pyop.sources"])[f"{graphs.__name__}.dot"]


def test_a_later_format_is_refused_politely(saved):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(saved / "ops.onnx")
    for entry in model.metadata_props:
        if entry.key == "pyop.graph":
            entry.value = json.dumps(json.loads(entry.value) | {"format": 99, "pyop": "7.0"})
    with pytest.raises(ValueError, match=r"written by pyop 7\.0 in format 99.*install a newer pyop"):
        pyop.load(model)


def test_a_lambda_is_saved_by_value_or_not_at_all(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("cloudpickle")
    graph = pyop.trace(lambda x: pyop.py_func(lambda a: a + 3, [x], np.float64), "float64[n]")
    with pytest.raises(ValueError, match=r"node 'lambda' .* cannot be saved: .*embed=True"):
        graph.save(tmp_path / "g.onnx")
    assert list(tmp_path.iterdir()) == []
    graph.save(tmp_path / "g.onnx", embed=True)
    with pytest.raises(LookupError, match='trust="pickles"'):
        pyop.load(tmp_path / "g.onnx")
    np.testing.assert_array_equal(pyop.load(tmp_path / "g.onnx", trust="pickles").compile()(np.zeros(1)), [3.0])


def test_functions_may_be_given_instead(saved):
    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def quiet(x):
        return x - 1

    graph = pyop.load(saved / "ops.onnx", {f"{graphs.__name__}.noisy": quiet})
    x, y = graphs.arguments(graph)
    np.testing.assert_array_equal(graph.compile()(x, y)[3], x - 1)


class Scale(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_functions_and_tensors_pickle_and_copy():
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert copied(Scale) is Scale
        assert copied(Scale.apply).cls is Scale
        leaf = pyop.Tensor(np.arange(3.0), requires_grad=True)
        Scale.apply(leaf).backward(np.ones(3))
        made = copied(leaf)
        assert made.requires_grad
        np.testing.assert_array_equal(made.numpy(), leaf.numpy())
        np.testing.assert_array_equal(made.grad.numpy(), [2.0, 2.0, 2.0])
        assert copied(graphs.dot) is graphs.dot


def test_text_of_any_length_is_declared_in_models_and_copies():
    pytest.importorskip("onnx")
    import pyop.onnx

    graph = pyop.trace(lambda x: (graphs.shouted(x), x), "str[n]")
    words = np.array(["a", "b\u00e9"])
    for made in (graph, copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        model = pyop.onnx.export(made)
        assert [info.type.tensor_type.elem_type for info in (*model.graph.input, *model.graph.output)] == [8, 8, 8]
        got = pyop.onnx.load(model).compile()(x=words)
        assert [found.tolist() for found in got.values()] == [["A", "B\u00c9"], ["a", "b\u00e9"]]
        with pytest.raises(pyop.InputError, match=r"is float64\[2\], but expects str\[n\]\n.*x\.astype\(str\)"):
            made.compile()(np.zeros(2))
        assert made.compile()(words.tolist())[1].tolist() == words.tolist()


def test_a_graph_in_a_graph_keeps_the_places_of_its_nodes():
    made = pyop.trace(pyop.value_and_grad(pyop.trace(graphs.loss, graphs.V)), graphs.V)
    origins = {node.name: node.origin for node in made.nodes}
    assert origins["sin"].startswith(f"{graphs.__file__}:")


def test_a_graph_of_lambdas_can_be_copied_but_not_pickled():
    graph = pyop.trace(lambda x: pyop.py_func(lambda a: a + 3, [x], np.float64), "float64[n]")
    np.testing.assert_array_equal(copy.deepcopy(graph).compile()(np.zeros(1)), [3.0])
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(graph)


def test_loaded_models_pickle_with_their_functions(tmp_path):
    pytest.importorskip("onnx")
    import pyop.onnx

    from .models import F32, X, model, python_op, value

    made = model([python_op()], [value("x")], [value("y", F32, None)])
    graph = pyop.onnx.load(made, {"m.f": graphs.sorted_down})
    graph.save(tmp_path / "again.onnx")
    reloaded = pyop.load(tmp_path / "again.onnx", {"m.f": graphs.sorted_down})
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), reloaded):
        np.testing.assert_array_equal(again.compile()(x=X)["y"], np.sort(X)[::-1])


def test_a_tensor_that_a_python_op_reads_twice(tmp_path):
    pytest.importorskip("onnx")
    import pyop.onnx

    loaded = pyop.onnx.load(pyop.onnx.export(pyop.trace(lambda x: graphs.dot(x, x, k=2), "float64[n]")))
    loaded.save(tmp_path / "g.onnx")
    x = np.arange(4.0)
    assert_same_bits(pyop.load(tmp_path / "g.onnx").compile()(x=x), loaded.compile()(x=x))


SCRIPT = """
import pickle, sys
import cloudpickle, numpy as np, pyop

@pyop.op("float64[n] -> float64[]")
def power(x, *, k=2):
    return pyop.saved(np.sum(x**k), slope=k * x ** (k - 1))

@power.vjp
def _(ct, x, *, saved):
    return ct * saved.slope

@pyop.op
def pairs(x):
    return np.stack([x[:-1], x[1:]], axis=1)

@pairs.abstract
def _(x):
    return pyop.Spec(x.dtype, (x.shape[0] - 1, 2))

@pyop.compile
def twice(x):
    return x * 2

f = lambda x: (power(x, k=3), pyop.grad(lambda x: power(x, k=3))(x), pairs(x))
graph = pyop.trace(f, "float64[n]")
graph.save(sys.argv[1] + "/graph.onnx", embed=True)
with open(sys.argv[1] + "/graph.pickle", "wb") as file:
    file.write(cloudpickle.dumps((graph, power, twice)))
assert pickle.loads(pickle.dumps((power, twice))) == (power, twice)  # pickle names what the script has defined
"""


def test_what_a_script_has_defined_goes_along(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("cloudpickle")
    (tmp_path / "script.py").write_text(SCRIPT)
    path = ":".join(entry for entry in sys.path if entry)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    x = np.arange(3.0)
    pickled, power, twice = pickle.loads((tmp_path / "graph.pickle").read_bytes())
    for graph in (pyop.load(tmp_path / "graph.onnx", trust="pickles"), pickled):
        value, slope, parts = graph.compile()(x)
        np.testing.assert_array_equal(value, 9.0)
        np.testing.assert_array_equal(slope, 3 * x**2)
        np.testing.assert_array_equal(parts, [[0.0, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(pyop.grad(power)(x), 2 * x)
    np.testing.assert_array_equal(twice(x), 2 * x)
