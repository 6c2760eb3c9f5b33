"""Variables that become Python numbers within an iteration: what is returned, and asked for its type, is what Python
has.
"""

import linecache

import numpy as np
import pytest

import pyop

BODIES = [
    ("top = x[0]", "q = v - 0.5\n        if q < 0: q = 0.0\n        if q > top: top = q", "top"),
    ("s = x[0]", "if v > 0.7: s = 2.0\n        y = s * v", "s, y"),
    ("s = x[0]", "if v > 0.7: s = 0.0\n        elif v < -0.7: s = v", "s, 3 * s, -s, s > 1"),
    ("s = x[0]", "if v > 0.7: s = 1\n        elif v < -0.7: s = 0.5\n        else: s = v", "s"),
    ("n = 0", "y = v\n        if v > 0.5: y = 0.5\n        z = y / 2", "y, z"),
    ("s = x[0]; found = []", "if v > 0.7: s = 0.1\n        else: s = v\n        found.append(s)", "found, s"),
    ("f = x[0] > 0", "if v > 0.3: f = True\n        elif v < -0.3: f = v < -0.5", "f"),
    ("total = 0.0; count = 0", "if v > 0.5: total += v; count += 1\n        mean = total / (count + 1)", "mean, count"),
    ("u = 2; s = 0.0", "if v > 1: u = s\n        s = s + v", "u"),
    ("s = x[0]", "if v > 0.7: s = 0.1\n        else: s = v", "isinstance(s, np.floating)"),
    ("s = x[0]", "if v > 0.7: s = 0.1\n        else: s = v", "s.dtype.name if hasattr(s, 'dtype') else 'none'"),
]
SOURCE = """
def f(x):
    {}
    for v in x:
        {}
    return {}
"""


def made(*parts):
    source = SOURCE.format(*parts)
    file = f"<{parts}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"np": np}
    exec(compile(source, file, "exec"), space)
    return space["f"]


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("parts", BODIES)
def test_kinds(parts):
    f = made(*parts)
    compiled = pyop.compile(f)
    for seed in range(6):
        for n in (12, 30):
            x = np.random.default_rng(seed).normal(size=n)
            for scale in (1.0, 0.01):
                assert repr(compiled(x * scale)) == repr(f(x * scale)), (seed, n, scale)


def test_such_a_loop_is_recorded():
    f = made("top = x[0]; n = 0", "q = v - 0.5\n        if q < 0: q = 0.0\n        if q > top: top = q", "top")
    plan = pyop.compile(f).plan_for(np.linspace(-1.0, 2.0, 30))
    assert "a tape of" in str(plan.explain())
