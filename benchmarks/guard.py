"""B7: what `pyop.compile` costs over calling the plan that it finds."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement


def run(harness: Harness) -> list[Row]:
    """A hit of the guard: the same shapes again, three shapes in turn, named sizes, a tree with a number, a static."""
    a, b = np.arange(8.0), np.ones(8)
    longer = [np.arange(float(n)) for n in (9, 10)]
    d = {"x": a, "y": b}

    def f(x: Any, y: Any) -> Any:
        return x * y + 1.0

    def of_tree(d: Any, t: Any) -> Any:
        return d["x"] * d["y"] + t

    def of_static(x: Any, y: Any, *, k: Any) -> Any:
        return x * y + k

    one, many, declared = pyop.compile(f), pyop.compile(f), pyop.compile(f, "float64[n], float64[n]")
    tree, static = pyop.compile(of_tree), pyop.compile(of_static)
    for x in (a, *longer):
        many(x, x)
    one(a, b), declared(a, b), tree(d, 1.0), static(a, b, k=1.0)
    shapes = {"x": a, "y": longer[0], "z": longer[1]}
    plans = {name: many.plan_for(x, x) for name, x in shapes.items()}
    times = harness.compare(
        {
            "plan": Statement("f(a, b)", {"f": one.plan_for(a, b), "a": a, "b": b}),
            "guard": Statement("f(a, b)", {"f": one, "a": a, "b": b}),
            "declared plan": Statement("f(a, b)", {"f": declared.plan_for(a, b), "a": a, "b": b}),
            "declared": Statement("f(a, b)", {"f": declared, "a": a, "b": b}),
            "three plans": Statement(
                "p(x, x); q(y, y); r(z, z)", {**shapes, "p": plans["x"], "q": plans["y"], "r": plans["z"]}
            ),
            "three": Statement("f(x, x); f(y, y); f(z, z)", {**shapes, "f": many}),
            "tree plan": Statement("f(a, b, 1.0)", {"f": tree.plan_for(d, 1.0), "a": a, "b": b}),
            "tree": Statement("f(d, 1.0)", {"f": tree, "d": d}),
            "static plan": Statement("f(a, b)", {"f": static.plan_for(a, b, k=1.0), "a": a, "b": b}),
            "static": Statement("f(a, b, k=1.0)", {"f": static, "a": a, "b": b}),
        }
    )

    def row(what: str, name: str, plan: str, limit: float, calls: int = 1) -> Row:
        over = times.over(name, plan) / calls
        detail = f"{times.ns(name) / calls:.0f} ns, the plan itself {times.ns(plan) / calls:.0f} ns"
        return Row("B7", what, f"≤ {limit:g} ns over it", over, limit, unit="ns", detail=detail)

    return [
        row("compiled function, guard hit, 2 arrays, over its plan", "guard", "plan", 120),
        row("the same, named sizes", "declared", "declared plan", 120),
        row("the same, three shapes in turn", "three", "three plans", 120, calls=3),
        row("the same, a static keyword argument", "static", "static plan", 1000),
        row("the same, a dict of 2 arrays and a number", "tree", "tree plan", 1000),
    ]
