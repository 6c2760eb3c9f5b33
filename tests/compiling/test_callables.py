"""Methods, callables of every kind, arrays of every kind, and calls inside of graphs."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import weakref

import numpy as np
import pytest

import pyop

from .helpers import same


@pyop.compile
def of_module(x, *, k=1):
    """Doubles."""
    return x * 2 * k


class Model:
    def __init__(self, k: float) -> None:
        self.k = k

    @pyop.compile
    def scaled(self, x, *, shift=0.0):
        return x * self.k + shift

    @classmethod
    @pyop.compile
    def twice(cls, x):
        return x * 2

    @staticmethod
    @pyop.compile
    def thrice(x):
        return x * 3


def test_methods_have_plans_for_each_instance_and_do_not_keep_it():
    Model.scaled.clear_cache()
    a, b = Model(2.0), Model(3.0)
    x = np.arange(3.0)
    for _ in range(2):
        same(a.scaled(x), x * 2)
        same(b.scaled(x, shift=1.0), x * 3 + 1)
        same(Model.scaled(b, x), x * 3)
    assert Model.scaled.cache_info()[:3] == (3, 3, 3)
    same(a.twice(x), x * 2)
    same(Model.thrice(x), a.thrice(x))
    ref = weakref.ref(a)
    del a
    assert ref() is None
    assert Model.scaled.cache_info().plans == 2
    same(pickle.loads(pickle.dumps(b)).scaled(x), x * 3)


def test_instances_that_cannot_be_held_weakly():
    class Slotted:
        __slots__ = ("k",)

        @pyop.compile
        def f(self, x):
            return x * self.k

    made = []
    for k in range(4):
        made.append(Slotted())
        made[-1].k = k
        assert made[-1].f(np.ones(1)) == k


def test_other_callables():
    x = np.arange(3.0)
    same(pyop.compile(functools.partial(np.multiply, 2.0))(x), x * 2)
    same(pyop.compile(np.sin)(x), np.sin(x))
    same(pyop.compile(Model(4.0).thrice.__wrapped__)(x), x * 3)

    class Callable:
        def __call__(self, x):
            return x + 1

    same(pyop.compile(Callable())(x), x + 1)
    assert pyop.compile(lambda x, *rest: sum(rest, x))(x, x, x).tolist() == [0.0, 3.0, 6.0]


def test_it_looks_like_its_function():
    assert (of_module.__name__, of_module.__doc__, of_module.__module__) == ("of_module", "Doubles.", __name__)
    assert list(inspect.signature(of_module).parameters) == ["x", "k"]
    assert pickle.loads(pickle.dumps(of_module)) is of_module
    assert copy.copy(of_module) is copy.deepcopy(of_module) is of_module
    assert repr(of_module).startswith("<pyop.compile of <function of_module")
    doubled = pickle.loads(pickle.dumps(pyop.compile(functools.partial(np.multiply, 2.0), "float64[n]")))
    np.testing.assert_array_equal(doubled(np.ones(3)), np.full(3, 2.0))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(pyop.compile(lambda x: x))


def test_what_numpy_can_view_is_compiled_and_what_has_rules_of_its_own_is_not(tmp_path):
    compiled = pyop.compile(lambda x, y: x * y)
    x = np.arange(1.0, 4.0)
    mapped = np.memmap(tmp_path / "m", np.float64, "w+", shape=3)
    mapped[:] = x
    for other in (mapped, memoryview(x), x.astype(">f8")):
        same(compiled(x, other), x * x)
    plans = compiled.cache_info().plans
    masked = np.ma.masked_array(x, [True, False, False])
    assert compiled(x, masked).mask.tolist() == [True, False, False]

    class Quantity(np.ndarray):
        def __mul__(self, other):
            return "times"

    assert compiled(x.view(Quantity), x) == "times"
    assert compiled.cache_info().plans == plans
    strided = np.arange(12.0).reshape(3, 4)[:, ::-2]
    same(compiled(strided, strided.T.T), strided * strided)


# --- inside of graphs


def test_it_is_inlined_where_a_graph_is_built():
    inner = pyop.compile(lambda x, k=2.0: x * k)
    g = pyop.trace(lambda x: inner(x) + inner(x, 3.0), "float64[n]")
    assert [node.name for node in g.nodes] == ["x", "multiply", "multiply_1", "add"]
    outer = pyop.compile(lambda x, t: inner(x, t) + t)
    same(outer(np.ones(2), 4.0), np.full(2, 8.0))
    assert inner.cache_info()[:3] == (0, 0, 0)
    with pyop.Graph() as g:
        assert inner(g.input("float64[]")).node.name == "multiply"
        same(inner(np.ones(1)), np.full(1, 2.0))
    assert inner.cache_info()[:3] == (0, 0, 0)
    with pytest.raises(TypeError, match="out="):
        inner(g.input("float64[]"), out=np.empty(()))


def test_python_nodes_call_compiled_functions_at_run_time():
    inner = pyop.compile(lambda x: x * 2.0)
    op = pyop.op(lambda x: inner(x), "float64[n] -> float64[n]")
    outer = pyop.compile(lambda x: op(x) + 1.0)
    same(outer(np.ones(2)), np.full(2, 3.0))
    assert inner.cache_info().plans == 1


def test_plan_for_and_graph():
    compiled = pyop.compile(lambda x: x + np.sin(x), threads=2)
    x = np.ones(3)
    plan = compiled.plan_for(x)
    assert plan is compiled.plan_for(x)
    assert (plan.threads, plan.input_names) == (2, ("x",))
    assert compiled.graph(x) is plan.graph
    assert compiled.plan_for(np.ones(4)) is not plan
    nested = pyop.compile(lambda p: p["w"][0] * p["b"]).plan_for({"w": [x], "b": x})
    assert nested.input_names == ("p.w.0", "p.b")
    plain = pyop.compile(lambda x: x + np.sin(x), optimize=False).plan_for(x)
    assert plain.report()["native"] == 0
    with pytest.raises(TypeError, match="no plan"):
        compiled.plan_for(pyop.Graph().input("float64[]"))
