"""Plan.explain: what it says of each line is what the plan does."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import pyop

SOURCE = Path(__file__).read_text().splitlines()


@pyop.op("float64[n] -> float64[n]", stateful=True)
def logged(x):
    return x


def program(a, b):
    y = a * b + a
    z = a * b - 1.0
    unused = np.exp(y)  # noqa: F841
    s = np.sort(y)
    return logged(s) + z


def by_name(explanation: pyop.Explanation) -> dict[str, object]:
    return {node.name: node for node in explanation.nodes}


def test_every_node_is_told_under_its_line():
    plan = pyop.trace(program, "float64[n]", "float64[n]").compile()
    explanation = plan.explain()
    nodes = by_name(explanation)
    assert set(nodes) == {node.name for node in plan.graph.nodes}
    assert {name: node.fate for name, node in nodes.items()} == {
        "a": "input",
        "b": "input",
        "multiply": "native",
        "add": "native",
        "multiply_1": "merged",
        "subtract": "native",
        "exp": "pruned",
        "sort": "native",
        "logged": "python",
        "add_1": "native",
    }
    for line in explanation.lines:
        assert Path(line.file).name == Path(__file__).name
        assert line.source == SOURCE[line.number - 1].strip()
        for node in line.nodes:
            assert plan.graph[[n.name for n in plan.graph.nodes].index(node.name)].origin.endswith(f":{line.number}")
    lines = {line.source: [node.name for node in line.nodes] for line in explanation.lines}
    assert lines["y = a * b + a"] == ["multiply", "add"]
    assert lines["return logged(s) + z"] == ["logged", "add_1"]
    first = next(line.number for line in explanation.lines if line.source.startswith("y ="))
    assert nodes["multiply_1"].text == f"the same as multiply of line {first}: computed once"
    assert nodes["exp"].text == "not needed"
    assert nodes["sort"].text == "NumPy's C function of sort"
    assert nodes["logged"].text == "calls Python: logged is a Python function, with side effects"
    assert nodes["add"].spec == "float64[n]"


def test_it_agrees_with_report_and_with_the_order_of_execution():
    plan = pyop.trace(program, "float64[n]", "float64[n]").compile()
    report, explanation = plan.report(), plan.explain()
    fates = [node.fate for node in explanation.nodes]
    assert fates.count("merged") == report["merged"]
    assert fates.count("pruned") == report["pruned"]
    assert fates.count("native") == report["native"]
    steps = {node.name: node.step for node in explanation.nodes if node.step is not None}
    assert set(steps) == {node.name for node in plan.nodes}
    assert [steps[node.name] for node in plan.nodes] == sorted(steps.values())
    assert max(steps.values()) + 1 == report["instructions"]
    grouped = [node for node in explanation.nodes if node.text.startswith("group #1 of 3: ")]
    assert [node.name for node in grouped] == ["multiply", "add", "subtract"]
    assert explanation.scratch > 0
    assert f"{report['instructions']} steps" in explanation.summary


def test_folded_and_constant_and_passes_switched_off():
    @pyop.op("float64[n] -> float64[n]")
    def double(x):
        return x * 2

    with pyop.Graph() as g:
        c = g.constant(np.ones(2), name="c")
        g.output(g.input("float64[2]", name="x") + double(c))
    nodes = by_name(g.compile().explain())
    assert (nodes["double"].fate, nodes["c"].fate) == ("folded", "constant")
    off = g.compile(disable=["fold", "loops", "fuse"]).explain()
    assert off.disabled == ("fold", "loops", "fuse")
    assert "switched off: fold, loops, fuse" in str(off)
    nodes = by_name(off)
    assert nodes["double"].text == "calls Python: double is a Python function"
    assert nodes["add"].text == "calls Python: np.add, native loops being switched off"
    plain = g.compile(optimize=False).explain()
    assert all(node.fate in ("python", "input", "constant") for node in plain.nodes)


def test_why_it_stays_python():
    nodes = by_name(pyop.trace(lambda x, y: (x + 1.0, y + y), None, "object[n]").compile().explain())
    assert nodes["add"].text == "calls Python: np.add, the dtype of 'x' not being known when the plan was made"
    assert nodes["add_1"].text == "calls Python: np.add, for elements of dtype object"
    compiled = pyop.compile(lambda x, n: x + n)
    nodes = by_name(compiled.plan_for(np.ones(3, np.int8), 2).explain())
    assert nodes["add"].text == "called with Python numbers"


def test_explaining_changes_nothing_and_computes_nothing():
    calls = []
    op = pyop.op(lambda x: calls.append(1) or x, "float64[n] -> float64[n]", name="op")
    with pyop.Graph() as g:
        g.output(op(g.constant(np.ones(2))) + g.input("float64[n]"))
    plan = g.compile()
    assert calls == [1]
    before = plan.report()
    assert str(plan.explain()) == str(plan.explain())
    assert calls == [1]
    assert plan.report() == before
    with g:
        g.constant(1.0) * 2.0  # later nodes are no part of the plan
    assert len(list(plan.explain().nodes)) == before["nodes"]


def test_it_prints_as_a_table_and_can_be_kept():
    explanation = pyop.compile(lambda x: np.sin(x) + 1.0, threads=2).plan_for(np.ones(3)).explain()
    text = str(explanation)
    assert repr(explanation) == text
    assert text.splitlines()[0].startswith("plan of graph 'lambda', 3 nodes: ")
    assert text.splitlines()[0].endswith("2 threads")
    assert explanation.lines[0].file in text
    assert all(node.name in text and node.text in text for node in explanation.nodes)
    assert pickle.loads(pickle.dumps(explanation)) == explanation


def test_source_that_cannot_be_read():
    scope: dict[str, object] = {}
    exec(compile("def f(x):\n    return x + 1.0\n", "<nowhere>", "exec"), scope)
    line = pyop.trace(scope["f"], "float64[]").compile().explain().lines[-1]
    assert (line.file, line.number, line.source) == ("<nowhere>", 2, "")


@pytest.mark.parametrize("what", ["feeds", "nodes"])
def test_plans_of_parts_of_a_graph(what):
    with pyop.Graph() as g:
        x = g.input("float64[n]", name="x")
        y = np.exp(x)
        z = logged(y + 1.0)
    if what == "feeds":
        g.run(z, {y: np.ones(2)})
        fates = {n.name: n.fate for n in next(iter(g._plans.values())).explain().nodes}
        assert fates == {"x": "pruned", "exp": "fed", "add": "native", "logged": "python"}
    else:
        g.run(z.node, {x: np.ones(2)})
        fates = {n.name: n.fate for n in next(iter(g._plans.values())).explain().nodes}
        assert fates == {"x": "input", "exp": "native", "add": "native", "logged": "python"}


def test_what_is_in_loops_and_branches_is_within_them():
    def f(x):
        np.cos(x)
        y = pyop.fori_loop(0, 9, lambda i, s: pyop.fori_loop(0, 3, lambda k, r: np.tanh(r), s) * 0.5, x)
        pyop.fori_loop(0, 9, lambda i, s: np.exp(s), x)
        return pyop.cond(y[0] > 0, lambda y: np.sin(y), lambda y: -y, y)

    found = {node.name: node for node in pyop.trace(f, "float64[4]").compile().explain().nodes}
    words = {name: found[name].text for name in ("cos", "tanh", "multiply", "exp", "sin", "negative")}
    assert words.pop("tanh") == "within loop"
    outer = words.pop("multiply").removeprefix("within ")
    assert outer in found
    assert outer != "loop"
    assert words == {"cos": "not needed", "exp": "not needed", "sin": "within cond", "negative": "within cond"}
    assert found["tanh"].fate == "pruned"
