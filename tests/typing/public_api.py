"""Code as a user writes it, for mypy --strict and pyright: what the stubs promise about the public surface.

Not a pytest file: `.ci/types` checks it against the installed package.
"""

from typing import Any, assert_type

import numpy as np

import pyop


@pyop.op("float64[n], float64[n] -> float64[]")
def dot(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Any:
    return np.dot(x, y)


assert_type(dot(np.ones(3), np.ones(3)), Any)
anything: pyop.Op = dot
named = pyop.op("float64[n] -> float64[n]", name="same", stateful=True)(lambda x: x)
of_unknown: pyop.Op = named

graph = pyop.trace(lambda x, y: dot(np.sin(x), y), "float64[n]", "float64[n]")
assert_type(graph, pyop.Graph)
plan = graph.compile()
assert_type(plan, pyop.Plan)
result = plan(np.zeros(3), np.zeros(3))

with pyop.Graph(name="by_hand") as by_hand:
    x = by_hand.input("float64[n]", name="x")
    assert_type(x, pyop.Value)
    k = by_hand.constant(2.0)
    by_hand.output({"r": dot(x * k, x)})
assert_type(by_hand, pyop.Graph)

spec = pyop.Spec.parse("float64[n, 3]")
assert_type(spec, pyop.Spec)

assert_type(pyop.build_config(), dict[str, dict[str, str]])
assert_type(pyop.get_include(), str)
