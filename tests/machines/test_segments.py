"""Results in memory that other processes map: the bits and layout of plain calls, and whose writes are seen by whom."""

import contextlib
import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pyop
from pyop.machines import files, segments
from pyop.machines.dask_graphs import _plan_of
from pyop.machines.memory import NotHere
from pyop.machines.segments import arrived, place_of, results_of

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="needs Linux")
N = 1 << 18  # of float64: two megabytes


def piece(f, *specs):
    graph = pyop.trace(f, *specs)
    leaves = graph._output_leaves()[0]
    return _plan_of(graph, leaves, graph.inputs)


def result():
    (x,) = results_of(piece(lambda x: x * 2 + 1, "float64[n]"), (np.arange(float(N)),))
    return x


@pytest.fixture(autouse=True)
def as_at_first(monkeypatch):
    gc.collect()
    files._kept.clear()
    monkeypatch.setattr(files, "_worth", [files.FIRST])


def descriptors():
    gc.collect()
    files._kept.clear()
    return len(os.listdir("/proc/self/fd"))


def bits(x):
    if x.dtype != np.longdouble:
        return x.tobytes()
    return np.frombuffer(x.tobytes(), np.uint8).reshape(-1, x.itemsize)[:, :10].tobytes()  # the rest is padding


def same(found, expected):
    assert type(found) is type(expected)
    assert (found.dtype, found.shape, bits(found)) == (expected.dtype, expected.shape, bits(expected))
    if isinstance(expected, np.ndarray):
        assert found.flags.writeable == expected.flags.writeable
        assert [n if k > 1 else 0 for n, k in zip(found.strides, found.shape, strict=True)] == [
            n if k > 1 else 0 for n, k in zip(expected.strides, expected.shape, strict=True)
        ]


