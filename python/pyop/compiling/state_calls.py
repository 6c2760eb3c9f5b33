"""Compile a function with what its instance or closure holds as inputs: the plans belong to the code.

It is traced with a copy of the instance or closure that holds symbolic arrays. What the function binds anew in the copy
(``self.v = self.v + x``, ``nonlocal n``) is a result beside its own, which csrc/plan/state_inputs.h puts where it
belongs when all is computed; what it writes into an array of the state is a write into an argument. Where it has to run
itself, it does on the object itself.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Mapping, Sequence
from types import CellType, FrameType, FunctionType, MethodType
from typing import Any

from .._core import CompiledFunction, StateInputs, graph_being_built, state_root
from .._tree import flatten
from ..declare.spec import Spec
from ..graph.deciding import RunItself, has_effects
from ..graph.graph import twinned
from ..refusals import is_of_state
from ..tracing.captured import Watch
from .arguments import Argument, Arguments
from .options import Options
from .retrace import History, log
from .state_steps import LEAVES, Known, NotInputs, Steps
from .tracer import Tracer
from .written_arguments import containers

__all__ = ["state_inputs"]

_LEAF = flatten(0)[1]
_MOST_FAILURES = 8
_UNSEEN = (FunctionType, MethodType, CellType, tuple)  # of which a trace itself may hold some


class _GivenUp(BaseException):
    """Signal that there is no plan whose inputs are the state. No `Exception`, as `RunItself`."""


class _History(History):
    """Note what the closures of one code were traced for; where that is too much, each has plans of its own."""

    def add(self, entries: Mapping[str, tuple[str, str | Spec]], calls: int, max_plans: int) -> str | None:
        """Note one trace; end it where a warning is due."""
        if super().add(entries, calls, max_plans):
            raise _GivenUp("it is traced too often")
        return None


class _Arguments:
    """Read the inputs of the state, and behind them the arguments of the function."""

    takes_any = False

    def __init__(self, arguments: Arguments, steps: Steps, of_argument: bool) -> None:
        self.name = arguments.name
        self._arguments = arguments
        self._paths = steps.paths
        self._of_argument = of_argument

    def read(self, args: tuple[Any, ...], n: int, names: Sequence[str]) -> list[Argument]:
        """Read a call, as `Arguments.read`."""
        own = len(self._paths)
        found = [self._input(path, x) for path, x in zip(self._paths, args, strict=False)]
        if not self._of_argument:
            return found + self._arguments.read(args[own:], n - own, names)
        return found + self._arguments.read((None, *args[own:]), n - own + 1, names)[1:]

    def _input(self, path: str, x: Any) -> Argument:
        place = self._arguments.classify(path, x)
        place.of_state = True
        return _LEAF, [place]


class _Function:
    """Stand for the function of the inputs: traced with a copy of the object, or calling the function itself on it."""

    def __init__(self, fn: Any, steps: Steps, of_argument: bool) -> None:
        self.__wrapped__ = fn if of_argument else steps.nodes[0]
        self.steps = steps
        self.of_argument = of_argument
        self.targets: dict[str, tuple[tuple[int, Any], ...]] = {}
        self.raised = threading.local()  # the last exception of the function itself
        self.elsewhere = False  # whether it can reach lists and dicts by other ways than from the object
        self.binds = False  # whether the last trace has bound anything anew

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        own = len(self.steps.paths)
        if graph_being_built() is not None:
            return self._traced([*args[:own]], args[own:], kwargs)
        root = state_root()
        try:
            return (self.__wrapped__(root, *args[own:], **kwargs) if self.of_argument else root(*args[own:], **kwargs),)
        except BaseException as error:
            self.raised.error = error
            raise

    def _traced(self, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        steps = self.steps
        made = steps.copy(leaves)
        held = [steps.parts(node, x) for node, x in enumerate(made)]
        counts = _counts(made)
        if self.of_argument:
            result = twinned(self.__wrapped__)(made[0], *args, **kwargs)
        else:
            result = twinned(made[0])(*args, **kwargs)
        try:
            changes = steps.changes(made, held)
            held.clear()
        except NotInputs as error:
            raise RunItself(f"changes its state by {error}") from None
        values = tuple([value for *_, value in changes])
        self._check(made, counts, result, values, (*args, *kwargs.values()))
        self.binds = bool(changes)
        if not changes:
            return (result,)
        if self.elsewhere and any(type(made[node]) in (list, dict) for node, *_ in changes):
            raise RunItself("changes a list or dict that it may reach by another way")
        graph: Any = graph_being_built()
        if has_effects(graph) or graph._deciding.calls_others:
            raise RunItself("changes its state, and calls stateful ops or other libraries")
        return result, self._key(tuple([(node, key) for node, key, _ in changes])), values

    def _check(self, made: list[Any], counts: list[int], result: Any, values: tuple[Any, ...], given: Any) -> None:
        """Have the function run itself where something else holds one of the copies, or a result is one."""
        own = {*map(id, made)}
        found: list[Any] = []
        flatten([result, *values], found.append)  # tuples, too: the very ones are returned
        for part in found[1:]:  # the first one is the list of them
            if id(part) in own:
                raise RunItself("returns, or binds anew, a list, tuple, dict or object of its state, or one twice")
            if type(part) is not tuple or part:
                own.add(id(part))
        if values and containers(given):
            raise RunItself("changes its state, and is given lists, dicts or objects, which may be part of it")
        if any(id(leaf) in own for leaf in flatten((result, values))[0]):
            raise RunItself("returns, or binds anew, an object of its state")
        now = _counts(made)
        more = [k for k, x in enumerate(made) if now[k] > counts[k] and type(x) not in _UNSEEN]
        if more and _is_held_elsewhere([made[k] for k in more], made):
            raise RunItself("has something else hold an object of its state")

    def _key(self, rows: tuple[tuple[int, Any], ...]) -> str:
        for key, known in self.targets.items():
            if known == rows:
                return key
        key = f"state {len(self.targets)}"
        self.targets[key] = rows
        return key


def _counts(objects: list[Any]) -> list[int]:
    return [sys.getrefcount(objects[k]) for k in range(len(objects))]


def _is_held_elsewhere(objects: list[Any], made: list[Any]) -> bool:
    """Return whether something holds one of the objects but what was made with them, and the trace itself."""
    graph: Any = graph_being_built()
    known = {id(objects), id(made), *map(id, made), *(id(getattr(x, "__dict__", None)) for x in made)}
    if graph._twins is not None:
        known.update(map(id, graph._twins.holders()))
    for x in objects:  # and no generator, which would hold it, too
        holders = gc.get_referrers(x)
        if [holder for holder in holders if id(holder) not in known and type(holder) is not FrameType]:
            return True
    return False


class _Tracer(Tracer):
    """Make plans for the function of the inputs."""

    def __init__(self, function: _Function, arguments: Any, options: Options, states: Known) -> None:
        super().__init__(function, arguments, options)
        if not function.of_argument:
            self.history = _History(self.name)
        self._function = function
        self._states = states.plans
        self._give_up_for_good = states.refuse
        self._own: StateInputs | None = None
        self._failures = 0
        self._watch: Watch | None = None

    def belongs_to(self, own: StateInputs) -> None:
        """Set the inputs that are taken off the list where there are no plans."""
        self._own = own

    def miss(
        self, function: Any, args: tuple[Any, ...], n: int, names: Any, out: Any, paths: tuple[Any, ...] | None = None
    ) -> tuple[Any, ...]:
        """Answer a call, as `Tracer.miss`; ``(NotImplemented,)`` for one that is none of those with such inputs."""
        if self._own not in self._states:
            return (NotImplemented,)
        try:
            arguments = self.arguments.read(args, n, names or ())
        except TypeError:
            return (NotImplemented,)
        if any(place.kind == b"?" for _, places in arguments for place in places):
            return (NotImplemented,)
        self._function.raised.error = None
        try:
            return super().miss(function, args, n, names, out, paths)
        except _GivenUp:
            return self._give_up()
        except Exception as error:
            if error is self._function.raised.error:
                raise
            if self._watch is not None:
                self._watch.restore()
            self._failures += 1
            if is_of_state(error) or self._failures > _MOST_FAILURES:
                log("%s has no plan with its state as inputs: %s", self.name, error)
                return self._give_up()
            # The function itself does all of it, and raises.
            keywords = dict(zip(names or (), args[n:], strict=True))
            return (self._function(*args[:n], **keywords),)
        finally:
            self._watch = None
            self._function.raised.error = None

    def _give_up(self) -> tuple[Any, ...]:
        if self._own in self._states:
            self._states.remove(self._own)
            self._give_up_for_good(self._function.steps.kind)
        return (NotImplemented,)

    def _tell(self, reason: RunItself) -> None:
        log("%s has no plan with its state as inputs, %s", self.name, reason.why)
        raise _GivenUp(reason.why)

    def _looked_at(self, instances: list[Any], known: dict[int, bytes]) -> Watch:
        """Watch all but the inputs; end the trace if objects like those of the state can be reached another way."""
        function, form = self._function, self._function.steps.nodes
        fn = function.__wrapped__
        self._watch = watch = Watch(fn, [*([form[0]] if function.of_argument else []), *instances], known)
        own = {*map(id, form)}
        others = [x for x in watch.reached() if id(x) not in own and x is not fn]
        kinds = {type(x) for x in form if type(x) not in LEAVES} - {list, dict, tuple, FunctionType}
        if any(type(x) in kinds for x in others):
            raise RunItself("can reach an object like those of its state")
        cells = any(type(x) is CellType for x in form)
        if cells and any(type(x) is FunctionType and x.__closure__ for x in watch.functions() if id(x) not in own):
            raise RunItself("can reach other closures")
        function.elsewhere = any(type(x) in (list, dict) for x in others)
        return watch

    def _runs_again(self) -> bool:
        return self._function.binds or super()._runs_again()


def state_inputs(
    fn: Any, arguments: Arguments, options: Options, steps: Steps, of_argument: bool, states: Known
) -> StateInputs:
    """Return what calls the plans whose inputs are the state that is read by these steps."""
    steps.forget()
    function = _Function(fn, steps, of_argument)
    tracer = _Tracer(function, _Arguments(arguments, steps, of_argument), options, states)
    made = CompiledFunction(function, tracer.miss, options.max_plans, 0, False, False)
    own = StateInputs(tuple(steps.rows), made, function.targets, of_argument)
    tracer.belongs_to(own)
    return own
