"""Decide what traces are worth: time goes into a trace only where plans pay it back.

    the first trace of a function   may take so long as FIRST; what is foreseen to take longer ends when that is seen
    a further, dear one             waits: until the plans so far have saved as much, or the calls that wait have taken
                                    as much without it
    further, cheap ones             are made, until there are many of them, and few calls between
    the plan of a dear one          is timed against the function itself, in turn, and goes where it is slower

Whatever is decided, the bits are the same. `clock` tells the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from .retrace import CALLS_PER_TRACE, TRACES, log

if TYPE_CHECKING:
    from .arguments import Place

__all__ = ["FIRST", "Deadline", "Trial", "Worth", "clock", "stand_still"]

clock = time.thread_time
"""Seconds of this thread: what others do meanwhile is no reason to give up. Tests put another one in its place."""
FIRST = 0.2
"""Seconds that the traces of one call may take."""
FIRST_OF_LARGE = 3.0
"""The same where arrays are so large that the function itself takes long."""
DEAR = 0.001  # seconds of a trace from which on it is counted
FREE = 0.05  # that further traces may take for nothing
_IN_VAIN = 4.0  # times as dear is a trace that no plan comes of
_NOT_AGAIN = 20.0  # times as long waits a kind of call for another trace where no plan has come of the last one
_TRIED = 0.003  # seconds of a trace from which on its plan is on trial
_LARGE = 50_000  # elements, with which NumPy takes longer than a trace does
_KINDS = 4096  # of calls, that are counted
_FEW, _MOST_PASSED = 32, 200  # calls in vain, and how many may pass then
_LEFT = 2  # calls that leave all paths, from which on it matters whether most do so
_CLOSE, _PAIRS = 1.25, 4  # of two times that may be the same, and how often these are taken


def stand_still() -> None:
    """Have the clock stand still, so that nothing depends on how long something takes: for comparisons and tests."""
    global clock
    clock = _still


def _still() -> float:
    return 0.0


class Deadline:
    """Hold when the traces of a call have begun, and when they have to end.

    >>> from pyop.compiling.worth import Deadline
    >>> Deadline(1e9).is_over(), Deadline(1e9).is_over(2e9), Deadline(-1.0).is_over()
    (False, True, True)
    """

    __slots__ = ("_end", "begin")

    def __init__(self, seconds: float = FIRST) -> None:
        self.begin = clock()
        self._end = self.begin + seconds

    @classmethod
    def of_call(cls, places: Sequence[Place]) -> Deadline:
        """Return the deadline of a call with these arguments."""
        elements = sum(place.value.size for place in places if place.kind == b"a")
        return cls(FIRST if elements < _LARGE else FIRST_OF_LARGE)

    @classmethod
    def of_derivative(cls, places: Sequence[Place]) -> Deadline:
        """Return a deadline that is not over, however long it takes."""
        return cls(math.inf)

    def now(self) -> float:
        """Return what the clock says."""
        return clock()

    def is_over(self, more: float = 0.0) -> bool:
        """Return whether the time is up, or will be when so many seconds `more` are taken."""
        return clock() + more > self._end


class Worth:
    """Keep account of what the traces of one function take, what its plans save, and what other calls wait for."""

    __slots__ = (
        "_asked",
        "_cost",
        "_further",
        "_gain",
        "_hits",
        "_in_vain",
        "_left",
        "_longer",
        "_pass",
        "_saved",
        "_waited",
        "itself",
        "loops",
        "name",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self._cost = 0.0  # of another trace, as far as is known; none was made yet
        self._longer = 1.0  # times as long as that a call has to wait for it
        self._further = 0.0  # of all dear ones but the first
        self._gain = 0.0  # of a plan's run, as the last trial has found
        self._saved = 0.0  # until so many hits
        self._hits = 0
        self._waited: dict[Any, float] = {}  # what calls of one kind have taken, waiting for a trace
        self.itself = 0  # of the hits: the function itself ran, for comparison
        self._left = 0  # calls that have left the paths that there are, and for which no other was made
        self._asked: dict[Any, int] = {}  # how often there was no plan for calls of one kind
        self._in_vain = 0  # calls that were not traced, one after the other
        self._pass = 0  # so many more are not looked at
        self.loops = False  # whether a plan has any

    def lets_pass(self, args: tuple[Any, ...]) -> bool:
        """Return whether a call is not looked at, since many before it were of kinds that do not come again."""
        if self._pass == 0 or any(type(x) is np.ndarray and x.size >= _LARGE for x in args):
            return False
        self._pass -= 1
        return True

    def is_worth_a_trace(self, places: Sequence[Place], traces: int, calls: int) -> bool:
        """Decide whether to trace a call with these arguments, after so many traces in so many calls.

        Where many traces were made, and few calls came between, a kind of call is traced when it comes for the second,
        fourth, eighth time and so on: not at all where all are different, and ever less where the same ones lose their
        plans. Large arrays and loops are worth a trace always.
        """
        if traces < TRACES or calls > CALLS_PER_TRACE * traces or self.loops:
            return True
        if any(place.kind == b"a" and place.value.size >= _LARGE for place in places):
            return True
        kind = _kind(places)
        if len(self._asked) >= _KINDS:
            self._asked.clear()
        count = self._asked[kind] = self._asked.get(kind, 0) + 1
        if count > 1 and count & (count - 1) == 0:
            self._in_vain = 0
            return True
        self._came_in_vain()
        return False

    def _came_in_vain(self, calls: int = 1) -> None:
        self._in_vain += calls
        self._pass = min(max(self._in_vain - _FEW, 0), _MOST_PASSED)

    def waits(self, places: Sequence[Place], hits: int) -> bool:
        """Return whether a call is not traced yet, after so many hits of plans: it takes more than there is for it."""
        if self._cost < DEAR:
            return False
        self._saved += max(hits - self._hits, 0) * self._gain
        self._hits = hits
        wanted = self._further + self._cost
        return wanted > max(FREE, self._saved) and self._waited.get(_kind(places), 0.0) < self._cost * self._longer

    def most_leave(self, hits: int) -> bool:
        """Note a call that leaves the paths that there are, and waits; return whether most calls do."""
        self._left += 1
        return self._left >= _LEFT and 2 * self._left > hits - self.itself

    def ends_in_vain(self, deadline: Deadline, hits: int, hesitates: bool) -> bool:
        """Note the traces of a call that have come to nothing for this path; return whether most calls do so, or trying
        once more is too dear for one that only `hesitates`.
        """
        taken = clock() - deadline.begin
        return (hesitates and taken > FREE) or (taken >= DEAR and self.most_leave(hits))

    def meanwhile(self, places: Sequence[Place], run: Callable[[], Any]) -> Any:
        """Run a call that waits for a trace, note how long it takes, and return its result."""
        begin = clock()
        result = run()
        kind = _kind(places)
        if kind not in self._waited:
            self._came_in_vain(1 if self._longer == 1.0 else _FEW // 4)
            if len(self._waited) >= _KINDS:
                self._waited.clear()
        self._waited[kind] = self._waited.get(kind, 0.0) + clock() - begin
        return result

    def note(
        self, places: Sequence[Place], deadline: Deadline, in_vain: bool = False, straight: bool = False
    ) -> Trial | None:
        """Note what the traces of a call have taken; return the trial that its plan is on.

        A `straight` one, without loops and decisions, is on none, nor is a derivative.
        """
        taken = clock() - deadline.begin
        if self._cost and taken >= DEAR:
            self._further += taken * _IN_VAIN if in_vain else taken
        self._cost = max(taken, self._cost / 2)
        self._longer = _NOT_AGAIN if in_vain else 1.0
        self._waited.pop(_kind(places), None)
        self._in_vain = 0
        return Trial(self) if taken >= _TRIED and not straight else None

    def gains(self, seconds: float) -> None:
        """Note what a run of a plan saves."""
        self._gain = max(seconds, 0.0)


class Trial:
    """Time the first runs of a plan in turn with the function itself. csrc/plan/compiled_function.cpp asks it.

    >>> from pyop.compiling.worth import Trial, Worth
    >>> trial = Trial(Worth("f"))
    >>> trial.begin()  # the plan first
    False
    """

    __slots__ = ("_begin", "_itself", "_runs", "_taken", "_worth")

    def __init__(self, worth: Worth) -> None:
        self._worth = worth
        self._taken: tuple[list[float], list[float]] = ([], [])  # of the plan, and of the function itself
        self._runs = 0
        self._begin = 0.0
        self._itself = False

    def begin(self) -> bool:
        """Begin a run; return whether it is one of the function itself."""
        self._itself = len(self._taken[0]) > len(self._taken[1])
        self._worth.itself += self._itself
        self._begin = clock()
        return self._itself

    def end(self) -> bool | None:
        """End the run; return whether the plan is to stay, None where that is not known yet."""
        self._taken[self._itself].append(clock() - self._begin)
        pairs = len(self._taken[1])
        if not self._itself or pairs < 2:
            return None
        plan, itself = map(min, self._taken)
        agree = plan <= itself or max(self._taken[0]) > max(self._taken[1])  # else some calls do more than others
        if pairs < _PAIRS and (not agree or (plan < itself * _CLOSE and itself < plan * _CLOSE)):
            return None
        if not agree:
            plan, itself = (sum(sorted(taken)[:-1]) / (len(taken) - 1) for taken in self._taken)
        self._worth.gains(itself - plan)
        if plan > itself:
            log("%s runs as it is, its plan is slower: %.3g s in place of %.3g s", self._worth.name, plan, itself)
        return plan <= itself


def _kind(places: Sequence[Place]) -> tuple[Any, ...]:
    """Return what tells a kind of call from others."""
    return tuple([(place.kind, _distinct(place)) for place in places])


def _distinct(place: Place) -> Any:
    """Return what tells a leaf from others of its kind."""
    if place.kind == b"i":
        # Functions that are made anew in each call, where another one was before, have their code in common.
        return id(place.value.__code__ if type(place.value) is FunctionType else place.value)
    return place.spec or (place.value if place.key is None else place.key)
