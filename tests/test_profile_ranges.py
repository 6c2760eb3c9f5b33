"""Calls that other tools see while they run: ranges of torch.profiler, NVTX and ITT, openers, and `plan.run`."""

import contextlib
import gc
import random
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import pyop
from pyop.profiling import watched
from pyop.profiling.session import Profile

F8 = "float64[n] -> float64[n]"
near = pyop.op(F8, name="near")(lambda x: x + 1)


class Log:
    """An opener that writes down what begins and ends, by thread."""

    def __init__(self):
        self.marks = []
        self.local = threading.local()  # numbers of threads are used again

    def here(self):
        return self.local.__dict__.setdefault("thread", object())

    def __call__(self, owner, part):
        thread = self.here()
        self.marks.append((thread, "begin", owner, part))

        def end():
            assert self.here() is thread
            self.marks.append((thread, "end", owner, part))

        return end

    def nested(self):
        """What began, with its depth, by thread; each was ended by its own, the last to begin first."""
        found = {}
        stacks = {}
        for thread, what, owner, part in self.marks:
            stack = stacks.setdefault(thread, [])
            if what == "begin":
                found.setdefault(thread, []).append((owner, part, len(stack)))
                stack.append((owner, part))
            else:
                assert stack.pop() == (owner, part)
        assert not any(stacks.values())
        return found


def looked_at(x):
    return np.sqrt(near(np.sin(x) * 2)).sum()


def plan_of(function, **options):
    return pyop.trace(function, "float64[n]").compile(**options)


def test_nothing_is_imported_unless_asked_for():
    code = "import sys, pyop\nwith pyop.profile() as p: pass\n"
    code += "late = {'torch', 'nvtx', 'ittapi', 'pyop.profiling.ranges', 'pyop.profiling.watched'}\n"
    code += "print(sorted(late & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


def test_names_that_are_no_tool_and_packages_that_are_not_there(monkeypatch):
    with pytest.raises(ValueError, match="'torch', 'nvtx' or 'itt', not to 'perf'"):
        pyop.profile(ranges="perf")
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(ImportError, match=r"needs the package 'nvtx'.*pip install 'pyop-core\[nvtx\]'"):
        pyop.profile(ranges=["nvtx"])
    assert pyop.profile(ranges=())._entered is False


def test_the_profiler_of_torch_shows_plans_nodes_groups_and_ops():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    plan, x = plan_of(looked_at), np.ones(10)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        with pyop.profile(ranges="torch") as p:
            for _ in range(5):
                plan(x)
            near(x)
        plan(x)
    counts = {row.key: row.count for row in seen.key_averages()}
    assert {name: n for name, n in counts.items() if "pyop" in name} == {
        "pyop: plan looked_at": 5,
        "pyop: group sin multiply": 5,
        "pyop: node near": 5,
        "pyop: group sqrt sum": 5,
        "pyop: op near": 1,
    }
    assert sum(row.calls for row in p.rows) == 21
    around = {e.name: e for e in seen.events() if "pyop" in e.name}
    assert around["pyop: node near"].cpu_parent.name == "pyop: plan looked_at"


def test_nvtx_and_itt_get_ranges_that_lie_in_each_other(monkeypatch):
    nvtx = pytest.importorskip("nvtx", reason="nvtx is not installed")
    ittapi = pytest.importorskip("ittapi", reason="ittapi is not installed")
    plan, x = plan_of(looked_at), np.ones(10)
    with pyop.profile(ranges=("nvtx", "itt")):  # the packages themselves, with no tool that listens
        plan(x)

    marks = []

    class Domain:
        def get_event_attributes(self, message):
            return message

        def push_range(self, attributes):
            marks.append(("nvtx", attributes))

        def pop_range(self):
            marks.append(("nvtx", None))

    monkeypatch.setattr(nvtx, "get_domain", lambda name: Domain() if name == "pyop" else None)
    monkeypatch.setattr(ittapi, "task_begin", lambda domain, name: marks.append((str(domain), str(name))))
    monkeypatch.setattr(ittapi, "task_end", lambda domain: marks.append((str(domain), None)))
    with pyop.profile(ranges=("nvtx", "itt")):
        near(x)
    assert marks == [("nvtx", "op near"), ("pyop", "op near"), ("pyop", None), ("nvtx", None)]
    marks.clear()
    with pyop.profile(ranges="itt"):
        plan(x)
    names = ["group sin multiply", "node near", "group sqrt sum"]
    inner = [mark for name in names for mark in (("pyop", name), ("pyop", None))]
    assert marks == [("pyop", "plan looked_at"), *inner, ("pyop", None)]


