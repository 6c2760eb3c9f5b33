"""Call a plan and report its progress: `plan.run`.

The core reports the steps as they end, by the means of a profile (csrc/profile/events.h: opener), so that a plan that
nobody watches pays nothing. A step of the plan counts as one, and a step of a loop's body as one in each iteration. A
loop that runs on a tape is one step, since it reports none while it runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from .._core import Plan, ProfileSession
from ..graph.known import numbers_of
from ..loops.node import Loop
from ..machines.progress import progress_of

__all__ = ["run"]

_PAUSE = 0.05  # seconds between two reports
_WHOLE_CALL = 0xFFFFFFFF


class _Session(ProfileSession):
    def _read(self, recorded: dict[str, Any]) -> None:
        """Ignore the events, which nobody uses."""


class _Watch:
    """Count the steps of a plan that have ended. Steps of plans with threads end on any of them."""

    def __init__(self, plan: Plan, told: Callable[[int, int | None], Any]) -> None:
        self.told = told
        self.plans: list[Plan] = []  # the plan and the bodies of its loops
        self.total = self._steps(plan)
        self.owners = {id(watched) for watched in self.plans}
        self.done = 0
        self.last = time.monotonic()
        self.counting = threading.RLock()  # a handler of signals may run steps
        self.telling = threading.Lock()
        self.error: Exception | None = None

    def _steps(self, plan: Plan) -> int | None:
        """Return the number of steps of a call, if it is known before."""
        self.plans.append(plan)
        count = plan.report()["instructions"]
        total: int | None = count
        for k in range(count):
            native, nodes, text = plan._instruction(k)
            loop = nodes[-1].function
            if not isinstance(loop, Loop) or not native or "a tape" in text:
                continue
            iterations = None if loop.conditional else _iterations(loop, *nodes[-1].inputs[:2])
            for body, _ in list(loop._plans.values()):
                steps = self._steps(body)
            if total is not None and loop._plans:
                total = None if iterations is None or steps is None else total + iterations * steps
        return total

    def __call__(self, owner: Any, part: int) -> Callable[[], None]:
        return self.step if part != _WHOLE_CALL and id(owner) in self.owners else _nothing

    def step(self) -> None:
        """Count one step that has ended."""
        with self.counting:
            self.done += 1
        now = time.monotonic()
        if now - self.last < _PAUSE or not self.telling.acquire(blocking=False):
            return
        try:
            self.last = now
            if self.error is None:
                self.tell(self.done if self.total is None else min(self.done, self.total))
        except Exception as error:  # a step cannot fail for it
            self.error = error
        finally:
            self.telling.release()

    def tell(self, done: int) -> None:
        self.told(done, self.total)


def _nothing() -> None:
    pass


def _iterations(loop: Loop, lower: Any, upper: Any) -> int | None:
    begin, end = numbers_of(lower), numbers_of(upper)
    return None if begin is None or end is None else len(range(int(begin), int(end), loop.step))


def run(self: Plan, /, *arrays: Any, progress: bool | Callable[[int, int | None], Any] = True, **named: Any) -> Any:
    """Call the plan, and tell how far it is.

    It returns and raises what the call does. Steps are watched as by a profile, which costs about a microsecond each.

    Parameters
    ----------
    *arrays, **named : array_like
        As of a call of the plan; ``out=`` among them.
    progress : bool or callable
        True for a bar in a terminal, by rich; or a function of how many steps have ended, and of how many (None
        where a loop does not know how long it is), called twenty times a second at most, of plans with threads
        on any of them. A step is a node, a fused group, or for each iteration of a loop those of its body; a loop
        that runs on single numbers alone, as `explain` tells, is one. What the function raises is raised when the
        plan has run.

    Returns
    -------
    object
        What the plan returns.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> slow = pyop.op("float64[n] -> float64[n]")(lambda x: x / 2)
    >>> plan = pyop.trace(lambda x: pyop.fori_loop(0, 10, lambda i, x: slow(x), x), "float64[n]").compile()
    >>> told = []
    >>> plan.run(np.array([1024.0]), progress=lambda done, total: told.append((done, total)))
    array([1.])
    >>> told[0], told[-1]
    ((0, 11), (11, 11))
    """
    with progress_of(progress, self.graph.name) as told:
        watch = _Watch(self, told)
        watch.tell(0)
        with _Session(1, watch):
            result = self(*arrays, **named)
        if watch.error is not None:
            raise watch.error
        done = watch.done if watch.total is None else watch.total
        watch.total = done
        watch.tell(done)
    return result


# The type itself comes from the core, without this (`__init__.py`).
setattr(Plan, "run", run)  # noqa: B010
