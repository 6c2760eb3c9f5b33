"""Loops, branches and writes as operators of ONNX: the reference implementation and the graph that is loaded again
compute the same bits, onnxruntime what is close.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.reference

import pyop
import pyop.onnx
from tests.loops.programs import function, program

from . import graphs

X = np.array([0.3, -0.7, 0.9, 0.4, -0.2])


def same_everywhere(graph, *args):
    """Export a graph, run it in all ways, and return the model."""
    wanted = graph.compile()(*args)
    model = pyop.onnx.export(graph)
    onnx.checker.check_model(model, full_check=True)
    feeds = dict(zip([x.name for x in model.graph.input], args, strict=True))
    (found,) = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    (again,) = pyop.onnx.load(model).compile()(*args).values()
    for result in (found, again):
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        assert np.asarray(result).tobytes() == wanted.tobytes()
    try:
        import onnxruntime
    except ImportError:
        return model
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.allclose(session.run(None, feeds)[0], wanted, rtol=1e-5)
    return model


def operators(model):
    return {node.op_type for node in model.graph.node}


def down(x):
    y = x * 1.0
    for i in range(12, 0, -1):
        y[i - 1] = y[i] * 0.5 + x[i] * i
    return y


def every_third(x):
    y = x * 1.0
    for i in range(1, 30, 3):
        y = y * 0.5 + x * i
    return y


def triangular(x):
    def row(i, y):
        def column(j, y):
            y[j] = y[j] * 0.5 + x[i]
            return y

        return pyop.fori_loop(i, 13, column, y)

    return pyop.fori_loop(0, 13, row, x * 1.0)


def until(x):
    return pyop.while_loop(lambda y: np.abs(y).sum() > 1, lambda y: (y / 2).astype(y.dtype), x * 3)


def never(x):
    return pyop.while_loop(lambda y: y.sum() > 1e6, lambda y: y * 2, x * 3)


def chosen(x):
    return pyop.cond(x[0] > 2, lambda: x, lambda: x * 2)


def parts(x):
    y = x * 1
    y[2:9:2] = y[3:10:2]
    y[::-1][:3] = 7
    y[y > 8] = 3
    y[...] = y * 2
    y[-1:] *= 3
    return y


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize("f", [down, every_third, triangular, until, never, chosen, parts])
def test_the_same_bits(f, dtype):
    x = (np.arange(13) % 5 - 1).astype(dtype)
    graph = pyop.compile(f).graph(x)
    same_everywhere(graph, x)


@pytest.mark.parametrize("seed", range(12))
def test_generated(seed):
    f = function(program(seed))
    for way in (f, pyop.grad(f)):
        same_everywhere(pyop.compile(way).graph(X), X)


@pytest.mark.parametrize("count", [0, 1, 8])
def test_bounds_are_inputs(count):
    def f(x, n):
        return pyop.fori_loop(1, n[0], lambda i, y: y * 0.5 + i * x, x * 1.0)

    args = np.ones(3), np.array([count])
    model = same_everywhere(pyop.trace(f, "float64[k]", "int64[1]"), *args)
    assert "Loop" in operators(model)
    twice = pyop.trace(lambda x, n: pyop.grad(lambda x: f(x, n).sum())(x), "float64[k]", "int64[1]")
    same_everywhere(twice, *args)


def test_ops_in_bodies_become_python_ops():
    graph = pyop.trace(graphs.with_parts, "float64[3]")
    model = pyop.onnx.export(graph)
    assert operators(model) >= {"Loop", "If"}
    loop = next(node for node in model.graph.node if node.op_type == "Loop")
    assert "PythonOp" in [node.op_type for node in loop.attribute[0].g.node]
    again = pyop.onnx.load(model, {"tests.exchange.graphs.dot": graphs.dot})
    for x in (np.ones(3), -np.ones(3)):
        (found,) = again.compile()(x).values()
        assert found.tobytes() == graphs.with_parts(x).tobytes()


def test_what_has_no_operators_is_a_python_op_or_says_why():
    def twice(x, places):
        y = x * 1.0
        y[places] = np.arange(3.0)
        return y

    def of_rows(x, places):
        y = x * 1.0
        y[places, :1] = 2.0
        return y

    def rounded(x):
        y = np.zeros(3, int)
        y[1:] = x[1:]
        return y

    model = pyop.onnx.export(pyop.trace(twice, "float64[4]", "int64[3]"))
    assert "PythonOp" in operators(model)
    (found,) = pyop.onnx.load(model).compile()(np.ones(4), np.array([1, 1, 2])).values()
    assert found.tolist() == [1.0, 1.0, 2.0, 1.0]
    with pytest.raises(ValueError, match="may name one twice"):
        pyop.onnx.export(pyop.trace(of_rows, "float64[4, 4]", "int64[3]"))
    with pytest.raises(ValueError, match="rules of their own"):
        pyop.onnx.export(pyop.compile(rounded).graph(np.ones(3)))


def test_effects_in_a_body_are_refused():
    noisy = pyop.op(lambda x: x, "float64[4] -> float64[4]", stateful=True, name="noisy")
    graph = pyop.trace(lambda x: pyop.fori_loop(0, 9, lambda i, y: noisy(y), x), "float64[4]")
    with pytest.raises(ValueError, match="effects inside a loop"):
        pyop.onnx.export(graph)


def test_one_path_of_several_is_refused(tmp_path):
    def f(x):
        return x * 2.0 if x[0] > 0 else x - 1.0

    graph = pyop.compile(f).graph(np.ones(3))
    for write in (pyop.onnx.export, lambda graph: graph.save(tmp_path / "graph.onnx")):
        with pytest.raises(ValueError, match=r"one path of a function.*test_loops_exported.py:\d+.*pyop.cond"):
            write(graph)


def test_writes_by_methods_are_saved(tmp_path):
    """What writes into its arguments a file may not call by itself."""

    def f(x):
        y = x * 1.0
        y.sort()
        y[1:].fill(2.0)
        return y

    graph = pyop.compile(f).graph(X)
    graph.save(tmp_path / "graph.onnx")
    with pytest.raises(LookupError, match=r"numpy\.ndarray\.sort"):
        pyop.load(tmp_path / "graph.onnx")
    assert pyop.load(tmp_path / "graph.onnx", modules=["numpy"]).compile()(X).tobytes() == f(X).tobytes()
