"""Note floating-point warnings of what a function computes of things that it holds; give them in every call.

``np.sqrt(W)`` of an array that the function holds is computed when it is traced, by NumPy itself, and no step of the
plan warns of it. NumPy's state of errors tells of each such warning, whatever is to become of it; what it becomes is
decided in each call, by the state that holds there.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from .twins import graph_under_twins

__all__ = ["HeldWarnings", "noted"]

_PACKAGE = __name__.partition(".")[0]
# What NumPy's texts begin with: the name in np.geterr(), what np.seterrcall's function is called with.
_KINDS = {
    "divide": ("divide", "divide by zero", 1),
    "overflow": ("over", "overflow", 2),
    "underflow": ("under", "underflow", 4),
    "invalid": ("invalid", "invalid value", 8),
}


def noted(may_warn: bool, call: Callable[..., Any], *args: Any) -> tuple[Any, HeldWarnings | None]:
    """Call a function, and note what NumPy would warn of; None if of nothing. `may_warn`: as `error_checks` has it,
    else NumPy's state of errors stays, and what warns does it now.

    >>> import numpy as np
    >>> from pyop.tracing.held_warnings import noted
    >>> result, held = noted(True, np.log, np.zeros(1))
    >>> [text for text, file, line in held.found]
    ['divide by zero encountered in log']
    """
    if not may_warn:
        return call(*args), None
    held = HeldWarnings(np.geterr())
    with np.errstate(all="log", call=held):
        result = call(*args)
    return result, held if held.found else None


class HeldWarnings:
    """Keep what NumPy would have warned of while a function was traced. Called with a result, it warns of that."""

    __slots__ = ("found", "state")

    def __init__(self, state: Any) -> None:
        self.state = state
        # Each text and its place, with the globals of the code, which know what they have warned of already.
        self.found: dict[tuple[str, str, int], dict[str, Any]] = {}

    def write(self, text: str) -> None:
        """Note a warning, as NumPy writes it into a log."""
        text = text.removeprefix("Warning: ").rstrip("\n")
        if self.state[_kind(text)[0]] == "raise" or _may_never_run():
            raise FloatingPointError(text)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
            frame = frame.f_back
        if frame is not None:
            self.found[text, frame.f_code.co_filename, frame.f_lineno] = frame.f_globals

    def __call__(self, result: Any, out: Any = None) -> Any:
        for (text, file, line), names in self.found.items():
            _tell(text, file, line, names)
        return result


def _may_never_run() -> bool:
    """Return whether it is in a recorded loop, behind a condition or in one that may have no iteration."""
    graph = graph_under_twins()
    loops = () if graph is None else graph._rolling
    return any(x.recording is not None and (x.arms or x.condition is not None or not x.once) for x in loops)


def _kind(text: str) -> tuple[str, str, int]:
    return _KINDS[text.partition(" ")[0]]


def _tell(text: str, file: str, line: int, names: dict[str, Any]) -> None:
    """Do with a floating-point error what NumPy's state says now."""
    kind, called, flag = _kind(text)
    state: Any = np.geterr()
    match state[kind]:
        case "warn":
            registry = names.setdefault("__warningregistry__", {})
            warnings.warn_explicit(text, RuntimeWarning, file, line, names.get("__name__"), registry, names)
        case "raise":
            raise FloatingPointError(text)
        case "call":
            handler: Any = np.geterrcall()
            handler(called, flag)
        case "log":
            writer: Any = np.geterrcall()
            writer.write(f"Warning: {text}\n")
        case "print":
            print(f"Warning: {text}", file=sys.__stderr__)
