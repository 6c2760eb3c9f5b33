"""The real perf and py-spy on programs with ops and plans, where they are here and may be used."""

import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import time
import numpy as np
import pyop

@pyop.op("float64[n] -> float64[n]")
def users_step(x):
    until = time.process_time() + 0.15
    while time.process_time() < until:
        sum(range(1000))
    return x + 1

def plain():
    until = time.process_time() + 0.3
    while time.process_time() < until:
        sum(range(1000))

@pyop.compile
def users_program(x):
    return np.exp(np.sin(users_step(x) * 2)).sum()

def main():
    x = np.ones(10)
    for _ in range(6):
        users_program(x)
    plain()

main()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, check=False)


def test_py_spy_shows_the_function_of_an_op_under_its_own_name(script, tmp_path):
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    spy = beside if os.path.exists(beside) else shutil.which("py-spy")
    if spy is None:
        pytest.skip("py-spy is not here")
    raw = tmp_path / "raw.txt"
    done = run(spy, "record", "--format", "raw", "--output", raw, "--", sys.executable, script)
    if done.returncode or not raw.exists():
        pytest.skip(f"py-spy may not trace this interpreter: {done.stderr.strip()[-200:]}")
    stacks = [line.rpartition(" ") for line in raw.read_text().splitlines()]
    ours = [(stack.split(";"), int(count)) for stack, _, count in stacks if "users_step (program.py:" in stack]
    assert sum(count for _, count in ours) >= 5
    # A compiled call has no frame of pyop's between the caller's and that of the op's function.
    names = [[frame.partition(" ")[0] for frame in frames] for frames, _ in ours]
    assert ["main", "users_step"] in [found[-2:] for found in names]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="CPython names Python functions for perf from 3.12 on")
def test_perf_shows_the_function_of_an_op_under_its_own_name(script, tmp_path):
    perf, data = shutil.which("perf"), tmp_path / "data"
    if perf is None:
        pytest.skip("perf is not here")
    done = run(perf, "record", "-q", "-g", "-e", "cpu-clock", "-o", data, sys.executable, "-X", "perf", script)
    if done.returncode:
        pytest.skip(f"perf may not be used: {done.stderr.strip()[-200:]}")
    said = run(perf, "script", "-i", data, "-F", "ip,sym,dso").stdout
    if f"py::plain:{script}" not in said:
        pytest.skip("perf names no Python function here: this CPython is built without frame pointers")
    assert f"py::users_step:{script}" in said
