"""Loops and branches in files: the graph that is loaded computes the same bits, and has the same derivatives."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

import pyop
from tests.loops.programs import function, program

from . import graphs

X = np.array([0.3, -0.7, 0.9, 0.4, -0.2])


def through_a_file(graph, path):
    graph.save(path)
    return pyop.load(path)


@pytest.mark.parametrize("seed", range(12))
def test_the_same_bits(seed, tmp_path):
    f = function(program(seed))
    for way in (f, pyop.grad(f)):
        compiled = pyop.compile(way)
        wanted = compiled(X)
        again = through_a_file(compiled.graph(X), tmp_path / "graph.onnx")
        assert again.compile()(X).tobytes() == wanted.tobytes()
        onnx.checker.check_model(tmp_path / "graph.onnx") if way is f and seed < 2 else None
    again = through_a_file(pyop.compile(f).graph(X), tmp_path / "graph.onnx")
    assert np.allclose(pyop.grad(again)(X), pyop.compile(pyop.grad(f))(X), rtol=1e-12)


def test_ops_in_bodies_are_found_again(tmp_path):
    graph = pyop.trace(graphs.with_parts, "float64[3]")
    again = through_a_file(graph, tmp_path / "graph.onnx")
    for x in (np.ones(3), -np.ones(3)):
        assert again.compile()(x).tobytes() == graph.compile()(x).tobytes() == graphs.with_parts(x).tobytes()
        assert np.allclose(pyop.vjp(again, x)[1](x)[0], pyop.vjp(graph, x)[1](x)[0])


def test_a_loop_that_would_not_end_is_refused(tmp_path):
    path = tmp_path / "graph.onnx"
    pyop.trace(lambda x: pyop.fori_loop(0, 9, lambda i, y: y * x, x), "float64[3]").save(path)
    model = onnx.load(path)
    entry = next(entry for entry in model.metadata_props if entry.key == "pyop.graph")
    description = json.loads(entry.value)
    loop = next(node["function"]["loop"] for node in description["nodes"] if "loop" in node.get("function", ()))
    for place, value, problem in ((1, 2, "does not take and return"), (2, 0, "steps of 0"), (0, 3, "no graph")):
        kept, loop[place] = loop[place], value
        entry.value = json.dumps(description)
        with pytest.raises(ValueError, match=problem):
            pyop.load(model.SerializeToString())
        loop[place] = kept
