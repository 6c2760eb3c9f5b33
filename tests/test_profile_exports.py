"""What a profile becomes elsewhere: traces, speedscope, pstats, comparisons, sums and pictures."""

import json
import os
import pstats
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pyop

F8 = "float64[n] -> float64[n]"
near = pyop.op(F8, name="near")(lambda x: x + 1)
nap = pyop.op(F8, name="nap")(lambda x: (time.sleep(0.005), x + 1)[1])


def looped(x):
    for _ in range(10):
        x = near(x)
    return np.sin(x) * 2


def forked(x):
    return nap(x) + nap(x * 2)


def profiled(function, threads=1, calls=3):
    plan = pyop.trace(function, "float64[n]").compile(threads=threads)
    x = np.ones(1000)
    plan(x)
    with pyop.profile() as p:
        for _ in range(calls):
            plan(x)
    return p


# --- the formats, as their specifications have them

PHASES = {"X": {"dur"}, "M": {"args"}, "s": {"id"}, "f": {"id"}, "C": {"args"}}


def check_trace(content):
    """The Trace Event Format: fields and their types by phase, arrows with two ends, numbers in counters."""
    assert set(content) == {"traceEvents", "displayTimeUnit"}
    assert content["displayTimeUnit"] in ("ms", "ns")
    ends = {}
    for event in content["traceEvents"]:
        ph = event["ph"]
        assert PHASES[ph] <= set(event)
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if ph != "M":
            assert isinstance(event["ts"], float)
            assert event["ts"] >= 0
        if ph == "X":
            assert event["dur"] >= 0
        if ph == "C":
            assert all(isinstance(v, int | float) for v in event["args"].values())
        if ph in "sf":
            ends.setdefault((event["cat"], event["name"], event["id"]), {})[ph] = event
            assert event.get("bp", "e") == "e"
    assert all(set(pair) == {"s", "f"} and pair["s"]["ts"] <= pair["f"]["ts"] for pair in ends.values())
    return ends


