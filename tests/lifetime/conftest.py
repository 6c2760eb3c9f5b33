from __future__ import annotations

import functools
import importlib.util

import pytest

from . import harness


@pytest.fixture(params=["SharedRef", "PyNode"])
def run(request: pytest.FixtureRequest) -> harness.Run:
    """Run a script in a fresh interpreter, see `harness.run`; once with each class that owns Python objects."""
    return functools.partial(harness.run, owner=request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The scenarios have a C++ half; without it there is nothing to run."""
    if importlib.util.find_spec("pyop._ctests") is not None:
        return
    skip = pytest.mark.skip(reason="pyop._ctests is not built: install with -Ccmake.define.PYOP_TESTS=ON")
    for item in items:
        if "lifetime" in item.path.parts:
            item.add_marker(skip)
