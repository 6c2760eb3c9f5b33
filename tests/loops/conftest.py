"""What the tests of recorded loops share."""

from __future__ import annotations

import pytest

import pyop
from pyop.loops import rolled


@pytest.fixture
def recorded(monkeypatch):
    """``recorded(program, x, n)``: how large the graph was where each loop was recorded; empty if all are unrolled."""
    sizes = []
    add = rolled.add_loop
    monkeypatch.setattr(rolled, "add_loop", lambda made, *rest: sizes.append(len(made.graph)) or add(made, *rest))

    def of(program, x, n):
        sizes.clear()
        pyop.compile(program)(x.copy(), n)
        return list(sizes)

    return of
