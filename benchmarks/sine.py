"""B28: compiled transcendental functions of float64 against NumPy's, where NumPy's loop is libm's.

``python -m benchmarks.sine 1000000000`` compares as many values of each function with NumPy's, bit by bit.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import pyop
import pyop.debug

from .harness import Harness, Row, Statement

# Where arguments lie, and what is aimed at.
FUNCTIONS = {
    "sin": ((-10.0, 10.0), 2.5),
    "cos": ((-10.0, 10.0), 2.5),
    "exp": ((-10.0, 10.0), 1.0),
    "log": ((0.01, 100.0), 1.0),
    "exp2": ((-10.0, 10.0), 1.0),
    "log2": ((0.01, 100.0), 1.0),
}
SIZES = (1_000, 10_000, 1_000_000, 10_000_000)
BLOCK = 1 << 16


def _on(name: str) -> bool:
    """Whether a function has such a kernel here, once it has been asked for."""
    pyop.compile(getattr(np, name))(np.ones(8))
    return pyop.debug.exact_kernels().get(name) == "on"


def run(harness: Harness) -> list[Row]:
    """A function alone, by size."""
    return [_row(harness, name, n) for name in FUNCTIONS for n in (SIZES[:2] if harness.quick else SIZES)]


def _row(harness: Harness, name: str, n: int) -> Row:
    (low, high), aim = FUNCTIONS[name]
    what = f"np.{name} of {n:,} float64, compiled, over NumPy"
    budget = f"≤ 1/{aim:g}" if aim > 1 else "≤ 1"
    ufunc = getattr(np, name)
    f = pyop.compile(ufunc)
    x = np.random.default_rng(0).uniform(low, high, n)
    if not _on(name) or f(x).tobytes() != ufunc(x).tobytes():
        why = pyop.debug.exact_kernels().get(name, "no such kernel for this processor")
        return Row("B28", what, budget, None, 1 / aim, detail=why)
    unroll = 20 if n <= 10_000 else 1
    times = harness.compare(
        {
            "numpy": Statement("f(x)", {"f": ufunc, "x": x}, unroll=unroll),
            "pyop": Statement("f(x)", {"f": f, "x": x}, unroll=unroll),
        }
    )
    detail = f"{times.ns('pyop') / n:.1f} ns an element, NumPy {times.ns('numpy') / n:.1f}"
    detail += f": {times.ratio('numpy', 'pyop'):.2f} times as fast"
    return Row("B28", what, budget, times.ratio("pyop", "numpy"), 1 / aim, detail=detail)


def arguments(name: str, rng: np.random.Generator, turn: int) -> np.ndarray:
    """A block of arguments: usual ones, those of all sizes, and now and then any bits at all."""
    (low, high), _ = FUNCTIONS[name]
    if turn % 64 == 63:
        return rng.integers(0, 2**64, BLOCK, np.uint64).view(float)
    if turn % 4 == 2:  # doubles are ordered as their bits are
        ends = np.array([2.0**-30, 2.0**26 if name in ("sin", "cos") else 709.0]).view(np.int64)
        sizes = rng.integers(*ends, BLOCK).view(float)
        return sizes if low > 0 else np.where(rng.random(BLOCK) < 0.5, sizes, -sizes)
    if name in ("log", "log2") and turn % 4 == 1:
        low, high = 0.5, 2.0
    x = rng.random(BLOCK)
    x *= high - low
    x += low
    return x


def campaign(values: int, names: list[str]) -> int:
    """Compare; how many values differ."""
    differing = 0
    for name in names:
        if not _on(name):
            print(f"{name}: {pyop.debug.exact_kernels().get(name)}")
            continue
        ufunc = getattr(np, name)
        f = pyop.compile(ufunc)
        rng = np.random.Generator(np.random.SFC64(2**31 - 1))
        begin, wrong, turns = time.perf_counter(), 0, -(-values // BLOCK)
        with np.errstate(all="ignore"):
            for turn in range(turns):
                x = arguments(name, rng, turn)
                wrong += np.count_nonzero(f(x).view(np.int64) != ufunc(x).view(np.int64))
        print(f"{name}: {turns * BLOCK:,} values, {wrong} differ, {time.perf_counter() - begin:.0f} s", flush=True)
        differing += wrong
    return differing


if __name__ == "__main__":
    sys.exit(1 if campaign(int(sys.argv[1]), sys.argv[2:] or list(FUNCTIONS)) else 0)
