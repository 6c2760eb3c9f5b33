"""Send arrays of segments from one worker of Dask to another as an address, without a copy.

In the handshake of each connection that it opens to another worker, a worker tells who it is, and shows memory of its
own. Dask passes that on to whoever serialises for this connection. `_serialized` stands before Dask's own function for
ndarrays. It sends an address to those whose memory can be opened from here and who have the same rights, so that they
can open ours. All else (arrays of others, workers elsewhere, scheduler, clients, the disk) is left to Dask's function.

Dask holds what it sends until the reader has answered. A sender that has died meanwhile is an OSError, as for any
connection; Dask asks another worker, or computes again.

Threads: of the worker's loop, and those that it lends to serialisation; state is written once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import threading
import weakref
from typing import Any

import numpy as np

from .failures import dask_worker
from .memory import Address, Memory, NotHere
from .segments import Place, arrived, place_of

__all__ = ["enlist", "enlist_all", "shares"]

_KEY = "pyop"  # in Dask's handshake
_lock = threading.Lock()
_enlisted: weakref.WeakSet[Any] = weakref.WeakSet()
_clients: weakref.WeakSet[Any] = weakref.WeakSet()
_shown: list[Memory] = []  # what others open to see whether they can


def shares() -> bool:
    """Return whether this is a task of a worker that other processes may ask for its result."""
    worker = dask_worker()
    return worker is not None and enlist(worker)


def enlist(dask_worker: Any) -> bool:
    """Make a worker send and receive addresses. False: it cannot."""
    if dask_worker in _enlisted:
        return True
    if _rights() is None or not str(dask_worker.address).startswith(("tcp://", "tls://")):
        return False
    with _lock:
        if dask_worker in _enlisted:
            return True
        _register()
        pool = dask_worker.rpc
        who = {_KEY: _who()}
        args = pool.connection_args
        pool.connection_args = {**args, "handshake_overrides": {**args.get("handshake_overrides", {}), **who}}
        dask_worker.loop.add_callback(pool.collect)  # connections that were opened before do not tell
        _enlisted.add(dask_worker)
    return True


def enlist_all(client: Any) -> None:
    """Enlist the workers of a client, once. Later ones follow with a first piece, whose inputs Dask sends itself."""
    if client in _clients:
        return
    _clients.add(client)
    with contextlib.suppress(Exception):  # of a worker without pyop, say: whoever runs a piece will hear of that
        client.run(enlist, on_error="ignore")


@functools.cache
def _register() -> None:
    from distributed.protocol.serialize import dask_serialize

    theirs = dask_serialize.dispatch(np.ndarray)

    def _serialized(x: Any, context: Any = None) -> Any:
        told = ((context or {}).get("recipient") or {}).get(_KEY)
        place = place_of(x) if isinstance(told, str) and _can_open(told) else None
        if place is None:
            return theirs(x, context=context)
        # What Dask's own function for reading takes for an array that pickles: readers need not be told of this one.
        return {"pickle": True}, [pickle.dumps(_Sent(place))]

    dask_serialize.register(np.ndarray, _serialized)


class _Sent:
    """Hold a place, whose pickle is the array there."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return _received, (self.place,)


def _received(place: Place) -> Any:
    try:
        return arrived(place)
    except NotHere:
        raise ConnectionError(f"process {place.address.pid} is gone, and with it an array that it has sent") from None


@functools.lru_cache(1024)
def _can_open(told: str) -> bool:
    """Return whether the process that sent this text sees what this one does."""
    try:
        rights, *numbers = told.rsplit(maxsplit=4)
        pid, fd, device, inode = map(int, numbers)
        if rights != _rights():
            return False
        os.close(Address(pid, fd, (device, inode)).open(os.O_RDONLY))
    except (NotHere, TypeError, ValueError):
        return False
    return True


def _rights() -> str | None:
    """Return all rights that decide which files of processes this one may open; equal rights open each other's."""
    try:
        with open("/proc/self/status") as file:
            lines = [line for line in file if line.startswith(("Uid:", "Gid:", "CapPrm:", "CapEff:"))]
        spaces = [os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "user")]
        seen = os.stat("/proc/self/fd").st_uid
    except OSError:
        return None
    return " ".join("".join([*lines, *spaces, f" {seen}"]).split())


def _who() -> str:
    """Return the text by which this process identifies itself."""
    if not _shown or _shown[0].address.pid != os.getpid():
        _shown[:] = [Memory()]
    address = _shown[0].address
    return " ".join(map(str, (_rights(), address.pid, address.fd, *address.inode)))
