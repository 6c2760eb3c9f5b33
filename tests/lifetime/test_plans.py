"""Threaded plans and the end of things: exit, fork, Ctrl-C."""

from __future__ import annotations

import os
import sysconfig

import pytest

from .harness import run

SETUP = """
import numpy as np, pyop, signal

def declared(f, **options):
    return pyop.op(f, "float64[n] -> float64[n]", **options)

@declared
def quick(x):
    return x + 1

@declared
def doze(x):
    time.sleep(0.02)
    return x + 1

def make(*ops, threads=2):
    return pyop.trace(lambda v: [op(v + k) for k, op in enumerate(ops)], "float64[n]").compile(threads)

def helpers():
    return sum(t.name == "pyop-helper" for t in threading.enumerate())

x = np.ones(3)
"""


def test_exit_with_idle_helpers() -> None:
    end = run(SETUP + "make(doze, doze, doze, threads=3)(x); say(helpers() > 0)", owner="PyNode")
    assert end.said == ["True"]
    assert end.leaked == 0


@pytest.mark.parametrize(
    "body",
    ["time.sleep(1000)", "[sum(range(1000)) for _ in iter(int, 1)]", "np.sort(np.zeros(10**6))"],
)
def test_exit_while_a_helper_is_inside_a_function(body: str) -> None:
    """Ctrl-C gave up the run; the helper goes on in a daemon thread, and the process ends all the same."""
    end = run(
        SETUP
        + f"""
inside = threading.Event()
@declared
def stuck(x):
    if threading.current_thread() is threading.main_thread():
        inside.wait()
        return x
    inside.set()
    while True:
        {body}

class Enough(Exception): pass
def enough(*_): raise Enough
signal.signal(signal.SIGALRM, enough)
def interrupt():
    inside.wait()
    time.sleep(0.1)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
threading.Thread(target=interrupt, daemon=True).start()
try:
    make(stuck, stuck)(x)
except Enough:
    say("interrupted")
assert make(quick, quick)(x)[1].tolist() == [3, 3, 3]
""",
        owner="PyNode",
    )
    assert end.said == ["interrupted"]


@pytest.mark.parametrize("attempt", range(3))
def test_exit_while_daemon_threads_run_threaded_plans(attempt: int) -> None:
    end = run(
        SETUP
        + """
plan = make(doze, quick, doze, quick, threads=3)
def work():
    while True:
        plan(x)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""",
        owner="PyNode",
    )
    assert end.said == []


