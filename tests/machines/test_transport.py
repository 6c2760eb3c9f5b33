"""Arrays of pyop's between workers of Dask: nothing is copied, and nobody can tell."""

import os
import pickle

import numpy as np
import pytest

from .test_dask_cluster import cluster
from .test_segments import N, result, same

pytest.importorskip("distributed")
pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="needs Linux")

HEAD = """
        import gc
        from distributed import wait
        from pyop.machines import files, segments
        N = 1 << 18
        client.amm.stop()  # which after some seconds drops one of two copies, and tasks here write into theirs
        first, second = client.nthreads()
        graph = pyop.trace(lambda x: x * 2 + 1, "float64[n]")
        expected = np.arange(float(N)) * 2 + 1
        def made_there(x=None):
            with dask.annotate(workers=[first]):
                made = graph.submit(client, np.arange(float(N)) if x is None else x)
            wait(made)
            assert client.who_has(made)[made.key] == (first,)
            return made
        def on(worker, function, *args):
            return client.submit(function, *args, workers=worker, pure=False)
        def mapped(x):
            assert type(x) is np.ndarray and x.flags.writeable, x.flags
            return segments.place_of(x) is not None
        def same(found, what=expected):
            assert type(found) is np.ndarray and found.tobytes() == what.tobytes() and found.flags.writeable
"""
BETWEEN = """
        made = made_there()
        assert on(second, mapped, made).result()
        same(on(second, lambda x: x, made).result())
        same(made.result())
        # What is written stays where it is written, and goes on from there.
        def add(x, n):
            x += n
            return x
        ours, theirs = made_there(), made_there()
        kept = on(second, lambda x: x, ours)
        wait(kept)
        same(on(second, add, ours, 3).result(), expected + 3)
        same(on(first, lambda x: x.copy(), ours).result())
        same(on(first, add, theirs, 4).result(), expected + 4)
        changed = on(first, add, made, 5)
        wait(changed)
        assert not on(second, mapped, changed).result()
        same(on(second, lambda x: x, changed).result(), expected + 5)
        # Of others: as ever.
        other = on(first, np.arange, N)
        assert not on(second, mapped, other).result()
        # Pieces of graphs, chunks of collections, and what Dask does with these.
        x = dask.array.arange(4.0 * N, chunks=N)
        z = graph.to_dask(x=x).persist()
        whole = np.arange(4.0 * N) * 2 + 1
        assert float((z.reshape(2, -1).T + 1).max().compute()) == whole.max() + 1
        assert (z[::-1] - z).compute().tobytes() == (whole[::-1] - whole).tobytes()
        same(z.compute(), whole)
        two = pyop.trace(lambda x: (np.sort(slow(x)), np.cumsum(x)), "float64[n]")
        for a, b in zip(client.gather(two.submit(client, made_there())), two.compile()(expected)):
            same(a, b)
        # A graph whose input lies on the other worker.
        with dask.annotate(workers=[second]):
            again = graph.submit(client, made_there())
        assert on(second, mapped, again).result()
        kept = again.result()
"""
AFTER = """
        client.close()
        client.cluster.close()
        same(kept, expected * 2 + 1)
"""
RELEASED = """
        def descriptors():
            gc.collect()
            files._kept.clear()
            return len(os.listdir("/proc/self/fd")), len(segments._segments)
        made = made_there()
        on(second, mapped, made).result()
        del made
        for _ in range(100):
            time.sleep(0.05)
            left = client.run(descriptors)
            if not any(n for _, n in left.values()):
                break
        assert not any(n for _, n in left.values()), left
        many = [made_there() for _ in range(8)]
        read = client.map(lambda x: float(x[-1]), many, workers=second, pure=False)
        assert set(client.gather(read)) == {expected[-1]}
        del many, read
        for _ in range(100):
            time.sleep(0.05)
            now = client.run(descriptors)
            if now == left:
                break
        assert not any(n for _, n in now.values()), (left, now)
"""
KILLED = """
        def own_sum(x):
            return float(x.sum())
        made = made_there()
        kept = on(second, lambda x: x, made)
        wait(kept)
        pids = client.run(os.getpid)
        os.kill(pids[first], signal.SIGKILL)
        same(kept.result())
        assert on(second, own_sum, kept).result() == expected.sum()
        same(graph.submit(client, kept).result(), expected * 2 + 1)
"""
SPILLED = """
        def spilled(x, dask_worker=None):
            from distributed import get_worker
            worker = get_worker()
            before = type(worker.data).__name__
            key = [key for key in worker.data if "result_of" in str(key)][0]
            worker.data.evict() if hasattr(worker.data, "evict") else None
            return before, len(getattr(worker.data, "slow", ()))
        made = made_there()
        kind, n = on(first, spilled, made).result()
        assert kind == "SpillBuffer" and n > 0, (kind, n)
        same(made.result())
        same(on(second, lambda x: x, made).result())
"""


def test_arrays_between_workers_are_mapped(tmp_path):
    cluster(tmp_path, HEAD + BETWEEN + AFTER)


def test_what_is_released_is_closed(tmp_path):
    cluster(tmp_path, HEAD + RELEASED)


def test_an_array_outlives_the_worker_that_made_it(tmp_path):
    cluster(tmp_path, HEAD + KILLED)


def test_what_is_spilled_comes_back(tmp_path):
    cluster(tmp_path, HEAD + SPILLED)


def sent_to(x, who, monkeypatch):
    from distributed.protocol import deserialize, serialize

    context = {"recipient": {"pyop": who}} if who is not None else {"recipient": {}}
    header, frames = serialize(x, context=context)
    size = sum(memoryview(frame).nbytes for frame in frames)
    return size, deserialize(pickle.loads(pickle.dumps(header)), [bytes(frame) for frame in frames])


def test_only_who_can_open_it_gets_an_address(monkeypatch):
    from pyop.machines import transport

    transport._register()
    who = transport._who()
    rights, pid, fd, device, inode = who.rsplit(maxsplit=4)
    x = result()
    size, found = sent_to(x, who, monkeypatch)
    assert size < 2000
    same(found, x)
    others = [
        None,
        f"{rights}x {pid} {fd} {device} {inode}",
        f"{rights} {1 << 22} {fd} {device} {inode}",
        f"{rights} {pid} {fd} {device} {inode}1",
        f"{rights} {pid}",
        "pyop",
        7,
        {"of": ["another version"]},
    ]
    for other in others:
        size, found = sent_to(x, other, monkeypatch)
        assert size == x.nbytes
        same(found, x)
    for other in (np.arange(float(N)), x[::2], x.reshape(2, -1).T[::-1], np.array([None, "a"]), np.arange(3)):
        size, found = sent_to(other, who, monkeypatch)
        assert size >= min(other.nbytes, 24)
        assert (found == other).all()
    x[0] = 7
    size, found = sent_to(x, who, monkeypatch)
    assert size == x.nbytes
    same(found, x)
