"""Who keeps what alive: graphs, nodes and plans under the cycle collector, and what is left of them after it."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyop


class Function:
    """A callable that can be watched, and can hold anything."""

    def __call__(self, x: Any, **static: Any) -> Any:
        return x


class Static:
    """A static argument that can be watched."""


def collected(build: Callable[[], Any]) -> None:
    """What `build` makes, it tells by weak references, must go when only the collector can find it."""
    gc.collect()
    gc.disable()
    try:
        refs = build()
        assert all(ref() is not None for ref in refs), "there is no cycle"
        gc.collect()
        assert [ref() for ref in refs] == [None] * len(refs)
    finally:
        gc.enable()


def declared(f: Any, **options: Any) -> pyop.Op:
    return pyop.op(f, outputs="float64[]", **options)


def cycle_of_node() -> Any:
    f, g = Function(), pyop.Graph()
    declared(f)(g.input("float64[]"))
    f.graph = g  # function → graph → node → function
    return weakref.ref(f), weakref.ref(g)


def cycle_of_static() -> Any:
    k, g = Static(), pyop.Graph()
    k.value = declared(Function())(g.input("float64[]"), k=k)
    return weakref.ref(k), weakref.ref(g)


def cycle_of_plan(**options: Any) -> Any:
    f = Function()
    g = pyop.trace(declared(f), "float64[]")
    f.plan = g.compile(**options)  # plan → graph → node → function → plan
    assert f.plan(1.0) == 1.0
    return weakref.ref(f), weakref.ref(g), weakref.ref(f.plan)


def cycle_of_closure() -> Any:
    def body(x):
        return plan(x) if float(x) > 5 else x

    plan = pyop.trace(lambda v: declared(body)(v), "float64[]").compile()
    plan(7.0) if False else plan(1.0)
    return weakref.ref(body), weakref.ref(plan)


def cycle_of_plan_attribute() -> Any:
    plan = pyop.trace(np.sin, "float64[]").compile()
    plan.me = plan
    return (weakref.ref(plan),)


def cycle_of_output() -> Any:
    k, g = Static(), pyop.Graph()
    x = g.input("float64[]")
    g.output({"x": x})
    g.run(x.node, {x: 1.0})  # remembers a plan
    k.graph = g
    return (weakref.ref(g),)


def cycle_of_abstract_rule() -> Any:
    f = Function()
    op = pyop.op(f)
    f.rule = op.abstract(lambda x, f=f: x)
    op(np.ones(2))
    return (weakref.ref(f),)


def cycle_of_failure() -> Any:
    k = Static()

    def fail(x):
        k.frame = sys._getframe()
        raise LookupError(k)

    g = pyop.trace(declared(fail), "float64[]")
    k.graph = g
    try:
        g.compile(threads=2)(1.0)
    except LookupError as error:
        k.error = error
    return weakref.ref(k), weakref.ref(g)


@pytest.mark.parametrize("build", [
    cycle_of_node, cycle_of_static, cycle_of_plan, cycle_of_closure, cycle_of_plan_attribute,
    cycle_of_output, cycle_of_abstract_rule, cycle_of_failure, lambda: cycle_of_plan(threads=2),
    lambda: cycle_of_plan(optimize=False),
])  # fmt: skip
def test_cycles_are_collected(build: Callable[[], Any]) -> None:
    collected(build)


def test_without_a_cycle_no_collector_is_needed() -> None:
    gc.disable()
    try:
        f, g = Function(), pyop.Graph()
        value = declared(f)(g.input("float64[]"))
        refs = [weakref.ref(f), weakref.ref(g)]
        del f, g
        assert value.graph.run(value.node.inputs[0], {value.node.inputs[0]: 1.0}) == 1.0
        value.graph._plans.clear()
        assert all(ref() is not None for ref in refs)  # a Value keeps its graph, a graph its functions
        del value
        assert [ref() for ref in refs] == [None] * 2
    finally:
        gc.enable()


def test_the_collector_sees_every_reference_once() -> None:
    """It would free what is still in use if an edge were reported more often than it is counted."""
    f, k = Function(), Static()
    g = pyop.Graph()
    for _ in range(20):
        declared(f)(g.input("float64[]"), k=k)
    big = g.constant(np.array([k, None]))
    g.output([big])
    plans = [g.compile(), g.compile(threads=2)]
    gc.freeze()
    gc.unfreeze()
    for _ in range(3):
        gc.collect()
    assert any(o is g for o in gc.get_objects())
    for o in (g, *plans, g.nodes[1], big, declared(f)):
        referents = gc.get_referents(o)
        assert all(sys.getrefcount(r) >= 2 for r in referents)
        repr(referents)
    assert sum(r is f for r in gc.get_referents(g)) == 20
    assert plans[0](*[1.0] * 20)[0][0] is k


def test_a_million_nodes() -> None:
    """Built, run and destroyed without recursion."""
    g = pyop.Graph()
    x = y = g.input("float64[]")
    for _ in range(1_000_000):
        y = -y
    assert len(g) == 1_000_001
    assert g.run(y, {x: 2.0}) == 2.0
    gone = weakref.ref(g)
    del g, x, y
    gc.collect()
    assert gone() is None


def test_a_long_chain_of_functions_runs_on_threads() -> None:
    op = declared(Function())

    def chain(x):
        for _ in range(20_000):
            x = op(x)
        return x

    graph = pyop.trace(chain, "float64[]")
    assert graph.compile(threads=2)(3.0) == graph.compile(optimize=False)(3.0) == 3.0


def clear(thing: Any) -> None:
    """What the collector does to a member of a cycle, at the worst moment."""
    get_slot = ctypes.pythonapi.PyType_GetSlot
    get_slot.restype, get_slot.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    kind = pyop.Plan if isinstance(thing, pyop.Plan) else pyop.Graph.__base__
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(get_slot(kind, 51))(thing)  # Py_tp_clear


def test_a_graph_that_was_torn_down_is_harmless() -> None:
    op = declared(Function())
    g = pyop.Graph()
    x = g.input("float64[]", name="x")
    k = g.constant(2.0)
    y = op(op(x) + k, k=[3])
    z = np.clip(op(k), 0.0, 1)
    folded = g.run(z)
    g.output(y)
    plans = [g.compile(), g.compile(threads=2), g.compile(optimize=False)]
    clear(plans[0])
    assert plans[0](1.0) == 3.0
    clear(g)
    for run in (*plans, lambda a: g.compile()(a), lambda a: g.run(y, {x: a}), lambda a: g.run(z), lambda a: g.run(k)):
        with pytest.raises(pyop.GraphError, match="destroyed by the garbage collector"):
            run(1.0)
    for thing in (g, *g.nodes, x, y, z, *plans):
        repr(thing)
        for name in (
            "inputs",
            "outputs",
            "nodes",
            "kind",
            "spec",
            "function",
            "contract",
            "_form",
            "origin",
            "graph",
            "node",
        ):
            repr(getattr(thing, name, None))
        gc.get_referents(thing)
    assert (x + y).graph is g  # building still works, to no use
    op(y)
    clear(g)
    assert folded == 1.0


def test_finalizers_meet_a_whole_graph() -> None:
    told: list[Any] = []

    class Last(Function):
        def __del__(self):
            told.append(self.plan(1.0) + self.graph.run(self.value, {"x": 2.0}) + self.graph.compile()(3.0))

    def build():
        f = Last()
        f.graph = pyop.Graph()
        f.value = declared(f)(f.graph.input("float64[]", name="x")) + 1
        f.graph.output(f.value)
        f.plan = f.graph.compile()

    build()
    gc.collect()
    assert told == [9.0]
    gc.collect()


def test_a_plan_dropped_while_it_runs() -> None:
    held: list[Any] = []
    for threads in (1, 2):
        op = declared(lambda x: held.clear() or gc.collect() * 0 + x, stateful=True)
        held.append(pyop.trace(lambda x, op=op: [op(x), op(x) + 1], "float64[]").compile(threads))
        assert held[0](np.ones(())) == [1.0, 2.0]
        assert held == []


def test_a_traced_and_compiled_graph_needs_no_collector():
    op = pyop.op(lambda x: x + 1.0, "float64[n] -> float64[n]")
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        graph = pyop.trace(lambda x: {"y": op(x)}, "float64[n]")
        plan = graph.compile()
        ref = weakref.ref(graph)
        assert str(graph.outputs["y"].spec) == "float64[n]"
        assert plan(np.zeros(1))["y"] == 1.0
        del graph, plan
        assert ref() is None
    finally:
        if was_enabled:
            gc.enable()