# --- openers: what the core calls


def test_an_opener_sees_the_calls_of_its_profile_alone():
    one, two = Log(), Log()
    outer, inner = Profile(10, one), Profile(10, two)
    near(np.ones(1))
    outer.__enter__()
    near(np.ones(1))
    inner.__enter__()
    near(np.ones(1))
    outer.__exit__(None, None, None)
    near(np.ones(1))
    inner.__exit__(None, None, None)
    near(np.ones(1))
    assert [len(log.marks) for log in (one, two)] == [4, 4]
    with pyop.profile():
        near(np.ones(1))
    assert [len(log.marks) for log in (one, two)] == [4, 4]


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_the_events(seed):
    """Ops, plans and failures in each other by chance: what was opened is what was recorded, at the same depth."""
    rng = random.Random(seed)
    callees = [near]
    for k in range(6):
        chosen = [rng.choice(callees) for _ in range(rng.randint(1, 3))]
        fails = rng.random() < 0.3

        def body(x, chosen=chosen, fails=fails):
            for f in chosen:
                x = f(x)
            if fails and type(x) is np.ndarray and x[0] > 0:
                raise ArithmeticError("on purpose")
            return x

        if rng.random() < 0.5:
            callees.append(pyop.op(F8, name=f"op{k}")(body))
        else:
            node = pyop.op(F8, name=f"node{k}")(body)
            callees.append(plan_of(lambda x, f=node: np.exp(-abs(f(x) * 2)), threads=rng.choice([1, 1, 2])))
    log = Log()
    x = np.ones(3) * rng.choice([-9.0, 1.0])

    def work(order):
        for f in order:
            with contextlib.suppress(ArithmeticError):
                f(x)

    orders = [[rng.choice(callees) for _ in range(6)] for _ in range(2)]
    with Profile(100_000, log) as p:
        threads = [threading.Thread(target=work, args=(order,)) for order in orders]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    nested = log.nested()
    recorded = [p.events[p.events["thread"] == k]["depth"].tolist() for k in range(len(p.threads))]
    assert sorted([depth for _, _, depth in calls] for calls in nested.values()) == sorted(recorded)
    assert sum(part != 0xFFFFFFFF for calls in nested.values() for _, part, _ in calls) == sum(
        row.calls for row in p.rows if row.kind not in ("op", "plan")
    )


def test_a_profile_that_ends_within_a_call_leaves_no_range_open():
    log = Log()
    opened = []

    @pyop.op(F8)
    def ends(x):
        opened.pop().__exit__(None, None, None)
        return near(x)

    plan = plan_of(lambda x: near(ends(x)))
    p = Profile(10, log)
    opened.append(p.__enter__())
    plan(np.ones(2))
    assert [part for _, what, _, part in log.marks if what == "begin"] == [0xFFFFFFFF, 0]
    log.nested()


def test_an_opener_that_ends_the_profile():
    class Ends(Log):
        def __call__(self, owner, part):
            p.__exit__(None, None, None)
            return super().__call__(owner, part)

    log = Ends()
    p = Profile(10, log).__enter__()
    assert near(np.ones(1))[0] == 2
    near(np.ones(1))
    assert p.rows == []
    assert len(log.marks) == 2
    with pyop.profile() as q:
        near(np.ones(1))
    assert [row.calls for row in q.rows] == [1]


def test_what_a_handler_of_signals_raises_in_an_opener_reaches_the_program():
    class Late(Exception):
        pass

    raised = []

    def handler(number, frame):
        raised.append(Late("now"))
        raise raised[-1]

    class Slow(Log):
        def __call__(self, owner, part):
            end = super().__call__(owner, part)
            if not raised:
                signal.raise_signal(signal.SIGUSR1)
                sum(range(10))
            return end

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Late) as caught, Profile(10, Slow()):
            for _ in range(100):
                near(np.ones(1))
        assert caught.value is raised[0]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_pending_error_stays_the_same_behind_ranges():
    @pyop.op(F8)
    def broken(x):
        raise error

    error = KeyError("mine")
    plan = plan_of(lambda x: broken(near(x)))
    log = Log()
    with Profile(10, log):
        with pytest.raises(KeyError) as caught:
            plan(np.ones(2))
    assert caught.value is error
    log.nested()


def test_a_finished_profile_keeps_neither_opener_nor_plans():
    log = Log()
    plan = plan_of(lambda x: near(x) * 2)
    p = Profile(10, log)
    with p:
        plan(np.ones(2))
    dead = weakref.ref(plan), weakref.ref(log)
    del plan, log
    gc.collect()
    assert [ref() for ref in dead] == [None, None]


