"""B10: the last reference to an object dropped on a thread without the GIL; a chain of a million nodes destroyed."""

from __future__ import annotations

import gc
import statistics
import threading
import time

from .graph import chain, identity
from .harness import Harness, Row

SMALL_STACK = 64 * 1024  # a recursion over the nodes would need a thousand times as much


def detached_drop(harness: Harness) -> Row:
    """Measured in C++: Python code always holds the GIL."""
    what, budget = "last reference dropped on a detached thread", "≤ 50 ns"
    try:
        from pyop import _ctests
    except ImportError:
        why = "needs pyop._ctests: pip install -Ccmake.define.PYOP_TESTS=ON ."
        return Row("B10", what, budget, None, 50, "ns", why)
    count = 10_000 if harness.quick else 100_000
    rounds = [_ctests.bench_drop(count) for _ in range(harness.rounds)]
    attached, detached, drained = (statistics.median(column) for column in zip(*rounds, strict=True))
    detail = f"attached {attached:.0f} ns; drained later {drained:.0f} ns"
    return Row("B10", what, budget, detached, 50, "ns", detail)


def seconds_to_destroy(length: int) -> float:
    """CPU time to destroy a chain on a thread with hardly any stack, with the pass of the cycle collector it needs."""
    held = [chain(identity(), length)]
    gc.collect()
    took: list[float] = []

    def destroy() -> None:
        begin = time.thread_time()
        held.clear()
        gc.collect()  # a graph and its output Values hold each other
        took.append(time.thread_time() - begin)

    before = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=destroy)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return took[0]


def run(harness: Harness) -> list[Row]:
    """The drop, then the chain."""
    length = 10_000 if harness.quick else 1_000_000
    seconds = statistics.median(seconds_to_destroy(length) for _ in range(min(harness.rounds, 5)))
    what = f"destroying a chain of {length:,} nodes"
    detail = f"{seconds / length * 1e9:.0f} ns a node, on a stack of {SMALL_STACK // 1024} KiB"
    return [detached_drop(harness), Row("B10", what, "≤ 1 s", seconds, 1, "s", detail)]
