"""Run the tests that are written in C++ (test_*.cpp beside this file), one pytest case each."""

from __future__ import annotations

import pytest

ctests = pytest.importorskip(
    "pyop._ctests",
    reason="the C++ tests are not built: install with -Ccmake.define.PYOP_TESTS=ON",
    exc_type=ModuleNotFoundError,
)


@pytest.mark.parametrize("name", ctests.names())
def test_cpp(name: str) -> None:
    ctests.run(name)
