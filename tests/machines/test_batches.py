"""Many small arrays in one: what is unpickled is what was pickled."""

import itertools
import pickle
import time

import numpy as np
import pytest

import pyop
from pyop.machines import tasks
from pyop.machines.batches import batch_of, calls_batch
from pyop.machines.bell import Bell
from pyop.machines.chunks import Chunks, Worth
from pyop.machines.memory import pack, unpack
from pyop.machines.tasks import Task, lend, run_task

from .test_segments import bits

DTYPES = ["float64", ">f8", "float32", "int8", "bool", "complex128", "longdouble", "M8[s]", "O", "S3", "float16"]


def drawn(draw):
    """An array of some kind, small or large, in some order, or something else."""
    if draw.random() < 0.02:
        return [None, 3.5, np.float64(2), "text", [np.ones(2)], np.ma.ones(2)][draw.integers(6)]
    shape = tuple(draw.integers(0 if draw.random() < 0.02 else 1, 4, draw.integers(0, 3)))
    x = (draw.standard_normal(shape) * 9).astype("float64")
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(draw.choice(DTYPES)) if draw.random() < 0.5 else np.asarray(x)


def like(x, draw):
    """Of the same kind, mostly."""
    if not isinstance(x, np.ndarray) or draw.random() < 0.01:
        return drawn(draw)
    y = np.array(x, copy=True)
    if y.dtype.kind in "fc" and y.size:
        y[...] = draw.choice([0.0, -0.0, np.nan, np.inf, -1.5, 2.0**-1074], y.shape)
    turn = draw.random()
    if turn < 0.01:
        y = np.asfortranarray(y)
    elif turn < 0.02:
        y.flags.writeable = False
    return y


