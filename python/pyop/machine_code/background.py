"""Run the one background thread that makes machine code.

Nothing waits for it but a process that ends, or forks, in the middle of a compilation, some tens of milliseconds. The
thread ends before a fork, for CPython warns of forks while there are threads, and starts again after it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any
from weakref import ref

from .compiler import load, object_code, why_missing

__all__ = ["wanted"]

_IDLE = 5.0  # seconds: then the thread ends, until there is more to do
_PATIENCE = 1.0  # seconds that a fork waits for the thread, which a signal handler may keep from ending


class _Compiler:
    """Hold a queue, and a thread while there is something in it."""

    def __init__(self) -> None:
        self.waiting: deque[ref[Any]] = deque()
        self.changed = threading.Condition()
        self.working = threading.RLock()  # held while LLVM works: a process must not be forked then
        self.thread: threading.Thread | None = None
        self.ends = False
        self.rests = False  # the process is being forked

    def add(self, code: Any) -> None:
        with self.changed:
            if self.ends:
                return
            self.waiting.append(ref(code))
            self._begin()

    def _begin(self) -> None:
        if self.thread is None and not self.rests:
            self.thread = threading.Thread(target=self._run, name="pyop machine code", daemon=True)
            self.thread.start()
        self.changed.notify()

    def _run(self) -> None:
        while True:
            with self.changed:
                if not (self.waiting or self.ends or self.rests):
                    self.changed.wait(_IDLE)
                if not self.waiting or self.ends or self.rests:
                    self.thread = None
                    return
                code = self.waiting.popleft()()
            if code is not None:  # else its plan is gone
                self.make(code)
            del code

    def make(self, code: Any) -> None:
        with self.working:
            try:
                code.install(*load(object_code(code.ir)))
            except Exception as error:
                code.refuse(f"LLVM cannot compile it: {error}".partition("\n")[0])

    def end(self) -> None:
        """End the thread before Python ends: LLVM's memory goes with the process, so no thread may use it."""
        with self.changed:
            self.ends = True
            thread = self.thread
            self.changed.notify()
        if thread is not None:
            thread.join()

    def before_fork(self) -> None:
        with self.changed:
            self.rests = True
            thread = self.thread
            self.changed.notify()
        if thread is not None:
            thread.join(_PATIENCE)
        self.working.acquire()

    def behind_fork(self) -> None:
        """Resume in the process that has forked."""
        self.working.release()
        with self.changed:
            self.rests = False
            if self.waiting:
                self._begin()

    def begin_anew(self) -> None:
        """Start again in the child of a fork, which has no such thread."""
        waiting = [code for reference in self.waiting if (code := reference()) is not None]
        self.working.release()
        self.__init__()  # type: ignore[misc]
        for code in waiting:
            code.cool()


_compiler = _Compiler()
threading._register_atexit(_compiler.end)  # type: ignore[attr-defined]
os.register_at_fork(
    before=lambda: _compiler.before_fork(),
    after_in_parent=lambda: _compiler.behind_fork(),
    after_in_child=lambda: _compiler.begin_anew(),
)


def wanted(code: Any, now: bool) -> None:
    """Make machine code of a `TapeCode`: `now`, in this thread, or soon."""
    if why := why_missing():
        code.refuse(why)
    elif now:
        _compiler.make(code)
    else:
        _compiler.add(code)
