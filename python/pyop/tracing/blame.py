"""Tell where a trace has failed: at a line, or in a call of another library that takes no symbolic arrays."""

from __future__ import annotations

import linecache
from types import FrameType
from typing import Any

from ..graph.cells import place_in
from ..refusals import was_refused
from .libraries import is_installed

__all__ = ["note_others", "where_refused"]


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
    at_fault: Any = error
    refused = was_refused(error) and "no numbers until its graph runs" not in text  # but text, or memory, or a type
    line = linecache.getline(code.co_filename, mine.tb_lineno).strip()
    spot = f"`{line}` ({place})" if line else place
    after = [note for note in getattr(error, "__notes__", ()) if note.startswith("after a refusal: ")]
    at_fault._pyop_refused_at = f" at {spot} ({'; '.join([str(error), *after])})"
    if called is None and ("Value" not in text or refused):
        return
    remedy = (
        "pyop.compile(f, fallback=True) makes a call of Python of what is not NumPy's, and @pyop.op of a function "
        "around it one whose results are declared"
    )
    if called is None:
        what = spot if line else f"what is called at {place}"
        shown = f" at {spot} ({error}; {remedy})"
    else:
        name = getattr(called.f_code, "co_qualname", called.f_code.co_name)
        what = f"{called.f_globals.get('__name__')}.{name}, called at {place},"
        _, here, instead = str(error).partition("; here call ")
        shown = f" ({what} takes no symbolic arrays: {remedy}{here}{instead})"
    if not refused:
        at_fault._pyop_refused_at = shown
    error.add_note(f"{what} takes no symbolic arrays: {remedy}")


def where_refused(error: BaseException) -> str:
    """Return what cannot be compiled: the call of another library, or the line and the error.

    >>> from pyop.tracing.blame import where_refused
    >>> where_refused(TypeError("x.tolist()"))
    'cannot be compiled (x.tolist())'
    """
    return f"cannot be compiled{getattr(error, '_pyop_refused_at', f' ({error})')}"
