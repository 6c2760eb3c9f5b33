"""Time the demonstration: candidates in turn, the thread's CPU clock, medians.

`benchmarks/` holds the real harness.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import pyop

from .pipeline import PLAIN, SPECS, Array, Stages, recognise


def interleaved(
    candidates: Mapping[str, Callable[[], object]], rounds: Iterable[int], repeat: int = 1
) -> dict[str, list[float]]:
    """Return the CPU time in ns of one call of every candidate, by round; a round runs each of them `repeat` times."""
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    turns = [None] * repeat
    for candidate in candidates.values():
        candidate()
    gc.collect()
    gc.disable()
    try:
        for _ in rounds:
            for name, candidate in candidates.items():
                begin = time.thread_time_ns()
                for _ in turns:
                    candidate()
                samples[name].append((time.thread_time_ns() - begin) / repeat)
    finally:
        gc.enable()
    return samples


class Overhead(NamedTuple):
    """Hold the overhead of one call of a stage, in ns."""

    bare: float
    eager: float
    plan: float
    calls: int


class Recorded(NamedTuple):
    """Hold one call of a stage while an image was read."""

    spec: str
    args: tuple[Any, ...]
    result: Any


def record(image: Array, examples: Array) -> list[Recorded]:
    """Return the calls of the stages while one image is read."""
    calls: list[Recorded] = []

    def spy(function: Callable[..., Any], spec: str) -> Callable[..., Any]:
        def spied(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            calls.append(Recorded(spec, tuple(np.asarray(arg) for arg in args), result))
            return result

        return spied

    recognise(image, examples, Stages(*map(spy, PLAIN, SPECS.values())))
    return calls


def overhead(image: Array, examples: Array, rounds: Iterable[int]) -> Overhead:
    """Measure a call without the work: the stages of one image, with bodies that return the recorded result.

    Arguments, declarations and checks are those of the real calls. The plan runs all of them as one graph.
    """
    calls = record(image, examples)
    stubs = [stub(len(call.args), call.result) for call in calls]
    # Stateful, or the plan would fold calls whose arguments are constants of its graph.
    ops = [pyop.op(call.spec, stateful=True)(function) for call, function in zip(calls, stubs, strict=True)]
    arguments = [call.args for call in calls]

    def run(functions: Sequence[Callable[..., Any]]) -> Callable[[], None]:
        pairs = list(zip(functions, arguments, strict=True))

        def every_call() -> None:
            for function, args in pairs:
                function(*args)

        return every_call

    pairs = list(zip(stubs, arguments, strict=True))

    def loop_alone() -> None:
        for _function, _args in pairs:
            pass

    with pyop.Graph() as graph:
        graph.output([op(*map(graph.constant, args)) for op, args in zip(ops, arguments, strict=True)])
    plan = graph.compile()

    samples = interleaved({"loop": loop_alone, "bare": run(stubs), "eager": run(ops), "plan": plan}, rounds, repeat=300)
    loop = samples["loop"]

    def each(name: str, subtract: list[float]) -> float:
        return statistics.median(a - b for a, b in zip(samples[name], subtract, strict=True)) / len(calls)

    return Overhead(each("bare", loop), each("eager", loop), each("plan", [0.0] * len(loop)), len(calls))


def stub(arity: int, result: Any) -> Callable[..., Any]:
    """Return a function of so many arguments that only returns `result`."""
    by_arity: tuple[Callable[..., Any], ...] = (lambda a: result, lambda a, b: result, lambda a, b, c: result)
    return by_arity[arity - 1]
