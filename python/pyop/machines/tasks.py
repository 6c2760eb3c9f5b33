"""Define what is sent to a worker, and run it there.

A callable is sent once for each worker. A task names it by the digest of its pickle. A worker that lacks it finds it in
the client's memory, or answers `Lacking`, whereupon the task is sent again with all in it. An engine only has to call
`run_task` with one argument and to return its result.
"""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from .batches import batch_of
from .bell import SILENT, Rope
from .failures import Report, report_of
from .memory import Address, NotHere, Packed, pack, unpack

__all__ = ["Done", "Failed", "Lacking", "Task", "run_task"]

KEPT = 32  # callables that a worker remembers


Warned = tuple[str, type[Warning], str, int]  # message, category, file, line


@dataclass(frozen=True)
class Task:
    """Hold calls of one callable.

    Parameters
    ----------
    digest : str
        Of the pickle of the callable.
    callee : Packed or None
        The callable itself, for workers that do not have it.
    arguments : Packed
        A list of the arguments of each call, by place and by name.
    results : Address or None
        Where large results go.
    errstate : dict
        As `numpy.geterr` gives it, of whoever asked.
    patience : float
        Seconds after which no more calls are begun: the results are then of the first ones only.
    rope : Rope or None
        Of a bell that says the same.
    """

    digest: str
    callee: Packed | None
    arguments: Packed
    results: Address | None
    errstate: Any
    patience: float
    rope: Rope | None = None


@dataclass(frozen=True)
class Done:
    """Hold one result for each call, their duration, and their warnings."""

    results: Packed
    seconds: float
    warned: tuple[Warned, ...]


@dataclass(frozen=True)
class Failed:
    """Hold a failure. The results before it are lost, and computed again if needed."""

    index: int
    report: Report
    warned: tuple[Warned, ...] = ()


@dataclass(frozen=True)
class Lacking:
    """Report that the worker cannot see the client's memory: send all in the task."""


_lock = threading.Lock()
_callees: OrderedDict[str, Callable[..., Any]] = OrderedDict()


def run_task(task: Task) -> Done | Failed | Lacking:
    """Run a task, on the worker."""
    try:
        callee = _callee(task)
        calls = unpack(task.arguments)
        lend(calls)
    except NotHere:
        return Lacking()
    except Exception as error:
        error.add_note("  while a task was unpickled on the worker")
        return Failed(0, report_of(error))
    results = []
    rung = SILENT if task.rope is None else task.rope.hear()
    begin = perf_counter()
    with _single_threaded(), np.errstate(**task.errstate), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for index, (args, named) in enumerate(calls):
            if index and (perf_counter() - begin > task.patience or rung[0]):
                break
            try:
                results.append(callee(*args, **named))
            except BaseException as error:  # sys.exit() too: it is the caller's to end, not the worker
                return Failed(index, report_of(error), _warned(caught))
    return _packed(task, results, perf_counter() - begin, _warned(caught))


def lend(thing: Any) -> None:
    """Make the arrays in it read-only: what is written into them would be lost."""
    if isinstance(thing, np.ndarray):
        thing.flags.writeable = False
    elif type(thing) in (list, tuple):
        for each in thing:
            lend(each)
    elif type(thing) is dict:
        lend(list(thing.values()))


def _warned(caught: list[warnings.WarningMessage]) -> tuple[Warned, ...]:
    return tuple([(str(each.message), each.category, each.filename, each.lineno) for each in caught])


def _packed(task: Task, results: list[Any], seconds: float, warned: tuple[Warned, ...]) -> Done | Failed:
    into = None
    try:
        if task.results is not None:
            into = task.results.open(os.O_RDWR)
        return Done(pack(batch_of(results), into, task.results), seconds, warned)
    except NotHere:
        return Done(pack(batch_of(results)), seconds, warned)
    except Exception as error:
        error.add_note("  while results were pickled on the worker")
        return Failed(0, report_of(error))
    finally:
        if into is not None:
            os.close(into)


def _callee(task: Task) -> Callable[..., Any]:
    with _lock:
        callee = _callees.get(task.digest)
        if callee is not None:
            _callees.move_to_end(task.digest)
            return callee
    if task.callee is None:
        raise NotHere
    made: Callable[..., Any] = unpack(task.callee)
    with _lock:
        _callees[task.digest] = made
        while len(_callees) > KEPT:
            _callees.popitem(last=False)
    return made


@functools.cache
def _thread_pools() -> Any:
    """Return the thread pools of BLAS and OpenMP, found once: that takes milliseconds."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def _single_threaded() -> Any:
    """Limit BLAS to one thread: there is a worker for each core, and more threads would compete."""
    pools = _thread_pools()
    return nullcontext() if pools is None else pools.limit(limits=1)
