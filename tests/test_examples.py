"""Every example runs, and shows what it is there to show."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SHOWS = {
    "epidemic.py": ["5.0", "equal to the last bit", "590 calls"],
    "gaussian_process.py": ["noise 0.2", "equal to the last bit", "fit by differences"],
    "heat_fit.py": ["40 unknowns", "equal to the last bit"],
    "ising.py": ["magnetisation 0.98", "equal to the last bit"],
    "k_means.py": ["10 rounds", "5 pairs of old and new clusters", "equal to the last bit"],
    "melody.py": ["C D E F G G A A A A G (as it was played)", "equal to the last bit", "segments"],
    "n_body.py": ["minus the force", "equal to the last bit"],
    "option_pricing.py": ["the option is worth 6.5", "vega", "equal to the last bit"],
    "waves.py": ["bright fringes", "equal to the last bit"],
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
def test_example_runs(name, tmp_path):
    if name == "pipeline.py":
        pytest.importorskip("sklearn", reason="the demo extra is not installed")
        pytest.importorskip("rich", reason="the demo extra is not installed")
    if name in ("reaction_network.py", "epidemic.py", "gaussian_process.py", "heat_fit.py"):
        pytest.importorskip("scipy", reason="the test extra is not installed")
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    picture = tmp_path / "picture.svg"
    draws = '"--plot"' in (EXAMPLES / name).read_text() and importlib.util.find_spec("matplotlib")
    if draws:
        command += ["--plot", str(picture)]
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    for text in SHOWS[name]:
        assert text in done.stdout
    if draws:
        assert picture.read_text().rstrip().endswith("</svg>")
