"""What holds itself, or is nested without end, is an error that says so, or as in Python: no hang, no crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyop

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seeds", [(0, 15), pytest.param((15, 700), marks=pytest.mark.campaign)])
def test_circles_made_by_chance(seeds):
    command = [sys.executable, "-m", "tests.silence.circles", *map(str, seeds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr[-3000:]


def test_literals():
    circle: list[object] = [1.0]
    circle += [circle] * 9

    @pyop.compile
    def pair(x):
        made = np.array([x[0], 1.0])
        try:
            return np.array([2.0, circle])
        except ValueError:
            return made

    x = np.arange(3.0)
    np.testing.assert_array_equal(pair(x), pair.__wrapped__(x))
    for build in (lambda x: np.array([x[0], circle]), lambda x: np.r_[x[0], circle]):
        with pytest.raises(ValueError, match="inhomogeneous"):
            build(x)
        with pytest.raises(ValueError, match=r"contain itself|inhomogeneous"):
            pyop.compile(build)(x)


@pytest.mark.parametrize("depth", [20, 600, 100_000])
def test_nested_deep(depth):
    def nested(x):
        for _ in range(depth):
            x = [x]
        return x

    x = np.arange(3.0)
    held = nested(1.0)

    @pyop.compile
    def loop(y):
        c, total = nested(y), y
        for k in range(20):
            total = total + y * (k + len(c))
        return total

    np.testing.assert_array_equal(loop(x), loop.__wrapped__(x))
    graph = pyop.trace(lambda y: keeping(y, held=held) + keeping(y, held=nested(1.0)), "float64[3]")
    np.testing.assert_array_equal(graph.compile()(x), x * 4)


@pyop.op("float64[3] -> float64[3]")
def keeping(x, *, held=None):
    return x * 2
