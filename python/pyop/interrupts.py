"""Provide context managers that an interrupt cannot leave entered, and a moment for signals and other threads."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

__all__ = ["entered_as_a_whole", "moment"]

C = TypeVar("C", bound=type)


def moment() -> None:
    """Do nothing; at its start the interpreter hands the GIL to a thread that waits for it."""


def entered_as_a_whole(cls: C) -> C:
    """Make `with` of the class safe from interrupts, by undoing an `__enter__` that one follows at once.

    CPython 3.14 hears signals between an `__enter__` in C and the body of the `with` statement, whose `__exit__` is
    then never called: a `threading.Lock` stays locked. Other versions call no handler there. In a function of Python
    what follows the call is still inside its `try`, and nothing is heard at its return.
    """
    if sys.version_info[:2] != (3, 14):
        return cls
    made: Any = cls
    enter, leave = made.__enter__, made.__exit__

    def __enter__(self: Any) -> Any:
        try:
            return enter(self)
        except (RuntimeError, MemoryError):  # its own errors: it was not entered
            raise
        except BaseException:
            leave(self, None, None, None)
            raise

    made.__enter__ = __enter__
    return cls
