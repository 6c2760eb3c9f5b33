"""The benchmarks run, and their harness measures what it says."""

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pyop

pytest.importorskip("rich", reason="the bench extra is not installed")

from benchmarks import child, framework_costs, frameworks_tfpt
from benchmarks.__main__ import SUITES
from benchmarks.candidates import ARITHMETIC, TRANSCENDENTAL
from benchmarks.harness import Harness, Row, Statement
from benchmarks.peers import rows
from benchmarks.report import document
from benchmarks.science.measure import compare
from benchmarks.science.registry import FAMILIES, Program, programs
from benchmarks.table import surroundings

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
        assert row["value"] is None or math.isfinite(row["value"])  # a difference of two times may be negative
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


def measured(size: int, state: str, text: str) -> dict:
    ns = {"NumPy": 900.0, "pyop": 100.0, "numexpr": 300.0}
    faster = {name: 900.0 / each for name, each in ns.items()}
    return {
        "state": state,
        "expression": text,
        "size": size,
        "ns": ns,
        "faster": faster,
        "best": "numexpr",
        "over_best": 1 / 3,
    }


@pytest.fixture
def found() -> dict:
    texts = (ARITHMETIC, TRANSCENDENTAL)
    return {
        "steady": [measured(n, state, text) for n in (10, 1000) for state in ("ordinary", "warm") for text in texts],
        "first": [
            {"name": name, "expression": text, "seconds": seconds}
            for name, seconds in (("pyop", 1e-3), ("numexpr", 4e-4), ("numba njit", 0.5))
            for text in texts
        ],
        "missing": ["jax", "pytensor"],
        "versions": {"numexpr": "2.14.2"},
    }


def test_peers_are_judged_by_the_best_of_them_and_missing_ones_are_named(found):
    table = {row.what: row for row in rows(found)}
    row = table["plan of a*b + c*d - a, 1,000 float64, over the best peer"]
    assert (row.verdict, row.budget) == ("pass", "≤ 1/1.5")
    assert "numexpr 300 ns" in row.detail
    assert "not installed: jax, pytensor" in row.detail
    assert table["plan of a*b + c*d - a, 10 float64, over the best peer"].verdict == "pass"
    first = table["first call of sin(a)*b + exp(c) - d, compilation included, over numba's"]
    assert first.value == pytest.approx(1 / 500)


def test_report_has_every_measurement(found):
    text = document(found, surroundings(Harness()), "peers.png")
    assert text.count("| 1,000 | 900 ns | 100 ns | **9.00×** | 3.00× | 3.00× as fast as numexpr |") == 4
    assert "| numba njit | 500 ms | 500 ms |" in text
    assert "left out: jax, pytensor" in text


def test_report_has_what_is_beside_expressions(found):
    one = {"task": "sine", "size": 1000, "ns": {"NumPy": 9e3, "pyop": 3e3, "numexpr": 6e3}, "best": "numexpr"}
    one |= {"faster": {"NumPy": 1.0, "pyop": 3.0, "numexpr": 1.5}, "over_best": 0.5}
    first = [{"task": "sine", "name": name, "seconds": 1e-3} for name in ("pyop", "numexpr")]
    edges = {"steady": [one], "first": first, "missing": ["dace"], "versions": {}}
    text = document({**found, "edges": edges}, surroundings(Harness()), "peers.png")
    assert "| n | NumPy takes | pyop (1 ms) | numexpr (1 ms) | pyop over the best peer |" in text
    assert "| 1,000 | 9 µs | **3.00×** | 1.50× | 2.00× as fast as numexpr |" in text
    assert "left out: dace" in text


def test_plot_is_drawn(found, tmp_path):
    pytest.importorskip("matplotlib", reason="the bench extra is not installed")
    from benchmarks import plot

    plot.draw(found, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_child_has_the_allocator_that_it_was_asked_for():
    for state in child.STATES:
        assert child.call("child:allocator", {}, state=state) == dict(child.STATES[state])


def test_the_table_of_frameworks_keeps_what_was_not_measured():
    def cost(framework, size, ratio):
        told = {"framework": framework, "version": "1.0", "what": "forward", "size": size}
        return {**told, "ours": 8.0, "hand": 10.0, "ratio": ratio}

    page = f"above\n{framework_costs.BEGIN}\n{framework_costs.END}\nbelow\n"
    first = framework_costs.block(page, [cost("jax", 8, 0.5), cost("jax", 100_000, 0.25)], "here")
    assert "| jax 1.0 | forward | 8.0 µs, by hand 10.0 µs: 0.50× | 8.0 µs, by hand 10.0 µs: 0.25× |" in first
    assert "Measured in one run: jax; here. Not measured: torch, tensorflow, pytensor, onnxruntime." in first
    second = framework_costs.block(first, [cost("torch", 8, 0.75)], "there")
    assert "0.50×" in second
    assert "0.75×" in second
    assert "Of an earlier run: jax. Not measured: tensorflow, pytensor, onnxruntime." in second
    assert second.startswith("above\n")
    assert second.endswith("\nbelow\n")
    assert "0.50×" not in framework_costs.block(second, [cost("jax", 8, 0.9)], "here")
    with pytest.raises(ValueError, match="no part between"):
        framework_costs.block("nothing", [], "here")
    assert framework_costs.PAGE.read_text().count(framework_costs.BEGIN) == 1


def test_the_table_of_frameworks_reads_rows_of_a_suite():
    def rows(harness):
        what = "op in PyTensor, value and gradient, 100,000 numbers"
        return [frameworks_tfpt._row(harness, what, "f(x)", len, sorted, {"x": (1, 2)}, 5)]

    (cost,) = framework_costs._of_rows("pytensor", rows)(Harness(rounds=1, quick=True))
    assert (cost["framework"], cost["what"], cost["size"]) == ("pytensor", "forward and backward", 100_000)
    assert cost["ours"] >= 0
    assert cost["ratio"] > 0


def test_there_are_many_programs_of_scientists():
    known = programs()
    assert len(known) >= 60
    assert {one.family for one in known.values()} == set(FAMILIES)


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("name", ["pid_with_anti_windup", "kalman_with_gate", "green_ampt", "cholesky", "crc32"])
def test_a_program_of_a_scientist_has_the_same_bits(name):
    one = programs()[name]
    assert compare(one, pyop.compile(one.function)) == ("", "")


def test_what_differs_in_a_program_is_told():
    one = Program("f", "", lambda x: x + 1, lambda generator, size: (generator.normal(size=size),), 3)
    assert compare(one, one.function) == ("", "")
    assert "first data: outcome[0]:" in compare(one, lambda x: x + 2)[0]
    assert compare(one, lambda x: x + "")[0].startswith("first data: returns in NumPy, raises UFuncTypeError")
    zero = Program("g", "", lambda x: 0.0, lambda generator, size: (1.0,), 3)
    assert compare(zero, lambda x: np.float64(0.0)) == ("", "first data: outcome[0]: float in NumPy, float64 here")
