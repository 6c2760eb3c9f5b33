"""What becomes of a kernel that is compiled: right, refused and why, run as it is, or wrong and how."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from silence.compare import aliased, arrays_in, differs, kept, public_type, sharing

import pyop
from pyop.compiling import worth

from .registry import Kernel

worth.stand_still()

RIGHT, PLAINLY, REFUSED, WRONG = "right", "plainly", "refused", "WRONG"
# The first call, one like it, one with other numbers, one of another size, and the first numbers once more.
CALLS = (("small", 0), ("small", 0), ("small", 1), ("medium", 0), ("small", 2))


@dataclass
class Run:
    """What a caller finds when a call is over."""

    result: Any
    error: Exception | None
    arguments: list[Any]
    warnings: list[Warning]


@dataclass(frozen=True)
class Judgement:
    """An outcome, and its reason."""

    outcome: str
    why: str = ""


def call(function: Callable[..., Any], arguments: list[Any]) -> Run:
    """One call, its error and warnings kept."""
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*arguments)
        except Exception as raised:
            error = raised
    return Run(result, error, arguments, [w.message for w in caught if isinstance(w.message, Warning)])


def layouts(tree: Any) -> list[Any]:
    return [(a.strides, a.flags.writeable) for a in arrays_in(tree)]


def raised(want: Run, got: Run, before: list[Any], where: str) -> Judgement:
    """Of calls at least one of which raises: NumPy's exceptions are right ones, with what NumPy has written by then."""
    if got.error is None:
        return Judgement(WRONG, f"{where}: NumPy raises {want.error!r}")
    if differs(want.arguments, got.arguments, "arguments"):
        if different := differs(before, got.arguments, "arguments"):
            return Judgement(WRONG, f"{where}: raised half-way, {different}: {got.error!r}")
    elif want.error is not None and isinstance(got.error, public_type(want.error)):
        return Judgement(RIGHT)
    return Judgement(REFUSED, f"{where}: {type(got.error).__name__}: {got.error}")


def judge(
    kernel: Kernel,
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = pyop.compile,
    calls: tuple[tuple[str, int], ...] = CALLS,
) -> Judgement:
    """Several calls held against NumPy: results and arguments to the bit, what shares memory, warnings."""
    other = wrap(kernel.function)
    plainly = ""
    earlier: list[tuple[Any, Any]] = []
    for number, (size, seed) in enumerate(calls):
        where = f"call {number} ({size}, seed {seed})"
        want, got = call(kernel.function, kernel.make(size, seed)), call(other, kernel.make(size, seed))
        if want.error is not None or got.error is not None:
            judgement = raised(want, got, kernel.make(size, seed), where)
            if judgement.outcome != RIGHT:
                return judgement
            continue
        different = (
            differs(want.result, got.result)
            or differs(want.arguments, got.arguments, "arguments")
            or differs(layouts(want.arguments), layouts(got.arguments), "layouts of arguments")
            or aliased(sharing(want.result, want.arguments), sharing(got.result, got.arguments))
        )
        if different:
            return Judgement(WRONG, f"{where}: {different}")
        for k, (result, copy) in enumerate(earlier):
            if changed := differs(copy, result, f"result of call {k}, changed by {where}"):
                return Judgement(WRONG, changed)
        earlier.append((got.result, kept(got.result)))
        plainly = plainly or "; ".join(str(w) for w in got.warnings if isinstance(w, pyop.RetraceWarning))
        others = [w for w in got.warnings if not isinstance(w, pyop.RetraceWarning)]
        if {type(w) for w in others} - {type(w) for w in want.warnings}:
            return Judgement(WRONG, f"{where}: warns of what NumPy does not warn of: {others[0]!r}")
    return Judgement(PLAINLY, plainly) if plainly else Judgement(RIGHT)
