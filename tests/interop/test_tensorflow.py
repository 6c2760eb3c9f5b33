"""`pyop.interop.tensorflow`: the tests in `tensorflow_cases.py`, in a process of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "tensorflow_cases.py"


@pytest.mark.skipif(
    not importlib.util.find_spec("tensorflow"),
    reason="TensorFlow is not installed: pip install pyop-core[tensorflow]",
)
def test_in_a_process_of_their_own():
    # What TensorFlow and Keras warn of when they are imported is theirs.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", str(CASES)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    found = subprocess.run(command, capture_output=True, text=True, cwd=CASES.parents[2], env=environment, check=False)
    assert found.returncode == 0, found.stdout[-8000:] + found.stderr[-2000:]
    assert " passed" in found.stdout
