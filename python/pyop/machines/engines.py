"""Adapt executors of all kinds: an `Engine` submits a task, returns a future, and tells how many run at once."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, Protocol

from .chunks import Worth
from .failures import WorkerDied
from .once import Once
from .own_workers import end_workers, own_workers
from .tasks import Task, run_task

__all__ = ["Engine", "engine_of"]


class Engine(Protocol):
    """Run tasks elsewhere."""

    capacity: int
    worth: Worth

    def submit(self, task: Task, once: str | None = None) -> Any:
        """Submit a task and return a future: `add_done_callback`, `result`, `cancel`.

        `once` names its stateful functions: then it is not run twice, whatever becomes of its worker.
        """

    def lost(self, error: BaseException) -> bool:
        """Return whether an exception of a future means that the worker has died, and a new one takes its place."""

    def interrupted(self) -> None:
        """Stop running tasks, as the user has interrupted the client."""


def engine_of(executor: Any) -> Engine:
    """Return the engine for an argument ``executor=``."""
    if isinstance(executor, bool):
        raise TypeError(f"executor= takes a number of processes, got {executor!r}")
    if isinstance(executor, int):
        if executor < 1:
            raise ValueError(f"executor= is a number of processes, at least 1, got {executor}")
        return _Own(executor)
    if isinstance(executor, str):
        if executor != "ray":
            raise ValueError(f'executor= knows the name "ray", got {executor!r}')
        return _Ray()
    if _is_dask(executor):
        return _Dask(executor)
    if isinstance(executor, Executor) or (hasattr(executor, "submit") and hasattr(executor, "shutdown")):
        return _Executor(executor)
    raise TypeError(
        f"executor= takes an executor of concurrent.futures, a Client of dask.distributed, "
        f'"ray", a number of processes or None, got {type(executor).__name__} {executor!r:.80}'
    )


class _Others:
    """Handle an interrupt in an engine that cannot stop its workers."""

    worth = Worth()

    def interrupted(self) -> None:
        """Do nothing: the workers end what they have begun."""


class _Own:
    worth = Worth()

    def __init__(self, n: int) -> None:
        self.capacity = n
        self._workers = own_workers(n)

    def interrupted(self) -> None:
        end_workers(self.capacity)

    def submit(self, task: Task, once: str | None = None) -> Future[Any]:
        return self._workers.submit(task)

    def lost(self, error: BaseException) -> bool:
        return isinstance(error, WorkerDied)


class _Executor(_Others):
    """Run tasks by executors of concurrent.futures, and those like them: loky, mpi4py.futures."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        known = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
        self.capacity = known if isinstance(known, int) and known > 0 else os.cpu_count() or 1

    def submit(self, task: Task, once: str | None = None) -> Any:
        return self._executor.submit(run_task, task)

    def lost(self, error: BaseException) -> bool:
        if isinstance(error, BrokenExecutor):
            raise WorkerDied(
                f"a worker of {self._executor!r:.80} died, and that executor runs no more tasks; a number of "
                "processes, executor=4, replaces workers that die"
            ) from error
        return False


def _is_dask(executor: Any) -> bool:
    return type(executor).__module__.partition(".")[0] == "distributed" and hasattr(executor, "scheduler_info")


class _Dask(_Others):
    """Run tasks by a Client of dask.distributed, which reruns the tasks of workers that die."""

    # Client, scheduler and worker work for some 20 ms on a task.
    worth = Worth(0.5, 0.15, shares=True)

    def __init__(self, client: Any) -> None:
        self._client = client
        if client.asynchronous:
            raise TypeError(
                "map waits for its results, and this Client is asynchronous; make one without asynchronous=True"
            )
        self.capacity = max(1, sum(client.nthreads().values()))

    def submit(self, task: Task, once: str | None = None) -> Any:
        run = run_task if once is None else Once(self._client, run_task, once)
        return self._client.submit(run, task, pure=False, retries=0)

    def lost(self, error: BaseException) -> bool:
        from distributed.scheduler import KilledWorker

        if isinstance(error, WorkerDied):  # of `Once`
            return True

        if isinstance(error, KilledWorker):
            raise WorkerDied(f"this task ends workers of Dask: {error}") from error
        return False


class _Ray(_Others):
    """Run tasks by Ray, initialised by the caller or here for this machine."""

    def __init__(self) -> None:
        try:
            import ray
        except ImportError:
            raise ModuleNotFoundError('executor="ray" needs the package ray: pip install ray') from None
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False)
        self.capacity = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._run = ray.remote(run_task)
        self._run_once = ray.remote(max_retries=0)(run_task)

    def submit(self, task: Task, once: str | None = None) -> Any:
        return (self._run if once is None else self._run_once).remote(task).future()

    def lost(self, error: BaseException) -> bool:
        import ray

        if isinstance(error, ray.exceptions.WorkerCrashedError):
            raise WorkerDied(f"this task ends workers of Ray: {error}") from error
        return False
