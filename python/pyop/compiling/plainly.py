"""Run the function itself in place of a plan, and decide when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph.deciding import MOST_NODES, RunItself, checks_results, guard_lines, has_effects
from ..graph.graph import Graph
from ..refusals import is_of_state, may_run_itself, of_state, runs_itself, was_refused
from .arguments import Argument, input_name

__all__ = [
    "MOST_NODES",
    "MOST_PATHS",
    "STOPS",
    "WRITE_INSTEAD",
    "ChangesState",
    "Plainly",
    "changes_state",
    "check_error_state",
    "check_iterators",
    "check_paths",
    "computes_otherwise",
    "goes_on",
    "is_to_run_itself",
    "keeps_symbolic",
    "many_ways",
    "refused",
    "runs_again",
    "runs_as_it_is",
]

# Beyond so many paths of one kind of call, or MOST_NODES in them, the function itself runs.
MOST_PATHS = 16
STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)

_DERIVATIVES = tuple(f"{__package__.partition('.')[0]}.{room}" for room in ("transforms", "autograd", "gradients"))
_CALLS = (".in_graphs", ".function_effects")  # of Functions, which a function makes without a derivative, too
WRITE_INSTEAD = "Write what the error in brackets says"


def is_to_run_itself(fn: Callable[..., Any], failure: Exception, changes: bool = False) -> bool:
    """Return whether the function itself is to run where its trace fails so; a derivative would be computed otherwise.

    `changes`: by its code it changes what it holds, which is compiled or done by itself, however it is written.

    >>> import numpy as np
    >>> from pyop.compiling.plainly import is_to_run_itself
    >>> from pyop.refusals import may_run_itself
    >>> is_to_run_itself(np.tile, may_run_itself(TypeError("x.shape = ...")))
    True
    >>> is_to_run_itself(np.tile, TypeError("float(x)"))
    False
    """
    module = str(getattr(fn, "__globals__", {}).get("__name__"))
    ours = module.partition(".")[0] == __name__.partition(".")[0]
    fails = runs_itself(failure) or was_refused(failure) or (changes and is_of_state(failure))
    return fails and not ours and not _is_of_a_derivative(failure)


def _is_of_a_derivative(failure: Exception) -> bool:
    """Return whether it was raised while a derivative was made: at arrays that would be refused half-way."""
    at = failure.__traceback__
    while at is not None:
        name = str(at.tb_frame.f_globals.get("__name__"))
        if name.startswith(_DERIVATIVES) and not name.endswith(_CALLS):
            return True
        at = at.tb_next
    return False


def refused(cause: Any) -> RunItself:
    """Return the end of a trace that was refused something, or failed as it would not with arrays."""
    from ..tracing.blame import where_refused  # on first use

    return RunItself(where_refused(cause), remedy=WRITE_INSTEAD)


def check_iterators(reached: bool) -> None:
    """Raise if a trace may take items of an iterator: nothing puts them back where the function has to run itself."""
    if reached:
        remedy = "Make the items an argument, or take them in a pyop.op(..., stateful=True)"
        raise RunItself("reaches an iterator, which goes on from call to call", remedy=remedy)


def check_paths(paths: tuple[Any, ...]) -> None:
    """End the trace if there may be no further path beside these, of which `paths` has the plans."""
    nodes = sum(len(plan.graph) for plan in paths if plan is not None)
    if len(paths) >= MOST_PATHS or nodes >= MOST_NODES:
        raise many_ways(paths)


def many_ways(paths: tuple[Any, ...]) -> RunItself:
    """Return the end of the trace of a function that takes too many paths, of which these are the plans."""
    lines = {line: None for plan in paths if plan is not None for line in guard_lines(plan.graph)}
    return RunItself(
        f"decides by the contents of arrays at {', '.join([*lines][:3])}, and took {len(paths)} different paths so far"
    )


def check_error_state(sets_it: int, plan: Any) -> None:
    """End the trace of a function that sets np.errstate if what raises in its plan may not be done again."""
    if sets_it and has_effects(plan.graph):
        raise RunItself("sets np.errstate, and calls stateful ops")


def runs_again(graph: Graph, catches: bool) -> bool:
    """Return whether the function itself is to run after an error of its plan: it may catch that, or it alone is right
    where something has changed that the plan was made for.
    """
    return (catches or checks_results(graph)) and not has_effects(graph)


class Plainly:
    """Call the function as the compiled one is called: with arguments as they are declared, with ``out=``."""

    __slots__ = ("_declared", "_fn", "_name")

    def __init__(self, fn: Callable[..., Any], name: str, arguments: list[Argument]) -> None:
        self._fn = fn
        self._name = name
        # How declared arguments are checked and converted: by the plan that returns them.
        self._declared: Any = None
        if b"d" in [place.kind for _, places in arguments for place in places]:
            graph = Graph(name)
            trees = []
            for tree, places in arguments:
                trees.append((tree, [place.kind == b"d" for place in places]))
                for place in places:
                    if place.kind == b"d":
                        graph.input(place.spec, input_name(place.path))
            graph.output(list(graph.inputs))
            self._declared = graph.compile(), trees

    def __call__(self, args: tuple[Any, ...], n: int, names: Sequence[str] | None, out: Any) -> Any:
        if self._declared is not None:
            args = self._converted(args)
        result = self._fn(*args[:n], **dict(zip(names or (), args[n:], strict=True)))
        if out is None:
            return result
        from .disable import result_into  # on first use

        return result_into(self._fn, result, out)

    def _converted(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        plan, trees = self._declared
        leaves = [tree.match(x, False) for (tree, _), x in zip(trees, args, strict=True)]
        flags = [declared for _, declared in trees]
        flat = [
            x
            for found, flag in zip(leaves, flags, strict=True)
            for x, is_declared in zip(found, flag, strict=True)
            if is_declared
        ]
        arrays = iter(plan(*flat))
        return tuple(
            tree.unflatten([next(arrays) if is_declared else x for x, is_declared in zip(found, flag, strict=True)])
            for (tree, flag), found in zip(trees, leaves, strict=True)
        )


def runs_as_it_is(place: str, reason: RunItself) -> str:
    """Return the warning that a function runs itself."""
    return (
        f"{place} {reason.why}: it is not compiled for calls of this kind, from now on the function itself runs. "
        f"{reason.remedy}; without pyop.compile there is no warning"
    )


def computes_otherwise(place: str, changed: list[str]) -> Exception:
    """Return the error for a function of which another trace has recorded something else."""
    what = f"changes {changed[0]}" if changed else "reads a clock, an iterator or random numbers,"
    return of_state(
        f"{place} {what} and computes something else in the next call, but is traced once for many calls: "
        "pass what changes as an argument and return what it becomes, or do it in a pyop.op(..., stateful=True)"
    )


def goes_on(place: str, changed: list[Any], drawn: list[str], watch: Any) -> Exception:
    """Return the error of `computes_otherwise` where these places were changed. The function may run itself if all is
    as before again, and none of it is an iterator.
    """
    error = computes_otherwise(place, [x.label for x in changed] or drawn)
    as_before = changed and not drawn and not watch.goes_on and not watch.changed()
    return may_run_itself(error) if as_before else error


class ChangesState(BaseException):
    """End a trace that has changed something, as plans with the state as inputs are to be tried first."""


def keeps_symbolic(place: str, kept: list[str]) -> TypeError:
    """Return the error for a trace that would leave symbolic arrays behind."""
    where = "where a symbolic array would be left after the trace: return it as a result instead"
    return TypeError(f"{place} puts what it computes into {kept[0]}, {where}")


def changes_state(place: str, moving: list[str]) -> TypeError:
    """Return the error for a function of which each trace has left another number, text or array."""
    why = f"changes {moving[0]} in every call, which a plan does not"
    return TypeError(f"{place} {why}: return it as a result, or change it where you call it")


def watched(fn: Callable[..., Any], decisions: Any) -> Callable[..., Any]:
    """Return a function that gives the trace up before a call that is not known to be pure."""
    from ..tracing.call_watch import watched  # on first use

    return watched(fn, decisions)
