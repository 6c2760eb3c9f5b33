"""Write files atomically: a reader finds the old content or the new one, and a failure leaves the old one."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Any

__all__ = ["write_file"]

# The part is a new file, whatever somebody has put at its name before.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def write_file(path: Any, data: bytes) -> None:
    """Write a file atomically; an OSError names that file, and not the part beside it.

    As with `open`, a symbolic link is followed, a file that is replaced keeps its mode, one that may not be written is
    refused, and what is no regular file (a pipe, ``/dev/stdout``) is written as it is.
    """
    path = os.fsdecode(path)
    try:
        target = os.path.realpath(path) if os.path.islink(path) else path
        before = _status(target)
        if before is None or stat.S_ISREG(before.st_mode):
            _replace(target, before, data)
        else:
            with open(target, "wb") as file:
                file.write(data)
    except OSError as error:
        told = OSError(error.errno, error.strerror, path)
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            told.add_note(f"there is no folder {folder!r}: os.makedirs makes it")
        raise told from None


def _status(target: str) -> os.stat_result | None:
    try:
        return os.stat(target)  # ELOOP for links that lead to each other
    except FileNotFoundError:
        return None


def _replace(target: str, before: os.stat_result | None, data: bytes) -> None:
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    part = os.path.join(os.path.dirname(target), f".pyop-{os.urandom(8).hex()}.part")
    fd = os.open(part, _NEW, 0o666)  # less the umask
    try:
        with open(fd, "wb") as file:
            if before is not None:
                _take_over(fd, before)
            file.write(data)
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise


def _take_over(fd: int, before: os.stat_result) -> None:
    """Give a new file the owner and the mode of the one that it is going to replace, as far as the process may."""
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):
            os.fchown(fd, before.st_uid, before.st_gid)
    os.fchmod(fd, stat.S_IMODE(before.st_mode) & 0o777)
