"""Plan.map by executors and by processes of its own."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import pyop
from pyop.machines import WorkerDied
from pyop.machines.memory import Memory, NotHere, pack, unpack
from pyop.machines.tasks import lend


def memories():
    """Files of shared memory that this process has open."""
    found = set()
    for fd in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(fd)
        except OSError:
            continue
        if target.startswith("/memfd:pyop"):
            found.add(fd.name)
    return found


@pyop.op("float64[n] -> float64[n]")
def positive(x):
    if x.size and x[0] < 0:
        raise ValueError("negative")
    return np.sqrt(x)


@pyop.op("float64[n] -> float64[n]")
def deadly(x):
    if x[0] == 13:
        os._exit(3)
    return x + 1


@pyop.op("float64[n] -> int64[]")
def where(x):
    return np.array(os.getpid())


COUNTED = []


@pyop.op("float64[n] -> float64[n]", stateful=True)
def counted(x):
    COUNTED.append(os.getpid())
    return x * 2


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, get_context("spawn")) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_left():
    before = memories()
    yield
    gc.collect()
    assert memories() <= before


def plan_of(function, spec="float64[n]"):
    return pyop.trace(function, spec).compile()


def test_order_and_bits(pool):
    plan = plan_of(lambda x: np.sum(np.sin(x) / 3 + x[::-1]))
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=n) for n in range(1, 300)]
    for executor in (None, pool, ThreadPoolExecutor(2)):
        for chunk in ("auto", 1, 7):
            found = plan.map(inputs, executor=executor, chunk=chunk, progress=False)
            assert [x.tobytes() for x in found] == [plan(x).tobytes() for x in inputs]


@pytest.mark.parametrize("seed", range(5))
def test_random_arrays_arrive_as_they_are(seed):
    rng = np.random.default_rng(seed)
    for dtype in ("f8", ">f4", "f2", "c8", "i2", "?", "g", "U3"):
        x = rng.integers(0, 9, rng.integers(0, 40, 3)).astype(dtype).transpose(rng.permutation(3))
        x = x[:: rng.choice([-2, -1, 1, 2])]
        for size in (0, 1 << 17):  # beside the pickle, and in shared memory
            memory = Memory()
            packed = pack([x, np.zeros(size, np.uint8)], memory.fd, memory.address)
            assert size == 0 or packed.address is not None
            for writable in (True, False):
                y = unpack(packed, writable=writable)[0]
                if not writable:
                    lend([y])
                assert y.dtype == x.dtype
                assert y.shape == x.shape
                assert y.flags.writeable == writable
                assert y.tobytes() == x.tobytes()
            memory.close()


def test_memory_of_nobody_is_not_found():
    memory = Memory()
    packed = pack(np.ones(100_000), memory.fd, memory.address)
    memory.close()
    with pytest.raises(NotHere):
        unpack(packed)


def test_large_arrays_by_shared_memory(pool):
    plan = plan_of(lambda x: x * 2)
    inputs = [np.arange(200_000.0) + i for i in range(5)]
    found = plan.map(inputs, executor=pool, progress=False)
    for x, y in zip(inputs, found, strict=True):
        assert np.array_equal(y, x * 2)
        assert y.flags.writeable
        y[:] = 0
    assert inputs[1][0] == 1


def test_errors_have_their_type_site_and_call(pool):
    plan = plan_of(lambda x: positive(x) + 1)
    made = plan.nodes[1].origin
    inputs = [np.ones(3), np.array([-1.0]), np.array([-2.0])]
    with pytest.raises(ValueError, match="negative") as info:
        plan.map(inputs, executor=pool, progress=False)
    notes = "\n".join(info.value.__notes__)
    assert "for item 1 of map, on process" in notes
    assert "positive" in str(info.value.__cause__)
    assert Path(__file__).name in made
    assert made in notes
    with pytest.raises(ValueError, match="negative"):
        info.value.rerun()


def test_pickles_keep_where_nodes_were_created():
    plan = plan_of(lambda x: positive(x) + np.sin(x))
    once = pickle.loads(pickle.dumps(plan))
    twice = pickle.loads(pickle.dumps(once))
    origins = [node.origin for node in plan.graph.nodes]
    assert any(Path(__file__).name in origin for origin in origins)
    assert [node.origin for node in once.graph.nodes] == [node.origin for node in twice.graph.nodes] == origins


def test_errstate_and_warnings(pool):
    plan = plan_of(lambda x: 1 / x)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        plan.map([np.zeros(2)], executor=pool, progress=False)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        plan.map([np.zeros(2)], executor=pool, progress=False)
    with np.errstate(all="ignore"):
        assert plan.map([np.zeros(2)], executor=pool, progress=False)[0][0] == np.inf


def test_ops_and_compiled_functions(pool):
    pytest.importorskip("cloudpickle")
    ones = [np.ones(2)] * 3
    assert {int(x) for x in where.map(ones, executor=pool, progress=False)}.isdisjoint({os.getpid()})
    three = pyop.compile(lambda x, by=1: x * by)
    found = three.map([(x,) for x in ones] + [{"x": ones[0], "by": 3}], executor=pool, progress=False)
    assert [x.tolist() for x in found] == [[1, 1]] * 3 + [[3, 3]]


def test_stateful_calls_and_writes_stay_here(pool):
    COUNTED.clear()
    plan = plan_of(lambda x: counted(x) + 1)
    plan.map([np.ones(2)] * 5, executor=pool, progress=False)
    assert [os.getpid()] * 5 == COUNTED

    @pyop.compile
    def double(x):
        x *= 2
        return x

    inputs = [np.ones(2) for _ in range(3)]
    double.map(inputs, executor=pool, progress=False)
    assert all(x[0] == 2 for x in inputs)


def test_progress_and_what_is_refused(pool):
    told = []
    plan = plan_of(lambda x: x + 1)
    plan.map([np.ones(1)] * 4, executor=pool, progress=lambda *at: told.append(at))
    assert told[-1] == (4, 4)
    assert told == sorted(told)
    assert plan.map([], executor=pool) == []
    with pytest.raises(ValueError, match="knows the name"):
        plan.map([np.ones(1)], executor="nobody", progress=False)
    with pytest.raises(TypeError, match=r"a Client of dask\.distributed"):
        plan.map([np.ones(1)], executor=object(), progress=False)
    with pytest.raises(ValueError, match="at least 1"):
        plan.map([np.ones(1)], executor=0, progress=False)
    with pytest.raises(ValueError, match="chunk="):
        plan.map([np.ones(1)], chunk=0, progress=False)


def test_a_worker_that_always_dies_is_an_error():
    inputs = [np.ones(2), np.array([13.0]), np.ones(2)]
    with pytest.raises(WorkerDied, match=r"\(exit status 3\) while it was computing") as info:
        deadly.map(inputs, executor=2, progress=False, chunk=1)
    assert "for item 1 of map" in info.value.__notes__[-1]
    assert "3 times" in info.value.__notes__[-1]
    assert deadly.map(inputs[:1], executor=2, progress=False)[0].tolist() == [2.0, 2.0]


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    return [sys.executable, "-W", "error", str(path)]


SLOW = """
    import os, sys, time
    import numpy as np, pyop

    HERE = sys.argv[0]

    @pyop.op("float64[n] -> float64[n]")
    def slow(x):
        open(f"{HERE}.{os.getpid()}", "w").close()
        time.sleep(0.02)
        return x + 1

    if __name__ == "__main__":
        given = [np.full(20_000, float(i)) for i in range(COUNT)]
        found = slow.map(given, executor=2, progress=False, chunk=1)
        assert all(np.array_equal(y, x + 1) for x, y in zip(given, found, strict=True))
        print("all")
