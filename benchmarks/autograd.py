"""B11, B12, B13: what a Function costs to call, to go through backward, and to keep; torch beside it if installed.
C14: what `pyop.vjp` costs around an op whose rule does nothing."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pyop

from .graph import resident_bytes
from .harness import Comparison, Harness, Row, Statement

try:
    import torch
except ImportError:
    torch = None

LENGTH = 100


class Empty(pyop.Function):
    """Nothing in, nothing out: only the call remains."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return None

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Copy(pyop.Function):
    """The least that makes a new array."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.copy()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def in_torch(copies: bool) -> Any:
    """The same two in torch."""

    def forward(ctx: Any, x: Any) -> Any:
        return x.clone() if copies else None

    def backward(ctx: Any, g: Any) -> Any:
        return g

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Same", (torch.autograd.Function,), methods)


def chain(function: Any, leaf: Any, seed: Any) -> Callable[[], None]:
    """A chain built and gone through backward."""

    def run(apply: Any = function.apply) -> None:
        y = leaf
        for _ in range(LENGTH):
            y = apply(y)
        y.backward(seed)
        leaf.grad = None

    return run


def tape(array: Any) -> Callable[[], None]:
    """The same by hand: a list of closures, called in reverse."""

    def run() -> None:
        closures: list[Callable[[Any], Any]] = []

        def step(x: Any) -> Any:
            closures.append(lambda g: g)
            return x.copy()

        y = array
        for _ in range(LENGTH):
            y = step(y)
        g = array
        for closure in reversed(closures):
            g = closure(g)

    return run


def against_torch(row: str, what: str, budget: str, limit: float, times: Comparison, ours: str, theirs: str) -> Row:
    """A row of a ratio to torch, if torch took part."""
    if theirs not in times.samples:
        return Row(row, what, budget, None, limit, detail="torch is not installed")
    detail = f"{times.ns(ours) / 1000:.2f} µs, torch {torch.__version__} {times.ns(theirs) / 1000:.2f} µs"
    return Row(row, what, budget, times.ratio(ours, theirs), limit, detail=detail)


def calls(harness: Harness) -> list[Row]:
    """B11."""
    array = np.ones(8)
    candidates = {
        "bare": Statement("f(None, x)", {"f": Empty.forward, "x": array}),
        "no": Statement("f(x)", {"f": Empty.apply, "x": pyop.Tensor(array)}),
        "grad": Statement("f(x)", {"f": Empty.apply, "x": pyop.Tensor(array, requires_grad=True)}),
    }
    if torch is not None:
        apply = in_torch(copies=False).apply
        candidates["torch no"] = Statement("f(x)", {"f": apply, "x": torch.ones(8, dtype=torch.float64)})
        leaf = torch.ones(8, dtype=torch.float64, requires_grad=True)
        candidates["torch grad"] = Statement("f(x)", {"f": apply, "x": leaf})
    times = harness.compare(candidates)
    rows = []
    for name, words, limit in (("no", "nothing requires grad", 0.25), ("grad", "requires grad", 0.6)):
        what = f"Function.apply, empty body, {words}"
        detail = f"{times.ns(name):.0f} ns, bare {times.ns('bare'):.0f} ns"
        rows.append(Row("B11", what, f"≤ {limit} µs", times.ns(name) / 1000, limit, "µs", detail))
        rows.append(
            against_torch("B11", f"the same, {words}, over torch", "≤ 1/4", 1 / 4, times, name, f"torch {name}")
        )
    return rows


def chains(harness: Harness) -> list[Row]:
    """B12."""
    array = np.ones(8)
    whole = {"chain": chain(Copy, pyop.Tensor(array, requires_grad=True), array), "tape": tape(array)}
    if torch is not None:
        leaf = torch.ones(8, dtype=torch.float64, requires_grad=True)
        whole["torch"] = chain(in_torch(copies=True), leaf, torch.ones(8, dtype=torch.float64))
    times = harness.compare({name: Statement("f()", {"f": f}, unroll=1) for name, f in whole.items()})
    what = f"chain of {LENGTH}, forward and backward"
    detail = f"{times.ns('chain') / LENGTH:.0f} ns a node, tape {times.ns('tape') / LENGTH:.0f} ns"
    return [
        against_torch("B12", f"{what}, over torch", "≤ 1/8", 1 / 8, times, "chain", "torch"),
        Row("B12", f"{what}, over a tape of closures", "≤ 2.5×", times.ratio("chain", "tape"), 2.5, detail=detail),
    ]


@pyop.op("float64[n] -> float64[n]")
def doubled(x: Any) -> Any:
    """An op with the cheapest of rules."""
    return x * 2.0


@doubled.vjp
def _rule(ct: Any, x: Any) -> Any:
    return ct


def transformed(harness: Harness) -> list[Row]:
    """C14."""
    array = np.ones(8)
    candidates = {
        "bare": Statement("f(x)", {"f": doubled.__wrapped__, "x": array}, unroll=10),
        "vjp": Statement("f(g, x)[1](x)", {"f": pyop.vjp, "g": doubled, "x": array}, unroll=10),
    }
    times = harness.compare(candidates)
    detail = f"{times.ns('vjp') / 1000:.2f} µs, the function of the op {times.ns('bare') / 1000:.2f} µs"
    value = (times.ns("vjp") - times.ns("bare")) / 1000
    return [Row("C14", "eager vjp of an op and its pullback, over the bare call", "≤ 8 µs", value, 8, "µs", detail)]


def peak_bytes() -> int:
    """The most memory of this process that was in RAM since the mark was last reset."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def report_memory(length: int) -> None:
    """Print what a node of a chain takes, and what backward takes beyond. For a fresh process."""
    x, seed = pyop.Tensor(np.ones(8), requires_grad=True), np.ones(8)

    def build(length: int) -> pyop.Tensor:
        y: Any = x
        for _ in range(length):
            y = Copy.apply(y)
        return y

    build(1000).backward(seed)
    gc.collect()
    before = resident_bytes()
    y = build(length)
    built = resident_bytes()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        extra = float("nan")
    else:
        y.backward(seed)
        extra = (peak_bytes() - built) / length
    print((built - before) / length, extra)


def memory(harness: Harness) -> list[Row]:
    """B13."""
    length = 20_000 if harness.quick else 100_000
    kept = extra = None
    detail = "needs /proc/self/statm"
    if Path("/proc/self/statm").exists():
        command = [sys.executable, "-m", __name__, str(length)]
        root = Path(__file__).parent.parent
        samples = []
        for _ in range(min(harness.rounds, 5)):
            done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root, env=os.environ)
            samples.append([float(word) for word in done.stdout.split()])
        kept, extra = (statistics.median(column) for column in zip(*samples, strict=True))
        extra = None if extra != extra else max(extra, 0.0)
        detail = f"chain of {length:,}, growth of the resident set"
    what = "bytes a node that backward adds at its peak"
    return [
        Row("B13", "bytes a node", "≤ 300 bytes", kept, 300, "bytes", detail),
        Row("B13", what, "≤ 60 bytes", extra, 60, "bytes", "the mark of the kernel, reset before backward"),
    ]


def run(harness: Harness) -> list[Row]:
    """Calls, chains, transformations, memory."""
    if torch is not None:
        torch.set_num_threads(1)
    return [*calls(harness), *chains(harness), *transformed(harness), *memory(harness)]


if __name__ == "__main__":
    report_memory(int(sys.argv[1]))
