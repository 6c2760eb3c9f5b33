"""Pass objects with arrays between processes of one machine through memory that both map.

The memory is a file without a name (`memfd_create`), which the other process opens as ``/proc/PID/fd/N``. So nothing
remains when either is killed: it goes with the last process that has it mapped. A process on another machine, or one
without permission, finds no such file, or another one, and raises `NotHere`.

Arrays that are read from a `Memory` keep its mapping; its creator closes the file.
"""

from __future__ import annotations

import io
import os
import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core import mapped_file

__all__ = ["SHARED_FROM", "Address", "Memory", "NotHere", "Packed", "pack", "unpack", "write"]

ALIGNMENT = 64
SHARED_FROM = 1 << 16  # bytes of arrays from which a copy into shared memory is cheaper than one through a pipe


class NotHere(Exception):
    """Report that the memory is of a process which cannot be seen from here."""


@dataclass(frozen=True)
class Address:
    """Locate the memory for another process; the inode tells it from another file there."""

    pid: int
    fd: int
    inode: tuple[int, int]

    def open(self, flags: int) -> int:
        try:
            fd = os.open(f"/proc/{self.pid}/fd/{self.fd}", flags | os.O_CLOEXEC)
        except OSError:
            raise NotHere from None
        if _inode(fd) != self.inode:
            os.close(fd)
            raise NotHere
        return fd


class Memory:
    """Own memory that others may map while it is open here: new, or a file whose descriptor it takes over."""

    __slots__ = ("address", "fd")

    def __init__(self, fd: int | None = None) -> None:
        self.fd = os.memfd_create("pyop", os.MFD_CLOEXEC) if fd is None else fd
        self.address = Address(os.getpid(), self.fd, _inode(self.fd))

    def seen_from_here(self) -> Address:
        """Return the address in this process, which may be a child of the one that opened it."""
        return replace(self.address, pid=os.getpid())

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True)
class Packed:
    """Hold an object as a pickle, and the buffers of its arrays: at `address` one behind the other, or else inline."""

    pickled: bytes
    sizes: tuple[int, ...] = ()
    address: Address | None = None
    inline: tuple[bytes, ...] = ()


def pack(thing: Any, into: int | None = None, address: Address | None = None, dumps: Any = None) -> Packed:
    """Pickle an object, its arrays into the file `into` (at `address`) if they are large, else beside it.

    `dumps` is another pickler's, for what this one refuses.
    """
    buffers: list[pickle.PickleBuffer] = []
    pickled = (dumps or _dumps)(thing, protocol=5, buffer_callback=buffers.append)
    views = [each.raw() for each in buffers]
    if into is None or sum(view.nbytes for view in views) < SHARED_FROM:
        return Packed(pickled, inline=tuple(map(bytes, views)))
    sizes = tuple(view.nbytes for view in views)
    os.ftruncate(into, _places(sizes)[-1])
    for view, start in zip(views, _places(sizes), strict=False):
        write(into, view, start)
    return Packed(pickled, sizes, address)


def write(fd: int, view: memoryview, start: int) -> None:
    """Write all of `view`; a mapping would fault at each page, and have it filled with zeros before."""
    done = 0
    while done < view.nbytes:
        done += os.pwrite(fd, view[done:], start + done)


def unpack(packed: Packed, *, writable: bool = False, fd: int | None = None) -> Any:
    """Return the object again; its arrays show the memory they came in. Raises NotHere.

    `fd` is the file, where it is this process's own.
    """
    if not packed.sizes:
        buffers: list[Any] = [bytearray(each) if writable else each for each in packed.inline]
        return pickle.loads(packed.pickled, buffers=buffers)
    assert packed.address is not None
    own = packed.address.open(os.O_RDWR if writable else os.O_RDONLY) if fd is None else fd
    try:
        mapped = mapped_file(own, writable)
    finally:
        if fd is None:
            os.close(own)
    places = zip(_places(packed.sizes), packed.sizes, strict=False)
    return pickle.loads(packed.pickled, buffers=[mapped[start : start + size] for start, size in places])


class _Pickler(pickle.Pickler):
    """Pickle non-contiguous arrays itself: NumPy's pickles copy them twice, and may lose the byte order."""

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is not np.ndarray or thing.dtype.hasobject or thing.flags.forc:
            return NotImplemented
        slowest_first = sorted(range(thing.ndim), key=lambda axis: (-abs(thing.strides[axis]), axis))
        dense = np.ascontiguousarray(thing.transpose(slowest_first))
        return _in_order, (dense, tuple(np.argsort(slowest_first).tolist()))


def _in_order(dense: Any, axes: tuple[int, ...]) -> Any:
    return dense.transpose(axes)


def _dumps(thing: Any, protocol: int, buffer_callback: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file, protocol, buffer_callback=buffer_callback).dump(thing)
    return file.getvalue()


def _places(sizes: tuple[int, ...]) -> list[int]:
    """Return the start of each buffer, and the end of all of them."""
    places = [0]
    for size in sizes:
        places.append(places[-1] + -(-size // ALIGNMENT) * ALIGNMENT)
    places[-1] = max(places[-1], 1)
    return places


def _inode(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
