"""pyop.profile: every call is there once, with its time, bytes and place, on every thread."""

import gc
import json
import os
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import pyop

F8 = "float64[n] -> float64[n]"
add = pyop.op(F8, name="add")(lambda x: x + 1)


@pyop.op(F8)
def twice(x):
    return add(add(x))


@pyop.op(F8)
def broken(x):
    add(x)
    raise RuntimeError("no")


def rows(p):
    return {row.name: row for row in p.rows}


def test_counts_bytes_and_nesting():
    x = np.ones(100)
    with pyop.profile() as p:
        for _ in range(5):
            twice(x)
        add(x)
    r = rows(p)
    assert {name: row.calls for name, row in r.items()} == {"twice": 5, "add": 11}
    assert (r["twice"].bytes_in, r["twice"].bytes_out) == (4000, 4000)
    assert (r["add"].bytes_in, r["add"].bytes_copied) == (8800, 0)
    assert all(row.kind == "op" and row.where.startswith(f"{__file__}:") for row in p.rows)
    assert p.threads == ["MainThread"]
    assert p.lost == 0

    e = p.events
    names = [p.rows[i].name for i in e["row"]]
    assert names == ["twice", "add", "add"] * 5 + ["add"]
    assert e["depth"].tolist() == [0, 1, 1] * 5 + [0]
    ends = e["start_ns"] + e["duration_ns"]
    assert (np.diff(e["start_ns"]) >= 0).all()
    for i in range(0, 15, 3):
        assert e["start_ns"][i] <= e["start_ns"][i + 1] <= ends[i + 1] <= e["start_ns"][i + 2] <= ends[i + 2] <= ends[i]
        inner = e["duration_ns"][i + 1 : i + 3].sum()
        assert e["self_ns"][i] == pytest.approx(e["duration_ns"][i] - inner)
    assert e["start_ns"][0] >= 0
    assert ends[-1] <= p.wall_ns * 1.01 + 1000
    for row in p.rows:
        mine = e[e["row"] == p.rows.index(row)]["duration_ns"]
        assert row.total_ns == pytest.approx(mine.sum())
        assert (row.min_ns, row.p50_ns) == (mine.min(), np.median(mine))
        assert row.gil_held_ns == pytest.approx(row.total_ns)
    assert r["twice"].self_ns + r["add"].self_ns == pytest.approx(e["duration_ns"][e["depth"] == 0].sum())
    assert sum(row.share for row in p.rows) == pytest.approx(1)


def test_the_clock_runs_at_the_right_rate():
    sleep = pyop.op(F8, name="sleep")(lambda x: (time.sleep(0.05), x)[1])
    with pyop.profile() as p:
        begin = time.perf_counter_ns()
        sleep(np.ones(1))
        lasted = time.perf_counter_ns() - begin
    assert 0.05e9 * 0.99 <= p.rows[0].total_ns <= lasted * 1.01
    assert p.rows[0].total_ns <= p.wall_ns * 1.01


def test_copies_are_counted():
    keep = pyop.op("float64[n] -> float64[n]", name="keep")(lambda x: x)
    listed = pyop.op("float64[n] -> float64[n]", name="listed")(lambda x: x.tolist())
    x = np.ones(100)
    with pyop.profile() as p:
        keep(x)
        keep(x.astype(">f8"))
        keep([1.0] * 100)
        listed(x)
    copied = {name: row.bytes_copied for name, row in rows(p).items()}
    assert copied["keep"] == 2 * 800
    assert copied["listed"] == 800
    with pyop.profile() as p:
        keep(x)
    assert p.rows[0].bytes_copied == 0


def test_calls_that_fail_are_closed():
    with pyop.profile() as p:
        for _ in range(3):
            with pytest.raises(RuntimeError, match="no"):
                broken(np.ones(4))
        with pytest.raises(pyop.InputError):
            add(np.ones(4, "i8"))
        add(np.ones(4))
    r = rows(p)
    assert (r["broken"].calls, r["broken"].failed, r["broken"].bytes_out) == (3, 3, 0)
    assert (r["add"].calls, r["add"].failed) == (5, 1)
    assert p.events["depth"].tolist() == [0, 1] * 3 + [0, 0]
    assert p.events["failed"].sum() == 4


def test_an_exception_ends_the_profile():
    p = pyop.profile()
    with pytest.raises(RuntimeError, match="no"), p:
        broken(np.ones(1))
    assert [row.calls for row in p.rows] == [1, 1]
    add(np.ones(1))
    assert sum(row.calls for row in p.rows) == 2


def test_nothing_is_recorded_while_none_runs():
    with pyop.profile() as p:
        pass
    for _ in range(10):
        twice(np.ones(3))
    with pyop.profile() as q:
        pass
    assert len(p.events) == len(q.events) == 0
    assert p.rows == q.rows == []
    assert "0 calls" in str(p)


