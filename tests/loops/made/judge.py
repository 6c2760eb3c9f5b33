"""A random loop, compiled, held against NumPy: results, arguments, what shares memory, warnings, exceptions."""

from __future__ import annotations

import linecache
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyop
from pyop._tree import flatten
from pyop.compiling import worth

from . import lists, programs

worth.stand_still()


@dataclass
class Judged:
    outcome: str
    why: str
    source: str


def made(source: str, name: str) -> Any:
    file = f"<{name}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space: dict[str, Any] = {"__name__": "made"}
    exec(compile(source, file, "exec"), space)
    return space["f"]


# Calls of a program: the seed of the arguments, and of what dtype they are. The later dtypes are traced with what the
# loops carried before in mind.
_CALLS = ((0, "d"), (0, "d"), (1, "d"))
_OTHER_CALLS = ((0, "f"), (1, "l"), (2, "d"))


def _run(f: Any, numbers: int, dtype: str) -> tuple[Any, Any, list[Any], set[str]]:
    r = np.random.default_rng(numbers)
    given = [r.normal(size=10), r.uniform(size=10), 0.75]
    if dtype != "d":
        given = [(5 * x).astype(dtype) for x in given[:2]] + [3 if dtype == "l" else np.float32(0.75)]
    result = error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = f(*given)
        except Exception as raised:
            error = raised
    told = {type(w.message).__name__ for w in caught if not issubclass(w.category, pyop.RetraceWarning)}
    return result, error, given, told


def _told(tree: Any) -> list[Any]:
    leaves, form = flatten(tree)
    return [form, [_bits(x) for x in leaves]]


def _bits(x: Any) -> Any:
    if type(x) in (int, float, bool, str, complex):
        return type(x), repr(x)
    a = np.asarray(x)
    return _kind(x), a.dtype, a.shape, a.tobytes()


def _kind(x: Any) -> Any:
    return np.ndarray if isinstance(x, np.generic) else type(x)


def _sharing(*trees: Any) -> list[bool]:
    leaves = [x for x in flatten(trees)[0] if type(x) is np.ndarray and x.ndim]
    return [np.shares_memory(a, b) for k, a in enumerate(leaves) for b in leaves[:k]]


def judge(
    seed: int,
    placed: bool = False,
    numbers: bool = False,
    states: bool = False,
    listed: bool = False,
    others: bool = False,
    **options: Any,
) -> Judged:
    """Call the program of a seed; with `others`, with arguments of other dtypes, too."""
    source = lists.program(seed) if listed else programs.program(seed, placed, numbers, states)
    f = made(source, f"made {seed}")
    compiled = pyop.compile(f, **options)
    for start, dtype in _CALLS + _OTHER_CALLS * others:
        wanted, error, plain, told = _run(f, start, dtype)
        found, raised, given, warned = _run(compiled, start, dtype)
        if error is not None or raised is not None:
            if error is None:
                return Judged("refused", f"{type(raised).__name__}: {raised}"[:300], source)
            if raised is None:
                # What nobody reads is not computed (docs/compiling.md).
                lost = isinstance(error, (IndexError, ValueError, OverflowError, ZeroDivisionError))
                return Judged("unread" if lost else "WRONG", f"NumPy raises {error!r}", source)
            if type(raised).__mro__[:-2] and not isinstance(raised, type(error)):
                lost = isinstance(error, IndexError) and isinstance(raised, UnboundLocalError)
                return Judged("unread" if lost else "refused", f"{raised!r} for {error!r}"[:300], source)
            if _told(plain) != _told(given):
                return Judged("WRONG", "arguments behind an exception", source)
            continue
        if _told(wanted) != _told(found):
            a, b = flatten(wanted)[0], flatten(found)[0]
            which = [k for k, (x, y) in enumerate(zip(a, b, strict=False)) if _told(x) != _told(y)]
            return Judged("WRONG", f"results {which}: {[(a[k], b[k]) for k in which[:2]]}", source)
        if _told(plain) != _told(given):
            return Judged("WRONG", "arguments", source)
        if _sharing(wanted, plain) != _sharing(found, given):
            return Judged("WRONG", "what shares memory", source)
        if warned - told:
            return Judged("WRONG", f"warns {warned - told}", source)
    return Judged("right", "", source)
