"""Run a process of our own: `main` reads tasks from a socket and answers each, until the socket is closed.

It ends with the client: a socket whose other end is gone, for any reason, reads as closed.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import sys
from typing import Any

__all__ = ["leave", "main", "receive", "send"]

_LENGTH = struct.Struct("<Q")


def send(connection: socket.socket, thing: Any) -> None:
    data = pickle.dumps(thing, protocol=5)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> Any:
    """Return the next object; EOFError if the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return pickle.loads(_exactly(connection, length))


def _exactly(connection: socket.socket, n: int) -> bytearray:
    data = bytearray(n)
    view, got = memoryview(data), 0
    while got < n:
        count = connection.recv_into(view[got:])
        if count == 0:
            raise EOFError
        got += count
    return data


def main(fd: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's, which then closes the socket
    with socket.socket(fileno=fd) as connection:
        sys.path[:] = receive(connection)
        from .tasks import run_task

        while True:
            try:
                task = receive(connection)
            except (EOFError, ConnectionError):
                return
            try:
                send(connection, run_task(task))
            except (BrokenPipeError, ConnectionError):
                return


def leave() -> None:
    """End the process at once; threads that functions left running would keep it alive."""
    sys.stdout.flush()
    os._exit(0)
