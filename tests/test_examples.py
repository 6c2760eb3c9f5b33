"""Every example runs, and shows what it is there to show."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SHOWS = {
    "pipeline.py": ["merged", "digits read rightly"],
    "black_box_simulator.py": ["0 merged", "hares"],
    "find_edges.py": ["pixels of the last one are edges"],
    "kalman_filter.py": ["filtered 0.25 m"],
    "reaction_network.py": ["0 calls of Python", "equal to the last bit"],
    "seeds_front_doors.py": ["lambda", "parameter"],
}


def test_every_example_is_listed():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SHOWS)


@pytest.mark.parametrize("name", SHOWS)
def test_example_runs(name):
    if name == "pipeline.py":
        pytest.importorskip("sklearn", reason="the demo extra is not installed")
        pytest.importorskip("rich", reason="the demo extra is not installed")
    if name == "reaction_network.py":
        pytest.importorskip("scipy", reason="the test extra is not installed")
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for text in SHOWS[name]:
        assert text in done.stdout
