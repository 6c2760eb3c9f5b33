"""Run ``profile``, ``explain`` and ``bench``, which show what a program, or a function, costs and becomes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .targets import UnusableTarget, arguments_for, find

__all__ = ["bench", "explain", "profile"]


def profile(args: argparse.Namespace) -> int:
    """Run a script under `pyop.profile`, as ``python script.py`` would, and print the table."""
    import os
    import runpy

    from ..profiling import profile as profile_of

    if not args.module and not os.path.exists(args.script):
        raise UnusableTarget(f"{args.script}: there is no such file")
    kept, path = sys.argv, list(sys.path)
    sys.argv = [args.script, *args.arguments]
    status: Any = 0
    p = profile_of()
    try:
        with p:
            try:
                if args.module:
                    sys.path.insert(0, os.getcwd())
                    runpy.run_module(args.script, run_name="__main__", alter_sys=True)
                else:
                    sys.path.insert(0, os.path.dirname(os.path.abspath(args.script)))
                    runpy.run_path(args.script, run_name="__main__")
            except SystemExit as end:
                status = end.code
            except ImportError as error:
                if args.module and error.name in (None, args.script):
                    raise UnusableTarget(f"{args.script}: {error}") from error
                raise
    finally:
        sys.argv, sys.path[:] = kept, path
    print(p.table(args.by))
    if args.output:
        p.save(args.output)
        print(f"wrote {args.output}")
    if isinstance(status, str):
        print(status, file=sys.stderr)
        return 1
    return int(status or 0)


def explain(args: argparse.Namespace) -> int:
    """Compile a function for an example, and print what became of each of its lines."""
    from .. import CompiledFunction, Op, Plan, compile, trace  # noqa: A004
    from .._tree import map_leaves
    from ..declare.spec import Spec

    subject = find(args.target)
    if isinstance(subject, Plan):
        print(subject.explain())
        return 0
    arguments = arguments_for(args.target, subject, args.example)
    if isinstance(subject, Op):
        op = subject
        plan = trace(lambda *xs: op(*xs), *[map_leaves(Spec.of, x) for x in arguments]).compile()
    else:
        function = subject if isinstance(subject, CompiledFunction) else compile(subject)
        plan = function.plan_for(*arguments)
    print(plan.explain())
    return 0


def bench(args: argparse.Namespace) -> int:
    """Time a function as it is and compiled, one call after the other, and print the medians."""
    import statistics
    import time

    from .. import CompiledFunction, compile  # noqa: A004
    from ..profiling.table import columns, text_of_ns

    subject = find(args.target)
    arguments = arguments_for(args.target, subject, args.example)
    compiled = subject if isinstance(subject, CompiledFunction) else compile(lambda *xs: subject(*xs))
    ways = {"plain": getattr(subject, "__wrapped__", subject), "compiled": compiled}
    clock = time.perf_counter_ns
    for way in ways.values():
        begin = clock()
        way(*arguments)
    repeats = max(1, int(1e6 / max(1, clock() - begin)))  # a round of a millisecond at least
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, way in ways.items():
            begin = clock()
            for _ in range(repeats):
                way(*arguments)
            samples[name].append((clock() - begin) / repeats)
    lines = []
    for name, times in samples.items():
        ratio = statistics.median(a / b for a, b in zip(times, samples["plain"], strict=True))
        lines.append((name, text_of_ns(statistics.median(times)), text_of_ns(min(times)), f"{ratio:.3f}"))
    print("\n".join(columns(("way", "median", "least", "of plain"), lines, left=(0,))))
    print(f"{args.rounds} rounds of {repeats} calls, one way after the other")
    return 0
