"""From a program that fails to the smallest one that fails in the same way of running it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from .arrays import Array
from .program import Line, Program
from .ways import Difference, Excused, ways

STEPS = 400
Failure = Callable[[Program, str, int], Difference | None]


def failure(program: Program, way: str, seed: int) -> Difference | None:
    """The difference that this way of running the program shows; None if it shows none, or if NumPy refuses."""
    try:
        reference = program.reference()
    except Exception:
        return None
    check = ways(program, reference, random.Random(seed), every=True).get(way)
    try:
        if check is not None:
            check()
    except Difference as found:
        return found
    except Excused:
        pass
    return None


def shrink(program: Program, way: str, seed: int, failure: Failure = failure) -> tuple[Program, Difference | None]:
    """Try one smaller program after the other, and go on from each that still fails."""
    found = failure(program, way, seed)
    if found is None:
        return program, None
    tried, steps, again = set(), 0, True
    while again:
        again = False
        for smaller in candidates(program):
            if smaller in tried or steps > STEPS:
                continue
            tried.add(smaller)
            steps += 1
            still = failure(smaller, way, seed)
            if still is not None and still.kind == found.kind:
                program, found, again = smaller, still, True
                break
    return program, found


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the boldest cuts first."""
    if len(program.outputs) > 1:
        for k in range(len(program.outputs)):
            yield replace(program, outputs=(program.outputs[k],))
        for k in range(len(program.outputs)):
            yield replace(program, outputs=program.outputs[:k] + program.outputs[k + 1 :])
    for k in range(len(program.lines) - 1, -1, -1):
        first, line = program.first_of(k), program.lines[k]
        for stand_in in dict.fromkeys([*line.refs, *range(len(program.arrays))]):
            yield _without(program, range(first, first + line.n_out), k, stand_in)
    for k in range(len(program.arrays) - 1, -1, -1):
        for stand_in in range(len(program.arrays)):
            if stand_in != k and not all(a.constant for j, a in enumerate(program.arrays) if j != k):
                yield _without(program, range(k, k + 1), None, stand_in)
        for simpler in _simpler(program.arrays[k]):
            arrays = (*program.arrays[:k], simpler, *program.arrays[k + 1 :])
            yield replace(program, arrays=arrays)
    for size in sorted({size for a in program.arrays for size in a.shape if size > 1}, reverse=True):
        for less in (1, 2, size // 2, size - 1):
            if 0 < less < size:
                yield program.resized({size: less})


def _without(program: Program, gone: range, line: int | None, stand_in: int) -> Program:
    """The program without some values, one other standing in for them."""

    def moved(k: int) -> int:
        k = stand_in if k in gone else k
        return k if k < gone.start else k - len(gone)

    lines = tuple(
        Line(one.text, tuple(map(moved, one.refs)), one.results) for k, one in enumerate(program.lines) if k != line
    )
    arrays = program.arrays if line is not None else tuple(a for k, a in enumerate(program.arrays) if k not in gone)
    return Program(arrays, lines, tuple(map(moved, program.outputs)))


def _simpler(a: Array) -> Iterator[Array]:
    if a.constant:
        yield replace(a, constant=False)
    if a.layout != "C":
        yield replace(a, layout="C")
    if a.start:
        yield replace(a, start=0)
    if a.dtype != "d":
        yield replace(a, dtype="d")
    if a.data % 3:
        yield replace(a, data=a.data // 3 * 3)
    for k in range(len(a.shape)):
        yield replace(a, shape=a.shape[:k] + a.shape[k + 1 :])
        if a.shape[k] > 1:
            yield replace(a, shape=(*a.shape[:k], 1, *a.shape[k + 1 :]))
            yield replace(a, shape=(*a.shape[:k], a.shape[k] - 1, *a.shape[k + 1 :]))
