"""What went wrong on a worker, as an exception here: of its own type, with where it was, and a way to see it again."""

from __future__ import annotations

import os
import pickle
import platform
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core import PyopError

__all__ = [
    "RemoteTraceback",
    "Report",
    "WorkerDied",
    "cloudpickle_dumps",
    "dask_worker",
    "report_of",
    "this_process",
    "told",
]


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
    why: str = "which cannot be pickled"  # where there is no pickle

    def raise_here(self, what: str, rerun: Callable[[], Any]) -> BaseException:
        """The exception, to be raised.

        It has a note of what was called and of the worker, and `rerun`, which calls the same with the same arguments
        here.
        """
        error: BaseException | None = None
        if self.pickled is not None:
            try:
                error = pickle.loads(self.pickled)
            except Exception as reason:
                return self._in_words(what, rerun, f"which cannot be unpickled here ({reason})")
        if not isinstance(error, BaseException):
            return self._in_words(what, rerun, self.why)
        error.__cause__ = RemoteTraceback(self.trace)
        return told(error, what, self.worker, rerun)

    def keeps(self, attribute: str) -> bool:
        """Whether the pickle keeps it: types with a `__reduce__` of their own may not."""
        return self.pickled is not None and hasattr(pickle.loads(self.pickled), attribute)

    def _in_words(self, what: str, rerun: Callable[[], Any], why: str) -> BaseException:
        error = PyopError(f"an exception on a worker, {why}: {self.words}")
        error.__cause__ = RemoteTraceback(self.trace)
        return told(error, what, self.worker, rerun)


def told(error: BaseException, what: str, where: str, rerun: Callable[[], Any]) -> BaseException:
    """The exception with a note of what was called and where, and with `rerun`."""
    error.add_note(f"  for {what}, on {where}; err.rerun() calls it here with the same arguments")
    error.rerun = rerun  # type: ignore[attr-defined]
    return error


def report_of(error: BaseException) -> Report:
    """On the worker: what travels of an exception."""
    trace = "".join(traceback.format_exception(error))
    words = "".join(traceback.format_exception_only(error)).strip()
    return Report(_pickled(error), words, trace, this_process())


def _pickled(error: BaseException) -> bytes | None:
    """Types of the client's ``__main__`` are here by value, and go back so; the client knows them for its own."""
    ways: list[Callable[[Any], bytes]] = [pickle.dumps, cloudpickle_dumps()]
    for dumps in ways:
        try:
            pickled = dumps(error)
            pickle.loads(pickled)
        except Exception:
            continue
        return pickled
    return None


def cloudpickle_dumps() -> Any:
    """Functions of ``__main__``, lambdas and closures go by cloudpickle, where it is installed."""
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle.dumps


def this_process() -> str:
    """In words: its number and machine, and what Dask calls it if it is a worker that runs a task of Dask."""
    words = f"process {os.getpid()} of {platform.node()}"
    worker = dask_worker()
    return words if worker is None else f"{words}, Dask's worker {worker.name}"


def dask_worker() -> Any:
    """The worker of Dask that runs the task from which this is called; None: there is none."""
    module = sys.modules.get("distributed.worker")
    try:
        return None if module is None else module.get_worker()
    except ValueError:
        return None
