"""End the trace at a loop that cannot be recorded as it was: it is made again with what was learnt."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from .._core import Value
from .._tree import flatten
from ..graph.deciding import RunItself, Specialise
from ..graph.graph import Graph
from ..graph.lists import is_growing

__all__ = ["Flagged", "Key", "Peeled", "Unroll", "abandoned", "settled", "tells_how"]

Key = tuple[Any, int]  # the code and the place of a loop


class Unroll(Specialise):
    """End the trace, which is made again with these loops unrolled, because of the line `why`.

    Where the keys are marks, it is made with loops recorded otherwise.
    """

    def __init__(self, keys: set[Any]) -> None:
        super().__init__(frozenset())
        self.keys = keys
        self.why = _line() if any(type(key) is tuple for key in keys) else ""


def tells_how(error: BaseException) -> bool:
    """Return whether a loop is to be recorded in another way, and not to be unrolled."""
    return type(error) is Unroll and not any(type(key) is tuple for key in error.keys)


def _line() -> str:
    """Return the user's line that runs, or that an exception comes from."""
    traceback = sys.exc_info()[2]
    found = ""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in ("pyop", "numpy"):
            found = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found or Value._here()


def abandoned(graph: Graph) -> None:
    """Put back what the iterations of loops have set that are not to their end: the trace is over."""
    Value._log_writes(None)
    for loop in reversed(graph._rolling):
        if loop.recording is not None and loop.head:
            loop.around.restore(loop.head)


class Flagged(NamedTuple):
    """Ask for flags, too, of the variables of a loop that become Python numbers only in an iteration."""

    loop: Key
    way: str = "flagged"


class Peeled(NamedTuple):
    """Ask to record the first iteration of a loop by itself, as it has Python numbers where the others have not."""

    loop: Key
    way: str = "peeled"


def settled(graph: Graph, result: Any) -> Any:
    """Return what a function returns, its Python numbers settled; raise `Unroll` where that needs another trace."""
    weak, known, outputs = graph._weak, graph._unrolled, flatten(result)[0]
    for leaf in outputs:
        if is_growing(leaf):
            leaf.is_read()
    graph._weak = None
    loops = weak.wrong(graph, outputs) | weak.returned(outputs)
    if loops:
        raise Unroll(
            {Flagged(loop) for loop in loops | weak.unflagged()} - known
            or {loop if Peeled(loop) in known else Peeled(loop) for loop in loops}
        )
    try:
        return weak.settled(result)
    except Exception as error:  # of what is known, and was not asked for before
        raise RunItself(f"raised {type(error).__name__}", ()) from error
