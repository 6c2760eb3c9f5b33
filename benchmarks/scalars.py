"""B27: calls of compiled functions on ten numbers and on one, over an empty builtin call; NumPy beside."""

from __future__ import annotations

import numpy as np

import pyop

from .harness import Harness, Row, Statement

_EMPTY = 10.0  # ns: an empty builtin call on the machine that the budgets are from


def run(harness: Harness) -> list[Row]:
    """`a*b + c*d - a` on arrays of ten and on numbers, and an expression with a sine on one Python float."""
    f = lambda a, b, c, d: a * b + c * d - a
    wave = lambda a: np.sin(a) * 2 + a * a - 1.0

    def written(a, b, c, d, out):
        np.subtract(a * b + c * d, a, out=out)

    rng = np.random.default_rng(0)
    arrays, out = [rng.random(10) for _ in range(4)], np.empty(10)
    floats = [0.5, 0.25, 1.5, 3.0]
    scalars, singles = [np.float64(x) for x in floats], [np.array(x) for x in floats]
    # Of each: what is compiled, its arguments, and what more the call has.
    calls = {
        "into out=": (f, arrays, "out=out", 50),
        "new array": (f, arrays, "", 65),
        "plan.into": (f, arrays, "into", 50),
        "written argument": (written, [*arrays, out], "", None),
        "4 Python floats": (f, floats, "", None),
        "4 np.float64": (f, scalars, "", None),
        "4 arrays of no dimension": (f, singles, "", None),
        "1 Python float": (lambda a: a * a + a - 1.0, floats[:1], "", 45),
        "1 Python float, a sine": (wave, floats[:1], "", None),
    }
    statements = {"empty": Statement("f(x)", {"f": len, "x": ()})}
    for name, (function, arguments, more, _) in calls.items():
        compiled = pyop.compile(function)
        for _ in range(3):
            compiled(*arguments)
        names = dict(zip("abcde", arguments, strict=False))
        listed = ", ".join(names)
        extra = {"out": out} if more == "out=out" else {}
        if more == "into":
            compiled = compiled.plan_for(*arguments).into(out)
        suffix = ", out=out" if extra else ""
        statements[name] = Statement(f"f({listed}{suffix})", {"f": compiled, **names, **extra})
        statements[f"{name}, NumPy"] = Statement(f"f({listed})", {"f": function, **names})
    times = harness.compare(statements)

    rows = []
    for name, (_, _, _, budget) in calls.items():
        plain = f"{name}, NumPy"
        detail = (
            f"{times.ns(name):.0f} ns, an empty builtin call {times.ns('empty'):.0f}, NumPy {times.ns(plain):.0f} ns"
        )
        if budget is None:
            rows.append(Row("B27", f"{name}, over NumPy", "≤ 1×", times.ratio(name, plain), 1, detail=detail))
            continue
        limit = budget / _EMPTY
        text = f"≤ {limit:g}× (≤ {budget} ns)"
        what = f"{name}, over an empty builtin call"
        # Either will do: on a quick machine the empty call gains more than what is around a computation.
        if times.ns(name) <= budget:
            rows.append(Row("B27", what, text, times.ns(name), budget, unit="ns", detail=detail))
        else:
            rows.append(Row("B27", what, text, times.ratio(name, "empty"), limit, detail=detail))
    return rows
