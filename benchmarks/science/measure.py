"""One program, compiled: whether its bits are NumPy's, what its first call costs, and how fast it is after that."""

from __future__ import annotations

import contextlib
import gc
import itertools
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyop

from .. import child
from .registry import Program, programs

sys.path.append(str(child.ROOT / "tests"))

from silence.compare import aliased, differs, sharing

FRESH = 5
CALLS = FRESH + 2  # of `compare`
_FOLDER = f"{child.ROOT}/benchmarks/science/"
_ROUND_NS = 1e7
Outcome = tuple[Any, list[Any]]


def measure(name: str, rounds: int) -> dict[str, Any]:
    """Everything that is told of a program, for JSON.

    The first compiled call is timed in a process that has compiled something else before; bits are compared in the
    calls after it and once more when all has been timed. Times are of the process, with the compilers that it runs.
    """
    one = programs()[name]
    _first_of_all()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plain = _plain_ns(one)
        compiled = pyop.compile(one.function)
        arguments = one.make()
        begin = _with_children()
        with contextlib.suppress(Exception):
            compiled(*arguments)
        first = _with_children() - begin
        begin = _with_children()
        wrong, types = compare(one, compiled)
        settling = _with_children() - begin
        fresh, whole = _faster(one, compiled, rounds, plain, itertools.count(100))
        again = compare(one, compiled, itertools.count(50))
        # Another that has never seen other data, and so has not given up.
        same, _ = _faster(one, _used(one), rounds, plain, itertools.repeat(0))
    texts = [
        str(each.message).replace(_FOLDER, "") for each in caught if issubclass(each.category, pyop.RetraceWarning)
    ]
    return {
        "family": one.family,
        "plain": plain,
        "first": first,
        "settling": first + settling - CALLS * plain,
        "same": same,
        "fresh": fresh,
        "whole": whole,
        "wrong": wrong or again[0],
        "types": types or again[1],
        "warnings": list(dict.fromkeys(texts)),
        "traces": compiled.cache_info().misses,
    }


def compare(one: Program, compiled: Callable[..., Any], seeds: Iterator[int] | None = None) -> tuple[str, str]:
    """Return what differs in values, and what only in types of scalars: nothing, or the first that does.

    Called on the first data, on the same arguments again, as the first call has left them, and on fresh data.
    """
    mine, theirs = one.make(), one.make()
    sets = [("first data", mine, theirs), ("same arguments again", mine, theirs)]
    seeds = seeds or itertools.count(1)
    sets += [(f"data {seed}", one.make(seed), one.make(seed)) for seed in itertools.islice(seeds, FRESH)]
    wrong = types = ""
    for what, a, b in sets:
        want, got = _outcome(one.function, a), _outcome(compiled, b)
        found = _raised(want, got) or differs(want, got, "outcome") or aliased(sharing(want[0], a), sharing(got[0], b))
        wrong = wrong or (found and f"{what}: {found}")
        kinds = "" if found else _types_differ(want, got, "outcome")
        types = types or (kinds and f"{what}: {kinds}")
    return wrong, types


def _outcome(function: Callable[..., Any], arguments: list[Any]) -> Outcome:
    """The result, or the error in its place, and the arguments afterwards."""
    try:
        return function(*arguments), arguments
    except Exception as error:
        return _Error(f"{type(error).__name__}: {error}"), arguments


class _Error(str):
    """Return what was raised."""

    __slots__ = ()


def _raised(want: Outcome, got: Outcome) -> str:
    """Return the error of two outcomes of which one is an error, or both are and not the same one."""
    told = [f"raises {one[0]}" if isinstance(one[0], _Error) else "returns" for one in (want, got)]
    return "" if told[0] == told[1] else f"{told[0]} in NumPy, {told[1]} here"


def _types_differ(want: Any, got: Any, where: str) -> str:
    """Return where two outcomes have values of different types: a float for NumPy's float64, an array for a number."""
    if type(want) is not type(got):
        return f"{where}: {type(want).__name__} in NumPy, {type(got).__name__} here"
    if isinstance(want, list | tuple):
        pairs = [(f"{where}[{k}]", a, b) for k, (a, b) in enumerate(zip(want, got, strict=False))]
    elif isinstance(want, dict):
        pairs = [(f"{where}[{k!r}]", a, got.get(k)) for k, a in want.items()]
    elif hasattr(want, "__dict__"):
        pairs = [(f"{where}.{k}", a, vars(got).get(k)) for k, a in vars(want).items()]
    else:
        return ""
    return next(filter(None, (_types_differ(a, b, at) for at, a, b in pairs)), "")


def _used(one: Program) -> Callable[..., Any]:
    """The function compiled and called on the first data, more often than it takes to settle."""
    compiled = pyop.compile(one.function)
    with contextlib.suppress(Exception):
        for _ in range(20):
            compiled(*one.make())
    return compiled


def _plain_ns(one: Program) -> float:
    """Nanoseconds of the median call of the function as it is."""
    taken = []
    for _ in range(9):
        arguments = one.make()
        begin = time.process_time_ns()
        one.function(*arguments)
        taken.append(time.process_time_ns() - begin)
    return statistics.median(taken)


def _faster(
    one: Program, compiled: Callable[..., Any], rounds: int, plain: float, seeds: Iterator[int]
) -> tuple[float, float] | tuple[None, None]:
    """Return how many times as fast as the function it is, both in turn on the same numbers; none where it raises.

    In the median round, and in all of them together, where one call in fifty that is traced for a second counts.
    """
    calls = max(1, min(50, round(_ROUND_NS / plain)))
    functions = [one.function, compiled]
    ratios = []
    whole = [0, 0]
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            taken = [0, 0]
            for seed in itertools.islice(seeds, calls):
                for which in (turn % 2, 1 - turn % 2):
                    arguments, function = one.make(seed), functions[which]
                    begin = time.process_time_ns()
                    function(*arguments)
                    taken[which] += time.process_time_ns() - begin
            ratios.append(taken[0] / taken[1])
            whole = [a + b for a, b in zip(whole, taken, strict=True)]
            gc.collect(0)
    except Exception:
        return None, None
    finally:
        gc.enable()
    return statistics.median(ratios), whole[0] / whole[1]


def _warm(x: Any, y: Any) -> Any:
    """Load what any loop needs."""
    z, best = np.zeros(3), 0.0
    for k in range(3):
        z[k] = x[k] + y[k, 0]
        if z[k] > best:
            best = z[k]
    return z, best


def _first_of_all() -> None:
    with contextlib.suppress(Exception):
        pyop.compile(_warm)(np.ones(3), np.ones((3, 3)))


def _with_children() -> float:
    """Nanoseconds of this process and of the compilers that it has run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + (used.ru_utime + used.ru_stime) * 1e9
