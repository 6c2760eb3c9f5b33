"""End a trace before the first call that is no function of its arguments: of a clock, a file, a command.

It is the profile function of the thread while a function is traced that can reach such a call (`purity.py`). It hears
of each C function before that is called, also by the libraries between, and a call that it forbids is not made: so
nothing happens twice when the function then runs itself.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..graph.deciding import Decisions, RunItself
from .libraries import is_installed
from .purity import is_impure, module_of

__all__ = ["watched"]

# What these do is not what the function computes: they write messages, and find and load code.
_APART = frozenset(
    (
        *("logging", "warnings", "linecache", "inspect"),
        *("importlib", "importlib._bootstrap", "importlib._bootstrap_external"),
        *("pyop.tracing.foreign", "pyop.graph.opaque"),  # which make nodes of the calls that they make
        "pyop.tracing.math_functions",  # which looks functions of the C library up
    )
)
_REMEDY = "Pass what it returns as an argument, or call it in a pyop.op(..., stateful=True), which runs in every call"


class _Watch:
    """Check the calls of a thread, as its profile function; `apart` is the depth in a call that does not matter."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.apart = 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if self.apart:
            self.apart += 1 if event in ("call", "c_call") else -1
        elif event == "c_call":
            if arg is print:
                self.apart = 1
            elif is_impure(arg):
                name = getattr(arg, "__qualname__", None) or repr(arg)
                reason = RunItself(
                    f"calls {module_of(arg)}.{name} at {_line(frame)}, which is not known to return the same for the "
                    "same arguments",
                    remedy=_REMEDY,
                )
                self.decisions.reason = reason
                raise reason
        elif event == "call" and frame.f_globals.get("__name__") in _APART:
            self.apart = 1


def _line(frame: FrameType) -> str:
    """Return the line of the user's code that led to a call."""
    at: FrameType | None = frame
    while at is not None and is_installed(str(at.f_globals.get("__name__")).partition(".")[0]):
        at = at.f_back
    at = at or frame
    return f"{at.f_code.co_filename}:{at.f_lineno}"


def watched(fn: Callable[..., Any], decisions: Decisions) -> Callable[..., Any]:
    """Return a function that does what `fn` does, and gives the trace up before a call that is not known to be pure.

    Where somebody else has a profile function set, it stays, and the trace is given up at once.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        if sys.getprofile() is not None:
            raise RunItself("may call what is no function of its arguments, and a profiler keeps pyop from looking")
        collects = gc.isenabled()
        gc.disable()  # what others do when it collects would be taken for calls of the function
        try:
            sys.setprofile(_Watch(decisions))
            return fn(*args, **kwargs)
        finally:
            sys.setprofile(None)
            if collects:
                gc.enable()

    return call
