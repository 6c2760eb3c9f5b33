"""Put results of pieces into memory that other workers of Dask on this machine map.

`transport.py` sends their address. A result is an ordinary, writable ndarray over a file without a name (`files.py`).
Its mapping is private: a page that is written is copied first, as if each process had an array of its own. While
anybody has it, the file is what the piece has computed. Writes into the array since then show by pages that are no
longer the file's (`place_of`); such an array travels as Dask sends any other.

A segment has the file's descriptor while the array or a view of it lives, so that it may be asked for. Readers have
mappings and descriptors of their own, which stay valid after the first owner has let go or has died. Nothing has a
name, so a killed process leaves nothing behind. Where descriptors or memory run out, results are plain arrays.

Threads: any; each operation on the table is one of a dict. A child of fork has the mappings and descriptors, too.
"""

from __future__ import annotations

import mmap
import os
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import Plan, Value, mapped_file
from .files import File, asked_for, few_files, give_back, opened, take
from .layout import is_elementwise
from .memory import Address, write

__all__ = ["SEGMENT_FROM", "Place", "arrived", "place_of", "results_of"]

SEGMENT_FROM = 1 << 20  # bytes of a result from which a segment is worth a descriptor and its pages


@dataclass(frozen=True)
class Place:
    """Locate a contiguous array."""

    address: Address
    size: int
    stamp: bytes
    offset: int
    dtype: Any
    shape: tuple[int, ...]
    order: Any
    writable: bool


# The file and a weak reference, by the id of the array that has the mapping.
_segments: dict[int, tuple[File, Any]] = {}


def results_of(plan: Plan, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `plan(*arrays)`, of a plan that returns a tuple; large results are in segments."""
    kinds = _in_c_order(plan, arrays)
    if kinds is None:
        return tuple(_moved(x, arrays) for x in plan(*arrays))
    shape = next(x.shape for x in arrays if isinstance(x, np.ndarray) and x.ndim)
    files = [_file(dtype.itemsize * int(np.prod(shape))) for dtype in kinds]
    buffers = [
        np.empty(shape, dtype) if file is None else np.ndarray(shape, dtype, mapped_file(file.memory.fd, True))
        for file, dtype in zip(files, kinds, strict=True)
    ]
    plan.into(*buffers)(*arrays)
    for k, file in enumerate(files):
        if file is not None:
            buffers[k] = _shown(file, 0, kinds[k], shape, "C")
    return tuple(buffers)


def place_of(array: Any) -> Place | None:
    """Return where another process finds the whole array; None if nowhere."""
    root: Any = array
    while type(root.base) is np.ndarray:
        root = root.base
    segment = _segments.get(id(root))
    if segment is None or segment[1]() is not root:
        return None
    file, flags = segment[0], array.flags
    # A small part is not worth that all of it is kept.
    if 2 * array.nbytes < root.nbytes or not flags.aligned:
        return None
    if type(array) is not np.ndarray or not flags.forc or _is_written(array):
        return None
    start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    order = "C" if flags.c_contiguous else "F"
    asked_for(file)
    return Place(
        file.memory.seen_from_here(), file.size, file.stamp, start, array.dtype, array.shape, order, flags.writeable
    )


def arrived(place: Place) -> Any:
    """Return the array, in the process that got the address. Raises NotHere."""
    file = opened(place.address, place.size, place.stamp)
    array = _shown(file, place.offset, place.dtype, place.shape, place.order)
    array.flags.writeable = place.writable
    return array


def _shown(file: File, offset: int, dtype: Any, shape: Any, order: Any) -> Any:
    root = mapped_file(file.memory.fd, True, True)
    key = id(root)
    if file.reusable or few_files():  # else the mapping stays, without a descriptor: nobody will get its address
        _segments[key] = file, weakref.ref(root, lambda _: give_back(_segments.pop(key)[0]))
    return np.ndarray(shape, dtype, root, offset, order=order)


def _moved(x: Any, arrays: tuple[Any, ...]) -> Any:
    """Return a result in a segment, if it is large and its own; else as it is."""
    if type(x) is not np.ndarray or x.nbytes < SEGMENT_FROM or x.dtype.hasobject:
        return x
    flags = x.flags
    if not (flags.forc and flags.writeable and flags.aligned) or any(np.may_share_memory(x, a) for a in arrays):
        return x
    file = _file(x.nbytes)
    if file is None:
        return x
    elements: Any = x.ravel(order="K").view(np.uint8)
    write(file.memory.fd, memoryview(elements), 0)
    return _shown(file, 0, x.dtype, x.shape, "C" if flags.c_contiguous else "F")


def _file(size: int) -> File | None:
    return take(size) if size >= SEGMENT_FROM else None


def _in_c_order(plan: Plan, arrays: tuple[Any, ...]) -> list[np.dtype[Any]] | None:
    """Return the dtypes of results with the arrays' shape and C order, if some are large; else None.

    Ufuncs of arrays of one shape, all in C order, make arrays in C order; other nodes give views, or other orders.
    """
    large = [x for x in arrays if not isinstance(x, (int, float, complex, np.generic)) and np.ndim(x)]
    if not large or plan._writes or any(type(x) is not np.ndarray or not x.flags.c_contiguous for x in large):
        return None
    shape = large[0].shape
    fetches, feeds = plan._made_of[1:3]
    if any(x.shape != shape for x in large) or not all(isinstance(value, Value) for value in fetches):
        return None
    if len(feeds) != len(arrays) or any(
        value.shape != () for value, x in zip(feeds, arrays, strict=True) if not np.ndim(x)
    ):
        return None
    kinds = [value.dtype for value in fetches]
    if any(dtype is None or dtype.hasobject for dtype in kinds):
        return None
    elements = int(np.prod(shape))
    if max((dtype.itemsize for dtype in kinds), default=0) * elements < SEGMENT_FROM:
        return None
    if any(value.shape is None or len(value.shape) != len(shape) for value in fetches):
        return None
    known = {value._key for value in feeds}
    stack = list(fetches)
    if any(value._key in known for value in stack):
        return None
    while stack:
        value = stack.pop()
        if value._key in known:
            continue
        known.add(value._key)
        if value.node.kind == "constant" and value.shape == ():
            continue
        if value.shape is None or len(value.shape) not in (0, len(shape)) or not is_elementwise(value.node):
            return None
        stack.extend(value.node.inputs)
    return kinds


_FILED, _SWAPPED, _PRESENT = (np.uint64(1 << bit) for bit in (61, 62, 63))


def _is_written(array: Any) -> bool:
    """Return whether a page of an array is no longer the file's, as the kernel tells (its pagemap.rst)."""
    start = array.__array_interface__["data"][0]
    first, last = start // mmap.PAGESIZE, (start + array.nbytes - 1) // mmap.PAGESIZE
    size = 8 * (last - first + 1)
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            pages = np.frombuffer(os.pread(file.fileno(), size, 8 * first), np.uint64)
    except OSError:
        return True
    if pages.nbytes != size:
        return True
    here = (pages & (_PRESENT | _SWAPPED)) != 0
    return bool(np.any(here & ((pages & _FILED) == 0)))
