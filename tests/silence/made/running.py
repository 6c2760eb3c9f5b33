"""A program run plainly and in another way: right, refused (and why), or wrong (and what)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import numpy as np

import pyop
from pyop.compiling import worth

from ..compare import aliased, differs, kept, public_type, sharing, state_of
from ..derivatives import differentiated, leaves
from ..judge import FAILURES, REFUSED, REMEDY, RIGHT, UNCLEAR, WRONG, Outcome, said
from .program import Program

worth.stand_still()

WAYS: dict[str, Callable[[Callable[..., Any], list[Any]], Any]] = {
    "compile": lambda f, given: pyop.compile(f),
    "unoptimized": lambda f, given: pyop.compile(f, optimize=False),
    "threads": lambda f, given: pyop.compile(f, threads=2),
    "plan": lambda f, given: pyop.trace(f, *map(pyop.Spec.of, given)).compile(),
}
GRADIENTS = ("reverse", "forward", "reverse, compiled", "forward, compiled")
SEEDS = (1, 2)
CALLS = (1, 2, 3, 2)
INVALID = (NameError, SyntaxError, UnboundLocalError)


class Invalid(Exception):
    """No program: NumPy says so, or its numbers mean nothing."""


def run(function: Callable[..., Any], given: list[Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(*given), None
    except Exception as error:
        return None, error


def refusal(error: BaseException) -> Outcome:
    text = " / ".join(said(error))
    if isinstance(error, FAILURES) and not isinstance(error, pyop.PyopError):
        return WRONG, f"{type(error).__name__}: {text[:300]}"
    return (REFUSED if REMEDY.search(text) else UNCLEAR), f"{type(error).__name__}: {text[:300]}"


def outcome(program: Program, way: str) -> Outcome:
    """What becomes of a program: of several calls with other numbers, the worst; ``plainly`` if one ran as it is."""
    if way in GRADIENTS:
        return gradient_outcome(program, way)
    function = program.function()
    other: Any = None
    earlier: list[tuple[Any, Any]] = []
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", pyop.RetraceWarning)
        for seed in CALLS:
            plain, mine = program.make(seed), program.make(seed)
            want, expected = run(function, plain)
            if isinstance(expected, INVALID):
                raise Invalid
            if expected is not None and seed != CALLS[0] and is_bound_there(program, expected):
                raise Invalid  # perhaps nobody reads it: then a plan does not compute it
            shared = sharing(want, plain)
            scalars = scalar_places(want, "result")
            before = state_of(mine)
            if other is None:
                other, error = run(WAYS[way], [function, mine])
            got, error = run(other, mine) if other is not None else (None, error)
            found = compared(want, expected, plain, got, error, mine, before)
            if (
                found[0] == RIGHT
                and error is None
                and (different := aliased(shared, beside(sharing(got, mine), scalars)))
            ):
                found = WRONG, different
            for result, copy in earlier:
                if found[0] == RIGHT and (different := differs(copy, result, "result of an earlier call")):
                    found = WRONG, different
            if found[0] != RIGHT:
                return found
            if error is None and not shared:
                earlier.append((got, kept(got)))
    return RIGHT, "plainly" if caught else ""


def is_bound_there(program: Program, error: BaseException) -> bool:
    """Whether NumPy raised an error where the program binds a name to a new array."""
    at = next((f.tb_lineno for f in frames(error) if f.tb_frame.f_code.co_filename == "<program>"), 0)
    return re.match(r" *v\d+ = ", program.text().split("\n")[at - 1]) is not None


def frames(error: BaseException) -> Iterator[TracebackType]:
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


def scalar_places(tree: Any, where: str) -> set[str]:
    """Where NumPy has scalars, in place of which stand arrays of no dimension: nobody writes into a scalar."""
    if isinstance(tree, tuple | list | dict):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return {place for k, item in items for place in scalar_places(item, f"{where}[{k}]")}
    return {where} if isinstance(tree, np.generic) else set()


def beside(pairs: list[tuple[str, str]], scalars: set[str]) -> list[tuple[str, str]]:
    return [pair for pair in pairs if not scalars.issuperset(pair)]


def compared(
    want: Any,
    expected: BaseException | None,
    plain: list[Any],
    got: Any,
    error: BaseException | None,
    mine: list[Any],
    before: list[Any] | None,
) -> Outcome:
    after = state_of(mine)
    side = differs(state_of(plain), after, "arguments")
    if error is not None:
        if expected is not None and isinstance(error, public_type(expected)):
            if not side:
                return RIGHT, ""
            if before is not None and not differs(before, after):
                return REFUSED, f"NumPy's own error, before anything is written: {type(error).__name__}"
        if before is not None and differs(before, after):
            return WRONG, f"refused half-way: {error}"
        if expected is not None and (not isinstance(error, FAILURES) or isinstance(error, NameError)):
            return REFUSED, f"another error than NumPy's: {type(error).__name__}"
        return refusal(error)
    if expected is not None:
        return WRONG, f"NumPy raises {type(expected).__name__}: {expected}"
    different = differs(want, got) or side
    return (WRONG, different) if different else (RIGHT, "")


def weighted(results: Any) -> Any:
    total: Any = 0.0
    for k, leaf in enumerate(leaves(results)):
        total = total + np.sum(leaf * (np.arange(float(np.size(leaf))).reshape(np.shape(leaf)) * 0.5 + 1.0 + k))
    return total


def complex_step(program: Program, seed: int) -> np.ndarray:
    """The gradient by the first argument, with imaginary steps so small that nothing is lost.

    Python's own `max` takes a step to one side for larger and one to the other for smaller: where these differ there is
    a kink, and nothing to compare with.
    """
    function = program.function(complexes=True)

    def moved(at: tuple[int, ...], step: float = 1e-30) -> float:
        first, *others = program.make(seed)
        once = {id(a): a.astype(complex) for a in others}  # what is given twice stays one array
        given = [first.astype(complex), *(once[id(a)] for a in others)]
        given[0][at] += step * 1j
        return float(np.imag(weighted(function(*given)))) / step

    first = program.make(seed)[0]
    gradient = np.array([moved(at) for at in np.ndindex(first.shape)]).reshape(first.shape)
    back = np.array([moved(at, -1e-30) for at in np.ndindex(first.shape)]).reshape(first.shape)
    if not np.allclose(gradient, back, equal_nan=True):
        raise Invalid
    return gradient


def gradient_outcome(program: Program, way: str) -> Outcome:
    """As `outcome`, of the derivative by the first argument; wrong is what is wrong at several points."""
    function = program.function()
    loss = lambda *given: weighted(function(*given))
    other: Any = differentiated(loss, forward="forward" in way)
    if "compiled" in way:
        other = pyop.compile(other)
    found: Outcome = (RIGHT, "")
    misses = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in (*SEEDS, 3):
            plain, mine = program.make(seed), program.make(seed)
            want, expected = run(loss, plain)
            try:
                gradient = complex_step(program, seed)
            except Exception as error:
                raise Invalid from error
            if expected is not None or not np.all(np.isfinite(gradient)) or not np.isfinite(want):
                raise Invalid
            direction = np.cos(np.arange(float(gradient.size))).reshape(gradient.shape)
            before = state_of(mine)
            got, error = run(other, [direction, *mine] if "forward" in way else mine)
            value, derivative = got if error is None else (None, None)
            # At arrays the function itself runs, so what it wrote before it is refused is written; as it does,
            # compiled, where arguments that are written share memory or are not contiguous.
            itself = any(np.may_share_memory(a, b) for k, a in enumerate(mine) for b in mine[:k])
            itself |= not all(a.flags.forc and (a.shape != (1,) or a.strides == (a.itemsize,)) for a in mine)
            unchanged = before if "compiled" in way and not itself else None
            outcome = compared(want, None, plain, value, error, mine, unchanged)
            if outcome[0] != RIGHT:
                return outcome
            right = np.sum(gradient * direction) if "forward" in way else gradient
            if not np.allclose(np.asarray(derivative), right, rtol=1e-8, atol=1e-9):
                misses += 1
                found = WRONG, f"derivative {np.ravel(derivative)[:6]}, by complex steps {np.ravel(right)[:6]}"
            elif not misses and seed != SEEDS[0]:
                return RIGHT, ""
    return found if misses > 1 else (RIGHT, "")


def reason(why: str) -> str:
    """A refusal without what is its own."""
    return re.sub(r"<[^>]*>|'[^']*'|\d+|\w+\[[^\]]*\]", "…", why)[:90]
