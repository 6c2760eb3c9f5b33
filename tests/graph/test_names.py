"""Nodes and outputs by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyop
from pyop.graph.names import output_names


class Pair(NamedTuple):
    low: Any
    high: Any


@dataclass
class Both:
    left: Any
    right: Any


@pytest.fixture
def graph():
    return pyop.trace(lambda x: {"level_03": x + 1.0, "signal": [np.sin(x), x]}, "float64[n]", name="g")


def test_outputs_and_values_by_name(graph):
    x = np.arange(3.0)
    feeds = {"x": x}
    assert (graph.run("level_03", feeds) == x + 1.0).all()
    assert (graph.run("add", feeds) == x + 1.0).all()
    found = graph.run({"a": "sin", "b": ("signal.1", graph.inputs[0])}, feeds)
    assert (found["a"] == np.sin(x)).all()
    assert (found["b"][0] == x).all()
    assert graph["sin"] == graph[2]
    assert graph["sin"].name == "sin"
    assert graph[-1 + len(graph)].kind == "py"


def test_unknown_names_list_near_ones(graph):
    with pytest.raises(KeyError, match=r"no node named 'sine'; near are \['sin'\]"):
        graph["sine"]
    with pytest.raises(pyop.GraphError, match=r"nothing named 'level_3' to fetch; near are \['level_03'\]"):
        graph.run("level_3", {"x": np.ones(2)})
    with pytest.raises(pyop.GraphError, match="it is empty"):
        pyop.Graph().run("x")
    with pytest.raises(IndexError):
        graph[17]
    with pytest.raises(TypeError):
        graph[None]


def test_a_name_of_an_output_and_of_another_value_is_ambiguous():
    g = pyop.trace(lambda x: {"sin": np.cos(x), "cos": np.cos(x) + np.sin(x)}, "float64[n]")
    with pytest.raises(pyop.GraphError, match="'sin' may be any of several"):
        g.run("sin", {"x": np.ones(2)})
    same = pyop.trace(lambda x: {"sin": np.sin(x)}, "float64[n]")
    assert same.run("sin", {"x": np.zeros(1)}) == [0.0]


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        (lambda x: x, ["output"]),
        (lambda x: (x, [x]), ["0", "1.0"]),
        (lambda x: Pair(x, {"k": x}), ["low", "high.k"]),
        (lambda x: Both(x, (x, x)), ["left", "right.0", "right.1"]),
        (lambda x: {1: x}, ["1"]),
        (lambda x: (), []),
    ],
)
def test_names_of_outputs(tree, names):
    assert output_names(pyop.trace(tree, "float64[n]")) == names


def test_print(graph):
    lines = str(graph).splitlines()
    assert lines[0] == repr(graph)
    assert "  sin  float64[n] = sin(x)" in lines
    assert lines[-3:] == ["  level_03: add", "  signal.0: sin", "  signal.1: x"]
