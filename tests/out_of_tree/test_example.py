"""`examples/cython_kernel`, built by pip against the pyop at hand, wherever that is installed, and its own tests."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from .building import needs_compilers, run

PROJECT = Path(__file__).parents[2] / "examples/cython_kernel"


@needs_compilers
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
def test_the_example_project(tmp_path):
    for name in ("Cython", "cython_cmake", "scikit_build_core"):
        pytest.importorskip(name, reason=f"{name} is not installed, which builds the example")
    if not PROJECT.is_dir():
        pytest.skip(f"there are no examples beside these tests: {PROJECT}")
    # A copy: nothing of what builds it may be in its way, or stay behind.
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("build", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    run(*pip, "--disable-pip-version-check", "--target", tmp_path / "installed", project)
    shutil.rmtree(project / "src")
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "tests"]
    said = run(*pytest_, cwd=project, PYTHONPATH=str(tmp_path / "installed"))
    assert " passed" in said
    assert "failed" not in said


def test_the_page_shows_what_the_example_has():
    page = (Path(__file__).parents[2] / "docs/cython.md").read_text()
    blocks = re.findall(r"^```(?:cython|cmake|py)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    files = [path.read_text() for path in PROJECT.rglob("*") if path.suffix in {".pyx", ".txt", ".py"}]
    assert len(blocks) >= 7
    assert [block for block in blocks if not any(block in file for file in files)] == []
