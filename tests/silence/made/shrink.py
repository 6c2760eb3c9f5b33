"""From a program that is wrong to the smallest one that is wrong in the same way of running it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .program import Program
from .running import Invalid, outcome

STEPS = 300


def same_failure(program: Program, way: str, word: str) -> str | None:
    try:
        found, why = outcome(program, way)
    except (Invalid, Exception):
        return None
    return why if found == word else None


def shrink(program: Program, way: str, word: str) -> tuple[Program, str]:
    """The smallest program with the outcome `word`, and why it has it."""
    why = same_failure(program, way, word) or ""
    steps, again = 0, True
    while again and steps < STEPS:
        again = False
        for smaller in candidates(program):
            steps += 1
            if (found := same_failure(smaller, way, word)) is not None:
                program, why, again = smaller, found, True
                break
    return program, why


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the boldest cuts first."""
    for k in range(len(program.results)):
        if len(program.results) > 1:
            yield replace(program, results=(program.results[k],))
    for k in range(len(program.lines) - 1, -1, -1):
        yield replace(program, lines=program.lines[:k] + program.lines[k + 1 :])
    for k, line in enumerate(program.lines):
        head, *body = line.split("\n")
        if not body:
            continue
        indented = [row for row in body if row.startswith("    ")]
        smaller = ["\n".join(row[4:] for row in indented), *(row.strip() for row in body)]
        # Without its count a loop would not end.
        fit = [at for at, row in enumerate(body) if len(body) > 1 and not ("while" in line and row.strip()[:2] == "k ")]
        smaller += ["\n".join([head, *body[:at], *body[at + 1 :]]) for at in fit]
        for text in smaller:
            if text and text != line:
                yield replace(program, lines=(*program.lines[:k], text, *program.lines[k + 1 :]))
    last = len(program.arguments) - 1
    if last and not any(f"x{last}" in line for line in [*program.lines, *program.results]):
        yield replace(program, arguments=program.arguments[:-1])
    for k, text in enumerate(program.arguments):
        kind, _, layout = text.partition(" ")
        for simpler in [kind] * bool(layout) + ["f8[4]", "f8[2,2]"] * (kind not in ("f8[4]", "f8[2,2]")):
            yield replace(program, arguments=(*program.arguments[:k], simpler, *program.arguments[k + 1 :]))
