"""B24, B25: kernels as people write them (tests/programs), compiled, against NumPy, and numba and DaCe if installed.

Each is measured in a process of its own: what becomes of it, its first call on arrays of the medium size (in a process
that has compiled something else before), then calls in turn. Kernels write into their arguments, so that every call
gets new ones, which nobody counts.
"""

from __future__ import annotations

import contextlib
import gc
import math
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from . import child, kernel_peers
from .harness import Harness, Row

sys.path.append(str(child.ROOT / "tests"))

from programs.judge import PLAINLY, RIGHT, WRONG, judge
from programs.registry import Kernel, kernels

NUMPY, PYOP = "NumPy", "pyop"
# One kernel in so many may be refused, or run as it is.
ONE_IN = 30
FASTER, FIRST_CALL = 3.0, 50.0
LIMIT = 120.0


def run(harness: Harness) -> list[Row]:
    """Totals, each kernel, the loop and the track."""
    names = list(kernels())
    if harness.quick:
        names = [*{kernel.family: name for name, kernel in kernels().items()}.values()]
    settings = {"size": "small" if harness.quick else "medium", "rounds": harness.rounds}
    peers = [] if harness.quick else kernel_peers.installed()
    found = {name: _measured(name, settings, peers) for name in names}
    return [*_totals(found), *[_row(name, one) for name, one in found.items()], *_loop(harness), *_track(harness)]


def _measured(name: str, settings: dict[str, Any], peers: list[str]) -> dict[str, Any]:
    try:
        found: dict[str, Any] = child.call("kernels:measure", {"name": name, **settings}, limit=LIMIT)
    except Exception as error:
        return {"outcome": "broken", "why": str(error)[-300:]}
    for peer in peers:
        try:
            found[peer] = child.call("kernels:measure_peer", {"name": name, "peer": peer, **settings}, limit=LIMIT)
        except Exception:  # a compiler that takes too long, or dies of it
            found[peer] = {"outcome": "dies"}
    return found


def measure(name: str, size: str, rounds: int) -> dict[str, Any]:
    """What becomes of a kernel, milliseconds of its first call, ns of a call, and how many times as fast as NumPy."""
    kernel = kernels()[name]
    _first_of_all()
    compiled = pyop.compile(kernel.function)
    first = _first(compiled, kernel, size)
    found = {"first": first, **_steady(kernel, size, rounds, PYOP, compiled)} if first is not None else {}
    judgement = judge(kernel)
    return {"outcome": judgement.outcome, "why": judgement.why, **found}


def measure_peer(name: str, peer: str, size: str, rounds: int) -> dict[str, Any]:
    """The same of another compiler: whether it takes the kernel, and gives what NumPy gives, nearly."""
    kernel = kernels()[name]
    with kernel_peers.compiler(peer) as compiler:
        compiled = compiler(kernel.function)
        first = _first(compiled, kernel, size)
        if first is None:
            return {"outcome": "refuses"}
        mine, theirs = kernel.make(size), kernel.make(size)
        results = kernel.function(*mine), compiled(*theirs)
        if not all(_near(a, b) for a, b in zip((results[0], *mine), (results[1], *theirs), strict=True)):
            return {"outcome": "differs"}
        return {"outcome": "takes", "first": first, **_steady(kernel, size, rounds, peer, compiled)}


def _warm(x: Any, y: Any) -> Any:
    """What compiles it loads what any kernel needs."""
    z = np.zeros(3)
    for k in range(3):
        z[k] = x[k] + y[k, 0]
        if z[k] > 0:
            y[k] += z
    return z


def _first_of_all() -> None:
    with contextlib.suppress(Exception):
        pyop.compile(_warm)(np.ones(3), np.ones((3, 3)))


def _first(function: Callable[..., Any], kernel: Kernel, size: str) -> float | None:
    """Milliseconds; none where it raises."""
    arguments = kernel.make(size)
    begin = _with_children()
    try:
        function(*arguments)
    except Exception:
        return None
    return (_with_children() - begin) / 1e6


