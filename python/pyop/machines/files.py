"""Keep files without a name for results of pieces (`segments.py`), none of which changes while it is read.

New pages of such a file cost several times those of an array, and are wasted if nobody else asks for the result. So a
worker makes a few at first, and then as many as are asked for. Unused ones are kept for the next results.

A reader has a shared lock of the file, which the kernel releases with the last mapping and descriptor of that opening,
however its process ends. Before a file is reused, its owner takes the lock for itself, and gives the file another
stamp. An address has the stamp, so an outdated one is detected under the reader's lock.

Threads: any, behind one lock, which the thread may have already when the death of an array gives a file back. Fork: a
child has all arrays of its parent, so no file is reused that existed at the time.
"""

from __future__ import annotations

import fcntl
import os
import resource
import threading
import weakref

from .memory import Address, Memory, NotHere, write

__all__ = ["File", "asked_for", "few_files", "give_back", "opened", "take"]

KEPT = 1 << 27  # bytes of files that nobody has
FIRST = 1 << 28  # bytes of files that are made before any is asked for
FOLLOWING = 4  # bytes that may be made for each that is asked for
_STAMP = 16  # bytes, behind the others


class File:
    """Hold a file of so many bytes."""

    __slots__ = ("__weakref__", "memory", "reusable", "size", "stamp")

    def __init__(self, memory: Memory, size: int, stamp: bytes, reusable: bool) -> None:
        self.memory = memory
        self.size = size
        self.stamp = stamp
        self.reusable = reusable
        _files.add(self)


_lock = threading.RLock()
_files: weakref.WeakSet[File] = weakref.WeakSet()
_kept: list[File] = []
_worth = [FIRST]


def take(size: int) -> File | None:
    """Return a file for a result, fully allocated so that no write ends the process; None if it does not pay."""
    stamp = os.urandom(_STAMP)
    try:
        with _lock:
            memory = _again(size)
            if memory is None:
                if _worth[0] < size or not few_files():
                    return None
                _worth[0] -= size
                memory = Memory()
        os.ftruncate(memory.fd, size + _STAMP)
        os.posix_fallocate(memory.fd, 0, size + _STAMP)
        write(memory.fd, memoryview(stamp), size)
        fcntl.flock(memory.fd, fcntl.LOCK_UN)
    except OSError:
        return None
    return File(memory, size, stamp, True)


def _again(size: int) -> Memory | None:
    for file in list(_kept):
        if size <= 2 * file.size <= 4 * size and _is_unread(file.memory.fd):
            _kept.remove(file)
            return file.memory
    return None


def _is_unread(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def give_back(file: File) -> None:
    """Return a file for reuse when no array of this process shows it any more."""
    if not file.reusable:
        return
    with _lock:
        _kept.append(file)
        while sum(each.size for each in _kept) > KEPT:
            _kept.pop(0)


def asked_for(file: File) -> None:
    """Record that a file's address goes to another process."""
    with _lock:
        _worth[0] = min(_worth[0] + FOLLOWING * file.size, 4 * FIRST)


def opened(address: Address, size: int, stamp: bytes) -> File:
    """Open a file in the reader. Raises NotHere."""
    memory = Memory(address.open(os.O_RDONLY))
    try:
        fcntl.flock(memory.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise NotHere from None
    if os.pread(memory.fd, _STAMP, size) != stamp:
        raise NotHere
    return File(memory, size, stamp, False)


def few_files() -> bool:
    """Return whether there are descriptors for more files, which may use a part of the process's limit."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit == resource.RLIM_INFINITY or len(_files) < limit // 4


def _forked() -> None:
    for file in list(_files):
        file.reusable = False
    _kept.clear()


def _child() -> None:
    global _lock
    _lock = threading.RLock()
    _forked()


os.register_at_fork(before=_forked, after_in_child=_child)