"""


def workers_of(tmp_path, deadline):
    while time.monotonic() < deadline:
        if found := [int(path.suffix[1:]) for path in tmp_path.glob("script.py.*")]:
            return found
        time.sleep(0.02)
    raise TimeoutError("no worker came up")


def test_a_killed_worker_is_replaced(tmp_path):
    pytest.importorskip("cloudpickle")
    running = subprocess.Popen(script(tmp_path, SLOW.replace("COUNT", "60")), stdout=subprocess.PIPE, text=True)
    os.kill(workers_of(tmp_path, time.monotonic() + 60)[0], signal.SIGKILL)
    assert running.communicate(timeout=120)[0].strip() == "all"
    assert running.returncode == 0


def gone(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_killed_client_leaves_nothing(tmp_path):
    pytest.importorskip("cloudpickle")
    running = subprocess.Popen(script(tmp_path, SLOW.replace("COUNT", "3000")), stderr=subprocess.DEVNULL)
    workers = workers_of(tmp_path, time.monotonic() + 60)
    running.kill()
    running.wait(60)
    deadline = time.monotonic() + 30
    while not all(map(gone, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(gone, workers))


def test_from_two_threads(pool):
    plan, found = plan_of(lambda x: x + 1), {}

    def work(i):
        found[i] = plan.map([np.full(3, float(i))] * 20, executor=pool, progress=False)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(x[0] == i + 1 for i in found for x in found[i])
    assert len(found) == 2


def test_stateful_calls_on_workers_are_made_once(tmp_path):
    pytest.importorskip("cloudpickle")
    log = tmp_path / "log"

    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def dies(x):
        with open(log, "a") as file:
            print(x[0], file=file)
        os._exit(1)

    with pytest.raises(WorkerDied) as info:
        dies.map([np.ones(1)], executor=2, progress=False, stateful="workers")
    assert "not called twice" in info.value.__notes__[-1]
    assert log.read_text() == "1.0\n"


def test_an_exception_that_cannot_be_pickled_arrives_in_words():
    pytest.importorskip("cloudpickle")

    class Unsendable(Exception):
        def __init__(self, a, b):
            super().__init__(a)
            self.lock = threading.Lock()

    @pyop.op("float64[n] -> float64[n]")
    def fails(x):
        raise Unsendable("deep", 2)

    with pytest.raises(pyop.PyopError, match=r"which cannot be pickled: .*Unsendable: deep"):
        fails.map([np.ones(1)], executor=1, progress=False)


def test_an_exit_is_an_exception_as_it_is_here():
    pytest.importorskip("cloudpickle")

    @pyop.op("float64[n] -> float64[n]")
    def leaves(x):
        raise SystemExit(3)

    with pytest.raises(SystemExit) as info:
        leaves.map([np.ones(1)], executor=1, progress=False)
    assert info.value.code == 3


def test_an_interrupt_ends_the_workers(tmp_path):
    pytest.importorskip("cloudpickle")
    running = subprocess.Popen(
        script(tmp_path, SLOW.replace("COUNT", "3000")), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    workers = workers_of(tmp_path, time.monotonic() + 60)
    running.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in running.communicate(timeout=60)[1]
    deadline = time.monotonic() + 30
    while not all(map(gone, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(gone, workers))


def test_graphs_by_chance_have_the_same_bits_on_workers():
    """Fifty programs of random operations, each on several shapes."""
    rng = np.random.default_rng(7)
    functions = (np.sin, np.exp, np.sqrt, np.abs, np.tanh, np.cumsum, np.sort, lambda x: x[::-1], lambda x: x * 3 - 1)
    for _ in range(50):
        chosen = [functions[k] for k in rng.integers(0, len(functions), rng.integers(1, 7))]

        def program(x, chosen=chosen):
            y = x
            for each in chosen:
                y = each(np.abs(y) % 7.0) + x
            return y, np.sum(y)

        plan = plan_of(program)
        inputs = [rng.normal(size=n) for n in (0, 1, 17, 9000)]
        for got, x in zip(plan.map(inputs, executor=2, progress=False), inputs, strict=True):
            for a, b in zip(got, plan(x), strict=True):
                assert a.dtype == b.dtype
                assert a.tobytes() == b.tobytes()


@pytest.mark.campaign
def test_ten_thousand_small_tasks_and_killed_workers():
    """Twenty runs; in each a worker is killed at some moment."""
    from pyop.machines.own_workers import own_workers

    plan = plan_of(lambda x: x * 2)
    inputs = [np.full(2, float(k)) for k in range(500)]
    plan.map(inputs[:10], executor=2, progress=False)
    rng = np.random.default_rng(0)
    for _ in range(20):
        timer = threading.Timer(
            rng.uniform(0, 0.05), lambda: [os.kill(pid, signal.SIGKILL) for pid in own_workers(2).processes()[:1]]
        )
        timer.start()
        found = plan.map(inputs, executor=2, progress=False, chunk=1)
        timer.join()
        assert [y[0] for y in found] == [2.0 * k for k in range(500)]
