"""Functions of a plan that run plans, build graphs, or call themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyop


@pyop.op("float64[n] -> float64[n]")
def double(x):
    return x * 2


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_an_op_whose_body_runs_plans_and_itself(threads: int) -> None:
    inner = pyop.trace(lambda x: [double(x), np.sin(x)], "float64[n]").compile(threads)

    @pyop.op("float64[n], int64[] -> float64[n]")
    def nested(x, depth):
        if depth == 0:
            return inner(x)[0]
        g = pyop.trace(lambda v, d: [nested(v, d), v + 1], "float64[n]", "int64[]")
        return g.compile(threads)(x, depth - 1)[0] + g.run(g.outputs[1], {g.inputs[0]: x}, threads=threads)

    assert nested(np.ones(1), 50).tolist() == [102.0]
    assert nested(np.ones(1), 3).tolist() == [8.0]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_endless_recursion_is_an_error(threads: int) -> None:
    plans: list[Any] = []

    @pyop.op("float64[n] -> float64[n]")
    def endless(x):
        return plans[0](x)[0]

    g = pyop.trace(lambda x: [endless(x), endless(x + 1), endless(x + 2), double(x)], "float64[n]")
    plans.append(g.compile(threads))
    with pytest.raises(RecursionError):
        plans[0](np.ones(1))
    k = pyop.Graph()
    with k:
        y = pyop.op(lambda a: k.run(y), "float64[] -> float64[]")(k.constant(1.0))
    with pytest.raises(RecursionError):
        k.run(y)
    assert double(np.ones(1)) == 2


def test_what_an_op_builds_inside_is_not_captured() -> None:
    @pyop.op("float64[n] -> float64[n]")
    def builds(x):
        assert type(double(x)) is np.ndarray
        return pyop.trace(lambda v: double(v) + 1, "float64[n]").compile()(x)

    ready = pyop.trace(builds, "float64[n]").compile()
    g = pyop.Graph()
    with g:
        x = g.input("float64[n]")
        g.output([builds(x), builds(g.constant([1.0]))])
        size = len(g)
        plan = g.compile()
        assert ready(np.ones(2)).tolist() == [3, 3]
        assert plan(np.zeros(2))[0].tolist() == [1, 1]
        assert len(g) == size
        assert isinstance(double(np.ones(1)), pyop.Value)  # and this is
    assert [v.tolist() for v in plan(np.zeros(1))] == [[1], [3]]
