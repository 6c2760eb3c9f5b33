"""Graphs built by hand and by tracing, and run in parts: names, feeds, fetches, what runs and what does not."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyop


class Pair(NamedTuple):
    low: Any
    high: Any


@pyop.op("float64[n], float64[n] -> float64[]")
def dot(x, y):
    return np.dot(x, y)


@pytest.fixture
def g() -> pyop.Graph:
    return pyop.Graph(name="g")


def names(graph: pyop.Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_by_hand_and_by_trace() -> None:
    with pyop.Graph(name="hand") as hand:
        x, y = hand.input("float64[n]", name="x"), hand.input("float64[n]", name="y")
        hand.output({"r": dot(np.sin(x), y), "k": hand.constant([1, 2]), "pair": Pair(x * 2, 7.0)})
    traced = pyop.trace(
        lambda x, y: {"r": dot(np.sin(x), y), "k": np.array([1, 2]), "pair": Pair(x * 2, 7.0)},
        "float64[n]",
        "float64[n]",
    )
    a, b = np.linspace(0, 1, 4), np.arange(4.0)
    for graph in (hand, traced):
        out = graph.run(feeds={"x": a, "y": b})
        assert list(out) == ["r", "k", "pair"]
        assert type(out["pair"]) is Pair
        assert out["r"] == np.dot(np.sin(a), b)
        assert out["k"].tolist() == [1, 2]
        assert np.array_equal(out["pair"].low, a * 2)
        assert out["pair"].high == 7.0
    assert traced.name == "lambda"
    assert traced.outputs["r"].node.name == "dot"
    assert [v.name for v in traced.inputs] == ["x", "y"]


def test_tracing_leaves_nothing_behind_when_it_fails() -> None:
    def bad(x: Any) -> Any:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        pyop.trace(bad, "float64[]")
    assert type(dot(np.ones(2), np.ones(2))) is np.ndarray  # runs at once: no graph is being built


# --- names


def test_names_are_unique(g: pyop.Graph) -> None:
    for name in ("f", "f", "f_1", "f", "f_1", "f_1_1", "f_2", "g_1", "g", "g", "f_01", "f_0", "f", "a/b.c-d>e", "名"):
        g.constant(1.0, name=name)
    assert names(g)[:2] == ["f", "f_1"]
    assert len(set(names(g))) == len(g)
    assert names(g)[7:10] == ["g_1", "g", "g_2"]


def test_any_order_of_names_is_unique() -> None:
    random = np.random.default_rng(0)
    pool = [f"f{'_1' * a}{'_2' * b}{c}" for a in range(3) for b in range(3) for c in ("", "_3", "_10", "_12345678901")]
    for _ in range(30):
        graph = pyop.Graph()
        for name in random.choice(pool, size=120):
            graph.constant(1.0, name=str(name))
        assert len(set(names(graph))) == 120


@pytest.mark.parametrize("name", ["", " f", "f g", "_/", "-f", "f\n", "f\0", "f:1", "\ud800"])
def test_invalid_names(g: pyop.Graph, name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid name: it must begin with"):
        g.input("float64[]", name=name)
    assert len(g) == 0
    with pytest.raises(TypeError, match="a name must be a str, got int 3"):
        g.constant(1.0, name=3)


# --- feeds and fetches


def test_feeds(g: pyop.Graph) -> None:
    x, y = g.input("float64[n]", name="x"), g.input("float64[n]", name="y")
    k = g.constant(2.0)
    mid = x * k
    end = dot(mid, y)
    a, b = np.arange(3.0), np.ones(3)
    assert g.run(end, {x: a, y: b}) == g.run(end, {"x": a, "y": b}) == g.run(end, {g.inputs[0]: a, "y": b}) == 6
    assert g.run(end, {mid: b, y: b}) == 3  # x is not needed then
    assert np.array_equal(g.run(mid, {mid: b}), b)
    assert g.run(end, {x: a, y: b, k: 10.0}) == 30
    assert g.run(end, {x: [0, 1.0, 2], y: (1.0, 1.0, 1.0)}) == 6
    assert g.run([mid, x], {x: a})[1] is a


def test_a_fed_constant_is_not_hidden_by_what_was_folded(g: pyop.Graph) -> None:
    k = g.constant(2.0)
    y = k * 3.0
    z = np.add(y, 1.0)
    assert g.run([y, z]) == [6.0, 7.0]
    assert g.run([y, z], {k: 5.0}) == [15.0, 16.0]
    assert g.run(z, {y: 0.0}) == 1.0
    assert g.run([y, z]) == [6.0, 7.0]


@pytest.mark.parametrize(
    ("feeds", "error", "words"),
    [
        (
            lambda x, y: {x: np.ones(3)},
            pyop.GraphError,
            "'y' .*needed but not fed: give it a value in feeds={y: array}",
        ),
        (lambda x, y: {x: np.ones(3), "z": 1}, pyop.GraphError, r"no input 'z'; it has \['x', 'y'\]"),
        (lambda x, y: {x: np.ones(3), "x": np.ones(3), y: np.ones(3)}, pyop.GraphError, "fed twice"),
        (lambda x, y: {x: np.ones(3), 3: 1}, TypeError, "only a Value, or the name of an input, can be fed, not int 3"),
        (lambda x, y: [x, y], TypeError, "feeds must map"),
        (lambda x, y: {x: np.ones(3), y: np.ones(4)}, pyop.InputError, r"'y' .*float64\[4\].*float64\[n\] \(n = 3\)"),
        (lambda x, y: {x: np.ones(3, "f4"), y: np.ones(3)}, pyop.InputError, r"pass x\.astype\(float64\)"),
        (lambda x, y: {x: np.ones((3, 1)), y: np.ones(3)}, pyop.InputError, r"'x' .*float64\[3,1\], but expects"),
        (lambda x, y: {x: [1.0, [2.0]], y: np.ones(3)}, pyop.InputError, "a list, cannot become an array"),
        (lambda x, y: {pyop.Graph().input(): 1, y: np.ones(3)}, pyop.GraphError, "another graph"),
        (lambda x, y: {x: y, y: np.ones(3)}, (TypeError, pyop.GraphError), "Value"),
    ],
)
def test_wrong_feeds(g: pyop.Graph, feeds: Callable, error: Any, words: str) -> None:
    x, y = g.input("float64[n]", name="x"), g.input("float64[n]", name="y")
    with pytest.raises(error, match=words):
        g.run(dot(x, y), feeds(x, y))
    assert g.run(dot(x, y), {x: np.ones(3), y: np.ones(3)}) == 3


def test_sizes_are_shared_by_the_inputs_of_a_graph(g: pyop.Graph) -> None:
    x, y, z = g.input("float64[n,m]"), g.input("float64[n+1]", name="y"), g.input("float64[2*m]", name="z")
    ok = np.ones((2, 3)), np.ones(3), np.ones(6)
    fetches = [x, y, z]
    assert g.run(fetches, dict(zip(fetches, ok, strict=True)))[2] is ok[2]
    with pytest.raises(pyop.InputError, match=r"dimension 0 of input 'y' is 4, but expects n\+1 = 3 \(n = 2, m = 3\)"):
        g.run(fetches, {x: ok[0], y: np.ones(4), z: ok[2]})
    assert g.run(y, {y: np.ones(9)}).shape == (9,)  # nothing says what n is
    assert g.run(z, {z: np.ones(9)}).shape == (9,)


def test_fetch_trees(g: pyop.Graph) -> None:
    x = g.input("float64[]", name="x")
    node = pyop.py_func(lambda a: None, [x], [])
    y = x + 1
    tree = {"a": [y, (x,)], "b": Pair(y, node), "c": []}
    out = g.run(tree, {x: 1.0})
    assert out == {"a": [2.0, (1.0,)], "b": Pair(2.0, None), "c": []}
    assert g.run((), {}) == ()
    assert g.run([y], {x: 1.0}) == [2.0]
    assert g.run(node, {x: 1.0}) is None
    with pytest.raises(TypeError, match="a fetch must be a Value or a Node of the graph, or a name, got float"):
        g.run(1.0)
    with pytest.raises(pyop.GraphError, match="no outputs: say what to fetch"):
        g.run()


def test_only_what_is_needed_runs(g: pyop.Graph) -> None:
    ran: list[str] = []

    def say(name: str, value: Any) -> Any:
        return pyop.py_func(lambda a: ran.append(name) or a, [value], np.float64)

    x = g.input("float64[]")
    a = say("a", x)
    b = say("b", a)
    c = say("c", a)
    g.run(c, {x: 1.0})
    assert ran == ["a", "c"]
    ran.clear()
    g.run([c, b], {x: 1.0})  # stateful nodes in creation order, whatever the order of fetches
    assert ran == ["a", "b", "c"]
    ran.clear()
    g.run([c, b.node], {a: 1.0})
    assert ran == ["b", "c"]
    ran.clear()
    g.output(a)
    g.compile()(1.0)  # a whole graph: also what no output needs
    assert ran == ["a", "b", "c"]


def test_values_of_two_graphs_do_not_mix(g: pyop.Graph) -> None:
    x, other = g.input("float64[n]", name="x"), pyop.Graph(name="h").input("float64[n]", name="y")
    calls = [
        lambda: x + other,
        lambda: dot(x, other),
        lambda: np.concatenate([x, other]),
        lambda: pyop.py_func(np.add, [x, other], np.float64),
        lambda: np.where(x, other, 1),
    ]
    for call in calls:
        with pytest.raises(
            pyop.GraphError, match=r"'y' belongs to <pyop.Graph 'h' of 1 nodes>, but .* <pyop.Graph 'g'"
        ):
            call()
    for call in (lambda: g.run(other), lambda: g.output([x, other]), lambda: g.run(x, {other: 1.0})):
        with pytest.raises(pyop.GraphError, match="belongs to"):
            call()
    with pytest.raises(TypeError, match="only concrete values can be constants"):
        g.constant(x)


def test_constants_are_copies(g: pyop.Graph) -> None:
    a = np.zeros(2)
    k = g.constant(a)
    y = k + 1
    a[:] = 5
    assert g.run(y).tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        g.run(k)[0] = 3


# --- a Value where a number is needed

NUMBERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "if": (lambda v: 1 if v else 2, "np.where, combine conditions with & and |"),
    "and": (lambda v: v > 0 and v < 1, "np.where"),
    "float": (float, "declare the function that needs numbers with pyop.op"),
    "int": (int, "pyop.op"),
    "complex": (complex, "pyop.op"),
    "index": (lambda v: [1, 2][v], "pyop.op"),
    "range": (range, "pyop.op"),
    "math": (math.sin, "pyop.op"),
    "trunc": (math.trunc, r"np\.trunc"),
    "asarray": (np.asarray, "pyop.op"),
    "array of": (lambda v: np.array([v, v]), "pyop.op"),
    "buffer": (lambda v: np.frombuffer(v), "bytes-like"),
    "in": (lambda v: 3.0 in v, r"np\.any\(value == item\)"),
    "in list": (lambda v: v in [1.0], "truth"),
    "format": (lambda v: f"{v:.2f}", r"format '\.2f' needs a number.*g\.run"),
    "iter": (list, r"symbolic \(n\).*declare a number"),
    "len": (len, r"symbolic \(n\)"),
    "pickle": (pickle.dumps, r"pickle what g\.run"),
    "sort": (sorted, "iteration"),
    "assign": (lambda v: v.__setitem__(0, 1.0), "a graph has no caller.*copy first: `x = x.copy"),
    "ufunc by hand": (lambda v: v.__array_ufunc__(np.add, "__call__", np.ones(2), np.ones(2)), "no Value"),
}


@pytest.mark.parametrize("use", NUMBERS)
def test_needs_numbers(g: pyop.Graph, use: str) -> None:
    function, words = NUMBERS[use]
    v = g.input("float64[n]", name="x")
    with pytest.raises((TypeError, pyop.GraphError), match=words):
        function(v)


def test_what_a_value_can_do_without_numbers(g: pyop.Graph) -> None:
    v = g.input("float64[3]", name="x")
    assert (hash(v), bool({v: 1}[v]), len(v), f"{v}") == (hash(v), True, 3, "<pyop.Value 'x' float64[3]>")
    assert copy.copy(v) is not v  # a copy of an array: the one may be written, and the other stays
    a = np.array([1.26, -2.0, 3.5])
    copies = [copy.copy(v), copy.deepcopy({"v": v})["v"]]
    got = g.run([np.round(v, 1), np.round(v), *divmod(v, 2), abs(v), *v, v == v, -v, *copies], {v: a})
    want = [np.round(a, 1), np.round(a), *np.divmod(a, 2), np.abs(a), *a, a == a, -a, a, a]
    assert all(np.array_equal(x, y) for x, y in zip(got, want, strict=True))
    with pytest.raises(TypeError, match="x is None"):
        v == None  # noqa: B015, E711


def test_one_op_in_two_graphs_with_sizes_in_turn():
    double = pyop.op("_[n], _[m] -> float64[n], float64[m]")(lambda x, y: (x * 2.0, y * 2.0))
    sizes = [(3, 4), ("k", 4), (4, 3), (3, 4), ("k", "k"), (None, 3)]
    graphs = [pyop.Graph(), pyop.Graph()]
    for repeat in range(3):
        for n, m in sizes:
            for graph in graphs:
                spec = ", ".join("..." if size is None else str(size) for size in (n, m)).replace("...", "_")
                x, y = (graph.input(f"float64[{size}]") for size in spec.split(", "))
                with graph:
                    a, b = double(x, y)
                    again, _ = double(x, y)
                assert str(a.spec) == str(again.spec) == str(x.spec), repeat
                assert str(b.spec) == str(y.spec)
