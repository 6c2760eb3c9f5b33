"""A function and its lifted copy, run on plain values."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from typing import Any

from pyop.loops import items, leaving  # noqa: F401  # the builtins of lifted code
from pyop.tracing.twins import Twins

from .programs import program

_MOST = 3000  # evaluations


class _TooLong(BaseException):
    pass


class _Notes(list[Any]):
    def __call__(self, number: int, x: Any) -> Any:
        self.append((number, repr(x) if isinstance(x, int) else type(x).__name__))
        if len(self) > _MOST:
            raise _TooLong
        return x


class _Object:
    def __init__(self, notes: _Notes) -> None:
        self.v: Any = 1
        self.w: Any = [0, 1, 2]
        self._notes = notes

    def __getitem__(self, key: Any) -> Any:
        self._notes.append(("get", str(key)))
        return self.v

    def __setitem__(self, key: Any, x: Any) -> None:
        self._notes.append(("set", str(key)))
        self.v = x

    def add(self, x: Any, by: Any = 0) -> Any:
        self._notes.append("add")
        return x + by


class _Truth:
    def __init__(self, notes: _Notes, x: Any) -> None:
        self._notes, self._x = notes, x

    def __bool__(self) -> bool:
        self._notes.append("truth")
        if self._x == 3:
            raise ValueError("no truth")
        return bool(self._x)


class _Manager:
    def __init__(self, notes: _Notes, swallows: bool, x: Any) -> None:
        self._notes, self._swallows, self._x = notes, swallows, x

    def __enter__(self) -> Any:
        self._notes.append("enter")
        return self._x

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        self._notes.append(("exit", kind and kind.__name__))
        return self._swallows and kind is not None and issubclass(kind, Exception)


def _generator(notes: _Notes, n: int) -> Any:
    for k in range(n):
        notes.append(("next", k))
        yield k


def run(f: Callable[..., Any], start: int) -> tuple[Any, ...]:
    """Return all that can be seen of a call."""
    notes = _Notes()
    given = [start, 2, 3], start, _Object(notes)
    others = (
        lambda n: _generator(notes, n),
        lambda x: _Manager(notes, False, x),
        lambda x: _Manager(notes, True, x),
        lambda x: _Truth(notes, x),
    )
    result = error = None
    try:
        result = f(*given, notes, *others)
    except _TooLong:
        error = "too long"
    except Exception as raised:
        lines = [frame.lineno for frame in traceback.extract_tb(raised.__traceback__) if "made" in frame.filename]
        error = type(raised), str(raised), lines, type(raised.__context__)
    return repr(result), error, repr(given[0]), given[2].v, given[2].w, list(notes)


def judge(seed: int) -> str:
    """Return how the lifted copy of a function differs from it; "" if it does not, "same" if nothing was lifted."""
    source = program(seed)
    file = f"<made {seed}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space: dict[str, Any] = {"__name__": "made"}
    try:
        exec(compile(source, file, "exec"), space)
    except SyntaxError as error:
        return f"invalid: {error}"
    f = space["f"]
    lifted = Twins().of(f)
    linecache.cache.pop(file)
    if lifted.__code__ is f.__code__:
        return "same"
    for start in (0, 1, 3):
        wanted, found = run(f, start), run(lifted, start)
        if wanted != found:
            return f"{start}: {_difference(wanted, found)}\n{source}"
    return ""


def _difference(wanted: tuple[Any, ...], found: tuple[Any, ...]) -> str:
    notes = next((k for k, (a, b) in enumerate(zip(wanted[-1], found[-1], strict=False)) if a != b), None)
    if notes is not None:
        before = wanted[-1][max(notes - 3, 0) : notes]
        return f"evaluates {wanted[-1][notes]!r}, and lifted {found[-1][notes]!r}, after {before}"
    return next(f"{a!r:.200}, and lifted {b!r:.200}" for a, b in zip(wanted, found, strict=True) if a != b)
