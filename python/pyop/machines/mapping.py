"""Call one function for many inputs, as tasks for the workers of an engine, with results in order.

Threads: futures end on threads of their engines, which put them into one queue; the caller's thread does all else.
"""

from __future__ import annotations

import queue
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

import numpy as np

from .._core import CompiledFunction, Op, Plan
from ..graph.cells import OWN, warn
from .batches import calls_batch
from .bell import Bell, Rope
from .callee import Call, Callee, may_travel, stateful_names
from .chunks import Chunks, Worth
from .engines import Engine, engine_of
from .failures import WorkerDied
from .memory import Memory, pack, unpack
from .progress import progress_of
from .tasks import Done, Failed, Lacking, Task, Warned

__all__ = ["map_calls"]

ATTEMPTS = 3  # of a task whose worker dies
AHEAD = 2  # tasks for each worker that are on their way at once


def map_calls(
    callee: Plan | CompiledFunction | Op,
    inputs: Iterable[Any],
    /,
    *,
    executor: Any = None,
    chunk: int | Literal["auto"] = "auto",
    progress: bool | Callable[[int, int | None], Any] = True,
    stateful: Literal["here", "workers"] = "here",
) -> list[Any]:
    """Call it for each of many inputs, on other processes or machines.

    Parameters
    ----------
    inputs : iterable
        A tuple is the arguments of one call, a dict its arguments by name; anything else is its only argument.
    executor : optional
        A number of processes, which are started by the first call and kept; an executor of `concurrent.futures`
        (loky's and mpi4py's too); a ``Client`` of dask.distributed; ``"ray"``. None, the default, calls here.
    chunk : int or "auto"
        Calls that travel together. "auto": as many as are worth it, by how long the first ones take; calls that are not
        begun when a task has taken too long are sent again.
    progress : bool or callable
        True: a bar on a terminal, where rich is installed. A function is called with the number of items that are
        done, and of all or None.
    stateful : "here" or "workers"
        What is stateful, writes into its arguments or cannot be traced is called here, in order, whatever the
        executor. "workers" sends it away all the same. It is never called twice for one input then: a worker that dies
        is an error, also where Dask or Ray would run its tasks again. Arguments are read-only there.

    Returns
    -------
    list
        The results in the order of the inputs. Arrays are writable, but for those that show an argument, which is
        read-only on the worker; they are copies of it here, and of each other.

    Raises
    ------
    Exception
        What a call has raised, of its own type, with a note of the item and the worker. ``err.rerun()`` calls the same
        here. Of several, the one of the first input.
    pyop.machines.WorkerDied
        A worker ended while it was computing; for what is stateless, three times for the same inputs.

    Notes
    -----
    The function is sent once to a worker, by its content; those of ``__main__``, lambdas and closures need cloudpickle.
    On one machine arrays go through shared memory, which goes with the processes that have it. `numpy.errstate` holds
    on the workers, and what they warn of is warned of here.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> norm = pyop.trace(lambda x: np.sqrt(np.sum(x * x)), "float64[n]").compile()
    >>> norm.map([np.ones(4), np.ones(9)])
    [array(2.), array(3.)]
    >>> norm.map([np.ones(4), np.ones(9)], executor=1)
    [array(2.), array(3.)]
    """
    if stateful not in ("here", "workers"):
        raise ValueError(f'stateful= takes "here" or "workers", got {stateful!r}')
    calls = [_call_of(each) for each in inputs]
    engine = None if executor is None else engine_of(executor)
    chunks = Chunks(chunk, calls, 1 if engine is None else engine.capacity, Worth() if engine is None else engine.worth)
    pure = engine is None or may_travel(callee, calls)
    if not (pure or stateful == "workers") or not {"call", "log"}.isdisjoint(np.geterr().values()):
        engine = None  # np.seterrcall is of this process, too
    with progress_of(progress, getattr(callee, "__name__", type(callee).__name__)) as told:
        if engine is None:
            return list(_counted((callee(*args, **named) for args, named in calls), len(calls), told))
        if isinstance(executor, ThreadPoolExecutor):
            return list(_counted(_by_threads(callee, calls, executor), len(calls), told))
        return _Map(Callee(callee), calls, engine, chunks, pure, told).run()


_UNNAMED: dict[str, Any] = {}  # one for all calls: ten thousand would have the collector of cycles look at all there is