def test_a_result_is_an_ordinary_array_that_others_may_map():
    x = result()
    same(x, np.arange(float(N)) * 2 + 1)
    place = pickle.loads(pickle.dumps(place_of(x)))
    same(arrived(place), x)
    half = x[: N // 2 + 1]
    same(arrived(place_of(half)), half)
    assert place_of(x[: N // 4]) is None
    assert place_of(x[::2]) is None
    assert place_of(np.arange(float(N))) is None
    locked = x[:]
    locked.flags.writeable = False
    same(arrived(place_of(locked)), locked)


def test_writes_stay_where_they_are_made_and_are_not_lost():
    x = result()
    before = x.copy()
    first, second = arrived(place_of(x)), arrived(place_of(x))
    first[5] = -1
    assert x[5] == second[5] == 11
    assert place_of(first) is None
    assert place_of(second) is not None
    x[N - 1] = -2
    assert place_of(x) is None  # the file has not what the array has: it goes as any other
    assert place_of(x[: N // 2 + 1]) is not None  # where nothing was written
    same(second, before)
    x += 1
    same(second, before)
    same(arrived(place_of(second)), before)


def test_nothing_is_left_of_what_nobody_has():
    before = descriptors()
    x = result()
    y = arrived(place_of(x))
    place, expected = place_of(x), x.copy()
    assert descriptors() == before + 2
    part = x[3:]
    del x
    assert descriptors() == before + 2
    del part
    assert descriptors() == before + 1
    with pytest.raises(NotHere):
        arrived(place)
    same(y, expected)
    same(arrived(place_of(y)), expected)
    del y
    assert descriptors() == before
    assert not segments._segments
    assert not len(files._files)


def inode(x):
    return place_of(x).address.inode


def test_a_file_is_used_again_when_nobody_reads_it():
    x = result()
    first, place = inode(x), place_of(x)
    reader, expected = arrived(place), x.copy()
    del x
    x = result()
    assert inode(x) != first
    same(reader, expected)
    same(arrived(place), expected)  # it is there as long as somebody has it
    part = reader[1:]
    del reader
    again = result()
    assert inode(again) not in (first, inode(x))
    del part
    last = result()
    assert inode(last) == first
    with pytest.raises(NotHere):
        arrived(place)
    last += 1
    del last
    same(result(), expected)


def test_few_files_are_made_that_nobody_asks_for(monkeypatch):
    monkeypatch.setattr(files, "_worth", [5 * N * 8])
    kept = [result() for _ in range(7)]
    assert [x.base is not None for x in kept] == [True] * 5 + [False] * 2
    place_of(kept[0])
    kept += [result() for _ in range(6)]
    assert [x.base is not None for x in kept[7:]] == [True] * 4 + [False] * 2
    for x in kept:
        same(x, kept[0])


def test_files_that_are_kept_are_not_many(monkeypatch):
    monkeypatch.setattr(files, "KEPT", 2 * N * 8)
    arrays = [result() for _ in range(5)]
    del arrays
    gc.collect()
    assert len(files._kept) == len(files._files) == 2


def test_a_child_of_fork_keeps_what_it_has():
    """In a process of its own: JAX and CPython warn of forks beside threads, which others have started here."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def fork():
    x, unread = result(), result()
    expected = x.copy()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)
        os._exit(0 if (x == expected).all() and (unread == expected).all() and result() is not x else 1)
    del x, unread
    for k in range(4):
        others = [results_of(piece(lambda x: x - 7, "float64[n]"), (np.full(N, float(k)),)) for _ in range(3)]
    del others
    os.write(write, b"x")
    assert os.waitpid(child, 0)[1] == 0
    for each in (read, write):
        os.close(each)


@pytest.mark.parametrize("seed", range(3))
def test_at_random_nobody_sees_what_is_not_his(seed):
    draw = np.random.default_rng(seed)
    plan = piece(lambda x: x + 1, "float64[n]")
    have, sent = [], []
    for _ in range(400):
        do = draw.integers(6)
        if do < 2:
            n, value = N // 2 + int(draw.integers(N)), draw.random()
            have.append((results_of(plan, (np.full(n, value),))[0], n, value + 1))
        elif do == 2 and have:
            x, n, value = have[draw.integers(len(have))]
            if (place := place_of(x)) is not None:
                sent.append((place, n, value))
        elif do == 3 and sent:
            place, n, value = sent.pop(draw.integers(len(sent)))
            with contextlib.suppress(NotHere):
                have.append((arrived(place), n, value))
        elif do == 4 and have:
            x, n, value = have.pop(draw.integers(len(have)))
            x[:] = value + 1
            have.append((x, n, value + 1))
        elif have:
            have.pop(draw.integers(len(have)))
        while len(have) > 12:
            have.pop(0)
        for x, n, value in have:
            assert len(x) == n
            assert x[0] == x[n // 2] == x[-1] == value
    assert len({id(x) for x, _, _ in have}) == len(have)


def test_another_process_reads_it_and_keeps_it():
    x = result()
    code = """if True:
        import pickle, sys
        from pyop.machines.segments import arrived, place_of
        x = arrived(pickle.load(sys.stdin.buffer))
        x[:3] += 1
        print(x.sum(), x.flags.writeable, place_of(x))
    """
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(place_of(x)), capture_output=True, timeout=60, check=False
    )
    assert done.stdout.decode().split() == [str(x.sum() + 3), "True", "None"], done.stderr
    same(x, np.arange(float(N)) * 2 + 1)


def test_without_descriptors_or_memory_results_are_plain(monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda what: (8, 8))
    first, second, third = result(), result(), result()
    assert place_of(first) is not None
    assert place_of(third) is None
    same(third, first)
    before, expected = len(os.listdir("/proc/self/fd")), first.copy()
    read = arrived(place_of(first))
    assert len(os.listdir("/proc/self/fd")) == before
    assert place_of(read) is None
    del first, second, third
    others = [result() for _ in range(3)]  # none is where `read` is
    for x in others:
        x[:] = 0
    same(read, expected)
    del others, x, read
    gc.collect()
    monkeypatch.undo()

    def full(fd, start, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = descriptors()
    x = result()
    assert place_of(x) is None
    assert descriptors() == before
    same(x, np.arange(float(N)) * 2 + 1)


def test_an_error_leaves_nothing():
    plan = piece(lambda x: 1 / x, "float64[n]")
    before = descriptors()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        results_of(plan, (np.zeros(N),))
    assert descriptors() == before


@pyop.op("float64[n] -> float64[n]")
def turned(x):
    return x[::-1]


STEPS = [
    lambda a, b: a + b,
    lambda a, b: np.sqrt(np.abs(a)) - b,
    lambda a, b: a > b,
    lambda a, b: (a * 0.5, b.mean()),
    lambda a, b: a.T,
    lambda a, b: np.cumsum(a),
    lambda a, b: a[::-1],
    lambda a, b: np.where(a > b, a, b),
    lambda a, b: np.multiply.outer(a[0], b[0]),
    lambda a, b: np.exp(a.astype("complex128")),
    lambda a, b: a.reshape(-1)[1:],
    lambda a, b: a,
]
LAYOUTS = [
    lambda x: x,
    lambda x: np.asfortranarray(x),
    lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    lambda x: np.ascontiguousarray(x[::-1])[::-1],
    lambda x: np.broadcast_to(x[:1], x.shape),
]


@pytest.mark.parametrize("seed", range(8))
def test_random_plans_have_the_bits_and_the_layout_of_a_call(seed, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_FROM", 1)
    draw = np.random.default_rng(seed)
    moved = 0
    for _ in range(30):
        ndim = int(draw.integers(1, 4))
        dtype = draw.choice(["float64", "float32", ">f8", "float16", "longdouble", "int32"])
        spec = f"{'float64' if dtype == '>f8' else dtype}[{', '.join('nmk'[:ndim])}]"
        shape = tuple(draw.integers(0 if draw.random() < 0.1 else 1, 6, ndim))
        picked = [(STEPS[draw.integers(len(STEPS))], *draw.integers(0, k + 2, 2)) for k in range(draw.integers(1, 4))]

        def f(x, y, picked=picked):
            known = [x, y]
            for step, a, b in picked:
                made = step(known[a], known[b])
                known += made if isinstance(made, tuple) else [made]
            return tuple(known[2:])

        arrays = [
            LAYOUTS[draw.integers(len(LAYOUTS)) if draw.random() < 0.4 else 0](
                (draw.standard_normal(shape) * 9).astype(dtype if dtype != ">f8" else float)
            )
            for _ in range(2)
        ]
        try:
            plan = piece(f, spec, spec)
            with np.errstate(all="ignore"):
                expected = plan(*arrays)
        except Exception:
            continue  # shapes that do not fit
        with np.errstate(all="ignore"):
            found = results_of(plan, tuple(arrays))
        assert type(found) is tuple
        for a, b in zip(found, expected, strict=True):
            same(a, b)
            if isinstance(a, np.ndarray) and (place := place_of(a)) is not None:
                same(arrived(place), b)
                moved += 1
    assert moved > 10


def test_other_nodes_do_not_lose_the_direction_of_their_memory():
    x = np.random.default_rng(7).standard_normal(N) * 1e3
    plan = piece(lambda x: (turned(x * 3), (x * 3)[::-1]), "float64[n]")
    found, expected = results_of(plan, (x,)), plan(x)
    for a, b in zip(found, expected, strict=True):
        same(a, b)
        assert a.sum().tobytes() == b.sum().tobytes()


if __name__ == "__main__":
    fork()
