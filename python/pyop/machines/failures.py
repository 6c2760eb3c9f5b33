"""Report failures of a worker as exceptions of their own type, with the place, and a way to repeat the call."""

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
    """Report that a worker has ended while it was computing.

    Examples
    --------
    >>> import pyop
    >>> from pyop.machines import WorkerDied
    >>> issubclass(WorkerDied, pyop.PyopError)
    True
    """


class RemoteTraceback(Exception):
    """Hold the traceback of a worker, as the cause of the exception that it led to."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


@dataclass(frozen=True)
class Report:
    """Carry an exception: pickled, if it can be, and in words."""

    pickled: bytes | None
    words: str
    trace: str
    worker: str
    why: str = "which cannot be pickled"  # where there is no pickle

    def raise_here(self, what: str, rerun: Callable[[], Any]) -> BaseException:
        """Return the exception, to be raised.

        It has a note of the call and of the worker, and `rerun`, which repeats the call here with the same arguments.
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
        """Return whether the pickle keeps an attribute: types with a `__reduce__` of their own may not."""
        return self.pickled is not None and hasattr(pickle.loads(self.pickled), attribute)

    def _in_words(self, what: str, rerun: Callable[[], Any], why: str) -> BaseException:
        error = PyopError(f"an exception on a worker, {why}: {self.words}")
        error.__cause__ = RemoteTraceback(self.trace)
        return told(error, what, self.worker, rerun)


def told(error: BaseException, what: str, where: str, rerun: Callable[[], Any]) -> BaseException:
    """Return the exception with a note of the call and the place, and with `rerun`."""
    error.add_note(f"  for {what}, on {where}; err.rerun() calls it here with the same arguments")
    error.rerun = rerun  # type: ignore[attr-defined]
    return error


def report_of(error: BaseException) -> Report:
    """Return, on the worker, the report of an exception."""
    trace = "".join(traceback.format_exception(error))
    words = "".join(traceback.format_exception_only(error)).strip()
    return Report(_pickled(error), words, trace, this_process())


def _pickled(error: BaseException) -> bytes | None:
    """Return the pickle of an exception, or None.

    Types of the client's ``__main__`` are here by value, and are pickled so; the client knows them for its own.
    """
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
    """Return cloudpickle's dumps, which pickles functions of ``__main__``, lambdas and closures; None if missing."""
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle.dumps


def this_process() -> str:
    """Return the number and machine of this process in words, and Dask's name for it if it runs a task of Dask."""
    words = f"process {os.getpid()} of {platform.node()}"
    worker = dask_worker()
    return words if worker is None else f"{words}, Dask's worker {worker.name}"


def dask_worker() -> Any:
    """Return the worker of Dask that runs the calling task; None if there is none."""
    module = sys.modules.get("distributed.worker")
    try:
        return None if module is None else module.get_worker()
    except ValueError:
        return None
