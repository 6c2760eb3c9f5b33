"""What a plan returns has the containers that the function returned, and a plan of one group hands its results out in
any order."""

from __future__ import annotations

import gc
import itertools
import pickle
import sys
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pyop

Pair = namedtuple("Pair", "left right")


@dataclass
class Parts:
    first: Any
    second: Any


TREES = {
    "tuples": lambda x, y: (x + y, (x * y, (x - y,)), ()),
    "lists": lambda x, y: [x + y, [[], [x * y]], (x - y, [y - x])],
    "dicts": lambda x, y: {"a": x + y, "b": {"c": [x * y], "d": {}}, "a_last": (x - y,)},
    "other keys": lambda x, y: {1: x + y, ("k", 2): (x * y, {None: x - y})},
    "named tuples": lambda x, y: (x + y, Pair(x * y, Pair(x - y, [y - x]))),
    "dataclasses": lambda x, y: [x + y, Parts({"k": x * y}, (x - y,))],
    "one twice": lambda x, y: (x + y, (x + y, [x, {"x": x}])),
    "none": lambda x, y: (x + y, (None, [x * y, None])),
    "deep and wide": lambda x, y: ([x + y] * 20, tuple(tuple([x * y] * 3) for _ in range(20)), ((((((x - y,),),),),),)),
}


def same(a: Any, b: Any) -> None:
    if isinstance(b, (np.ndarray, np.generic)):
        np.testing.assert_array_equal(a, np.asarray(b), strict=True)
        return
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    elif isinstance(a, Parts):
        a, b = [a.first, a.second], [b.first, b.second]
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    else:
        assert a is None or isinstance(a, (tuple, list))


@pytest.mark.parametrize("name", TREES)
def test_containers_are_those_of_the_function(name: str) -> None:
    f = TREES[name]
    x, y = np.arange(4.0), np.arange(4.0)[::-1] * 1.5
    graph = pyop.trace(f, "float64[n]", "float64[n]")
    plans: list[Any] = [pyop.compile(f)]
    if name != "none":  # a plan returns None as an array
        plans += [graph.compile(), graph.compile(threads=2), graph.compile(disable=["fuse"])]
    if name not in ("named tuples", "dataclasses", "none"):
        plans.append(pickle.loads(pickle.dumps(graph.compile())))
    for plan in plans:
        for _ in range(3):
            same(plan(x, y), f(x, y))


def test_containers_are_new_for_every_call() -> None:
    plan = pyop.trace(lambda x: {"a": [x + 1, x + 2]}, "float64[n]").compile()
    first, second = plan(np.ones(3)), plan(np.ones(3))
    first["a"].append(None)
    first["b"] = None
    assert list(second) == ["a"]
    assert len(second["a"]) == 2


def test_no_reference_is_left() -> None:
    key = "".join(["a key of ", "this test"])
    plan = pyop.trace(lambda x: (x + 1, [x * 2, {key: x}]), "float64[n]").compile()
    x = np.ones(3)
    plan(x)
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(key)
    for _ in range(100):
        plan(x)
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(key)) == before


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_results_of_a_group_in_any_order(order: tuple[int, ...]) -> None:
    def f(x: Any, y: Any) -> Any:
        product = x * y
        made = [product + 1.0, np.sum(product), np.sqrt(product), product]
        return [made[k] for k in order]

    x, y = np.linspace(1, 2, 5), np.linspace(3, 1, 5)
    plan = pyop.trace(f, "float64[n]", "float64[n]").compile()
    assert plan.report()["groups"] == plan.report()["instructions"] == 1
    for _ in range(3):
        same(plan(x, y), f(x, y))
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="in sqrt"):
        plan(-x, y)
    with pytest.warns(RuntimeWarning, match="in sqrt"):
        same(plan(-x, y), f(-x, y))
    out = [np.empty_like(np.asarray(r)) for r in f(x, y)]
    for given, one in zip(out, plan(x, y, out=out), strict=True):
        assert given is one
    same([np.asarray(r) for r in out], [np.asarray(r) for r in f(x, y)])
    odd = np.arange(10.0)[::2]
    same(plan(odd, odd[::-1]), f(odd, odd[::-1]))
    same(plan(np.zeros(0), np.zeros(0)), f(np.zeros(0), np.zeros(0)))
