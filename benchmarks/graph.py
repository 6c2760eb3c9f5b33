"""B8: what a node costs to build and to keep, and whether compiling and running stay linear up to a million nodes."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import pyop

from .harness import Harness, Row


def chain(op: pyop.Op, length: int) -> pyop.Graph:
    """A graph of `length` nodes, each fed by the one before."""
    with pyop.Graph() as graph:
        value = graph.input("float64[n]", name="x")
        for _ in range(length):
            value = op(value)
        graph.output(value)
    return graph


def identity() -> pyop.Op:
    """The op that the chains repeat."""
    return pyop.op("float64[n] -> float64[n]")(lambda x: x)


def build_ns(harness: Harness, length: int) -> float:
    """Nanoseconds a node to build a chain from Python; taking it apart again is not counted."""
    op = identity()
    samples = []
    for _ in range(harness.rounds):
        gc.collect()
        begin = time.thread_time_ns()
        graph = chain(op, length)
        samples.append((time.thread_time_ns() - begin) / length)
        del graph
    return statistics.median(samples)


def resident_bytes() -> int:
    """Memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def report_memory(length: int) -> None:
    """Print the bytes a node by which this process grows. For a fresh process: a used heap has room to hide in."""
    op = identity()
    warm = chain(op, 100)
    gc.collect()
    before = resident_bytes()
    graph = chain(op, length)
    gc.collect()
    print((resident_bytes() - before) / length)
    del graph, warm


def bytes_a_node(length: int) -> float:
    """`report_memory` in a fresh process."""
    command = [sys.executable, "-m", __name__, str(length)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    return float(done.stdout)


def growth(harness: Harness, small: int, large: int) -> tuple[float, float, float]:
    """Compile and run: ns a node at both lengths, and the median ratio of the rounds."""
    op = identity()
    graphs = {length: chain(op, length) for length in (small, large)}
    x = np.arange(8.0)
    samples: dict[int, list[float]] = {small: [], large: []}
    for _ in range(min(harness.rounds, 7)):
        for length, graph in graphs.items():
            gc.collect()
            begin = time.thread_time_ns()
            graph.compile()(x)
            samples[length].append((time.thread_time_ns() - begin) / length)
    ratio = statistics.median(b / a for a, b in zip(samples[small], samples[large], strict=True))
    return statistics.median(samples[small]), statistics.median(samples[large]), ratio


def run(harness: Harness) -> list[Row]:
    """Build, memory, growth."""
    small, large = (1_000, 10_000) if harness.quick else (10_000, 1_000_000)
    build = build_ns(harness, small)
    if Path("/proc/self/statm").exists():
        memory, why = bytes_a_node(large // 2), f"chain of {large // 2:,}, growth of the resident set"
    else:
        memory, why = None, "needs /proc/self/statm"
    at_small, at_large, ratio = growth(harness, small, large)
    return [
        Row("B8", "building a node from Python", "≤ 1.5 µs", build / 1000, 1.5, "µs", f"chain of {small:,}"),
        Row("B8", "memory a node", "≤ 300 bytes", memory, 300, "bytes", why),
        Row(
            "B8",
            f"compile and run a node, {large:,} nodes over {small:,}",
            "≤ 1.5×",
            ratio,
            1.5,
            detail=f"{at_large:.0f} ns a node, at {small:,} {at_small:.0f} ns",
        ),
    ]


if __name__ == "__main__":
    report_memory(int(sys.argv[1]))