def same(a, b):
    assert type(a) is type(b)
    if isinstance(b, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.strides == b.strides or not a.size
        assert a.tolist() == b.tolist() if b.dtype.hasobject else bits(a) == bits(b)
    elif isinstance(b, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


def there(thing, writable):
    return unpack(pickle.loads(pickle.dumps(pack(thing))), writable=writable)


@pytest.mark.parametrize("seed", range(6))
def test_what_comes_is_what_was_sent(seed):
    draw = np.random.default_rng(seed)
    batches = 0
    for _ in range(60):
        n = int(draw.integers(0, 40))
        firsts = [drawn(draw) for _ in range(draw.integers(0, 3))]
        columns = [[like(x, draw) for _ in range(n)] for x in firsts]
        if columns and n > 9 and draw.random() < 0.1:
            columns[0][7] = columns[0][3]
        calls = [(args, {}) for args in zip(*columns, strict=True)] if columns else [((), {})] * n
        if n and draw.random() < 0.05:
            calls[0] = (calls[0][0], {"named": np.ones(2)})
        sent = calls_batch(calls)
        batches += sent is not calls
        found = there(sent, False)
        lend(found)
        for (args, named), (given, named_given) in zip(found, calls, strict=True):
            assert type(args) is tuple
            assert type(named) is dict
            assert list(named) == list(named_given)
            for x, y in zip(args, given, strict=True):
                same(x, y)
                assert not (isinstance(x, np.ndarray) and x.flags.writeable)
        for column in columns:
            sent = batch_of(column)
            batches += sent is not column
            found, plain = there(sent, True), there(column, True)
            assert type(found) is list
            for x, y, z in zip(found, plain, column, strict=True):
                same(x, y)
                same(x, z)
                assert not isinstance(x, np.ndarray) or x.flags.writeable == y.flags.writeable
            arrays = [x for x in found if type(x) is np.ndarray and x.size and not x.dtype.hasobject]
            for a, b in itertools.pairwise(arrays):
                assert a is b or not np.shares_memory(a, b)
    assert batches > 15


def test_results_of_a_map_are_arrays_of_their_own():
    plan = pyop.trace(lambda x, y: x * 2 + y, "float64[n]", "float64").compile()
    inputs = [(np.full(3, float(k)), float(k)) for k in range(100)]
    for given_all in (inputs, [(x, np.array(y)) for x, y in inputs]):
        found = plan.map(given_all, executor=1, progress=False, chunk=50)
        for x, given in zip(found, given_all, strict=True):
            same(x, plan(*given))
            x += 1
        for x, given in zip(found, given_all, strict=True):
            same(x, plan(*given) + 1)


def cuts(chunks, seconds, at_once):
    """The pieces that were begun, where so many are on their way and each call takes so long."""
    pieces, running, made = [], [], []
    while True:
        while len(running) < at_once and (cut := chunks.next()) is not None:
            pieces.append(cut)
            running.append(cut)
        if not running:
            return pieces, sorted(made)
        start, stop = running.pop(0)
        done = min(stop - start, 1 + int(chunks.patience / seconds))
        made += range(start, start + done)
        chunks.took(done, done * seconds)
        if start + done < stop:
            chunks.back(start + done, stop)


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("seconds", [1e-7, 1e-5, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("total", [0, 1, 2, 7, 1000, 10_000])
def test_pieces_are_all_of_the_items_and_not_many(workers, seconds, total, shares):
    worth = Worth(0.5, 0.15, shares)
    pieces, made = cuts(Chunks("auto", [((), {})] * total, workers, worth), seconds, 2 * workers)
    assert made == [*range(total)]
    assert all(stop - start <= total / workers + 1 for start, stop in pieces)
    # Half of what is left among the workers, again and again; at the end what is worth it; and what came back.
    each = worth.most / seconds
    most = 4 * workers + total / max(each, 1) + 2 * workers * (2 + np.log2(1 + min(total, 20 * each)))
    assert len(pieces) <= most
    if seconds == 1e-4 and total == 10_000 and workers == 2:
        assert len(pieces) == 2 if shares else len(pieces) <= 8


def test_what_comes_back_goes_first_and_only_what_is_before_an_item_that_failed():
    chunks = Chunks("auto", [((), {})] * 100, 2, Worth())
    first, second = chunks.next(), chunks.next()
    chunks.took(1, 1.0)
    chunks.back(first[0] + 1, first[1])
    assert chunks.next(before=5) == (1, 2)
    assert chunks.next(before=2) is None
    assert second[0] == first[1]


def test_a_task_that_is_rung_comes_back_with_what_it_has():
    bell, calls = Bell(), []
    first, second = bell.rope(), bell.rope()

    def call(x):
        calls.append(x)
        if len(calls) == 3:
            bell.ring(second)

    def task(rope):
        return Task("a digest", None, pack([((k,), {}) for k in range(7)]), None, np.geterr(), 60.0, rope)

    tasks._callees["a digest"] = call
    try:
        assert len(unpack(run_task(task(second)).results)) == 3
        assert len(unpack(run_task(task(second)).results)) == 1  # it does something
        assert len(unpack(run_task(task(first)).results)) == 7
        bell.close()
        assert len(unpack(run_task(task(second)).results)) == 7  # nobody is there to hear
    finally:
        del tasks._callees["a digest"]


def test_slow_calls_come_back_and_the_first_exception_is_raised():
    @pyop.op("float64[n] -> float64[n]")
    def slow(x):
        time.sleep(0.03)
        if x[0] in (3, 30):
            raise ValueError(f"not {x[0]:.0f}")
        return x + 1

    plan = pyop.trace(slow, "float64[n]").compile()
    given = [np.full(2, float(k)) for k in range(40)]
    with pytest.raises(ValueError, match=r"not 3\n"):
        plan.map(given, executor=2, progress=False)
    found = plan.map([x for x in given if x[0] not in (3, 30)], executor=2, progress=False)
    assert [x[0] for x in found] == [k + 1 for k in range(40) if k not in (3, 30)]
