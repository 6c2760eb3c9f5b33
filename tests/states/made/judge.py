"""Runs a program plainly and compiled, and compares after every call what a caller can tell: what was returned or
raised, all state with types and bits, which of the arrays are one or share memory, warnings.
"""

from __future__ import annotations

import linecache
import logging
import re
import warnings
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyop
from pyop.compiling import worth

from .programs import STATE, Program, program

worth.stand_still()


@dataclass
class Judged:
    outcome: str  # right, given up, itself (the function ran, with a warning), unread, refused or WRONG
    why: str
    source: str


class Closure:
    """The functions of one closure, and its variables as attributes."""

    def __init__(self, f0: Any, f1: Any, get: Any, put: Any) -> None:
        vars(self).update(f0=f0, f1=f1, _get=get, _put=put)

    def __getattr__(self, name: str) -> Any:
        found = dict(self._get()) if not name.startswith("_") else {}
        if name not in found:
            raise AttributeError(name)
        return found[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._put(name, value)


def _space(made: Program, compiled: Any, name: str) -> dict[str, Any]:
    file = f"<{name}>"
    linecache.cache[file] = len(made.text), None, made.text.splitlines(True), file
    space: dict[str, Any] = {"__name__": "made", "compiled": compiled, "Closure": Closure}
    exec(compile(made.text, file, "exec"), space)
    return space


def _state(x: Any) -> list[tuple[str, Any]]:
    if type(x) is Closure:
        return x._get()
    held = getattr(x, "__dict__", None)
    if held is None:
        return [(name, getattr(x, name)) for name in (*STATE, "extra", "log") if hasattr(x, name)]
    return list(held.items())


def _told(x: Any, arrays: list[Any], seen: dict[int, int]) -> Any:
    """Return what can be told of an object but for addresses; its arrays are put into a list."""
    if isinstance(x, np.ndarray):
        arrays.append(x)
        order = x.flags.c_contiguous, x.flags.f_contiguous, x.flags.writeable
        return "array", type(x).__name__, x.dtype.str, x.shape, x.strides, order, x.tobytes()
    if isinstance(x, np.generic):
        return type(x).__name__, x.tobytes()
    if x is None or type(x) in (int, float, bool, str):
        return type(x).__name__, repr(x)
    if id(x) in seen and type(x) is not tuple:  # of a tuple that is as another one nobody can tell but by `is`
        return "again", seen[id(x)]
    if type(x) is not tuple:
        seen[id(x)] = len(seen)
    if type(x) in (list, tuple):
        return type(x).__name__, [_told(item, arrays, seen) for item in x]
    if type(x) is dict:
        return "dict", [(key, _told(item, arrays, seen)) for key, item in x.items()]
    if type(x).__module__ == "made" or type(x) is Closure:
        return type(x).__name__, [(name, _told(item, arrays, seen)) for name, item in _state(x)]
    return type(x).__name__


def _shared(arrays: list[Any]) -> list[Any]:
    """Return which arrays are one object, and which share memory."""
    first: dict[int, int] = {}
    same = [first.setdefault(id(x), k) for k, x in enumerate(arrays)]
    one = [x for k, x in enumerate(arrays) if same[k] == k]
    pairs = [(i, j) for j in range(len(one)) for i in range(j) if np.shares_memory(one[i], one[j])]
    return [same, pairs]


class _Run:
    def __init__(self, made: Program, compiled: Any, name: str) -> None:
        self.space = _space(made, compiled, name)
        self.objects = {name: self.space["C"]() for name in "pqs"}
        self.results: deque[Any] = deque(maxlen=3)
        self.given = np.linspace(-1.0, 1.0, 4)
        self.retraced: list[str] = []

    def _argument(self, how: str, a: Any, b: Any, numbers: int) -> Any:
        fresh = np.random.default_rng(numbers).normal(size=4)
        if how == "fresh":
            return fresh
        if how == "int":
            return np.arange(4)
        if how == "read-only":
            fresh.flags.writeable = False
            return fresh
        return self.given if how == "same" else eval(how, {"a": a, "b": b, "np": np})

    def do(self, action: tuple[str, ...], numbers: int) -> Any:
        """Do what an action says, and return what can be told afterwards."""
        kind, what, a, b, *rest = action
        outcome: Any = None
        x: Any = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if kind == "change":
                    space = {"a": self.objects[a], "b": self.objects[b], "np": np, "C": self.space["C"]}
                    exec(what, space | {"D": self.space.get("D")}, space)
                    self.objects[a] = space["a"]
                else:
                    x = self._argument(rest[0], self.objects[a], self.objects[b], numbers)
                    outcome = getattr(self.objects[a], what)(x)
                    self.results.append(outcome)
            except Exception as error:
                outcome = type(error).__name__, re.sub(r"0x[0-9a-f]+", "…", str(error))
        told = [w for w in caught if not issubclass(w.category, pyop.RetraceWarning)]
        self.retraced += [str(w.message) for w in caught if issubclass(w.category, pyop.RetraceWarning)]
        arrays: list[Any] = []
        tops = [outcome, x, *self.objects.values(), *self.results, self.space["LOG"], self.space["G"]]
        kinds = [getattr(self.space["C"], name, None) for name in ("shift", "total")]
        seen: dict[int, int] = {}
        shown = [_told(top, arrays, seen) for top in (*tops, kinds)]
        return shown, _shared(arrays), sorted({(type(w.message).__name__, str(w.message)) for w in told})


class _Logged(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def judge(seed: int, **options: Any) -> Judged:
    """Compare the program of a seed, plain and compiled."""
    made = program(seed)
    plain = _Run(made, lambda f: f, f"plain {seed}")
    mine = _Run(made, lambda f: pyop.compile(f, **options), f"compiled {seed}")
    source = made.text + "\n".join(map(str, made.actions))
    logger, logged = logging.getLogger("pyop"), _Logged()
    logger.addHandler(logged)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.propagate = False
    unread = ""
    try:
        for k, action in enumerate(made.actions):
            expected, found = plain.do(action, seed + k), mine.do(action, seed + k)
            if expected == found:
                continue
            labels = ("outcome", "argument", "p", "q", "s", "result", "result", "result", "LOG", "G")
            where = [
                f"{label}: {e} … {f}" for label, e, f in zip(labels, expected[0], found[0], strict=False) if e != f
            ]
            where += [f"shared: {expected[1]} … {found[1]}"] if expected[1] != found[1] else []
            where += [f"warned: {expected[2]} … {found[2]}"] if expected[2] != found[2] else []
            if expected[:2] == found[:2] and set(found[2]) < set(expected[2]):
                unread = f"warned of nothing: {expected[2]}"  # of what nobody reads, which no plan computes
                continue
            outcome = found[0][0]
            refused = "TypeError" in str(outcome)[:40]
            why = f"action {k}, {action}: " + "\n".join(where)
            return Judged("refused" if refused else "WRONG", why, source)
    finally:
        logger.removeHandler(logged)
        logger.setLevel(level)
        logger.propagate = True
    given_up = [text for text in logged.texts if "no plan with its state" in text]
    if unread:
        return Judged("unread", unread, source)
    if mine.retraced:
        return Judged("itself", (given_up or mine.retraced)[0], source)
    return Judged("given up" if given_up else "right", given_up[0] if given_up else "", source)