def _call_of(given: Any) -> Call:
    if type(given) is tuple:
        return given, _UNNAMED
    return ((), given) if type(given) is dict else ((given,), _UNNAMED)


def _by_threads(callee: Any, calls: list[Call], executor: ThreadPoolExecutor) -> Iterator[Any]:
    """Map by threads of this process, which need only the state of np.errstate, a thread's own."""

    state = copy_context()

    def call(each: Call) -> Any:
        args, named = each
        return state.copy().run(callee, *args, **named)

    return executor.map(call, calls)


def _counted(results: Iterable[Any], total: int, told: Callable[[int, int | None], Any]) -> Iterator[Any]:
    for done, each in enumerate(results, 1):
        told(done, total)
        yield each


@dataclass(eq=False)
class _Piece:
    """Hold items that are on their way."""

    start: int
    stop: int
    sent_whole: bool = False
    attempts: int = 0
    arguments: Memory | None = None
    results: Memory | None = None
    future: Any = None
    sent: float = 0.0
    rope: Rope | None = None
    rung: bool = False

    def close(self) -> None:
        for memory in (self.arguments, self.results):
            if memory is not None:
                memory.close()
        self.arguments = self.results = None


class _Map:
    """Run one call of `map_calls`."""

    def __init__(
        self,
        callee: Callee,
        items: list[Call],
        engine: Engine,
        chunks: Chunks,
        pure: bool,
        told: Callable[[int, int | None], Any],
    ) -> None:
        self.callee = callee
        self.items = items
        self.engine = engine
        self.chunks = chunks
        self.pure = pure
        self.told = told
        self.results: list[Any] = [None] * len(items)
        self.ended: queue.SimpleQueue[_Piece] = queue.SimpleQueue()
        self.running: set[_Piece] = set()
        self.whole = False  # some worker does not see the memory of this process
        self.registry: dict[Any, Any] = {}
        self.failure: tuple[int, BaseException] | None = None
        self.bell = Bell() if chunks.shares else None

    def run(self) -> list[Any]:
        """Return all results, or raise the exception of the first item that has one."""
        done = 0
        try:
            while True:
                while len(self.running) < AHEAD * self.engine.capacity:
                    # Of several exceptions that of the first item is raised: what comes before one is still called.
                    cut = self.chunks.next() if self.failure is None else self.chunks.next(before=self.failure[0])
                    if cut is None:
                        break
                    self._send(_Piece(*cut))
                if not self.running:
                    break
                piece = self._next_to_end()
                if piece in self.running:  # else nobody waits for it any more
                    self.running.discard(piece)
                    done += self._take(piece)
                    self.told(done, len(self.items))
        except KeyboardInterrupt:
            self.engine.interrupted()
            raise
        finally:
            for piece in self.running:
                piece.future.cancel()
                piece.close()
            self.callee.close()
            if self.bell is not None:
                self.bell.close()
        if self.failure is not None:
            raise self.failure[1]
        return self.results

    def _next_to_end(self) -> _Piece:
        """Return the next running piece to end.

        Where a worker is idle, the task of another is recalled to share it.
        """
        while self.bell is not None and sum(piece.rung for piece in self.running) < self._idle():
            slowest = max((piece for piece in self.running if not piece.rung), key=self._left_of)
            if self._left_of(slowest) <= self.chunks.least:
                try:
                    return self.ended.get(timeout=self.chunks.least)
                except queue.Empty:
                    pass  # slower than what has ended
            slowest.rung = True
            if slowest.rope is not None:
                self.bell.ring(slowest.rope)
        return self.ended.get()

    def _idle(self) -> int:
        """Return the number of workers that are idle while others compute."""
        return min(self.engine.capacity - len(self.running), len(self.running)) if self.chunks.each is not None else 0

    def _left_of(self, piece: _Piece) -> float:
        """Return the seconds that a piece will still take, judged by others."""
        return (self.chunks.each or 0.0) * (piece.stop - piece.start) - (monotonic() - piece.sent)

    def _send(self, piece: _Piece) -> None:
        piece.close()
        piece.sent_whole, piece.sent, piece.rung = self.whole, monotonic(), False
        piece.rope = None if self.bell is None or self.whole else self.bell.rope()
        if not self.whole:
            piece.arguments, piece.results = Memory(), Memory()
        try:
            arguments = _packed(calls_batch(self.items[piece.start : piece.stop]), piece.arguments)
            task = Task(
                self.callee.digest,
                self.callee.whole() if self.whole else self.callee.shared(),
                arguments,
                piece.results.address if piece.results else None,
                np.geterr(),
                self.chunks.patience,
                piece.rope,
            )
            piece.future = self.engine.submit(task, None if self.pure else stateful_names(self.callee.function))
        except BaseException:
            piece.close()
            raise
        self.running.add(piece)
        piece.future.add_done_callback(lambda _: self.ended.put(piece))

    def _take(self, piece: _Piece) -> int:
        """Take the answer of a piece; return the number of items that it adds to those done."""
        try:
            answer = piece.future.result()
        except Exception as error:
            try:
                lost = self.engine.lost(error)
            except WorkerDied as died:  # for good
                if self.pure:
                    raise
                lost, error = True, died
            if not lost:
                raise
            return self._died(piece, error)
        if isinstance(answer, Lacking):
            if piece.sent_whole:
                raise WorkerDied("a worker does not find what was sent with its task")
            self.whole = True
            self._send(piece)
            return 0
        if isinstance(answer, Failed):
            self._warn(answer.warned)
            self._failed(piece, answer)
            piece.close()
            return 0
        assert isinstance(answer, Done)
        fd = piece.results.fd if piece.results is not None and answer.results.address is not None else None
        self._warn(answer.warned)
        results = unpack(answer.results, writable=True, fd=fd)
        stop = piece.start + len(results)
        self.results[piece.start : stop] = results
        self.chunks.took(len(results), answer.seconds)
        if stop < piece.stop:
            self.chunks.back(stop, piece.stop)
        piece.close()
        return len(results)

    def _warn(self, warned: tuple[Warned, ...]) -> None:
        """Issue the warnings of workers, under the filters of this process: once for a place, where these say so.

        A warning without a line of the user's is given at the line that calls `map`.
        """
        for message, category, filename, line in warned:
            if filename.startswith(OWN):
                warn(message, category)
            else:
                warnings.warn_explicit(message, category, filename, line, registry=self.registry)

    def _failed(self, piece: _Piece, answer: Failed) -> None:
        item = piece.start + answer.index
        if self.failure is None or item < self.failure[0]:
            function, (args, named) = self.callee.function, self.items[item]
            self.failure = item, answer.report.raise_here(f"item {item} of map", lambda: function(*args, **named))
        self._leave_behind(item)

    def _died(self, piece: _Piece, error: BaseException) -> int:
        piece.attempts += 1
        if self.pure and piece.attempts < ATTEMPTS:
            self._send(piece)
            return 0
        which = f"item {piece.start}" if piece.stop - piece.start == 1 else f"items {piece.start} to {piece.stop - 1}"
        times = (
            f", {piece.attempts} times" if self.pure else "; functions that are or may be stateful are not called twice"
        )
        error.add_note(f"  for {which} of map of {self.callee.function!r:.80}{times}")
        if self.failure is None or piece.start < self.failure[0]:
            self.failure = piece.start, error
        self._leave_behind(piece.start)
        piece.close()
        return 0

    def _leave_behind(self, item: int) -> None:
        """Drop the pieces after an item that failed."""
        for piece in [each for each in self.running if each.start > item]:
            self.running.discard(piece)
            piece.future.cancel()
            piece.close()


def _packed(items: Any, memory: Memory | None) -> Any:
    into, address = (memory.fd, memory.address) if memory is not None else (None, None)
    try:
        return pack(items, into, address)
    except Exception as refused:
        try:
            import cloudpickle
        except ImportError:
            raise refused from None
        return pack(items, into, address, cloudpickle.dumps)


def _map(
    self: Any,
    inputs: Iterable[Any],
    /,
    *,
    executor: Any = None,
    chunk: int | Literal["auto"] = "auto",
    progress: bool | Callable[[int, int | None], Any] = True,
    stateful: Literal["here", "workers"] = "here",
) -> list[Any]:
    return map_calls(self, inputs, executor=executor, chunk=chunk, progress=progress, stateful=stateful)


_map.__doc__ = map_calls.__doc__
_map.__name__ = _map.__qualname__ = "map"
for _kind in (Plan, CompiledFunction, Op):
    setattr(_kind, "map", _map)  # noqa: B010