def _with_children() -> float:
    """Nanoseconds of this process and of the compilers that it has run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + (used.ru_utime + used.ru_stime) * 1e9


def _steady(kernel: Kernel, size: str, rounds: int, name: str, other: Callable[..., Any]) -> dict[str, Any]:
    """NumPy and another in turn."""
    functions = {NUMPY: kernel.function, name: other}
    samples: dict[str, list[float]] = {name: [] for name in functions}
    _calls(kernel, size, kernel.function, 2)
    calls = max(1, min(200, round(3e6 / _calls(kernel, size, kernel.function, 3))))
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for which, function in functions.items():
            samples[which].append(_calls(kernel, size, function, calls))
    gc.enable()
    faster = statistics.median(a / b for a, b in zip(samples[NUMPY], samples[name], strict=True))
    return {"faster": faster, "ns": {which: statistics.median(times) for which, times in samples.items()}}


def _calls(kernel: Kernel, size: str, function: Callable[..., Any], calls: int) -> float:
    """Nanoseconds of the median call, by the clock of the process."""
    taken = []
    for _ in range(calls):
        arguments = kernel.make(size)
        begin = time.process_time_ns()
        function(*arguments)
        taken.append(time.process_time_ns() - begin)
    return statistics.median(taken)


def _near(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_near, a, b))
    if a is None or b is None:
        return a is b
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)


def _totals(found: dict[str, dict[str, Any]]) -> list[Row]:
    counts = Counter(one["outcome"] for one in found.values())
    timed = [one for one in found.values() if "faster" in one and one["outcome"] in (RIGHT, PLAINLY)]
    others = "; ".join(f"{count} {outcome}" for outcome, count in counts.items())
    bad = counts[WRONG] + counts["broken"]
    rest = len(found) - counts[RIGHT]
    what = f"of {len(found)} kernels"
    rows = [
        Row("B24", f"{what}, not right as plans", f"≤ 1 in {ONE_IN}", rest, len(found) / ONE_IN, "kernels", others),
        Row("B24", f"{what}, wrong", "none", bad, 0, "kernels"),
    ]
    mean = math.exp(statistics.fmean(-math.log(one["faster"]) for one in timed)) if timed else None
    detail = f"{1 / mean:.2f} times faster, geometric mean of {len(timed)}" if mean else ""
    rows.append(Row("B24", "kernels that run, compiled over NumPy", f"≤ 1/{FASTER:g}", mean, 1 / FASTER, detail=detail))
    first = sorted(one["first"] for one in timed)
    middle = statistics.median(first) if first else None
    detail = f"from {first[0]:.1f} to {first[-1]:,.0f} ms" if first else ""
    rows.append(Row("B24", "first call, median", f"≤ {FIRST_CALL:g} ms", middle, FIRST_CALL, "ms", detail))
    peers = kernel_peers.installed()
    return [*rows, *[row for peer in peers for row in _beside(peer, found)]]


def _beside(peer: str, found: dict[str, dict[str, Any]]) -> list[Row]:
    told = [one for one in found.values() if peer in one]
    both = [one for one in told if "faster" in one and "faster" in one[peer]]
    if not both:
        return []
    ratio = math.exp(statistics.fmean(math.log(one[peer]["faster"] / one["faster"]) for one in both))
    mean = math.exp(statistics.fmean(math.log(one[peer]["faster"]) for one in both))
    sooner = statistics.median(one["first"] / one[peer]["first"] for one in both)
    counts = Counter(one[peer]["outcome"] for one in told)
    detail = f"{peer} {mean:.2f} times faster than NumPy; of {len(told)} it " + ", ".join(
        f"{word} {n}" for word, n in counts.items()
    )
    what = f"{len(both)} kernels that both take, over {peer}"
    return [
        Row("B24", what, "reported", ratio, math.inf, detail=detail),
        Row("B24", f"first call over {peer}'s, median", "reported", sooner, math.inf),
    ]


def _row(name: str, one: dict[str, Any]) -> Row:
    outcome = one["outcome"] if not one["why"] else f"{one['outcome']} ({' '.join(one['why'].split())[:160]})"
    details = [outcome]
    if "faster" in one:
        ns = one["ns"]
        details.append(
            f"{one['faster']:.2f} times faster: {ns[PYOP] / 1e3:,.0f} µs, NumPy {ns[NUMPY] / 1e3:,.0f} µs, "
            f"first call {one['first']:,.1f} ms"
        )
    for peer in kernel_peers.installed():
        beside = one.get(peer, {})
        if "faster" in beside:
            details.append(f"{peer} {beside['faster']:.2f} times, first call {beside['first']:,.0f} ms")
        elif beside:
            details.append(f"{peer} {beside['outcome']}")
    ratio = 1 / one["faster"] if "faster" in one else None
    return Row("B24", f"{name}, compiled over NumPy", "reported", ratio, math.inf, detail="; ".join(details))


def decay(x: Any, pull: Any, steps: int) -> Any:
    """Three operations on eight numbers, again and again."""
    for _ in range(steps):
        x = x * 0.999
        x = x + pull
        x = np.maximum(x, 0.0)
    return x


def loop(steps: int) -> dict[str, float]:
    """Milliseconds of the first call and ns of the next ones, of the loop and of NumPy."""
    _first_of_all()
    kernel = Kernel("decay", "", decay, lambda r, n: (r.uniform(size=8), r.normal(size=8), n), {"medium": (steps,)})
    compiled = pyop.compile(decay)
    first = _first(compiled, kernel, "medium")
    if first is None:
        raise RuntimeError("refused")
    want, got = decay(*kernel.make("medium")), compiled(*kernel.make("medium"))
    assert np.array_equal(want, got)
    return {"first": first, **_steady(kernel, "medium", 3, PYOP, compiled)["ns"]}


def track(steps: int, rounds: int) -> dict[str, Any]:
    """A Kalman filter over so many measurements in one call."""
    of = kernels()["kalman_track"]
    kernel = Kernel(of.name, of.family, of.function, of.inputs, {"medium": (steps,)})
    compiled = pyop.compile(kernel.function)
    first = _first(compiled, kernel, "medium")
    if first is None:
        raise RuntimeError("refused")
    return {"first": first, **_steady(kernel, "medium", rounds, PYOP, compiled)}


def _loop(harness: Harness) -> list[Row]:
    steps = 100 if harness.quick else 100_000
    what = f"a for of {steps:,} iterations, 3 operations on 8 numbers"
    try:
        found = child.call("kernels:loop", {"steps": steps}, limit=LIMIT)
    except Exception as error:
        return [Row("B25", what, "≤ 60 ns an iteration", None, 60, detail=str(error)[-200:])]
    each, numpy = found[PYOP] / steps, found[NUMPY] / steps
    compiling = found["first"] - found[PYOP] / 1e6
    return [
        Row(
            "B25",
            what,
            "≤ 60 ns an iteration",
            each,
            60,
            "ns",
            f"NumPy {numpy:,.0f} ns: {numpy / each:.1f} times faster",
        ),
        Row("B25", f"{what}: the first call beyond a later one", "≤ 5 ms", max(compiling, 0.0), 5, "ms"),
    ]


def _track(harness: Harness) -> list[Row]:
    steps = 20 if harness.quick else 1000
    what = f"Kalman track of {steps:,} steps, compiled over NumPy"
    try:
        found = child.call("kernels:track", {"steps": steps, "rounds": harness.rounds}, limit=LIMIT)
    except Exception as error:
        return [Row("B25", what, "≤ 1/15", None, 1 / 15, detail=str(error)[-200:])]
    detail = f"{found['faster']:.2f} times faster, first call {found['first']:,.0f} ms"
    return [Row("B25", what, "≤ 1/15", 1 / found["faster"], 1 / 15, detail=detail)]
