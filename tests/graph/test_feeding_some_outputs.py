"""Of a node with several outputs some may be fed: those are the caller's, the others are computed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import pyop

A, B, C = np.array([7.5, -2.0, 0.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.25, -1.0, 8.0])


def test_one_output_is_fed_and_the_other_computed() -> None:
    g = pyop.Graph()
    x = g.input("float64[4]")
    q, r = np.divmod(x, 3.0)
    again = np.divmod(x, 3.0)  # merged with the first
    s = q + r * 2.0 + again[0]
    want = np.divmod(A, 3.0)
    for fed, (first, second) in (({}, want), ({q: B}, (B, want[1])), ({r: C}, (want[0], C)), ({q: B, r: C}, (B, C))):
        got = g.run([q, r, s, again[1]], {x: A, **fed})
        assert np.array_equal(got[0], first)
        assert np.array_equal(got[1], second)
        assert np.array_equal(got[3], want[1])
        assert np.array_equal(got[2], first + second * 2.0 + want[0])


OPERATIONS: list[tuple[int, Any]] = [
    (1, np.modf),
    (1, np.sin),
    (1, lambda a: a[::-1]),
    (2, np.divmod),
    (2, np.add),
    (2, np.multiply),
    (2, lambda a, b: np.concatenate([a[:2], b[2:]])),
]


@pytest.mark.parametrize("seed", range(60))
def test_feeds_by_chance(seed: int) -> None:
    """Against the same calls of NumPy, one by one, in which what is fed takes the place of what is computed."""
    rng = random.Random(seed)
    g = pyop.Graph()
    values: list[Any] = [g.input("float64[4]"), g.input("float64[4]")]
    calls: list[tuple[Any, list[int], int]] = []
    for _ in range(rng.randrange(3, 14)):
        arity, function = rng.choice(OPERATIONS)
        read = [rng.randrange(len(values)) for _ in range(arity)]
        made = function(*[values[k] for k in read])
        outputs = made if isinstance(made, tuple) else (made,)
        calls.append((function, read, len(outputs)))
        values.extend(outputs)
    drawn = np.random.default_rng(seed)
    for _ in range(3):
        fed = {k for k in range(2, len(values)) if rng.random() < 0.3} | {0, 1}
        given = {k: drawn.normal(size=4) for k in sorted(fed)}
        want: list[Any] = [given[0], given[1]]
        with np.errstate(all="ignore"):
            for function, read, n in calls:
                made = function(*[want[k] for k in read])
                for result in made if n > 1 else (made,):
                    want.append(given.get(len(want), result))
            fetched = rng.sample(range(len(values)), rng.randrange(1, len(values)))
            got = g.run([values[k] for k in fetched], {values[k]: x for k, x in given.items()})
        for k, x in zip(fetched, got, strict=True):
            assert x.tobytes() == np.ascontiguousarray(want[k]).tobytes(), (k, calls, sorted(fed))