@pytest.mark.parametrize("when", ["atexit", "module teardown"])
def test_a_threaded_plan_at_the_end(when: str) -> None:
    """After the interpreter began to end no thread can be started: the run does without helpers."""
    script = SETUP + "plan = make(doze, doze, quick)\n"
    if when == "atexit":
        end = run(script, owner="PyNode", at_last="say([y.tolist()[0] for y in plan(x)])")
    else:
        end = run(
            script
            + """
class Last:
    def __init__(self, plan): self.plan = plan
    def __del__(self, write=os.write, x=x):
        write(1, (str([y.tolist()[0] for y in self.plan(x)]) + chr(10)).encode())
sys.modules["last of all"] = Last(plan)
last = Last(plan)
del plan
""",
            owner="PyNode",
        )
    assert set(end.said) == {"[2.0, 3.0, 4.0]"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")
@pytest.mark.parametrize("when", ["before", "after", "while"])
def test_fork(when: str) -> None:
    """A child has no helpers, whatever its parent had, and gets its own."""
    end = run(
        SETUP
        + f"""
when = {when!r}
plan = make(doze, doze, doze, threads=3)
if when != "before":
    plan(x)
if when == "while":
    def work():
        while not done:
            plan(x)
    done = False
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads: t.start()
    time.sleep(0.05)
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        signal.alarm(100)
        try:
            good = helpers() == 0
            for _ in range(3):
                good = good and [y.tolist()[0] for y in plan(x)] == [2, 3, 4]
            good = good and helpers() > 0
        finally:
            os._exit(0 if good else 3)
    say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
if when == "while":
    done = True
    for t in threads: t.join()
say([y.tolist()[0] for y in plan(x)])
""",
        "-W",
        "ignore::DeprecationWarning",
        owner="PyNode",
    )
    assert end.said == ["0"] * 5 + ["[2.0, 3.0, 4.0]"]
    assert end.leaked == 0


SIGINT = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us to ignore it
def interrupt_soon(after=0.2):
    inside.wait()
    for _ in range({times}):
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
inside = threading.Event()
threading.Thread(target=interrupt_soon).start()
started = time.monotonic()
try:
    {call}
    say("not interrupted")
except KeyboardInterrupt as error:
    say("interrupted", not hasattr(error, "__notes__"), time.monotonic() - started < 20)
{release}
say([y.tolist()[0] for y in make(quick, doze)(x)], [y.tolist()[0] for y in make(quick, doze, threads=1)(x)])
"""


@pytest.mark.parametrize(
    ("ops", "call", "release"),
    [
        # "python-threads": the first signal ends the caller's own function, the second its waiting for the helper's.
        ("held", "make(quick, held)(x)", "release.set()"),
        ("held", "make(held, held, threads=1)(x)", "release.set()"),
        ("spin", "make(spin, spin, threads=1)(x)", ""),
        ("spin", "make(spin, spin)(x)", ""),
        ("chain", "long(x)", ""),
    ],
    ids=["waiting", "sequential", "python", "python-threads", "builtins"],
)
def test_keyboard_interrupt(ops: str, call: str, release: str) -> None:
    end = run(
        f"KIND = {ops!r}"
        + SETUP
        + """
release = threading.Event()
@declared
def held(x):
    inside.set()
    release.wait(60)
    return x

stop = time.monotonic() + 60
@declared
def spin(x):
    inside.set()
    while time.monotonic() < stop:
        pass
    return x

def chain(v):
    v = pyop.py_func(lambda a: inside.set() or a, [v], "float64[n]")
    for _ in range(3_000):
        v = pyop.op(np.sort, "float64[n] -> float64[n]", stateful=True)(v)
    return v
big = pyop.trace(chain, "float64[n]").compile() if KIND == "chain" else None
def long(x):
    while time.monotonic() < stop:
        big(x)
"""
        + SIGINT.format(call=call, release=release, times=1 + (call == "make(spin, spin)(x)")),
        owner="PyNode",
    )
    assert end.said == ["interrupted True True", "[2.0, 3.0] [2.0, 3.0]"]


def test_an_exception_in_a_helper() -> None:
    end = run(
        SETUP
        + """
class Mine(Exception):
    def __del__(self): say("gone")
@declared
def fail(x):
    if threading.current_thread() is threading.main_thread():
        time.sleep(0.2)
        return x
    raise Mine("from", threading.current_thread().name)
plan = make(fail, fail)
for _ in range(2):
    try:
        plan(x)
    except Mine as error:
        say(error.args, len(error.__notes__), "node 'fail" in error.__notes__[0])
say("end")
""",
        owner="PyNode",
    )
    each = "('from', 'pyop-helper') 1 True"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        # There an object whose last reference is dropped elsewhere waits until the thread that made it runs again.
        assert [line for line in end.said if line != "gone"] == [each, each, "end"]
        assert end.said.count("gone") == 2
    else:
        assert end.said == [each, "gone"] * 2 + ["end"]
    assert end.leaked == 0


def test_threads_that_end_with_a_graph_open() -> None:
    """`with graph:` that was never left, on a thread that is gone: other threads are not building anything."""
    end = run(
        SETUP
        + """
def open_and_leave():
    pyop.Graph().__enter__()
for _ in range(3):
    t = threading.Thread(target=open_and_leave); t.start(); t.join()
say(type(quick(x)).__name__, make(quick, doze)(x)[0].tolist())
""",
        owner="PyNode",
    )
    assert end.said == ["ndarray [2.0, 2.0, 2.0]"]


def test_two_threads_compile_their_first_plans() -> None:
    """What is asked of NumPy once may run Python code, and another thread then: it must find no lock that is held."""
    end = run(
        """
import builtins
import numpy as np, pyop

graphs = [pyop.trace(lambda x: np.sum(np.round(np.stack([x, x * 2.0]))) + np.linalg.norm(np.cumsum(x)), "float64[n]")
          for _ in range(4)]
plain = builtins.__import__

def slow(*args):
    time.sleep(0.001)
    return plain(*args)

builtins.__import__ = slow
found = []
threads = [threading.Thread(target=lambda g=g: found.append(float(g.compile()(np.ones(3))))) for g in graphs]
for t in threads: t.start()
for t in threads: t.join()
builtins.__import__ = plain
say(len(found), len(set(found)))
""",
        owner="PyNode",
    )
    assert end.said == ["4 1"]
