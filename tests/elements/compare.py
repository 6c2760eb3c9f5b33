"""Holds a loop of one operation, compiled, against the plain function: bits, types, warnings and errors.

``cd tests; python -m elements.compare [FIRST [LAST [STEP]]]`` goes through the cases and prints those that differ.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyop

from .cases import Case, arguments, cases, function

N = 1104  # a loop of so many iterations is recorded, however short its body is
FEW = 40  # and one of so few unrolled


def special(dtype: str, n: int, shift: int = 0) -> np.ndarray:
    """Numbers of all kinds: ordinary, extreme, and none at all."""
    rng = np.random.default_rng(n + shift)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        few = [info.min, info.max, 0, 1, 2, 3, 7, info.max - 1, info.max // 2, -1 if kind == "i" else 5, info.min + 1]
        return np.where(rng.random(n) < 0.4, rng.choice(np.array(few, dtype), n), rng.integers(0, 9, n).astype(dtype))
    if kind == "c":
        real, made = "float32" if dtype == "complex64" else "float64", np.empty(n, dtype)
        made.real, made.imag = special(real, n, shift), special(real, n, shift + 7)
        return made
    info = np.finfo(dtype)
    few = [0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, info.smallest_subnormal, 1e5, -300, 2.0**31]
    with np.errstate(all="ignore"):
        chosen = rng.choice(np.array(few).astype(dtype), n)
        return np.where(rng.random(n) < 0.3, chosen, (rng.normal(size=n) * 4).astype(dtype))


def usual(dtype: str, n: int, shift: int = 0) -> np.ndarray:
    """Numbers of which few overflow and none is special."""
    rng = np.random.default_rng(n + shift)
    with np.errstate(all="ignore"):
        return (rng.integers(1, 6, n) + (rng.random(n) if np.dtype(dtype).kind in "fc" else 0)).astype(dtype)


def bits(x: np.ndarray) -> bytes:
    """The bytes of an array; all NaN are one."""
    x = x.copy()
    if x.dtype.kind == "c":
        return bits(x.real) + bits(x.imag)
    if x.dtype.kind == "f":
        x[np.isnan(x)] = np.nan
    return x.tobytes()


def outcome(f: Callable[..., Any], given: list[Any], errors: str) -> tuple[Any, ...]:
    """What a call leaves behind: the result, what it raised, what it warned of."""
    raised = None
    with warnings.catch_warnings(record=True) as caught, np.errstate(all=errors):  # type: ignore[call-overload]
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        try:
            f(*given)
        except Exception as error:
            raised = type(error), str(error).partition("\n")[0]
    out = given[2]
    return out.dtype, bits(out), raised, [(w.category, str(w.message)) for w in caught]


def differences(case: Case, n: int = N) -> Iterator[str]:
    """In which ways of calling it the compiled loop is not the plain one."""
    plain = function(case)
    compiled = pyop.compile(plain)
    for make in (usual, special):
        for errors in ("warn", "raise", "ignore"):
            given = arguments(case, n, make)
            if given is None:
                return
            if make is special:
                given["places"][::9] = -3
                given["places"][37:38] = n + 5
            copies = [{k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()} for _ in range(2)]
            want, got = (outcome(f, [*c.values()], errors) for f, c in zip((plain, compiled), copies, strict=True))
            if want[2] is not None and want[2][0] is TypeError and make is usual:
                return  # it is no operation of these
            if got[:2] != want[:2] and got[2] is not None and got[2] == want[2]:
                got = want[:2] + got[2:]  # what was written before an error
            if want[2] is not None and set(got[3]) == set(want[3]):
                got = (*got[:3], want[3])  # the function itself has run once more, to raise the error
            if got[2] is not None and got[2][0] is TypeError and want[2] is None and _may_be_refused(case, got[2][1]):
                return
            if got != want:
                yield f"{case.name}, {n} {make.__name__} numbers, errors {errors}: {short(got, want)}"


def _may_be_refused(case: Case, text: str) -> bool:
    """A complex number as a real one, and what has no numbers yet, is refused aloud."""
    return np.dtype(case.a).kind == "c" or "when its graph runs" in text


def short(got: tuple[Any, ...], want: tuple[Any, ...]) -> str:
    """Say what differs."""
    if got[2:] != want[2:]:
        return f"{got[2]}, right is {want[2]}; {got[3][:2]} ({len(got[3])}), right is {want[3][:2]} ({len(want[3])})"
    a, b = (np.frombuffer(x[1], x[0]) for x in (got, want))
    at = [k for k in range(len(a)) if a[k : k + 1].tobytes() != b[k : k + 1].tobytes()]
    return f"at {at[:3]}: {a[at[:3]]}, right is {b[at[:3]]}" if at else f"{got[0]}, right is {want[0]}"


def main(first: int = 0, last: int | None = None, step: int = 1) -> int:
    """Print what differs, and how many were tried."""
    chosen = [*cases()][first:last:step]
    random.Random(1).shuffle(chosen)
    wrong = tried = 0
    for case in chosen:
        tried += 1
        for text in (*differences(case), *differences(case, FEW)):
            wrong += 1
            print(text, flush=True)
            break
    print(f"{tried} loops, {wrong} differ")
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
