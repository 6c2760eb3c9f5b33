"""Nonsense given to everything a graph offers, the private parts included: errors, never a crash."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyop
from pyop import _core
from pyop._tree import flatten

# Not calls that change the state of the process, or of the thread, for what comes after.
LEFT_OUT = {"__class__", "__init__", "__setstate__", "__init_subclass__", "__subclasshook__", "__setattr__",
            "__delattr__", "__enter__", "__exit__", "_push", "_pop", "_help", "_close_helpers", "collect"}  # fmt: skip
KEYWORDS = ["out", "x", "name", "spec", "fetches", "feeds", "threads", "optimize", "fn", "inputs", "specs", "contract",
            "order", "statics", "kwnames", "stateful", "lends", "dtype", "axis", "k"]  # fmt: skip


class Evil:
    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("array")

    def __hash__(self) -> int:
        return 3

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __len__(self) -> int:
        return 2**62

    def __index__(self) -> int:
        return -5


class Sub(np.ndarray):
    pass


def fail(*args: Any, **kwargs: Any) -> Any:
    raise ZeroDivisionError


def scene() -> tuple[pyop.Graph, list[Any], list[Callable[..., Any]]]:
    """A graph, objects that are sometimes right, and everything that can be called."""
    g, h = pyop.Graph(), pyop.Graph()
    x, y = g.input("float64[n]", name="x"), h.input("float64[n]")
    op = pyop.op(lambda a, b: a, "float64[n], float64[n] -> float64[n]")
    node = pyop.py_func(lambda a: None, [x], [])
    z = op(x, x)
    g.output([z, node, x])
    plans = [g.compile(), g.compile(threads=2)]
    contract = next(n.contract for n in g.nodes if n.contract)
    things = [
        *(
            None,
            0,
            1,
            -1,
            2**40,
            2**70,
            1.5,
            float("nan"),
            True,
            "",
            "x",
            "f_1",
            "out",
            "\0",
            "\ud800",
            b"x",
            ...,
            slice(None),
        ),
        *((), [], {}, (1,), [x], (x,), (x, z), {x: 1}, {"x": np.ones(3)}, {x: np.ones(2)}, set(), range(3), iter([1])),
        *(g, h, x, y, z, node, *plans, op, contract, op.spec, pyop.Spec(), flatten((1, 2))[1], pyop.Value, pyop.Node),
        *(np.ones(3), np.ones(()), np.ones(0), np.array([None, op], dtype=object), np.ones(3, ">f8"), np.float32(3)),
        *(np.ones(3).view(Sub), np.zeros(2, [("a", "f8")]), np.dtype("f8"), np.add, np.sin, np.matmul, np.sum),
        *("float64[n]", "float64[", "float64[n+1]", [0, ~0], [5], [~7, 0], ("k",), ("k", "k"), Evil(), Evil, object()),
        *(len, type, fail, lambda *a, **k: a, lambda *a, **k: None),
    ]
    calls = []
    for owner in (g, x, z, node, *plans, op, contract, op.spec, _core):
        for name in set(dir(owner)) - LEFT_OUT:
            if owner is _core and name.startswith("set_"):
                continue
            with contextlib.suppress(Exception):
                if callable(method := getattr(owner, name)):
                    calls.append(method)
    return g, things, sorted(calls, key=lambda f: getattr(f, "__name__", ""))


def attack(seed: int, n: int) -> None:
    r = random.Random(seed)
    g, things, calls = scene()
    for _ in range(n):
        call = r.choice(calls)
        args = [r.choice(things) for _ in range(r.choice([0, 1, 1, 2, 2, 3, 4, 5, 8]))]
        if getattr(call, "__name__", "") == "_add_call" and r.random() < 0.7:
            args = [r.choice(things), tuple(r.choice(things) for _ in range(r.randrange(4))), "name"]
        kwargs = {r.choice(KEYWORDS): r.choice(things) for _ in range(r.choice([0, 0, 1, 2, 3]))}
        with contextlib.suppress(Exception):
            made = call(*args, **kwargs)
            repr(made)
            if isinstance(made, pyop.Node):
                g.run(list(made.outputs) or made, {"x": np.ones(3)})
            elif isinstance(made, pyop.Value):
                g.run(made, {"x": np.ones(3)})
    g, *_ = scene()
    assert g.compile()(np.ones(3))[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("seed", range(12))
def test_nonsense(seed: int) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        attack(seed, 300)


@pytest.mark.campaign
def test_much_nonsense() -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in range(1000, 1300):
            attack(seed, 400)
