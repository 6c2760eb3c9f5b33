"""Graphs on a cluster of Dask: what its workers raise, and what becomes of it when processes are killed."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from .test_dask import script

CLUSTER = """
    import os, signal, time
    import numpy as np, pyop

    @pyop.op("float64[n] -> float64[n]")
    def slow(x):
        return np.sqrt(x * x + 1)

    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def where(x):
        return x * 0 + os.getpid()

    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def deadly(x):
        os.kill(os.getpid(), signal.SIGKILL)
        return x

    def flat(tree):
        return [tree] if not isinstance(tree, (list, tuple)) else [x for y in tree for x in flat(y)]

    def random_graph(seed):
        draw = np.random.default_rng(seed)
        steps = [lambda a, b: a + b, lambda a, b: a * 0.5 - b, lambda a, b: np.sin(a), lambda a, b: slow(a),
                 lambda a, b: np.cumsum(a), lambda a, b: a[::-1], lambda a, b: np.where(a > b, a, b),
                 lambda a, b: a - b.mean(), lambda a, b: np.sort(a)]
        picked = [(steps[draw.integers(len(steps))], *draw.integers(0, k + 2, 2)) for k in range(draw.integers(5, 60))]
        kept = draw.integers(0, len(picked) + 2, 3)
        def f(x, y):
            known = [x, y]
            for step, a, b in picked:
                known.append(step(known[a], known[b]))
            return [known[k] for k in kept], (known[-1],)
        return pyop.trace(f, "float64[n]", "float64[n]"), draw.standard_normal((2, 50))

    def main(client):
        BODY

    if __name__ == "__main__":  # what workers need not import
        import dask, dask.array
        from distributed import Client, LocalCluster
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                main(client)
        print("right")
"""
FIFTY = """
        for seed in range(50):
            graph, (x, y) = random_graph(seed)
            expected = [z.tobytes() for z in flat(graph.compile()(x, y))]
            found = client.gather(graph.submit(client, x, y=y))
            assert [np.asarray(z).tobytes() for z in flat(found)] == expected, seed
            (found,) = dask.compute(graph.to_dask(x=dask.array.from_array(x, chunks=20), y=y))
            assert [np.asarray(z).tobytes() for z in flat(found)] == expected, seed
"""
STATEFUL = """
        graph = pyop.trace(lambda x: (where(slow(x)), slow(x)), "float64[n]")
        here, pure = graph.submit(client, np.ones(2))
        assert here.result()[0] == os.getpid() and pure.result()[0] == np.sqrt(2.0)
        away = graph.submit(client, np.ones(2), stateful="workers")[0].result()
        assert away[0] in [float(pid) for pid in client.run(os.getpid).values()], away
        graph = pyop.trace(lambda x: deadly(x), "float64[n]")
        try:
            graph.submit(client, np.ones(2), stateful="workers").result(timeout=60)
        except RuntimeError as error:
            assert "deadly: stateful" in str(error), error
        else:
            raise AssertionError("called twice")
"""
SHARED = """
        @pyop.op("float64[n] -> float64[2]")
        def uneven(x):
            time.sleep(0.05 if x[0] >= 24 else 0.001)
            return np.array([x[0], os.getpid()])
        plan = pyop.trace(lambda x: uneven(x), "float64[n]").compile()
        found = plan.map([np.full(1, float(k)) for k in range(48)], executor=client, progress=False)
        assert [x[0] for x in found] == [*range(48)]
        pids = [x[1] for x in found[24:]]
        assert len(set(pids)) == 2 and min(pids.count(pid) for pid in set(pids)) >= 4, pids
"""
MAPPED = """
        from pyop.machines import WorkerDied
        plan = pyop.trace(lambda x: where(x) + 1, "float64[n]").compile()
        found = plan.map([np.ones(2)] * 5, executor=client, progress=False, stateful="workers", chunk=2)
        assert {x[0] - 1 for x in found} <= {float(pid) for pid in client.run(os.getpid).values()}
        queues = lambda dask_scheduler: len(dask_scheduler.extensions["queues"].queues)
        until = time.monotonic() + 20
        while client.run_on_scheduler(queues):  # whoever takes a token lets go of it, by a message behind the result
            assert time.monotonic() < until
            time.sleep(0.01)
        log = __file__ + ".log"
        @pyop.op("float64[n] -> float64[n]", stateful=True)
        def begun(x):
            with open(log, "a") as file:
                print(x[0], file=file)
            os.kill(os.getpid(), signal.SIGKILL)
            return x
        try:
            begun.map([np.full(1, 7.0)], executor=client, progress=False, stateful="workers")
        except WorkerDied as error:
            assert "begun: stateful, and begun before on a worker that died" in str(error)
            assert "for item 0 of map" in error.__notes__[-1] and "not called twice" in error.__notes__[-1]
        else:
            raise AssertionError("called twice")
        assert open(log).read() == "7.0\\n"
