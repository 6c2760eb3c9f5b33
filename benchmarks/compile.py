"""B7: what `pyop.compile` costs over calling the plan that it finds, and what ``precision="fast"`` gains."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement


def run(harness: Harness) -> list[Row]:
    """Both halves of the budget."""
    return [*_guard(harness), _fast(harness)]


def _fast(harness: Harness) -> Row:
    """The expression of B5 with vectorised functions, whose results may differ in the last bits."""

    def f(a: Any, b: Any, c: Any, d: Any) -> Any:
        return np.sin(a) * b + np.exp(c) - d

    rng = np.random.default_rng(0)
    size = 1_000 if harness.quick else 100_000
    arrays = {name: rng.random(size) for name in "abcd"}
    fast, exact = pyop.compile(f, precision="fast"), pyop.compile(f)
    assert np.allclose(fast(*arrays.values()), f(*arrays.values()), rtol=1e-14, atol=1e-14)
    assert np.array_equal(exact(*arrays.values()), f(*arrays.values()))
    candidates = {"numpy": f, "fast": fast, "exact": exact}
    times = harness.compare(
        {name: Statement("f(a, b, c, d)", {"f": g, **arrays}, unroll=1) for name, g in candidates.items()}
    )
    ratio = times.ratio("fast", "numpy")
    return Row(
        "B7",
        f'sin(a)*b + exp(c) - d, {size:,} float64, precision="fast", over NumPy',
        "≤ 1/4",
        ratio,
        1 / 4,
        detail=f"{times.ns('fast'):,.0f} ns, NumPy {times.ns('numpy'):,.0f} ns: {1 / ratio:.1f} times faster; exact "
        f"{1 / times.ratio('exact', 'numpy'):.2f} times",
    )


def _guard(harness: Harness) -> list[Row]:
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
