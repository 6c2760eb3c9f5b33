"""pyop.profile of plans: their calls, their Python nodes, native steps, groups and views, on every thread."""

import gc
import threading
import weakref

import numpy as np
import pytest

import pyop

F8 = "float64[n] -> float64[n]"
add = pyop.op(F8, name="add")(lambda x: x + 1)


@pyop.op(F8)
def broken(x):
    add(x)
    raise RuntimeError("no")


def rows(p):
    return {row.name: row for row in p.rows}


def expression(x, y):
    z = np.sin(x) * y + x
    z = add(z)
    return (z.reshape(-1, 2) * 2).sum(axis=0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_plan_is_a_call_and_its_instructions_are_within(threads):
    plan = pyop.trace(expression, "float64[n]", "float64[n]").compile(threads=threads)
    x, y = np.ones(50), np.ones(50)
    with pyop.profile() as p:
        for _ in range(7):
            plan(x, y)
    assert {row.calls for row in p.rows} == {7}
    kinds = {row.name: row.kind for row in p.rows}
    assert kinds["expression"] == "plan"
    assert kinds["sin multiply add"] == "group"
    assert kinds["add_1"] == "node"
    assert kinds["reshape"] == "view"
    assert kinds["sum"] == "native"
    r = rows(p)
    assert (r["expression"].bytes_in, r["expression"].bytes_out) == (7 * 800, 7 * 16)
    assert (r["sin multiply add"].bytes_in, r["sin multiply add"].bytes_out) == (7 * 800, 7 * 400)
    assert (r["add_1"].bytes_in, r["add_1"].bytes_out) == (7 * 400, 7 * 400)
    lines = {row.name: int(row.where.rpartition(":")[2]) for row in p.rows if row.kind != "plan"}
    first = expression.__code__.co_firstlineno
    assert (lines["sin multiply add"], lines["add_1"], lines["reshape"], lines["sum"]) == (
        first + 1,
        first + 2,
        first + 3,
        first + 3,
    )
    main = p.events[p.events["thread"] == p.threads.index("MainThread")]
    if threads == 1:
        assert main["depth"].tolist() == [0, 1, 1, 1, 1, 1] * 7
        assert r["expression"].self_ns < r["expression"].total_ns


def test_a_plan_of_one_step():
    """It takes a shorter way, which begins again when the arguments are not as promised."""
    plan = pyop.trace(lambda a, b: a * b + a, "float64[n]", "float64[n]").compile()
    x = np.ones(8)
    with pyop.profile() as p:
        for _ in range(3):
            plan(x, x)
        plan([1.0] * 8, x)
        plan(x, x, out=np.empty(8))
    r = rows(p)
    assert {name: row.calls for name, row in r.items()} == {"multiply add": 5, "lambda": 5}
    assert r["lambda"].bytes_copied == 64
    assert p.events["depth"].tolist() == [0, 1] * 5


def test_a_plan_that_fails():
    def f(x):
        return broken(add(x))

    plan = pyop.trace(f, "float64[n]").compile()
    with pyop.profile() as p:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no"):
                plan(np.ones(3))
        with pytest.raises(pyop.InputError):
            plan(np.ones((3, 3)))
    assert {(row.kind, row.name): (row.calls, row.failed) for row in p.rows} == {
        ("plan", "f"): (3, 3),
        ("node", "add"): (2, 0),
        ("node", "broken"): (2, 2),
        ("op", "add"): (2, 0),  # broken() calls it
    }


def test_the_gil_is_released_for_large_work():
    plan = pyop.trace(lambda a: np.exp(np.sin(a)) + np.cos(a), "float64[n]").compile()
    with pyop.profile() as p:
        plan(np.ones(200_000))
    for row in p.rows:
        assert row.gil_released_ns > 0
        assert row.gil_held_ns + row.gil_released_ns + row.gil_wait_ns == pytest.approx(row.total_ns)


def test_independent_nodes_on_several_threads():
    barrier = threading.Barrier(2)

    @pyop.op(F8)
    def meet(x):
        barrier.wait(20)
        return x

    plan = pyop.trace(lambda x: (meet(x), meet(x + 1)), "float64[n]").compile(threads=2)
    with pyop.profile() as p:
        plan(np.ones(3))
    nodes = p.events[[p.rows[i].kind == "node" for i in p.events["row"]]]
    assert len(set(nodes["thread"])) == len(p.threads) == 2
    ends = nodes["start_ns"] + nodes["duration_ns"]
    assert nodes["start_ns"].max() < ends.min()  # at the same time, on one clock


def test_profiles_that_begin_and_end_while_a_plan_runs():
    opened = []

    @pyop.op(F8)
    def begin(x):
        opened.append(pyop.profile().__enter__())
        return x

    @pyop.op(F8)
    def end(x):
        opened[-1].__exit__(None, None, None)
        return x

    plan = pyop.trace(lambda x: add(end(add(begin(add(x))))), "float64[n]").compile()
    for _ in range(3):
        plan(np.ones(2))
        assert [(row.kind, row.calls) for row in opened[-1].rows] == [("node", 1)]
        assert opened[-1].rows[0].name == "add_1"


def test_a_plan_lives_until_the_profile_is_over():
    plan = pyop.trace(lambda x: add(x) * 2, "float64[n]").compile()
    dead = weakref.ref(plan)
    with pyop.profile() as p:
        plan(np.ones(2))
        del plan
        gc.collect()
    assert sorted(row.kind for row in p.rows) == ["native", "node", "plan"]
    gc.collect()
    assert dead() is None


def test_graph_run_and_compiled_functions_are_plans():
    g = pyop.trace(lambda x: np.sin(x) * 2, "float64[n]")
    fast = pyop.compile(lambda x: np.sin(x) * 2)
    x = np.ones(4)
    fast(x)
    with pyop.profile() as p:
        g.run(feeds={g.inputs[0]: x})
        fast(x)
    assert sorted(row.kind for row in p.rows) == ["group", "group", "plan", "plan"]


# --- backward runs


def test_backward_steps_are_rows():
    class Double(pyop.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            add(np.ones(3))
            return g * 2

    def run(create_graph=False):
        x = pyop.Tensor(np.ones(100), requires_grad=True)
        return pyop.autograd.grad(np.sum(np.sin(Double.apply(x)) * x), x, create_graph=create_graph)

    with pyop.profile() as p:
        for _ in range(3):
            run()
    steps = {row.name: row for row in p.rows if row.kind == "backward"}
    assert "DoubleBackward" in steps
    assert len(steps) >= 4
    assert steps["DoubleBackward"].calls == 3
    assert steps["DoubleBackward"].bytes_in == steps["DoubleBackward"].bytes_out == 3 * 800
    assert rows(p)["add"].calls == 3
    depths = {p.rows[e["row"]].name: int(e["depth"]) for e in p.events}
    assert (depths["DoubleBackward"], depths["add"]) == (0, 1)
    with pyop.profile() as p:
        run(create_graph=True)
    assert rows(p)["DoubleBackward"].bytes_in == 800


def test_a_backward_step_that_fails_is_closed_and_keeps_nothing():
    class Wrong(pyop.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("no")

    for _ in range(2):
        x = pyop.Tensor(np.ones(3), requires_grad=True)
        with pyop.profile() as p:
            y = Wrong.apply(x)
            with pytest.raises(RuntimeError, match="no"):
                y.sum().backward()
        (row,) = (row for row in p.rows if row.name == "WrongBackward")
        assert (row.calls, row.failed, row.bytes_out) == (1, 1, 0)
    dead = weakref.ref(Wrong)
    del Wrong, x, y, p
    gc.collect()
    assert dead() is None