"""
ERRORS = """
        import json, threading
        class Own(Exception):
            pass
        sent = np.zeros(3)
        @pyop.op("float64[n] -> float64[n]")
        def fails(x):
            if x[0] == 1:
                raise Own("own", 3)
            if x[0] == 2:
                raise json.JSONDecodeError("bad", "doc", 1)  # its __reduce__ keeps no attributes
            if x[0] == 3:
                error = ValueError("unsendable")
                error.lock = threading.Lock()
                raise error
            if x[0] == 4:
                raise SystemExit(3)
            return x
        by = 1.0
        graph = pyop.trace(lambda x: fails(x * by) + 1, "float64[n]")
        site = [node.origin for node in graph.nodes if node.name == "fails"][0]
        kinds = [None, Own, json.JSONDecodeError, pyop.PyopError, pyop.PyopError]
        here = [None, Own, json.JSONDecodeError, ValueError, SystemExit]
        for k in (1, 2, 3, 4):
            x = np.full(3, float(k))
            for way in (lambda: graph.submit(client, x).result(), lambda: graph.to_dask(x=x).compute()):
                try:
                    way()
                except Exception as error:
                    found = error
                assert type(found) is kinds[k], found
                told = str(found) + "\\n".join(found.__notes__)
                assert site in told or k == 4, told
                assert "for piece 0 of graph 'lambda', 2 nodes (fails, add), on process " in told, told
                assert "Dask's worker" in told and f"on process {os.getpid()} of" not in told, told
                try:
                    found.rerun()
                except BaseException as error:
                    assert type(error) is here[k], error
                else:
                    raise AssertionError("no error")
        large = np.zeros(9_000_000)
        large[0] = 1
        try:
            graph.submit(client, large).result()
        except Own as error:
            try:
                error.rerun()
            except pyop.PyopError as refused:
                assert "72000000 bytes" in str(refused)
"""
KILLED = """
        draw = np.random.default_rng(SEED_OF_RUN)
        @pyop.op("float64[n] -> float64[n]")
        def sleepy(x):
            time.sleep(0.02)
            return x * 1.5 + 1
        def f(x):
            branches = []
            for k in range(4):
                a = x + k
                for _ in range(12):
                    a = sleepy(a)
                branches.append(a)
            return branches
        graph = pyop.trace(f, "float64[n]")
        expected = [z.tobytes() for z in graph.compile()(np.arange(9.0))]
        futures = graph.submit(client, np.arange(9.0))
        time.sleep(draw.random() * 0.4)
        os.kill(list(client.run(os.getpid).values())[draw.integers(2)], signal.SIGKILL)
        assert [z.tobytes() for z in client.gather(futures)] == expected
"""


DIES = """
        @pyop.op("float64[n] -> float64[n]")
        def dies(x):
            os._exit(3)
        from distributed.scheduler import KilledWorker
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 1))
        future = pyop.trace(lambda x: dies(x), "float64[n]").submit(client, np.ones(2))
        try:
            future.result(timeout=60)
        except KilledWorker as error:
            assert "run_piece" in str(error)
        else:
            raise AssertionError("no error")
"""
MANY = """
        plan = pyop.trace(lambda x: slow(x), "float64[n]").compile()
        inputs = [np.full(3, float(k)) for k in range(10_000)]
        found = plan.map(inputs, executor=client, progress=False)
        assert [z.tobytes() for z in found] == [plan(x).tobytes() for x in inputs]
"""


SUBMITTED = """
        @pyop.op("float64[n] -> float64[n]")
        def sleepy(x):
            time.sleep(0.05)
            return x + 1
        def f(x):
            for _ in range(400):
                x = sleepy(x)
            return x
        future = pyop.trace(f, "float64[n]").submit(client, np.zeros(20_000))
        while not any(client.processing().values()):
            time.sleep(0.01)
        print(*client.run(os.getpid).values(), flush=True)
        future.result()
"""


def with_body(body):
    return textwrap.dedent(CLUSTER).replace("    BODY\n", textwrap.indent(textwrap.dedent(body), "    "))


def cluster(tmp_path, body):
    pytest.importorskip("distributed")
    pytest.importorskip("cloudpickle")
    assert "right" in script(tmp_path, with_body(body))


def test_fifty_graphs_have_the_bits_of_this_process(tmp_path):
    cluster(tmp_path, FIFTY)


def test_stateful_nodes_run_here_or_once(tmp_path):
    cluster(tmp_path, STATEFUL)


def test_stateful_calls_of_map_are_made_once(tmp_path):
    cluster(tmp_path, MAPPED)


def test_who_has_nothing_to_do_takes_half_of_what_another_has(tmp_path):
    cluster(tmp_path, SHARED)


def test_errors_arrive_as_they_are_and_can_be_called_again(tmp_path):
    cluster(tmp_path, ERRORS)


def test_a_worker_that_always_dies_is_an_error(tmp_path):
    cluster(tmp_path, DIES)


def gone(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_client_that_is_killed_after_submit_leaves_nothing(tmp_path):
    pytest.importorskip("distributed")
    pytest.importorskip("cloudpickle")
    path = tmp_path / "script.py"
    path.write_text(with_body(SUBMITTED))
    shared = set(os.listdir("/dev/shm"))
    with subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as p:
        workers = [int(pid) for pid in p.stdout.readline().split()]
        p.kill()
    assert len(workers) == 2
    deadline = time.monotonic() + 60
    while not all(map(gone, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(gone, workers))
    assert not [name for name in set(os.listdir("/dev/shm")) - shared if "pyop" in name]


def test_ten_thousand_small_calls(tmp_path):
    cluster(tmp_path, MANY)


@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(k, marks=pytest.mark.campaign) for k in range(2, 20)]])
def test_a_worker_that_is_killed_is_made_up_for(tmp_path, seed):
    cluster(tmp_path, KILLED.replace("SEED_OF_RUN", str(seed)))
