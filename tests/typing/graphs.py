"""Building, running and looking at graphs, as a user writes it; see public_api.py."""

from typing import Any, assert_type

import numpy as np

import pyop

with pyop.Graph(name="g") as g:
    x = g.input("float64[n, 3]", name="x")
    k = g.constant([1.0, 2.0, 3.0])
    # operators and methods give Values
    assert_type(x * k, pyop.Value)
    assert_type(2.0 - x / k, pyop.Value)
    assert_type(x @ k, pyop.Value)
    assert_type(-x, pyop.Value)
    assert_type(x < 3, pyop.Value)
    assert_type(x == k, pyop.Value)
    assert_type(x[:, 0], pyop.Value)
    assert_type(x.T, pyop.Value)
    assert_type(x.sum(axis=1), pyop.Value)
    assert_type(x.reshape(-1), pyop.Value)
    assert_type(x.astype("float32"), pyop.Value)
    by_numpy = np.zeros(3) + k  # NumPy's stubs take it for an array
    # NumPy's functions take them
    y = np.sin(x) + np.where(x > 0, x, 0.0)
    z = np.sum(x, axis=0)
    np.concatenate([x, x])
    np.einsum("ij,j->i", x, k)
    g.output({"y": y, "z": (z,)})

assert_type(g, pyop.Graph)
assert_type(g.inputs, tuple[pyop.Value, ...])
assert_type(x.shape, tuple[int | pyop.Dim | None, ...] | None)
assert_type(x.dtype, np.dtype[Any] | None)
assert_type(x.spec, pyop.Spec)
assert_type(x.name, str)
for node in g.nodes:
    assert_type(node, pyop.Node)
    assert_type(node.name + node.origin + node.kind, str)
    assert_type(node.outputs, tuple[pyop.Value, ...])

first = g.run(x, {x: np.ones((2, 3))})
named = g.run(feeds={"x": np.ones((2, 3))}, threads=4)
both = g.run([x, k], {x: [[1.0, 2.0, 3.0]]})

plan = g.compile(threads=2, optimize=False)
assert_type(plan, pyop.Plan)
assert_type(plan.input_names, tuple[str, ...])
assert_type(plan.report()["nodes"], int)
plan(np.ones((2, 3)))
plan(x=np.ones((2, 3)))

traced = pyop.trace(lambda a, b: {"s": a + b}, "float64[n]", pyop.Spec.parse("float64[n]"), name="sum")
assert_type(traced, pyop.Graph)
