"""Decide by the contents of arrays, while a function is traced for a call whose arrays are at hand.

``if x.sum() > 0:`` asks a Value for its truth. pyop computes it from the arrays of the call, apart from the graph, and
the function goes on with it. The graph gets a guard (`Taken`), which checks in each run that the outcome is the same.
A plan whose guard finds another outcome raises `PathLeft`, and the call goes on with the plan of another path
(csrc/plan/paths.h). A decision that cannot be made so ends the trace by `RunItself`: then the function itself runs.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from _thread import _local
from typing import Any

import numpy as np

from .. import _core
from .._core import GraphBase, PyopError, Value
from .._tree import flatten
from ..declare.spec import Spec
from .known import numbers_asked

__all__ = [
    "MOST_NODES",
    "Decisions",
    "PathLeft",
    "RunItself",
    "Specialise",
    "Taken",
    "Unrolled",
    "check_one_path",
    "checks_results",
    "decides",
    "guard_lines",
    "is_of_arguments",
    "needed_by_loops",
    "quiet_begin",
    "quiet_end",
    "recorded_loop",
    "size_of",
    "value_decided",
]

MOST_NODES = 50_000
"""Beyond so many nodes, the function itself runs."""
_KEPT_BYTES = 1 << 26  # of what was computed beside the graph
_TURNS = 4  # of a condition to each side
_CHANGES = 16  # of the outcome at one line, in all
_COMPUTED_AGAIN = 20  # times as many as the graph has nodes
_FEW_ITERATIONS = 4
_numbers = itertools.count(1)
_OF_GUARDS = Spec(np.dtype(np.bool_), ())


_REMEDY = (
    "Choose by value with np.where, the where= of reductions, np.minimum and np.maximum, or declare the part that "
    "decides with pyop.op"
)


class RunItself(BaseException):
    """End a trace: the function itself has to run. It is no `Exception`, to pass the function's own handlers.

    `leaf`: only where its decisions had these outcomes, since it raised there.
    """

    hesitates = False  # whether the next trace may go on there

    def __init__(self, why: str, leaf: tuple[int, ...] | None = None, remedy: str = _REMEDY) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy
        self.leaf = leaf


class Specialise(BaseException):
    """Report that the function under trace must know a number.

    It is no `Exception`, to pass the function's own handlers.
    """

    def __init__(self, places: frozenset[int]) -> None:
        super().__init__("a number is needed while the function is traced")
        self.places = places


class OfState(int):
    """Mark the place of a number that an instance or closure holds, and that other calls may change: a decision."""


class Unrolled(set[Any]):
    """Hold the loops that cannot be recorded, and the line for which the first of them could not be."""

    why = ""


def needed_by_loops(needed: Specialise) -> set[Any]:
    """Return the loops to unroll: those that cannot be a node, or carry a number that is needed."""
    loops: set[Any] = set(getattr(needed, "keys", ()))  # loops.rolled.Unroll
    asked: Any = needed.places
    return loops | {
        place.__self__.blamed for place in asked if hasattr(place, "__self__") and hasattr(place.__self__, "blamed")
    }


def is_of_arguments(error: BaseException) -> bool:
    """Return True where a number among the arguments is needed, and no other."""
    places: Any = error.places if type(error) is Specialise else ()
    return bool(places) and all(isinstance(place, int) for place in places)


class PathLeft(PyopError):
    """Report a decision with another outcome than the plan was made for."""

    path = guard = outcome = 0

    def __init__(self, taken: Taken, outcome: int) -> None:
        super().__init__(
            f"this plan assumes that {taken.text(taken.outcome)} at {taken.line}; in this call "
            f"{taken.text(outcome)}. Call the compiled function, which has a plan for each outcome, instead of one "
            "of its plans"
        )
        self.path, self.guard, self.outcome = taken.path, taken.guard, outcome


class Taken:
    """Guard a plan: what the function asked of a value, and the outcome."""

    __slots__ = ("asked", "guard", "line", "outcome", "path")

    def __init__(self, asked: str, outcome: int, guard: int, path: int, line: str) -> None:
        self.asked = asked  # "t": a truth, "i": an integer, "x": an index, "s0": the size of axis 0
        self.outcome = outcome
        self.guard = guard  # its number on the path
        self.path = path
        self.line = line

    def text(self, outcome: int) -> str:
        """Return an outcome in words."""
        if self.asked == "t":
            return f"a condition is {bool(outcome)}"
        return f"{'a size' if self.asked[0] == 's' else 'an integer'} is {outcome}"

    def __call__(self, value: Any) -> bool:
        outcome = _ask(self.asked, value)
        if outcome != self.outcome:
            raise PathLeft(self, outcome)
        runs = _quiet.__dict__.get("runs")
        if runs and runs[-1].guard == self.guard:
            runs[-1].end()
        return True

    def __eq__(self, other: object) -> bool:
        return type(other) is Taken and (self.asked, self.outcome, self.guard) == (
            other.asked,
            other.outcome,
            other.guard,
        )

    def __hash__(self) -> int:
        return hash((self.asked, self.outcome, self.guard))

    def __repr__(self) -> str:
        return f"Taken({self.asked!r}, {self.outcome})"


def _ask(asked: str, value: Any) -> int:
    if asked == "t":
        return int(bool(value))
    if asked == "i":
        return int(value)
    if asked == "x":
        return operator.index(value)
    return int(np.shape(value)[int(asked[1:])])


# --- while a function is traced


class Decisions:
    """Hold the decisions of a function under trace, and make new ones."""

    __slots__ = (
        "_answers",
        "_before",
        "_bytes",
        "_changes",
        "_computed",
        "_counts",
        "_given",
        "_known",
        "_looked_at",
        "_loops",
        "_opaque",
        "calls_in_python",
        "deadline",
        "graph",
        "outcomes",
        "reason",
    )

    def __init__(self, graph: Any, deadline: Any, before: set[Any]) -> None:
        self.graph = graph
        self.deadline = deadline  # compiling.worth.Deadline
        self._before = before  # how traces went that have hesitated
        self._changes: dict[str, tuple[int, int]] = {}  # by lines, and the last outcome
        self.outcomes: list[int] = [next(_numbers)]  # the number of the path first
        self.reason: RunItself | None = None
        self.calls_in_python = 0  # nodes that call Python with Python numbers
        self._given: dict[int, Any] = {}
        self._known: dict[int, tuple[Any, ...]] = {}
        self._answers: dict[tuple[int, str], int] = {}
        self._counts: dict[str, list[int]] = {}  # how often a condition was false, and true, by lines
        self._looked_at = 0
        self._loops: set[int] = set()  # nodes that are loops
        self._opaque: dict[int, tuple[Any, ...]] = {}  # what calls have returned that nothing is known of
        self._computed = self._bytes = 0

    def feed(self, value: Any, given: Any) -> None:
        """Set what stands for an argument of the call, as it was given."""
        if isinstance(value, Value):
            self._given[value.node.index] = given

    @property
    def branched(self) -> bool:
        """Return whether there has been a decision."""
        return len(self.outcomes) > 1

    def decide(self, value: Value, asked: str) -> Any:
        """Return what a value is, which from now on every run is held to."""
        node, output = value.node.index, value.output_index
        key = (node << 20 | output, asked)
        if key not in self._answers:
            if self.deadline.is_over():
                self.take_too_long("decides by the contents of arrays again and again")
            computed = self.evaluate(node, output)
            try:
                outcome = _ask(asked, computed)
            except TypeError:
                if value.shape is not None and value.dtype is not None:
                    raise  # so it is for all arrays of this kind
                self.give_up("asks for a number that is none")
            except Exception:
                if asked == "t" and value.shape is not None:
                    raise
                self.give_up("asks for a number, which raises an exception here")
            if not -(1 << 62) < outcome < 1 << 62 or (asked != "t" and asked[0] != "s" and np.ndim(computed)):
                self.give_up("asks for an integer that is too large, or of an array")
            self._answers[key] = outcome
            line = _core.origin_here()
            if asked == "t":
                self._count(line, outcome)
            self._hesitate(line, outcome)
            taken = Taken(asked, outcome, len(self.outcomes) - 1, self.outcomes[0], line)
            self.outcomes.append(outcome)
            self.graph._add_call(
                fn=taken, inputs=(value,), name="guard", specs=[_OF_GUARDS], stateful=True, lends=False
            )
        answer = self._answers[key]
        return bool(answer) if asked == "t" else answer

    def _count(self, line: str, outcome: int) -> None:
        """Give up where a condition changes again and again, in a loop that could not be recorded.

        On other data it would have other outcomes each time.
        """
        counts = self._counts.setdefault(line, [0, 0])
        counts[outcome] += 1
        if min(counts) >= _TURNS and self.graph._unrolled:
            because = self._why_unrolled("the loop around it")
            self.reason = RunItself(f"decides by the contents of arrays at {line} in each iteration{because}")
            raise self.reason

    def _hesitate(self, line: str, outcome: int) -> None:
        """Give up where a line has another outcome again and again, each for the first time.

        Arrays that describe the layout of others are the same in many calls, data never are.
        """
        changes, last = self._changes.get(line, (0, outcome))
        if outcome == last:
            self._changes[line] = changes, last
            return
        self._changes[line] = changes + 1, outcome
        if changes + 1 != _CHANGES:
            return
        way = tuple(self.outcomes[1:]), outcome
        if way not in self._before:
            self._before.add(way)
            because = self._why_unrolled("the loop around it")
            self.reason = RunItself(f"decides by the contents of arrays at {line} again and again{because}", ())
            self.reason.hesitates = True
            raise self.reason

    def take_too_long(self, what: str) -> Any:
        """End a trace that would take longer than it may because of such loops."""
        because = self._why_unrolled("a loop")
        remedy = "Write such loops so that they can be recorded, or with whole arrays"
        self.reason = RunItself(
            f"would take too long to compile: {what} (at {_core.origin_here()}){because}", remedy=remedy
        )
        raise self.reason

    def _why_unrolled(self, loop: str) -> str:
        why = self.graph._unrolled.why if self.graph._unrolled else ""
        return f", since {loop} cannot be recorded because of {why}" if why else ""

    @property
    def calls_others(self) -> bool:
        """Return whether there is a call of an opaque function."""
        return bool(self._opaque)

    def know(self, node: int, results: tuple[Any, ...]) -> None:
        """Set the results of a node in this call; it is not called again."""
        self._known[node] = self._opaque[node] = results

    def evaluate(self, node: int, output: int, for_call: bool = False) -> Any:
        """Return an output of a node in this call; `for_call`: nothing is decided by it."""
        if self._opaque and not for_call:
            made = self.graph[next(iter(self._opaque))]
            self.give_up(f"calls {made.name!r} of another library before it decides by the contents of an array")
        for index in range(self._looked_at, len(self.graph)):
            made = self.graph[index]
            if getattr(type(made.function), "_pyop_loop", False):
                self._loops.add(index)
            if made.stateful and type(made.function) is not Taken and index not in self._opaque:
                self.give_up(f"calls {made.name!r}, which is stateful, before it decides by the contents of an array")
        self._looked_at = len(self.graph)
        if self._given:
            self._take_arguments()
        if node in self._known:
            return self._known[node][output]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return self.computed(node, output)
            except RunItself:
                raise
            except Exception as error:
                self.give_up(f"branches on a value whose computation raises {type(error).__name__} and decides by it")

    def computed(self, node: int, output: int) -> Any:
        """Compute an output of a node, with all that lead to it, apart from the graph; their exceptions are raised."""
        if node not in self._known and self.graph[node].kind == "constant":
            return self.graph.run(self.graph._value(node, output))
        if node not in self._known:
            before = len(self._known)
            if self._loops - self._known.keys():
                self._run_loops(node)
            self._computed += _core.evaluate_beside(self.graph, node, self._known)
            results = self._known[node]
            self._let_go(before)
            return results[output]
        return self._known[node][output]

    def _run_loops(self, node: int) -> None:
        """Compute the loops of many iterations that lead to a node, by a plan each.

        Apart from the graph each iteration would be one of Python's.
        """
        waiting, visited = [node], set[int]()
        while waiting:
            index = waiting.pop()
            if index not in visited and index not in self._known:
                visited.add(index)
                waiting += [value.node.index for value in self.graph[index].inputs]
        for index in sorted(visited & self._loops):
            loop = self.graph[index]
            lower, upper = (self.computed(value.node.index, value.output_index) for value in loop.inputs[:2])
            if index in self._known or abs(int(upper) - int(lower)) < _FEW_ITERATIONS:
                continue
            feeds = {value._key: value for value in loop.inputs if value.node.kind != "constant"}
            arrays = [self.computed(value.node.index, value.output_index) for value in feeds.values()]
            results, structure = flatten(loop.outputs)
            plan = self.graph._compile(results, structure, feeds.values(), whole=False, threads=1)
            self._known[index] = tuple(plan(*arrays))

    def _take_arguments(self) -> None:
        """Set the arguments as a plan receives them: checked and converted, if they are declared."""
        inputs = [self.graph._value(index, 0) for index in self._given]
        leaves, structure = flatten(inputs)
        arrays = self.graph._compile(leaves, structure, inputs, whole=False, threads=1)(*self._given.values())
        self._known.update({index: (array,) for index, array in zip(self._given, arrays, strict=True)})
        self._given = {}

    def _let_go(self, before: int) -> None:
        """Keep the memory small that the results beside the graph take."""
        for results in itertools.islice(reversed(self._known.values()), len(self._known) - before):
            self._bytes += sum(getattr(x, "nbytes", 0) for x in results)
        if self._bytes > _KEPT_BYTES:
            for index in [*self._known]:
                if self._bytes <= _KEPT_BYTES // 2:
                    break
                if self.graph[index].kind != "input" and index not in self._opaque:
                    self._bytes -= sum(getattr(x, "nbytes", 0) for x in self._known.pop(index))
        if self._computed > _COMPUTED_AGAIN * len(self.graph) + 1000:
            self.give_up("decides by arrays that take too much memory to keep while it is traced")

    def give_up(self, why: str, leaf: tuple[int, ...] | None = None) -> Any:
        """Raise `RunItself`, which ends the trace."""
        self.reason = RunItself(f"{why} (at {_core.origin_here()})", leaf)
        raise self.reason


def recorded_loop(graph: Any) -> Any:
    """Return the innermost loop that is being recorded in a graph (`pyop.loops.rolled`); None if there is none."""
    loops: Any = getattr(graph, "_rolling", ())
    return next((loop for loop in reversed(loops) if loop.recording is not None), None)


def value_decided(value: Value, asked: str) -> Any:
    """Return the truth ("t"), integer ("i") or index ("x") of a Value in a traced call; else NotImplemented."""
    known = numbers_asked(value)
    if known is not None:  # the same in every run
        return bool(known) if asked == "t" else _ask(asked, known)
    graph: Any = value.graph
    loop = recorded_loop(graph)
    if loop is not None:
        return loop.give_up()
    decisions = getattr(graph, "_deciding", None)
    return NotImplemented if decisions is None else decisions.decide(value, asked)


def decides(value: Value) -> bool:
    """Return whether the traced call may be asked for the truth of a Value."""
    graph: Any = value.graph
    return getattr(graph, "_deciding", None) is not None or recorded_loop(graph) is not None


def size_of(value: Value, axis: int) -> int | None:
    """Return the size of an axis in the call that is traced, if there is one."""
    loop = recorded_loop(value.graph)
    if loop is not None:
        loop.give_up()
    decisions = getattr(value.graph, "_deciding", None)
    return None if decisions is None else decisions.decide(value, f"s{axis}")


def has_effects(graph: GraphBase) -> bool:
    """Return whether a graph calls stateful ops, which may not be called twice."""
    functions = [node.function for node in map(graph.__getitem__, range(len(graph))) if node.stateful]
    return not all(type(fn) is Taken or getattr(type(fn), "_pyop_opaque", False) for fn in functions)


def checks_results(graph: Any) -> bool:
    """Return whether the graph has calls that check in each run that their results are of the same kind."""
    return any(getattr(x, "_pyop_checks_results", False) for x in graph._kept)


def guard_lines(graph: GraphBase) -> list[str]:
    """Return the lines at which a graph decides."""
    functions = [graph[k].function for k in range(len(graph)) if graph[k].stateful]
    return [*dict.fromkeys(fn.line for fn in functions if type(fn) is Taken)]


def check_one_path(graph: GraphBase, what: str) -> None:
    """Raise where a graph is one path of a function that decides: it would be wrong for calls that go another way."""
    lines = guard_lines(graph)
    if lines:
        raise ValueError(
            f"{what}: it is one path of a function that decides by the contents of arrays, at {', '.join(lines[:3])}; "
            "other calls take other paths. Decide in the graph, with pyop.cond or np.where"
        )


# --- runs that catch up with another path

_quiet = _local()


class _Quiet:
    """Suppress warnings until a guard is reached."""

    __slots__ = ("_state", "guard")

    def __init__(self, guard: int) -> None:
        self.guard = guard
        self._state: Any = np.errstate(all="ignore")
        self._state.__enter__()
        _core.count_quiet(1)

    def end(self) -> None:
        """Warn again."""
        if self._state is not None:
            _core.count_quiet(-1)
            self._state.__exit__(None, None, None)
            self._state = None


def quiet_begin(guard: int) -> None:
    """Compute again what another path has computed up to the guard of this number, without its warnings."""
    _quiet.__dict__.setdefault("runs", []).append(_Quiet(guard))


def quiet_end() -> None:
    """End the suppression of warnings, if no guard was reached."""
    _quiet.runs.pop().end()
