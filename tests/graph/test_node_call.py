"""Which call a node makes, and its copies in other graphs."""

import numpy as np
import pytest

import pyop
from pyop.graph import node_call


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: np.sum(np.split(x, 1)[0] ** 2),
        lambda x: np.sum(np.broadcast_arrays(x)[0] ** 2),
        lambda x: np.sum(np.meshgrid(x)[0] ** 2),
    ],
)
def test_a_container_of_one_result_has_the_gradient_of_its_function(fn):
    x = np.arange(4.0)
    for gradient in (pyop.grad(fn), pyop.compile(pyop.grad(fn)), pyop.trace(pyop.grad(fn), "float64[n]").compile()):
        np.testing.assert_array_equal(gradient(x), 2 * x)


def test_a_graph_that_is_differentiated_keeps_its_native_steps():
    graph = pyop.trace(lambda x: np.sum(np.sin(x) * 2.0 + np.exp(x)), "float64[n]")
    plan = pyop.trace(pyop.value_and_grad(graph), "float64[n]").compile()
    assert "1 step, 1 native" in plan.explain().summary


def test_a_copied_node_is_the_node():
    def program(x, texts):
        y = x.reshape(x.shape[0] * 3) * 0.1 + x[0, 0] ** 2.5
        return y, np.split(x, 1), np.concatenate([x[0], x[1]]), np.strings.upper(texts), np.ones(()) + x[0, 0]

    graph = pyop.trace(program, "float64[n,3]", "str[k]")
    other = pyop.Graph()
    made: dict[tuple[int, int], pyop.Value] = {}
    for node in graph.nodes:
        copy = node_call.add(other, node_call.record_of(node), lambda *place: made[place])  # noqa: B023
        made |= {(node.index, value.output_index): value for value in copy.outputs}
    for a, b in zip(graph.nodes, other.nodes, strict=True):
        if a.kind == "constant":
            np.testing.assert_array_equal(graph.run(a.outputs[0]), other.run(b.outputs[0]))
        else:
            assert node_call.record_of(a) == node_call.record_of(b)


def test_a_call_is_read_with_what_stands_for_its_inputs():
    graph = pyop.trace(lambda x: (np.broadcast_to(x[0], (2, x.shape[0])), np.split(x, 1)), "float64[n,3]")
    calls = {call.function: call for node in graph.nodes if node.kind == "py" for call in [node_call.call_of(node)]}
    assert (calls[np.broadcast_to].nested, set(calls[np.broadcast_to].carriers)) == (True, {"n"})
    assert (calls[np.split].nested, calls[np.split].of_one) == (False, True)
    assert calls[np.split].packed((1,)) == (1,)
