"""What went wrong on a worker, as an exception here: of its own type, with where it was, and a way to see it again."""

from __future__ import annotations

import os
import pickle
import platform
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core import PyopError

__all__ = ["RemoteTraceback", "Report", "WorkerDied", "report_of"]


class WorkerDied(PyopError, RuntimeError):
    """A worker has ended while it was computing.

    Examples
    --------
    >>> import pyop
    >>> from pyop.machines import WorkerDied
    >>> issubclass(WorkerDied, pyop.PyopError)
    True
    """


class RemoteTraceback(Exception):
    """The traceback of a worker, as the cause of the exception that it led to."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


@dataclass(frozen=True)
class Report:
    """An exception on its way: pickled, if it can be, and in words."""

    pickled: bytes | None
    words: str
    trace: str
    worker: str

    def raise_here(self, item: int, rerun: Callable[[], Any]) -> BaseException:
        """The exception, to be raised.

        It has a note of the item and the worker, and `rerun`, which calls the same with the same arguments here.
        """
        error: BaseException | None = None
        if self.pickled is not None:
            try:
                error = pickle.loads(self.pickled)
            except Exception as reason:
                return self._in_words(item, rerun, f"which cannot be unpickled here ({reason})")
        if not isinstance(error, BaseException):
            return self._in_words(item, rerun, "which cannot be pickled")
        return self._told(error, item, rerun)

    def _in_words(self, item: int, rerun: Callable[[], Any], why: str) -> BaseException:
        return self._told(PyopError(f"an exception on a worker, {why}: {self.words}"), item, rerun)

    def _told(self, error: BaseException, item: int, rerun: Callable[[], Any]) -> BaseException:
        error.add_note(f"  for item {item} of map, on {self.worker}; err.rerun() calls it here with the same arguments")
        error.__cause__ = RemoteTraceback(self.trace)
        error.rerun = rerun  # type: ignore[attr-defined]
        return error


def report_of(error: BaseException) -> Report:
    """On the worker: what travels of an exception."""
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        pickled = None
    trace = "".join(traceback.format_exception(error))
    words = "".join(traceback.format_exception_only(error)).strip()
    return Report(pickled, words, trace, f"process {os.getpid()} of {platform.node()}")
