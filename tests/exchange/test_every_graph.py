"""Every graph that the examples and the tests compile: saved, loaded in a new process, the same bits.

`recording` saves them beside the program that compiles them, `replay` loads them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("cloudpickle")

ROOT = Path(__file__).parent.parent.parent
LONG = ("black_box_simulator.py", "pipeline.py")
EXAMPLES = [
    pytest.param(path, marks=[pytest.mark.campaign] if path.name in LONG else [])
    for path in sorted((ROOT / "examples").glob("*.py"))
]
NEEDS = {"pipeline.py": ["sklearn", "rich"], "reaction_network.py": ["scipy"]}

WRITE_ALONE = ("waves.py",)  # into what they are given, which is not recorded

# Where a difference is right: the test's name, and why.
MAY_DIFFER = {
    "test_when_no_thread_can_be_had": "the test takes Python's threads away",
    "tests/exchange/test_hostile_models.py": "the tests trust the models less, or know their functions",
    "test_lambdas_travel_under_given_names_or_by_value": "loaded with less trust, functions by value are refused",
    "test_functions_stored_by_value_stay_so": "loaded with less trust, functions by value are refused",
    "test_residuals_travel_through_a_context_output": "the number of a context counts the calls of a process",
    "test_stateless_on_constants_runs_once_for_all_runs": "the function counts its calls",
    "test_what_type_checkers_accept_also_runs": "the module is a script that has ended, which nobody can import",
    "tests/test_check.py::test_report": "the module of the ops is in a folder that the test makes",
}


def run(*command, seconds, **environment):
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *(entry for entry in sys.path if entry)])
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def replayed(folder, seconds=300):
    """What became of the graphs: how many are the same, and what is to be explained."""
    done = run("-m", "tests.exchange.replay", str(folder), seconds=seconds)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print({word: len(records) for word, records in found.items()})
    wrong = [
        (word, *record)
        for word in ("differs", "not loaded", "error")
        for record in found.get(word, [])
        if not any(name in record[0] for name in MAY_DIFFER)
    ]
    return found, wrong


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_the_graphs_of_an_example(script, tmp_path):
    for package in NEEDS.get(script.name, []):
        pytest.importorskip(package)
    done = run("-m", "tests.exchange.recording", str(tmp_path), str(script), seconds=300)
    assert done.returncode == 0, done.stderr
    found, wrong = replayed(tmp_path)
    assert not wrong
    # A plan of a loop's body is run by its loop alone.
    assert set(found) - {"no arrays"} == (set() if script.name in WRITE_ALONE else {"same"})


def record(folder, *arguments, seconds):
    plugin = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.exchange.recording"]
    done = run(*plugin, *arguments, seconds=seconds, PYOP_RECORD=str(folder))
    print(done.stdout[-2000:])


def test_the_graphs_of_some_tests(tmp_path):
    record(tmp_path, "tests/compiling/test_results.py", "tests/gradients/test_transforms.py", seconds=200)
    found, wrong = replayed(tmp_path)
    assert not wrong
    assert len(found["same"]) > 30
    assert "refused" not in found


@pytest.mark.campaign
def test_the_graphs_of_all_tests(tmp_path):
    record(tmp_path, "tests", f"--deselect={Path(__file__).relative_to(ROOT)}", seconds=7200)
    found, wrong = replayed(tmp_path, 3600)
    for name, reason in found.get("refused", []):
        print(name, reason)
    assert not wrong
    assert len(found["same"]) > 5000
