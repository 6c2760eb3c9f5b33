"""Run a piece of a graph in a task of Dask, and return its failures.

An exception travels as Dask sends it, with all that the client needs to raise it again: a note of the piece and the
worker, and the call, as ``rerun``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core import Plan, PyopError
from .chunks import HEAVY
from .failures import RemoteTraceback, Report, cloudpickle_dumps, dask_worker, report_of, this_process, told
from .layout import laid, plain
from .memory import Packed, pack, unpack
from .segments import results_of
from .transport import shares

__all__ = ["Rerun", "block_of", "itself", "picked", "result_of", "run_piece"]


def run_piece(plan: Plan, state: Any, what: str, *arrays: Any) -> Any:
    """Run a piece and return its tuple of results. `what` names it in errors, `state` is that of `numpy.errstate`."""
    return tuple(map(laid, _called(plan, state, what, tuple(map(plain, arrays)))))


def block_of(*arrays: Any, plan: Plan, state: Any, what: str) -> Any:
    """Return one chunk, computed from one of each input."""
    return _called(plan, state, what, arrays)[0]


def picked(answer: Any, k: int) -> Any:
    return answer[k]


def result_of(answer: Any, k: int) -> Any:
    return plain(answer[k])


def itself(x: Any) -> Any:
    return x


def _called(plan: Plan, state: Any, what: str, arrays: tuple[Any, ...]) -> Any:
    again = Rerun(plan, state, arrays)
    try:
        if not shares():
            return again()
        with np.errstate(**state):
            return results_of(plan, arrays)
    except BaseException as error:  # sys.exit() too, which would end Dask's worker, and then the client's loop
        worker, where = dask_worker(), this_process()
        report = None if worker is None else report_of(error)
        told(error, what, where, again)
        if report is None or (isinstance(error, Exception) and _travels(error)):
            raise
        if not isinstance(error, Exception):
            report = replace(report, pickled=None, why="which would end this process, too")
        carried = _Carried(report, what, again)
    raise carried  # not within `except`: Dask sends what an exception came of, too


def _travels(error: BaseException) -> bool:
    """Return whether Dask can send an exception and its causes, and it keeps `rerun`."""
    if not report_of(error).keeps("rerun"):
        return False
    seen: list[BaseException] = []
    left = [error.__cause__, error.__context__]
    while left:
        each = left.pop()
        if each is not None and each not in seen:
            seen.append(each)
            if report_of(each).pickled is None:
                return False
            left += [each.__cause__, each.__context__]
    return True


class Rerun:
    """Repeat a call of a piece: ``err.rerun()`` returns what the piece returns.

    Its pickle has the plan and the arrays, except for very large ones; it is opened when it is called.
    """

    def __init__(self, plan: Plan | None, state: Any, arrays: tuple[Any, ...], packed: Packed | None = None) -> None:
        self._call = plan, state, arrays
        self._packed = packed

    def __call__(self) -> Any:
        plan, state, arrays = self._call if self._packed is None else unpack(self._packed)
        if plan is None:
            raise PyopError(
                f"the arrays that the piece was called with have {arrays} bytes, too many to travel with an exception "
                f"({HEAVY} at most): graph.compile() called here with the inputs of the graph does the same"
            )
        with np.errstate(**state):
            return plan(*arrays)

    def __reduce__(self) -> Any:
        packed = self._packed
        if packed is None:
            size = sum(getattr(x, "nbytes", 0) for x in self._call[2])
            packed = pack(self._call if size <= HEAVY else (None, None, size), dumps=cloudpickle_dumps())
        return Rerun, (None, None, (), packed)


class _Carried(Exception):
    """Carry an exception whose own pickle would differ: unpickled, this is what `Report` makes of it."""

    def __init__(self, report: Report, what: str, again: Rerun) -> None:
        super().__init__(f"{what}: {report.words}")
        self._parts = report, what, again
        self.__cause__ = RemoteTraceback(report.trace)

    def __reduce__(self) -> Any:
        return Report.raise_here, self._parts
