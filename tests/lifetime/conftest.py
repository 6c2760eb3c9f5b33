from __future__ import annotations

import importlib.util

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The scenarios have a C++ half; without it there is nothing to run."""
    if importlib.util.find_spec("pyop._ctests") is not None:
        return
    skip = pytest.mark.skip(reason="pyop._ctests is not built: install with -Ccmake.define.PYOP_TESTS=ON")
    for item in items:
        if "lifetime" in item.path.parts:
            item.add_marker(skip)
