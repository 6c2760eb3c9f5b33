"""Files and pickles of earlier versions: those in `saved/` were written by the tree of commit f5906d3."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

import pyop
import pyop.onnx
from pyop.saving import moved

from . import graphs
from .models import X
from .node_cases import same_bits

SAVED = Path(__file__).parent / "saved"


def everything(x, m):
    rows = m.reshape(m.shape[0] * 3)
    parts = np.split(m, 3, axis=1)
    (only,) = np.split(x, 1)
    inner = pyop.grad(lambda x: np.sum(np.maximum(np.sin(x[1:]), 0.25) * np.mean(x) / x[0]))(x)
    summed = np.sum(m, axis=0) + np.concatenate([x[:1], x[1:3]])
    summed += 1
    several = (inner, summed, x[0] ** 2.5, np.linalg.svd(m))
    return {
        "a": [rows, parts, only * 0.1], "b": several, "c": np.broadcast_to(x[0], (2, *x.shape)), "d": np.pad(x, 1),
    }  # fmt: skip


def ops(x, y):
    given = pyop.grad(lambda x: graphs.dot(np.sin(x), y, k=2) + np.sum(graphs.root(x * x)))(x)
    calls = graphs.dot(x, y, k=5, how="other"), graphs.pairs(x), graphs.renamed({"a": y})
    return {"v": given, "d": pyop.grad(graphs.energy)(x), "p": calls}


def unpickled(name):
    return pickle.loads((SAVED / name).read_bytes())


def test_numpy_functions_give_the_same_bits():
    args = np.arange(1.0, 5.0), np.arange(12.0).reshape(4, 3) + 1
    expected = pyop.trace(everything, "float64[n]", "float64[n,3]").compile()(*args)
    plans = [pyop.load(SAVED / "numpy.onnx").compile(), unpickled("numpy.pickle").compile(), unpickled("plan.pickle")]
    for plan in plans:
        assert same_bits(plan(*args), expected)


def test_ops_are_found_by_their_paths():
    x, y = np.arange(1.0, 5.0), np.arange(4.0)
    given = {name: getattr(graphs, name) for name in ("dot", "root", "energy", "pairs", "renamed")}
    loaded = pyop.load(SAVED / "ops.onnx", {f"exchange.graphs.{name}": op for name, op in given.items()})
    assert same_bits(loaded.compile()(x, y), pyop.trace(ops, "float64[n]", "float64[n]").compile()(x, y))


def elu(x):
    return np.where(x > 0, x, np.exp(x) - 1).astype(np.float32)


def test_a_graph_of_a_model_still_is_one():
    soft = np.exp(elu(X)) / np.sum(np.exp(elu(X)))
    w = np.array([1, 2, 3], np.float32)
    loaded, made = pyop.load(SAVED / "read.onnx"), unpickled("read.pickle")
    np.testing.assert_array_equal(loaded.defaults["w"], w)
    for c, expected in ((True, elu(X) - 3 * soft.mean()), (False, -soft)):
        feeds = {"x": X, "c": np.array(c)}
        assert same_bits(loaded.run(feeds=feeds), made.compile()(**feeds))
        np.testing.assert_allclose(made.compile()(**feeds)["y"], expected + w, rtol=1e-5)
        np.testing.assert_allclose(made.run(feeds={**feeds, "w": w * 2})["y"], expected + w * 2, rtol=1e-5)


def test_python_ops_are_still_called():
    functions = {"m.f": (lambda x, k: x * np.float32(k), lambda ctx, g: (g * np.float32(ctx.inputs[1]), None))}
    for graph in (pyop.load(SAVED / "python_ops.onnx", functions), unpickled("python_ops.pickle")):
        np.testing.assert_array_equal(graph.run(graph.outputs["y"], {"x": X}), X * 3)
    found = pyop.load(SAVED / "python_ops.onnx", functions).compile()(x=X, g=X)
    np.testing.assert_array_equal(found["dx"], X * 3)


def test_what_has_moved_is_found_under_its_earlier_path(monkeypatch):
    monkeypatch.setitem(moved.MOVED, "pyop.gone", "pyop.declare.rebuild")
    monkeypatch.setitem(moved.MOVED, "pyop.apart.sizes", "pyop.declare.rebuild.call_with_sizes")
    for name in ("pyop.gone", "pyop.apart"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    from pyop.declare.rebuild import CallOnTrees, call_with_sizes

    assert pickle.loads(b"cpyop.gone\nCallOnTrees\n.") is CallOnTrees
    assert pickle.loads(b"cpyop.apart\nsizes\n.") is call_with_sizes
    monkeypatch.setitem(moved.MOVED, "pyop.onnx.standard.gone", "pyop.onnx.elements")
    assert moved._Finder.find_spec("pyop.onnx.standard", pyop.onnx.__path__) is None
    assert moved._Finder.find_spec("pyop.onnx.standard.gone", pyop.onnx.__path__) is not None
    assert moved.current("pyop.gone.CallOnTrees.bind") == "pyop.declare.rebuild.CallOnTrees.bind"
    with pytest.raises(AttributeError, match="nothing"):
        pickle.loads(b"cpyop.apart\nnothing\n.")
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(b"cpyop.nowhere\nf\n.")


@pytest.mark.parametrize(
    "path",
    [
        "op.remade",
        "op.op",
        "py_func.numpy_function",
        "graph.Graph",
        "graph.trace",
        "transforms.grad",
        "rebuild.CallOnTrees",
    ],
)
def test_paths_of_pickles_lead_where_the_names_are_now(path):
    """In a process of its own, where nothing has imported the modules of today by their earlier names."""
    module, _, name = f"pyop.{path}".rpartition(".")
    code = (
        "import pickle, pyop; from pyop.saving import moved\n"
        f"found = pickle.loads(b'c{module}\\n{name}\\n.')\n"
        f"home, _, name = moved.current('pyop.{path}').rpartition('.')\n"
        "import importlib; assert found is getattr(importlib.import_module(home), name)\n"
        "assert type(pyop.op).__name__ == type(pyop.py_func).__name__ == 'function'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