def check_speedscope(content):
    """Speedscope's schema for evented profiles: frames by number, marks in order, each opened frame closed in turn."""
    assert content["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = content["shared"]["frames"]
    assert all(isinstance(f["name"], str) and set(f) <= {"name", "file", "line", "col"} for f in frames)
    for p in content["profiles"]:
        assert set(p) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert (p["type"], p["unit"]) == ("evented", "nanoseconds")
        at, stack = p["startValue"], []
        for mark in p["events"]:
            assert set(mark) == {"type", "frame", "at"}
            assert at <= mark["at"] <= p["endValue"]
            at = mark["at"]
            if mark["type"] == "O":
                assert 0 <= mark["frame"] < len(frames)
                stack.append(mark["frame"])
            else:
                assert mark["type"] == "C"
                assert stack.pop() == mark["frame"]
        assert stack == []


@pytest.mark.parametrize("threads", [1, 2])
def test_a_trace_has_arrows_to_other_threads_and_live_bytes(tmp_path, threads):
    p = profiled(forked, threads)
    p.save(tmp_path / "t.json")
    content = json.loads((tmp_path / "t.json").read_text())
    arrows = check_trace(content)
    calls = [e for e in content["traceEvents"] if e["ph"] == "X"]
    assert len(calls) == len(p.events)
    away = [e for e in calls if e["cat"] == "node" and e["tid"] != p._threads[p.threads.index("MainThread")][1]]
    assert bool(arrows) == bool(away)
    if threads == 2:
        assert len(arrows) >= len(away) > 0
        tids = {e["tid"] for e in away}
        assert all(pair["f"]["tid"] in tids for pair in arrows.values())
    live = [e["args"]["bytes"] for e in content["traceEvents"] if e["ph"] == "C"]
    assert min(live) == 0 == live[-1]
    assert max(live) >= 8000


def test_live_bytes_end_with_the_last_reader(tmp_path):
    p = profiled(looped, calls=1)
    p.save(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    live = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert max(live) == 16000  # one that is read, and one that is made
    assert live[-1] == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_speedscope(tmp_path, threads):
    p = profiled(forked, threads)
    p.save(tmp_path / "t.speedscope.json")
    content = json.loads((tmp_path / "t.speedscope.json").read_text())
    check_speedscope(content)
    assert [q["name"] for q in content["profiles"]] == p.threads
    assert sum(len(q["events"]) for q in content["profiles"]) == 2 * len(p.events)
    (frame,) = (f for f in content["shared"]["frames"] if f["name"] == "nap")
    assert frame["file"] == __file__


def test_pstats_reads_it(tmp_path):
    @pyop.op(F8)
    def outer(x):
        return near(near(x))

    with pyop.profile() as p:
        for _ in range(4):
            outer(np.ones(3))
    path = tmp_path / "t.pstats"
    p.save(path)
    stats = pstats.Stats(str(path)).stats
    entries = {key[2]: value for key, value in stats.items()}
    assert {name: value[:2] for name, value in entries.items()} == {"outer": (4, 4), "near": (8, 8)}
    rows = {row.name: row for row in p.rows}
    for name, (_, _, own, whole, _) in entries.items():
        assert own * 1e9 == pytest.approx(rows[name].self_ns)
        assert whole * 1e9 == pytest.approx(rows[name].total_ns)
    ((caller, counts),) = entries["near"][4].items()
    assert (caller[2], counts[:2]) == ("outer", (8, 8))


def test_rows_by_function_and_by_line():
    p = profiled(looped, calls=3)
    (row,) = (row for row in p.by("function") if row.kind == "node")
    assert (row.name, row.calls) == ("near", 30)
    first = looped.__code__.co_firstlineno
    lines = {int(row.where.rpartition(":")[2]): row for row in p.by("line") if row.kind == "line"}
    assert {line - first: row.calls for line, row in lines.items()} == {2: 30, 3: 3}
    for by in ("node", "function", "line"):
        rows = p.by(by)
        assert sum(row.share for row in rows) == pytest.approx(1)
        assert sum(row.calls for row in rows) == len(p.events)
        assert [row.self_ns for row in rows] == sorted((row.self_ns for row in rows), reverse=True)
        assert p.table(by).count("\n") == len(rows) + 2
    assert f"{os.path.basename(__file__)}:{first + 2}" in p.table("line")
    with pytest.raises(ValueError, match="'node', 'function' or 'line'"):
        p.by("colour")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_sums_of_the_footer(threads):
    p = profiled(forked, threads, calls=5)
    spent = p.spent
    assert list(spent) == ["user code", "native", "overhead", "GIL wait", "idle", "outside"]
    assert min(spent.values()) >= 0
    assert sum(spent.values()) == pytest.approx(p.wall_ns * len(p.threads), rel=0.02)
    assert spent["user code"] >= 10 * 0.005e9 * 0.9
    assert "user code" in str(p).splitlines()[-1]


def test_the_accounts_of_the_footer_are_what_a_clock_says():
    """Not their sum alone: user code and what is outside, by a clock in the functions, within 2 %."""
    measured = {"user code": 0.0, "outside": 0.0}

    def busy(account, seconds):
        begin = time.perf_counter_ns()
        while (now := time.perf_counter_ns()) - begin < seconds * 1e9:
            pass
        measured[account] += now - begin

    @pyop.op(F8)
    def works(x):
        busy("user code", 0.02)
        return x + 1

    plan = pyop.trace(lambda x: works(np.sin(works(x)) * 2), F8.split(" ->")[0]).compile()
    x = np.ones(3)
    with pyop.profile() as p:
        for _ in range(5):
            plan(x)
            busy("outside", 0.01)
    for account, spent in measured.items():
        assert p.spent[account] == pytest.approx(spent, rel=0.02)
    assert sum(p.spent.values()) == pytest.approx(p.wall_ns, rel=0.02)


def test_the_sums_with_many_threads_that_want_the_gil():
    def spin():
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass

    plan = pyop.trace(lambda x: np.exp(np.sin(x)) * 2, "float64[n]").compile()
    x = np.ones(200_000)
    with pyop.profile() as p:
        other = threading.Thread(target=spin)
        other.start()
        for _ in range(5):
            plan(x)
        other.join()
    assert sum(p.spent.values()) == pytest.approx(p.wall_ns, rel=0.02)
    assert p.spent["GIL wait"] == pytest.approx(sum(row.gil_wait_ns for row in p.rows if row.kind == "plan"), rel=0.02)


def test_no_calls_at_all(tmp_path):
    with pyop.profile() as p:
        pass
    assert set(p.spent.values()) == {0.0}
    for name in ("t.json", "t.speedscope.json", "t.pstats"):
        p.save(tmp_path / name)
    check_trace(json.loads((tmp_path / "t.json").read_text()))
    check_speedscope(json.loads((tmp_path / "t.speedscope.json").read_text()))
    assert p.by("line") == p.by("function") == p.compare(p).changes == []


def test_compare():
    before, after = profiled(looped, calls=2), profiled(looped, calls=4)
    changes = {c.name: c for c in before.compare(after).changes}
    assert (changes["near"].before.calls, changes["near"].after.calls) == (20, 40)
    gained = [abs(c.gained_ns) for c in before.compare(after).changes]
    assert gained == sorted(gained, reverse=True)
    with pyop.profile() as other:
        nap(np.ones(3))
    found = {c.name: c for c in before.compare(other).changes}
    assert found["nap"].before is None
    assert found["near"].after is None
    assert "new" in str(before.compare(other))
    with pytest.raises(RuntimeError, match="not ended"):
        before.compare(pyop.profile())


def test_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    ax = profiled(forked, 2).plot()
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] != []
    assert {text.get_text() for text in ax.get_legend().get_texts()} >= {"plan", "node"}
    # Above the bars: where to look for a free place among them takes long, and matplotlib warns of it.
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1
    pyplot.close(ax.figure)


def test_perf_sees_the_loops_of_a_plan(tmp_path):
    """The real perf, where it may be used: native loops are symbols of the extension."""
    perf = shutil.which("perf")
    code = "import numpy as np, pyop; f = pyop.compile(lambda x: np.exp(np.sin(x)) * 2); x = np.ones(10**6)\n"
    code += "for _ in range(20): f(x)"
    command = [
        perf or "perf",
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-o",
        str(tmp_path / "data"),
        sys.executable,
        "-c",
        code,
    ]
    if perf is None or subprocess.run(command, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip("perf is not here, or may not be used")
    report = [perf, "report", "-i", str(tmp_path / "data"), "--sort", "dso", "--stdio"]
    said = subprocess.run(report, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "_core" in said or "_multiarray_umath" in said


def test_the_sums_are_what_the_program_measured():
    """Each account against clocks of the program itself: two nodes of a plan with threads, a group, a pause."""
    stamps = {}

    def napping(name, seconds):
        def nap(x):
            begin = time.perf_counter_ns()
            time.sleep(seconds)
            stamps[name] = threading.get_ident(), begin, time.perf_counter_ns()
            return x

        return pyop.op(F8, name=name)(nap)

    short, long = napping("short", 0.1), napping("long", 0.3)
    plan = pyop.trace(lambda x: (short(x), long(x)), "float64[n]").compile(threads=2)
    group = pyop.trace(lambda x: np.exp(np.sin(x)) * 2, "float64[n]").compile()
    x, large = np.ones(3), np.ones(300_000)
    group(large)
    with pyop.profile() as p:
        time.sleep(0.1)
        plan(x)
        begin = time.perf_counter_ns()
        for _ in range(4):
            group(large)
        in_group = time.perf_counter_ns() - begin
    spent, whole = p.spent, p.wall_ns * len(p.threads)
    assert len(p.threads) == 2
    assert sum(spent.values()) == pytest.approx(whole, rel=0.02)
    near_enough = 0.05 * whole
    assert spent["user code"] == pytest.approx(sum(end - begin for _, begin, end in stamps.values()), abs=near_enough)
    assert spent["native"] + spent["GIL wait"] + spent["overhead"] == pytest.approx(in_group, abs=near_enough)
    here = next(end for ident, _, end in stamps.values() if ident == threading.get_ident())
    there = next(end for ident, _, end in stamps.values() if ident != threading.get_ident())
    assert spent["idle"] == pytest.approx(max(there - here, 0), abs=near_enough)
