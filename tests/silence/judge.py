"""What becomes of a program in one way of running it: right, refused, unclear, wrong, or broken."""

from __future__ import annotations

import random
import re
import traceback
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyop
from pyop.compiling import worth

from .arguments import make
from .compare import differs, kept, public_type, sharing, state_of
from .programs import Entry

worth.stand_still()

RIGHT, REFUSED, UNCLEAR, WRONG, BROKEN, LEFT_OUT = "right", "refused", "unclear", "WRONG", "broken", "-"
# A refusal is clear if its message says what to do, and of what.
REMEDY = re.compile(r"\b(use|write|choose|instead|declare|pass|call|copy|make|return|put|give|name)\b", re.IGNORECASE)
# Never a refusal: something inside broke.
FAILURES = (AssertionError, KeyError, SystemError, RecursionError, NameError, MemoryError, ZeroDivisionError)

Outcome = tuple[str, str]


@dataclass
class Call:
    """What a caller finds when a call is over."""

    result: Any
    error: BaseException | None
    arguments: list[Any]
    beside: Any
    shared: list[tuple[str, str]]


def world(seed: int | None = None) -> Any:
    """The state of what belongs to nobody: set anew for a seed; else what shows it."""
    if seed is not None:
        np.random.seed(seed)
        random.seed(seed)
        np.seterr(all="warn", under="ignore")
        return None
    drawn = np.random.get_state(legacy=False)["state"]
    digest = zlib.crc32(drawn["key"].tobytes()), drawn["pos"], zlib.crc32(repr(random.getstate()).encode())
    return {"random": digest, "errors": np.geterr(), "precision": np.get_printoptions()["precision"]}


def called(function: Callable[..., Any], arguments: list[Any], show: Callable[[], Any], seed: int) -> Call:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world(seed)
        try:
            result, error = function(*arguments), None
        except Exception as raised:
            result, error = None, raised
        beside = [kept(show()), world()]
        world(0)
    return Call(result, error, state_of(arguments), beside, sharing(result, arguments))


def refusal(error: BaseException, entry: Entry) -> Outcome:
    """An exception where NumPy has none, or another."""
    text = " / ".join(said(error))
    if isinstance(error, FAILURES) and not isinstance(error, pyop.PyopError):
        return BROKEN, f"{type(error).__name__}: {text[:300]}"
    clear = REMEDY.search(text) or (entry.inside and isinstance(error, entry.inside))
    outcome = REFUSED if clear and names_place(error, text, entry) else UNCLEAR
    return outcome, f"{type(error).__name__}: {text[:400]}"


def said(error: BaseException | None) -> list[str]:
    """The messages of an exception with its notes, and of those it came from."""
    texts: list[str] = []
    while error is not None and len(texts) < 12:
        texts += [str(error), *getattr(error, "__notes__", ())]
        error = error.__cause__ or error.__context__
    return texts


def names_place(error: BaseException, text: str, entry: Entry) -> bool:
    """Whether the error was raised in a line of the program, or names one, or an argument."""
    lines = traceback.extract_tb(error.__traceback__)
    path = entry.function.__code__.co_filename
    names = entry.function.__code__.co_varnames
    return (
        any(line.filename == path for line in lines)
        or path.rpartition("/")[2] in text
        or "argument" in text
        or any(f"'{name}'" in text for name in names)
        or f"{entry.function.__name__} returned" in text
    )


def judged(want: Call, got: Call, before: list[Any] | None, entry: Entry, *, loosely: bool = False) -> Outcome:
    """One call held against the plain one. `loosely`: results are arrays whatever they were (as an op's are)."""
    side = differs(want.arguments, got.arguments, "arguments")
    aside = differs(want.beside, got.beside, "state beside")
    if got.error is not None:
        if want.error is not None and isinstance(got.error, public_type(want.error)):
            if not (side or aside):
                return RIGHT, ""
            if before is not None and not differs(before, got.arguments):
                return REFUSED, f"NumPy's own error, before anything is written: {type(got.error).__name__}"
        if before is not None and differs(before, got.arguments):
            return WRONG, f"refused half-way ({' / '.join(said(got.error))[:200]}): {side or 'arguments were written'}"
        return refusal(got.error, entry)
    if want.error is not None:
        return WRONG, f"NumPy raises {type(want.error).__name__}: {want.error}; here {got.result!r}"[:300]
    if loosely:
        different = differs(np.asarray(want.result), np.asarray(got.result))
    else:
        different = differs(want.result, got.result)
        if not different and want.shared != got.shared:
            different = f"{want.shared} share memory in NumPy, {got.shared} here"
    different = different or side or aside
    return (WRONG, different) if different else (RIGHT, "")


def history(entry: Entry) -> list[Call]:
    """The calls of a program, plainly."""
    function, show = entry.made()
    calls = []
    for seed in entry.calls:
        call = called(function, make(entry.arguments, seed), show, seed)
        call.result = kept(call.result)
        calls.append(call)
    return calls


def worst(outcomes: list[Outcome]) -> Outcome:
    order = [LEFT_OUT, RIGHT, REFUSED, UNCLEAR, WRONG, BROKEN]
    return max(outcomes, key=lambda outcome: order.index(outcome[0]), default=(LEFT_OUT, ""))


def judge_calls(
    entry: Entry,
    wrap: Callable[[Callable[..., Any], list[Any]], Callable[..., Any]],
    arguments: Callable[[int], list[Any]] | None = None,
    *,
    loosely: bool = False,
) -> Outcome:
    """The calls of a program by what `wrap` makes of it, held against NumPy; earlier results stay as they were."""
    arguments = arguments or (lambda seed: make(entry.arguments, seed))
    function, show = entry.made()
    plain = []
    for seed in entry.calls:
        call = called(function, arguments(seed), show, seed)
        call.result = kept(call.result)
        plain.append(call)
    function, show = entry.made()
    outcomes: list[Outcome] = []
    earlier: list[tuple[Any, Any]] = []
    other = None
    for seed, want in zip(entry.calls, plain, strict=True):
        given = arguments(seed)
        before = state_of(given)
        try:
            other = other or wrap(function, given)
        except Exception as error:
            if want.error is not None and isinstance(error, public_type(want.error)):
                return RIGHT, ""
            return refusal(error, entry)
        got = called(other, given, show, seed)
        outcomes.append(judged(want, got, before, entry, loosely=loosely))
        if outcomes[-1][0] != RIGHT:
            break
        for k, (result, copy) in enumerate(earlier):
            if different := differs(copy, result, f"result of call {k}"):
                outcomes.append((WRONG, f"changed by a later call: {different}"))
        if not got.shared and not entry.factory:
            earlier.append((got.result, kept(got.result)))
    return worst(outcomes)