def test_making_nodes_is_no_call():
    both = pyop.op("float64[n] -> float64[n], float64[n]", name="both")(lambda x: (x, x))
    none = pyop.op(lambda x: None, outputs=(), name="none", stateful=True)
    with pyop.profile() as p:
        with pyop.Graph() as g:
            x = g.input("float64[3]")
            add(x)
            both(x)
            none(x)
            add(np.ones(3))
    assert p.rows == []


def test_nested_and_crossing_profiles():
    x = np.ones(2)
    outer, inner, late = pyop.profile(), pyop.profile(), pyop.profile()
    outer.__enter__()
    add(x)
    with inner:
        add(x)
        add(x)
        late.__enter__()
        twice(x)
    outer.__exit__(None, None, None)
    add(x)
    late.__exit__(None, None, None)
    calls = [{name: row.calls for name, row in rows(p).items()} for p in (outer, inner, late)]
    assert calls == [{"add": 5, "twice": 1}, {"add": 4, "twice": 1}, {"add": 3, "twice": 1}]
    assert inner.events["start_ns"][0] < outer.events["start_ns"][1]


def test_a_profile_within_a_call_sees_whole_calls_only():
    inner = []

    @pyop.op(F8)
    def looks(x):
        with pyop.profile() as p:
            y = add(x)
        inner.append(p)
        return y

    @pyop.op(F8)
    def begins(x):
        opened.append(pyop.profile().__enter__())
        return add(x)

    opened = []
    with pyop.profile() as p:
        looks(np.ones(3))
    assert {name: row.calls for name, row in rows(p).items()} == {"looks": 1, "add": 1}
    assert [row.name for row in inner[0].rows] == ["add"]

    begins(np.ones(3))
    add(np.ones(3))
    opened[0].__exit__(None, None, None)
    assert [(row.name, row.calls) for row in opened[0].rows] == [("add", 2)]

    @pyop.op(F8)
    def ends(x):
        opened.pop().__exit__(None, None, None)
        return add(x)

    opened[:] = [pyop.profile().__enter__()]
    q = opened[0]
    ends(np.ones(3))
    assert q.rows == []


