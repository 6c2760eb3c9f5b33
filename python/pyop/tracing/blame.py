"""Whom the error of a trace is about: a call of another library, or of C, that takes no symbolic arrays."""

from __future__ import annotations

import linecache
from types import FrameType

from ..graph.cells import place_in
from ..refusals import was_refused
from .libraries import is_installed

__all__ = ["note_others"]


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__") or "").partition(".")[0]


def note_others(error: Exception) -> None:
    """Add to the error of a trace which call it was, and what to write, if it came from another library or from C.

    >>> from pyop.tracing.blame import note_others
    >>> error = TypeError("must be real number, not Value")
    >>> note_others(error)
    >>> hasattr(error, "__notes__")
    False
    """
    at, mine, called = error.__traceback__, None, None
    while at is not None:
        root = _root(at.tb_frame)
        if not is_installed(root):
            mine, called = at, None
        elif called is None and root not in ("pyop", "numpy", "importlib"):
            called = at.tb_frame
        at = at.tb_next
    if mine is None or not (was_refused(error) or isinstance(error, TypeError | AttributeError | ValueError)):
        return
    text = " ".join((str(error), *getattr(error, "__notes__", ())))
    code = mine.tb_frame.f_code
    place = place_in(code, mine.tb_lineno)
    if called is None:
        if "Value" not in text or (was_refused(error) and "no numbers until its graph runs" not in text):
            return
        line = linecache.getline(code.co_filename, mine.tb_lineno).strip()
        what = f"`{line}` ({place})" if line else f"what is called at {place}"
    else:
        name = getattr(called.f_code, "co_qualname", called.f_code.co_name)
        what = f"{called.f_globals.get('__name__')}.{name}, called at {place},"
    error.add_note(
        f"{what} takes no symbolic arrays: pyop.compile(f, fallback=True) makes a call of Python of what is not "
        "NumPy's, and @pyop.op of a function around it one whose results are declared"
    )