def test_backward_steps_are_ranges():
    log = Log()
    x = pyop.Tensor(np.ones(3), requires_grad=True)
    with Profile(100, log):
        pyop.autograd.grad(np.sum(np.sin(x) * x), x)
    (calls,) = log.nested().values()
    assert len(calls) >= 3
    assert all(isinstance(owner, str) for owner, _, _ in calls)


# --- plan.run


def told_by(plan, *arrays, **named):
    told = []
    result = plan.run(*arrays, progress=lambda done, total: told.append((done, total)), **named)
    dones = [done for done, _ in told]
    assert dones == sorted(dones)
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1]
    return result, told


nap = pyop.op(F8, name="nap")(lambda x: (time.sleep(0.06), x / 2)[1])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_plan_of_many_nodes_tells_how_far_it_is(threads):
    def f(x):
        for _ in range(4):
            x = nap(x)
        return x + nap(x)

    plan = plan_of(f, threads=threads)
    x = np.arange(5.0)
    result, told = told_by(plan, x)
    assert result.tobytes() == plan(x).tobytes()
    assert {total for _, total in told} == {plan.report()["instructions"]}
    assert len(told) >= 4


def test_iterations_are_steps():
    def f(x):
        x = pyop.fori_loop(2, 8, lambda i, x: pyop.fori_loop(0, 2, lambda j, x: nap(x), x) + i, x)
        return x * 2

    plan = plan_of(f)
    result, told = told_by(plan, np.ones(3))
    assert result.tobytes() == plan(np.ones(3)).tobytes()
    assert told[0] == (0, 2 + 6 * (3 + 2))  # the body converts its number, and adds it
    assert len(told) >= 8
    watch = watched._Watch(plan, lambda done, total: None)
    with watched._Session(1, watch):
        plan(np.ones(3))
    assert watch.done == watch.total


def test_loops_of_unknown_length_have_no_total_until_the_end():
    def f(x):
        return pyop.while_loop(lambda x: x.sum() > 1.0, nap, x)

    result, told = told_by(plan_of(f), np.full(4, 4.0))
    assert result.tolist() == [0.25] * 4
    assert {total for _, total in told[:-1]} == {None}
    assert told[-1][0] == 1 + 4


def test_loops_on_a_tape_are_one_step():
    def f(x):
        return pyop.fori_loop(0, 100_000, lambda i, x: x * 0.5 + 1.0, x)

    plan = pyop.trace(f, "float64[]").compile()
    result, told = told_by(plan, np.ones(()))
    assert result.tobytes() == plan(np.ones(())).tobytes()
    count = plan.report()["instructions"]
    assert count < 5
    assert {total for _, total in told} == {count}


def test_a_watched_call_is_a_call():
    plan = pyop.trace(lambda x: near(x) * 2, "float64[n]").compile()
    x, out = np.ones(3), np.empty(3)
    name = plan.graph.inputs[0].node.name
    assert told_by(plan, x, out=out)[0] is out
    assert told_by(plan, **{name: x})[0].tolist() == [4.0] * 3
    assert plan.run(x, progress=False).tolist() == plan.run(x).tolist() == [4.0] * 3
    with pytest.raises(pyop.InputError):
        plan.run(np.ones((2, 2)))
    with pytest.raises(TypeError, match="progress= takes"):
        plan.run(x, progress=3)
    with pyop.profile() as p:
        plan.run(x)
    assert {row.kind: row.calls for row in p.rows} == {"plan": 1, "node": 1, "native": 1}


def test_what_the_function_raises_is_raised_when_the_plan_has_run():
    ran = []

    @pyop.op(F8)
    def slow(x):
        time.sleep(0.06)
        ran.append(1)
        return x

    def told(done, total):
        if done:
            raise LookupError(f"at {done}")

    plan = plan_of(lambda x: slow(slow(x) + 1))
    with pytest.raises(LookupError, match="at 1"):
        plan.run(np.ones(1), progress=told)
    assert len(ran) == 2
    assert plan(np.ones(1)).tolist() == [2.0]


def test_the_bar_of_rich(monkeypatch):
    pytest.importorskip("rich", reason="rich is not installed")
    import rich.progress

    bars = []

    class Progress(rich.progress.Progress):
        def update(self, task, **fields):
            bars.append(fields)
            super().update(task, **fields)

    monkeypatch.setattr(rich.progress, "Progress", Progress)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert plan_of(lambda x: near(x) * 2).run(np.ones(2)).tolist() == [4.0, 4.0]
    assert bars[0] == {"completed": 0, "total": 2}
    assert bars[-1] == {"completed": 2, "total": 2}
