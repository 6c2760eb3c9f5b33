"""Refusals: what a symbolic or recorded array raises when it is asked for numbers or memory that it cannot give.

A refusal is noted, so that a function that catches it does not go another way than it would with arrays without a word:
who traces or records the function calls it by `call_watched`, which raises the refusal in the end. See
csrc/runtime/refusal.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._core import call_watched, note_refusal

__all__ = ["call_watched", "noting", "refusal"]


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
