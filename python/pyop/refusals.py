"""Refusals: what a symbolic or recorded array raises when it is asked for numbers or memory that it cannot give.

A refusal is noted, so that a function that catches it does not go another way than it would with arrays without a word:
who traces or records the function calls it by `call_watched`, which raises the refusal in the end. See
csrc/runtime/refusal.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from ._core import PyopError, call_watched, note_refusal

__all__ = ["call_watched", "note_call", "noting", "refusal"]


def refusal(message: str, kind: type[Exception] = TypeError) -> Exception:
    """Return the exception to raise, noted.

    Parameters
    ----------
    message : str
        What was asked for, why it cannot be had, and what to write instead.
    kind : type of Exception
        Its class.

    Examples
    --------
    >>> from pyop.refusals import refusal
    >>> raise refusal("Value.tolist(): a Value has no numbers until its graph runs")
    Traceback (most recent call last):
    TypeError: Value.tolist(): a Value has no numbers until its graph runs
    """
    error = kind(message)
    note_refusal(error)
    return error


@contextmanager
def noting(kind: type[Exception]) -> Iterator[None]:
    """Note an error of a class that the body raises, as a refusal.

    Parameters
    ----------
    kind : type of Exception
        Of errors that NumPy would not have raised there.

    Examples
    --------
    >>> from pyop.refusals import noting
    >>> with noting(TypeError):
    ...     raise TypeError("np.foo has no gradient rule")
    Traceback (most recent call last):
    TypeError: np.foo has no gradient rule
    """
    try:
        yield
    except kind as error:
        note_refusal(error)
        raise


# What C functions, and those of the standard library, raise for an object that is none of NumPy's.
_ABOUT_TYPES = (TypeError, AttributeError, BufferError, struct.error)


def note_call(error: BaseException, call: str) -> None:
    """Add to an error what was being traced or recorded, and a remedy if it is another library that wants an array.

    Parameters
    ----------
    error : BaseException
        What the user's function raised.
    call : str
        Who called the function, and how.

    Examples
    --------
    >>> from pyop.refusals import note_call
    >>> error = TypeError("must be real number, not Value")
    >>> note_call(error, "pyop.trace called f")
    >>> error.__notes__
    ['while pyop.trace called f; a part that needs the numbers or the memory of an array belongs into an op: ...']
    """
    text = f"while {call}"
    if "no numbers until its graph runs" in str(error):
        text += "; an argument that decides what the function does must be static=, or a Python number"
    elif isinstance(error, _ABOUT_TYPES) and not isinstance(error, PyopError):
        text += (
            "; a part that needs the numbers or the memory of an array belongs into an op: declare it with @pyop.op "
            "and call that"
        )
    error.add_note(text)
