"""Plans called from a loop without the GIL."""

import gc
import re
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from fastparts import newton

import pyop


def kepler(anomaly, mean):
    return anomaly - 0.8 * np.sin(anomaly) - mean


@pytest.fixture
def plan():
    return pyop.trace(pyop.value_and_grad(kepler), "float64[]", "float64[]").compile()


def by_hand(plan, x, p, tolerance=1e-14):
    for _ in range(50):
        value, slope = plan(np.array(x), np.array(p))
        step = float(value) / float(slope)
        x -= step
        if abs(step) <= tolerance * (1 + abs(x)):
            return x
    raise AssertionError("no root")


def test_roots_are_the_same_bits_as_by_hand(plan):
    mean = np.linspace(0, 6, 2000)
    roots = newton(plan, mean, mean)
    assert np.abs(kepler(roots, mean)).max() < 1e-14
    assert roots[::50].tobytes() == np.array([by_hand(plan, p, p) for p in mean[::50].tolist()]).tobytes()
    assert newton(plan, mean, mean).tobytes() == roots.tobytes()


def test_from_several_threads_at_once(plan):
    mean = np.linspace(0, 6, 500)
    want = newton(plan, mean, mean).tobytes()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(newton(plan, mean, mean).tobytes() == want)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_no_root():
    plan = pyop.trace(pyop.value_and_grad(lambda x, p: x * x + p), "float64[]", "float64[]").compile()
    assert np.allclose(newton(plan, np.ones(3), -np.arange(1.0, 4.0)) ** 2, np.arange(1.0, 4.0))
    with pytest.raises(ValueError, match=r"no root for the parameter 1\.0: after 20 steps"):
        newton(plan, np.full(100, 0.7), np.ones(100), most=20)


class Unlucky(Exception):
    pass


def test_what_a_plan_raises_is_raised():
    def moody(x):
        if x > 3:
            raise Unlucky(float(x))
        return x

    def f(x, p):
        return pyop.py_func(moody, [x], "float64[]") - p, x * 0 + 1

    plan = pyop.trace(f, "float64[]", "float64[]").compile()
    p = np.linspace(0, 2.5, 200)
    assert newton(plan, p, p).tobytes() == p.tobytes()
    with pytest.raises(Unlucky) as caught:
        newton(plan, 2 * p, p)
    assert caught.value.args[0] > 3
    assert "moody" in [entry.name for entry in caught.traceback]


def test_wrong_plans_are_refused(plan):
    other = pyop.trace(kepler, "float64[]", "float64[]").compile()
    with pytest.raises(TypeError, match=r"a plan of float64\[\], float64\[\] -> float64\[\], float64\[\], and"):
        newton(other, np.ones(1), np.ones(1))
    with pytest.raises(TypeError, match=r"expected a pyop\.Plan"):
        newton(kepler, np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="2 starting points for 3 parameters"):
        newton(plan, np.ones(2), np.ones(3))


def test_the_plan_is_let_go(plan):
    plan = pyop.trace(pyop.value_and_grad(kepler), "float64[]", "float64[]").compile()
    newton(plan.capsule, np.ones(10), np.ones(10))
    alive = weakref.ref(plan)
    del plan
    gc.collect()
    assert alive() is None


def test_the_readme_runs():
    (program,) = re.findall(
        r"^```python\n(.*?)^```$", (Path(__file__).parents[1] / "README.md").read_text(), re.M | re.S
    )
    names = {}
    exec(program, names)
    assert np.abs(kepler(names["anomalies"], names["means"])).max() < 1e-14
    assert np.allclose(np.logaddexp(names["roots"], 0), [0.5, 1.0, 2.0])
    assert names["gradient"].shape == (10,)
