"""Run a function at most once: the scheduler of Dask gives its token to one worker only.

Dask reruns the tasks of a worker that has died, and those whose results died with it, on another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from .failures import WorkerDied

__all__ = ["Once"]


class Once:
    """Call a function where its token is taken, and nowhere else.

    The token is the one element of a queue of the scheduler. A worker that dies before it takes the token has done
    nothing, and another one may.

    Parameters
    ----------
    client : distributed.Client
    function : callable
    names : str
        What of it is stateful, for the error.
    """

    def __init__(self, client: Any, function: Callable[..., Any], names: str) -> None:
        from distributed import Queue

        self.token = f"pyop-{uuid4().hex}"
        self.function = function
        self.names = names
        self.__name__ = f"{function.__name__}_once"  # by which Dask calls the task
        Queue(self.token, client=client).put(True)

    def __call__(self, *args: Any) -> Any:
        """Take the token and call the function, on a worker."""
        from distributed import Queue, get_client

        queue = Queue(self.token, client=get_client())
        taken = queue.get(batch=True)
        # The scheduler counts who has a queue: this worker, and the client that made it. Without both it forgets it;
        # whoever comes later makes another one of that name, with nothing in it.
        for _ in range(1 + len(taken)):
            queue.close()
        if not taken:
            raise WorkerDied(
                f"{self.names}: stateful, and begun before on a worker that died or lost what it returned; it is not "
                "called twice. Call it again if that does no harm"
            )
        return self.function(*args)
