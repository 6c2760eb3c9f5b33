"""Find out what the forward of a Function does beside returning results, for a graph.

Forward is called with Values of a graph of its own. That tells the specs of the results, which arguments it writes
into and returns, and whether it did anything that is no function of its arguments: changed state, drew random numbers,
could reach a clock. Where it does not work on Values none of that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import FunctionClass, Value
from ..declare.spec import Spec
from ..gradients import table
from ..graph.graph import Graph
from ..refusals import call_watched, refusal
from ..tracing.captured import Watch
from ..tracing.code import facts
from .arrays import spec_of

__all__ = ["Effects", "check_no_number", "find_effects", "read_only"]


@dataclass(frozen=True)
class Effects:
    """Describe the effects of a call of forward.

    Attributes
    ----------
    in_place : tuple of (int, int)
        Which result is which argument (by `pyop.gradients.table.leaves`), written into.
    hidden : bool
        It may do something else in each call, or change something: it is called as often as it is written, in order.
    known : bool
        Forward works on Values, so that all of this was seen.
    """

    in_place: tuple[tuple[int, int], ...] = ()
    hidden: bool = False
    known: bool = True

    @property
    def written(self) -> frozenset[int]:
        """Return the positions of the arguments that are written into."""
        return frozenset(k for _, k in self.in_place)


class _Ctx:
    """Stand in for ctx, and record the arguments that are marked dirty."""

    saved_tensors = ()

    def __init__(self, count: int) -> None:
        self.dirty: list[Any] = []
        self.needs_input_grad = (True,) * count

    def mark_dirty(self, *args: Any) -> None:
        self.dirty += args

    def _nothing(self, *args: Any) -> None:
        return None

    save_for_backward = save_for_forward = mark_non_differentiable = set_materialize_grads = _nothing


def find_effects(
    function: FunctionClass, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, bool | None, Effects]:
    """Return the specs of forward's results, whether those of no dimension are NumPy's scalars, and the effects.

    Everything that forward changes is restored.
    """
    parts = [part for part in (function.cls.forward, getattr(function.cls, "setup_context", None)) if part is not None]
    watches = [Watch(part, []) for part in parts]
    declared = getattr(function.cls, "stateful", None)
    try:
        specs, scalar, in_place = call_watched(_on_values, (function, args, kwargs), {})
    except NotFollowed as error:
        raise refusal(str(error)) from None
    except Exception:
        if any("mark_dirty" in facts(f.__code__).names for watch in watches for f in watch.functions()):
            raise refusal(
                f"forward of {function.name} names mark_dirty and does not work on symbolic arrays, so that nobody "
                "knows what it writes into: write it with NumPy's functions, or return a new array"
            ) from None
        return Spec(), None, Effects(hidden=declared is not False, known=False)
    finally:
        seen = any(watch.changed() or watch.drawn() or watch.unseen for watch in watches)
        for watch in watches:
            watch.restore()
            watch.restore_generators()
    return specs, scalar, Effects(in_place, hidden=seen if declared is None else bool(declared))


class NotFollowed(TypeError):
    """Forward writes or returns what a graph does not follow."""


def _on_values(
    function: FunctionClass, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, bool | None, tuple[tuple[int, int], ...]]:
    given = table.leaves(args, kwargs)
    which = [k for k, leaf in enumerate(given) if isinstance(leaf, Value)]
    forward, setup = function.cls.forward, getattr(function.cls, "setup_context", None)
    ctx = _Ctx(len(given))
    with Graph(name="forward") as graph:
        values = [graph.input(given[k].spec) for k in which]
        for value in values:
            value._lend()
        new_args, new_kwargs = table.replaced(args, kwargs, dict(zip(which, values, strict=True)))
        result = call_watched(forward, new_args if setup is not None else (ctx, *new_args), new_kwargs)
        if setup is not None:
            call_watched(setup, (ctx, new_args, result), {})
        results = result if isinstance(result, tuple) else (result,)
        in_place = _written_and_returned(function, which, values, results, ctx.dirty)
        for x in results:
            check_no_number(function.name, x)
        specs = tuple(map(_spec_of_result, results))
        scalar = _are_scalars([x for x, spec in zip(results, specs, strict=True) if spec.ndim == 0])
    return (specs if isinstance(result, tuple) else specs[0]), scalar, in_place


def check_no_number(name: str, x: Any) -> None:
    """Raise for a Python number as a result: what is computed from it has another dtype than with an array."""
    if type(x) in (bool, int, float, complex):
        raise NotFollowed(
            f"forward of {name} returned {x!r}, a {type(x).__name__} of Python, and what a Function returns in a graph "
            "is an array: return NumPy's scalar, as np.float64 or np.sum make it"
        )


def _are_scalars(results: list[Any]) -> bool | None:
    """Return whether results without a dimension are NumPy's scalars; None if unknown or mixed."""
    kinds = {x._is_scalar if isinstance(x, Value) else isinstance(x, np.generic) for x in results}
    return kinds.pop() if len(kinds) == 1 else None


def _spec_of_result(x: Any) -> Spec:
    return Spec() if isinstance(x, list) else spec_of(x)  # a list stays a list, and may hold itself


def _written_and_returned(
    function: FunctionClass, which: list[int], values: list[Any], results: tuple[Any, ...], dirty: list[Any]
) -> tuple[tuple[int, int], ...]:
    pairs: list[tuple[int, int]] = []
    for k, value in zip(which, values, strict=True):
        if not (value._is_written() or any(value is x for x in dirty)):
            continue
        places = [at for at, y in enumerate(results) if y is value]
        others = [y for y in results if isinstance(y, Value) and y is not value and y._is_related(value)]
        if len(places) != 1 or others:
            raise NotFollowed(
                f"forward of {function.name} writes into an argument and "
                f"{'returns views of it' if others else f'returns it {len(places)} times'}: in a graph what is written "
                "is returned once, as it is"
            )
        pairs.append((places[0], k))
    return tuple(pairs)


def read_only(x: Any) -> Any:
    """Return a view of an array that nobody can write into."""
    view = x.view()
    view.flags.writeable = False
    return view
