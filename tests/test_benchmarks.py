"""The benchmarks run, and their harness measures what it says."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="the bench extra is not installed")

from benchmarks.__main__ import SUITES
from benchmarks.harness import Harness, Row, Statement

ROOT = Path(__file__).parent.parent


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(whole, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("name", SUITES)
def test_suite_runs(name, tmp_path):
    path = tmp_path / "result.json"
    done = command(name, "--quick", "--rounds", "2", "--json", str(path))
    assert done.returncode == 0, done.stderr
    document = json.loads(path.read_text())
    assert document["surroundings"]["rounds"] == 2
    assert document["surroundings"]["build"]["version"]
    ids = {row["id"] for row in document["rows"]}
    assert ids == set(SUITES[name].partition(":")[0].split(", "))
    for row in document["rows"]:
        assert row["verdict"] in {"pass", "fall short", "not measured"}
        assert row["value"] is None or row["value"] >= 0 or row["unit"] == "ns"
        assert row["id"] in done.stdout


def test_unknown_suite_is_named():
    done = command("nothing")
    assert done.returncode == 2
    assert "no suite is called nothing; there are op_call, chain" in done.stderr


def test_zero_copy_budget_holds_even_in_a_quick_run(tmp_path):
    """Addresses, unlike times, mean the same on every machine."""
    path = tmp_path / "result.json"
    assert command("handoff", "--quick", "--rounds", "1", "--json", str(path)).returncode == 0
    copied = [row["value"] for row in json.loads(path.read_text())["rows"] if row["unit"] == "bytes"]
    assert copied == [0, 0]


def test_comparison_finds_a_known_ratio():
    def spin(microseconds: int) -> None:
        end = time.thread_time_ns() + microseconds * 1000
        while time.thread_time_ns() < end:
            pass

    harness = Harness(rounds=7, quick=True)
    one, two = Statement("f(100)", {"f": spin}, unroll=1), Statement("f(200)", {"f": spin}, unroll=1)
    times = harness.compare({"one": one, "two": two})
    assert 1.7 < times.ratio("two", "one") < 2.3
    assert times.over("two", "one") == pytest.approx(100_000, rel=0.3)


def test_empty_statement_costs_nothing():
    assert abs(Harness(rounds=5, quick=True).compare({"pass": Statement("pass")}).ns("pass")) < 5


@pytest.mark.parametrize(
    ("value", "verdict", "measured"),
    [(1.0, "pass", "1.00×"), (2.5, "fall short", "2.50×"), (None, "not measured", "-")],
)
def test_row_is_judged_by_its_limit(value, verdict, measured):
    row = Row("B0", "something", "≤ 2×", value, 2)
    assert (row.verdict, row.measured) == (verdict, measured)