def test_threads():
    barrier = threading.Barrier(4)

    def work(n):
        barrier.wait()
        for _ in range(n):
            twice(np.ones(5))

    with pyop.profile() as p:
        threads = [threading.Thread(target=work, args=(100 + i,), name=f"worker {i}") for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    r = rows(p)
    assert (r["twice"].calls, r["add"].calls) == (406, 812)
    assert sorted(p.threads) == [f"worker {i}" for i in range(4)]
    for i, name in enumerate(p.threads):
        mine = p.events[p.events["thread"] == i]
        assert len(mine) == 3 * (100 + int(name[-1]))
        assert mine["depth"].tolist() == [0, 1, 1] * (len(mine) // 3)


def test_a_thread_that_is_older_and_goes_on_for_longer():
    stop, go = threading.Event(), threading.Event()

    def work():
        while not stop.is_set():
            add(np.ones(5))
            go.set()

    t = threading.Thread(target=work, name="old")
    t.start()
    try:
        for _ in range(20):
            go.clear()
            with pyop.profile(events=100) as p:
                assert go.wait(20)
                go.clear()
                assert go.wait(20)
            assert p.threads == ["old"]
            assert p.rows[0].calls >= 1
    finally:
        stop.set()
        t.join()


def test_more_events_than_are_kept():
    few = np.ones(1)
    with pyop.profile(events=3000) as p:
        for _ in range(20_000):
            add(few)
        with pyop.profile(events=10) as inner:
            twice(few)
    assert {row.name: row.calls for row in inner.rows} == {"twice": 1, "add": 2}
    assert inner.lost == 0
    n = len(p.events)
    assert n + p.lost == 20_003
    assert 3000 <= n <= 6000
    assert [p.rows[i].name for i in p.events["row"][-4:]] == ["add", "twice", "add", "add"]
    assert (np.diff(p.events["start_ns"]) >= 0).all()
    assert f"{p.lost} more were lost" in str(p)
    with pytest.raises(ValueError, match="at least one"):
        pyop.profile(events=0)


def test_methods_results_in_trees_and_static_arguments():
    class Model:
        @pyop.op(outputs={"s": "float64[n]", "p": ["float64[n]"]})
        def both(self, x, y, *, scale=1.0):
            return {"s": (x + y) * scale, "p": [x * y]}

    x = np.ones(10)
    with pyop.profile() as p:
        Model().both(x, y=x, scale=2.0)
        Model.both(Model(), x, x)
    (row,) = p.rows
    assert (row.name, row.calls, row.bytes_in, row.bytes_out) == ("both", 2, 320, 320)


def test_what_was_called_lives_until_the_profile_is_over_and_not_longer():
    with pyop.profile() as p:
        op = pyop.op(F8, name="short")(lambda x: x)
        op(np.ones(1))
        dead = weakref.ref(op)
        del op
        gc.collect()
    assert [row.name for row in p.rows] == ["short"]
    gc.collect()
    assert dead() is None


def test_a_finished_profile_keeps_no_references():
    x = np.ones(3)
    with pyop.profile():
        twice(x)
    before = sys.getrefcount(add), sys.getrefcount(twice), sys.getrefcount(x)
    for _ in range(50):
        with pyop.profile() as p:
            twice(x)
        with pytest.raises(RuntimeError), pyop.profile():
            broken(x)
    del p
    gc.collect()
    assert (sys.getrefcount(add), sys.getrefcount(twice), sys.getrefcount(x)) == before


def test_a_profile_is_used_once_and_read_when_it_is_over():
    p = pyop.profile()
    assert "not begun" in repr(p)
    with p:
        assert "running" in str(p)
        with pytest.raises(RuntimeError, match="after the `with` block"):
            _ = p.rows
        with pytest.raises(RuntimeError, match="new one"):
            p.__enter__()
    with pytest.raises(RuntimeError, match="new one"):
        p.__enter__()


def test_the_table():
    odd = pyop.op(F8, name="a/b.c")(lambda x: x)
    with pyop.profile() as p:
        twice(np.ones(1000))
        odd(np.ones(1))
    lines = str(p).splitlines()
    assert lines[0].strip().startswith("4 calls in ")
    assert "share" in lines[1] + lines[2]
    (line,) = (line for line in lines if "add" in line)
    assert line.split()[:3] == ["add", "op", "2"]
    assert line.count("15.6 kiB") == 2
    assert any("a/b.c" in line for line in lines)


@pytest.mark.parametrize("out", [False, True])
def test_compiled_functions_that_run_the_plain_one_have_a_row(out):
    @pyop.compile
    def timed(x):
        begin = time.perf_counter()
        time.sleep(1e-3)
        return np.multiply(x, x) + 0 * (time.perf_counter() - begin)

    given = {"out": np.empty(3)} if out else {}
    with pytest.warns(pyop.RetraceWarning):
        timed(np.ones(3), **given)
    with pyop.profile() as p:
        timed(np.ones(3), **given)
        timed(np.ones(3), **given)
        with pytest.raises(TypeError, match="needs an array of the shape"):
            timed(np.ones(3), out=np.empty(4))
    (row,) = [row for row in p.rows if row.name == "timed"]
    assert (row.kind, row.calls, row.failed, row.bytes_in, row.bytes_out) == ("function", 3, 1, 72, 48)
    assert row.self_ns > 2e6
    assert p.spent["user code"] >= row.self_ns
    assert row.where.startswith(f"{__file__}:")


def test_to_dict_is_json():
    with pyop.profile() as p:
        twice(np.ones(3))
    d = json.loads(json.dumps(p.to_dict()))
    assert set(d) == {"wall_ns", "lost", "threads", "spent", "rows"}
    assert d["spent"] == p.spent
    assert {row["name"]: row["calls"] for row in d["rows"]} == {"add": 2, "twice": 1}
    assert d["rows"][0]["where"].rpartition(":")[0] == __file__


def test_the_trace(tmp_path):
    path = tmp_path / "trace.json"
    with pyop.profile() as p:
        for _ in range(20):
            twice(np.ones(3))
        with pytest.raises(RuntimeError):
            broken(np.ones(1))
        t = threading.Thread(target=twice, args=(np.ones(3),), name="other")
        t.start()
        t.join()
    p.save(path)
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert sorted(names.values()) == ["MainThread", "other"]
    calls = [e for e in events if e["ph"] == "X"]
    assert len(calls) == len(p.events) == 65
    assert all(e["pid"] == os.getpid() and e["tid"] in names and e["dur"] >= 0 and e["ts"] >= 0 for e in calls)
    assert sum(e["args"].get("failed", False) for e in calls) == 1
    # On each thread, events are one in another or apart.
    for tid in names:
        open_until = []
        for e in sorted((e for e in calls if e["tid"] == tid), key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= e["ts"]:
                open_until.pop()
            assert not open_until or e["ts"] + e["dur"] <= open_until[-1] + 1e-9
            open_until.append(e["ts"] + e["dur"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_within_a_profile():
    with pyop.profile() as p:
        add(np.ones(2))
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                twice(np.ones(2))
                p.__exit__(None, None, None)
                code = 0 if {r.name: r.calls for r in p.rows} == {"add": 3, "twice": 1} else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [(row.name, row.calls) for row in p.rows] == [("add", 1)]


# --- plans
