"""B19: what profiling costs a call of an op and a node of a plan, while a profile runs and while none does.

"Off" cannot be timed against a build without profiling in one run. What it adds to a call is one branch on a flag, so
the row compares calls before any profile has run in the process with calls after one has: whatever a profile leaves
behind would show. The branch itself is counted in instructions: `python -m benchmarks.callgrind op`.

The last two rows are the floor of any event, a ring that is always on included: reads of the processor's counter, alone
and with the 16 bytes of a begin and an end stored in a ring, in a loop in C that does nothing else.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pyop

from .harness import Harness, Row, Statement

FLOOR = """
#include <stdint.h>
#if defined(__x86_64__)
static uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }
#elif defined(__aarch64__)
static uint64_t ticks(void) { uint64_t t; __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t)); return t; }
#else
#include <time.h>
static uint64_t ticks(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
#endif
static uint64_t ring[2048];
uint64_t reads(long n) { uint64_t sum = 0; for (long i = 0; i < n; ++i) sum += ticks(); return sum; }
uint64_t events(long n) {
    for (long i = 0; i < n; ++i) {
        volatile uint64_t *event = ring + (i & 1023) * 2;
        event[0] = ticks();
        event[1] = ticks();
    }
    return ring[0];
}
"""


def run(harness: Harness) -> list[Row]:
    """An eager op on eight float64, and a plan of 100 Python nodes."""
    x = np.arange(8.0)
    nodes = 100
    fns = [lambda x: x for _ in range(nodes)]
    op = pyop.op("float64[n] -> float64[n]")(fns[0])
    ops = [pyop.op("float64[n] -> float64[n]")(f) for f in fns]

    def chain(x):  # type: ignore[no-untyped-def]
        for f in ops:
            x = f(x)
        return x

    plan = pyop.trace(chain, "float64[n]").compile()
    native = pyop.trace(lambda a: a * 2 + a, "float64[n]").compile()
    works: dict[str, tuple[Statement, int]] = {
        "op": (Statement("f(x)", {"f": op, "x": x}), 1),
        "plan": (Statement("f(x)", {"f": plan, "x": x}, unroll=2), nodes + 1),
        "native": (Statement("f(x)", {"f": native, "x": x}), 2),
    }
    rows = []
    clock = time.thread_time_ns
    details = {}
    for name, (statement, events) in works.items():
        loop = statement.compile(clock)
        count = calibrate(loop, harness.sample_ns)
        before = [loop(count) for _ in range(harness.rounds)]
        off, on = [], []
        for _ in range(harness.rounds):
            off.append(loop(count))
            with pyop.profile(events=10_000):
                on.append(loop(count))
        calls = count * statement.unroll
        cost = statistics.median((b - a) / calls / events for a, b in zip(off, on, strict=True))
        details[name] = min(off) / min(before)
        what = {
            "op": "an eager op while a profile runs, more than while none does",
            "plan": f"a node of a plan of {nodes} Python nodes, the same",
            "native": "a plan of one fused group (two events), each event",
        }[name]
        detail = f"{statistics.median(off) / calls:.0f} ns off, {statistics.median(on) / calls:.0f} ns on"
        rows.append(Row("B19", what, "≤ 50 ns", cost, 50, unit="ns", detail=detail))
    worst = max(details.values())
    detail = ", ".join(f"{name} {ratio:.3f}×" for name, ratio in details.items())
    rows.insert(
        0,
        Row("B19", "off: after a profile over before any (least of the rounds)", "≤ 1.01×", worst, 1.01, detail=detail),
    )
    return rows + floor(harness)


def floor(harness: Harness) -> list[Row]:
    """What the clock alone costs an event."""
    labels = {
        "reads": "the floor: one read of the processor's counter",
        "events": "the floor of an event in a ring that is always on: two reads, 16 bytes stored",
    }
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return [
            Row("B19", what, "≤ 12 ns", None, 12, unit="ns", detail="needs a C compiler") for what in labels.values()
        ]
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "floor.c", Path(folder) / "floor.so"
        source.write_text(FLOOR)
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
        loaded = ctypes.CDLL(str(library))
    count = max(1000, harness.sample_ns // 50)
    samples: dict[str, list[float]] = {name: [] for name in labels}
    for _ in range(harness.rounds):
        for name, times in samples.items():
            function = getattr(loaded, name)
            function.argtypes, function.restype = [ctypes.c_long], ctypes.c_uint64
            begin = time.thread_time_ns()
            function(count)
            times.append((time.thread_time_ns() - begin) / count)
    return [
        Row(
            "B19",
            what,
            "≤ 12 ns",
            statistics.median(samples[name]),
            12,
            unit="ns",
            detail=f"least {min(samples[name]):.1f} ns",
        )
        for name, what in labels.items()
    ]


def calibrate(loop: Callable[[int], int], sample_ns: int) -> int:
    """Turns of the loop that fill a sample."""
    count = 1
    while (elapsed := loop(count)) < sample_ns / 4:
        count *= 4
    return max(1, round(count * sample_ns / elapsed))
