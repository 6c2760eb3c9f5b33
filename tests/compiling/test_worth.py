"""What traces are worth, by a clock that goes on by itself at each look, or stands still."""

import itertools
import warnings

import numpy as np
import pytest

import pyop
from pyop import Graph
from pyop.compiling import worth
from pyop.compiling.worth import Deadline, Trial, Worth
from pyop.graph.deciding import Decisions, RunItself
from pyop.loops.foreseen import foreseen


@pytest.fixture
def ticking(monkeypatch):
    """``ticking(seconds)``: such a time from one look at the clock to the next."""

    def set_to(seconds):
        ticks = itertools.count()
        monkeypatch.setattr(worth, "clock", lambda: next(ticks) * seconds)

    return set_to


def decides_often(x):
    s = x[0] * 0.0
    for v in (x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]):
        s = s + (v if v > 0 else np.exp(v))
    return s


def test_a_trace_ends_when_its_time_is_over(ticking):
    x = np.arange(8.0) - 4.0
    ticking(worth.FIRST / 4)
    compiled = pyop.compile(decides_often)
    with pytest.warns(pyop.RetraceWarning, match=r"would take too long to compile: .* \(at .*test_worth.py:31\)"):
        assert compiled(x) == decides_often(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(-x) == decides_often(-x)
    assert compiled.cache_info().misses == 1
    ticking(worth.FIRST / 400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pyop.compile(decides_often)(x) == decides_often(x)


@pytest.mark.parametrize(("first", "each", "ends_at"), [(0, 0, 20), (5, 5, 20), (30, 5, 20), (50, 5, 1), (12, 12, 4)])
def test_the_end_of_a_loop_is_foreseen(monkeypatch, first, each, ends_at):
    """Of 20 iterations in 200 ms: after the first, which may take longer than the others, and after the fourth."""
    now = [0.0]
    monkeypatch.setattr(worth, "clock", lambda: now[0])
    graph = Graph()
    graph._unrolled = None
    graph._deciding = Decisions(graph, Deadline(0.2), set())
    seen = []

    def goes():
        for k in foreseen(graph, iter(range(20)), 20):
            seen.append(k)
            now[0] += (each if k else first) / 1000

    if ends_at == 20:
        goes()
    else:
        with pytest.raises(RunItself, match="a loop of 20 iterations is written down one by one"):
            goes()
    assert len(seen) == ends_at


def test_dear_traces_of_other_shapes_wait_until_they_come_again(ticking):
    ticking(0.011)
    compiled = pyop.compile(lambda x: np.sin(x) + 1.0)
    traced = []
    for n in (1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7):
        x = np.linspace(0.0, 1.0, n)
        np.testing.assert_array_equal(compiled(x), np.sin(x) + 1.0)
        traced.append(compiled.cache_info().misses)
    assert traced[0] == 1
    assert traced[5] == traced[6] == 5  # what there is for nothing is used up
    assert traced[-1] == traced[6] + 1  # that one has come so often that it would have paid


def test_cheap_traces_are_made_for_all_shapes():
    compiled = pyop.compile(lambda x: np.sin(x) + 1.0)
    for n in range(1, 9):
        compiled(np.ones(n))
    assert compiled.cache_info().misses == 8


def test_what_plans_have_saved_pays_for_further_traces(ticking):
    times = Worth("f")
    ticking(0.1)
    trial = times.note([], Deadline())
    assert type(trial) is Trial
    assert times.waits([], 0)
    times.gains(0.01)
    assert times.waits([], 5)
    assert not times.waits([], 11)
    times.note([], Deadline())
    assert times.waits([], 12)  # spent


def test_numbers_that_are_needed_are_seen_to_vary_while_they_wait(ticking):
    ticking(0.1)
    compiled = pyop.compile(lambda x, t: x + 1.0 if t > 2.5 else x - t)
    given = [k / 2 for k in range(8)]
    with pytest.warns(pyop.RetraceWarning, match="needs argument 't'"):
        found = [compiled(np.ones(2), t)[0] for t in given]
    assert found == [2.0 if t > 2.5 else 1.0 - t for t in given]
    assert compiled.cache_info().misses == 2  # one trace, and the end of it


def test_ways_that_never_come_again_are_not_all_traced(ticking):
    def walks(x):
        s = x[0] * 0.0
        for k in range(4):
            for v in (x[4 * k], x[4 * k + 1], x[4 * k + 2], x[4 * k + 3]):
                s = s + (v if v > 0 else np.exp(v) + np.sin(v) * np.cos(v) - np.tanh(v) * np.sqrt(v * v))
                s = s * 0.5 + np.abs(s) * np.arctan(s) - np.sinh(s * 0.1) + np.cosh(s * 0.1) + np.log1p(np.abs(s))
        return s

    ticking(0.01)
    compiled = pyop.compile(walks)
    arrays = [np.random.default_rng(seed).normal(size=16) for seed in range(16)]
    with pytest.warns(pyop.RetraceWarning, match="different paths so far"):
        assert [compiled(x) for x in arrays] == [walks(x) for x in arrays]
    assert compiled.cache_info().misses < 4


def laid_out(starts, x):
    total = x[0] * 0.0
    found = {}
    for k in range(len(starts) - 1):
        start, end = int(starts[k]), int(starts[k + 1])
        found[f"{start} to {end}"] = part = x[start:end].sum()  # the numbers are needed, others in each iteration
        total = total + part
    return total, found


def test_integers_of_data_are_not_followed_and_those_of_layouts_are(ticking):
    ticking(worth.DEAR / 4)
    rng = np.random.default_rng(0)
    layout = np.cumsum(rng.integers(1, 9, 40))
    compiled = pyop.compile(laid_out)
    for _ in range(3):
        x = rng.normal(size=400)
        np.testing.assert_equal(compiled(layout, x), laid_out(layout, x))
    assert len(compiled.plan_for(layout, x).graph) > 40  # they were these for the second time
    compiled = pyop.compile(laid_out)
    given = [(np.cumsum(rng.integers(1, 9, 40)), rng.normal(size=400)) for _ in range(3)]
    with pytest.warns(pyop.RetraceWarning, match="decides by the contents .*test_worth.py:.* again and again"):
        found = [compiled(*each) for each in given]
    np.testing.assert_equal(found, [laid_out(*each) for each in given])
    assert compiled.cache_info().misses == 2


def tried(times):
    """The runs of a trial, in which the plan and the function take these times, and what becomes of the plan."""
    trial = Trial(Worth("f"))
    runs = ""
    for plan, itself in times:
        for _ in range(2):
            now = [0.0]
            worth.clock = lambda now=now: now[0]
            is_itself = trial.begin()
            runs += "fp"[not is_itself]
            now[0] = itself if is_itself else plan
            if (stays := trial.end()) is not None:
                return runs, stays
    return runs, None


@pytest.mark.parametrize(
    ("times", "runs", "stays"),
    [
        ([(5, 4), (1, 4)], "pfpf", True),  # the first run is cold
        ([(9, 4), (8, 4)], "pfpf", False),
        ([(10, 11), (10, 11), (10, 11), (10, 11)], "pfpfpfpf", True),
        ([(12, 11), (12, 11), (12, 11), (12, 11)], "pfpfpfpf", False),
        ([(0, 0)] * 4, "pfpf", True),
        ([(9, 40), (8, 1), (9, 40), (9, 2)], "pfpfpfpf", True),  # a call that has little to do
        ([(9, 14), (8, 1), (9, 2), (9, 2)], "pfpfpfpf", False),
    ],
)
def test_a_plan_is_tried_in_turn_with_the_function(monkeypatch, times, runs, stays):
    monkeypatch.setattr(worth, "clock", worth.clock)
    assert tried(times) == (runs, stays)


class Judge:
    """A trial whose end is known."""

    def __init__(self, stays):
        self.stays, self.runs = stays, 0

    def begin(self):
        self.runs += 1
        return self.runs % 2 == 0

    def end(self):
        return self.stays if self.runs == 4 else None


def writes(x, y):
    print("run")
    for k in range(len(x) - 1):
        x[k + 1] = x[k] + y[k]
    return x.sum(), y * 2.0


def decides(x, y):
    print("run")
    return x + y if x.sum() > 0 else x - y


def raises(x, y):
    print("run")
    s = x[0]
    for k in range(len(x)):
        s = s + y[k]
    if s > 10:
        raise ValueError("too large")
    return s, x + y


@pytest.mark.parametrize("function", [writes, decides, raises])
@pytest.mark.parametrize("stays", [True, False])
def test_calls_on_trial_are_those_of_the_function(monkeypatch, capsys, function, stays):
    monkeypatch.setattr(Worth, "note", lambda self, *args, **kwargs: Judge(stays))
    compiled = pyop.compile(function)
    runs = []
    for k in range(12):
        outcomes = []
        capsys.readouterr()
        for f in (compiled, function):
            x, y = np.linspace(1.0, 2.0, 5) - 4.0 * (k in (2, 5)), np.ones(5) * (20 if k in (3, 9) else 1)
            try:
                outcomes.append((f(x, y), x))
            except ValueError as error:
                outcomes.append((str(error), x))
            if f is compiled:
                runs.append(capsys.readouterr().out.count("run"))
        np.testing.assert_equal(outcomes[0], outcomes[1])
        assert str(outcomes[0]) == str(outcomes[1])
    assert 1 in runs[1:5]
    if function is writes:
        assert set(runs[5:]) == ({0} if stays else {1})


def test_a_call_on_trial_may_call_the_function_again(monkeypatch):
    monkeypatch.setattr(Worth, "note", lambda self, *args, **kwargs: Judge(True))

    def halves(x, again):
        if again:
            return compiled(x / 2.0, False) + 1.0
        return x * 3.0

    compiled = pyop.compile(halves)
    x = np.ones(3)
    for _ in range(10):
        assert compiled(x, True).tolist() == [2.5] * 3
        assert compiled(x, False).tolist() == [3.0] * 3
