"""Random loops by machine code have the bits, the warnings and the errors that they have without (made.py)."""

from __future__ import annotations

import pytest

from . import made

pytest.importorskip("llvmlite", reason="the jit extra is not installed")


@pytest.mark.parametrize("first", range(0, 24, 4))
def test_random_loops(first):
    found = [made.run(seed) for seed in range(first, first + 4)]
    assert [text for text, _ in found if text] == []
    assert any(coded for _, coded in found)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000_000, 1_005_000, 100))
def test_many_random_loops(first):
    assert [text for seed in range(first, first + 100) if (text := made.run(seed)[0])] == []
