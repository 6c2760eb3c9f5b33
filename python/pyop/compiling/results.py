"""What a compiled function returns: the arrays of its plan, and what the function put beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import Value, scalar_of
from .._tree import TreeDef, flatten
from ..declare.dims import Dim
from ..declare.spec import Spec
from ..graph.deciding import RunItself
from ..graph.graph import Graph
from ..graph.sizes import apply
from ..graph.symbolic_number import Number, is_number
from ..graph.unknown import Unknown
from ..refusals import may_run_itself, refusal
from .arguments import NUMBERS, STATIC_TYPES

if TYPE_CHECKING:
    from ..graph.merged import Owners

__all__ = ["Apart", "Both", "both", "declare_outputs"]


class _Finish:
    """Makes what the function returns of the arrays of its plan, where these are not all of it."""

    __slots__ = ("leaves", "structure")

    def __init__(self, leaves: list[tuple[str, Any]], structure: TreeDef) -> None:
        self.leaves = leaves
        self.structure = structure

    def __call__(self, arrays: tuple[Any, ...], out: Any = None) -> Any:
        given = iter(arrays)
        leaves: list[Any] = []
        for kind, value in self.leaves:
            if kind == "array":
                leaves.append(next(given))
            elif kind == "scalar":
                leaves.append(scalar_of(next(given)) if out is None else next(given))
            elif kind == "number":
                leaves.append(next(given).item())
            elif kind == "again":
                leaves.append(leaves[value])
            elif kind == "as it is":
                leaves.append(value)
            else:
                leaves.append(_copied(value))
                if kind == "read-only copy":
                    leaves[-1].flags.writeable = False
        return self.structure.unflatten(leaves)


_ONE_MEMORY = (
    "returned two arrays that it made of no argument and that show one memory: return a copy() of one of them, or make "
    "them outside of the function"
)
_AMONG_OBJECTS = (
    "returned an array of objects among which are arrays or numbers that it computes: return them in a list or a dict, "
    "and put them into an array of objects afterwards"
)
# The names of what a function is traced with, in a text.
_STAND_INS = r"<pyop\.Value |'pyop\.(Value|compiling\.number\.Number)'"
# What cannot be changed by whoever gets it.
_ATOMS = (*STATIC_TYPES, *NUMBERS, np.generic, np.dtype, type, Enum, range, slice)


def _copied(x: Any) -> Any:
    """Return a copy that repeats what the array repeats, as ``np.broadcast_to`` does."""
    repeats = [size > 1 and step == 0 for size, step in zip(x.shape, x.strides, strict=True)]
    if not any(repeats):
        return x.copy(order="K")
    one = x[tuple([slice(0, 1) if repeated else slice(None) for repeated in repeats])]
    return np.broadcast_to(one.copy(order="K"), x.shape)


def _first(x: Any, leaves: list[Any]) -> int:
    return next(k for k, leaf in enumerate(leaves) if leaf is x)


def _any_base(x: Any, holds: Callable[[Any], bool]) -> bool:
    """Whether this is so of an array, or of one that it shows."""
    while isinstance(x, np.ndarray):
        if holds(x):
            return True
        x = x.base
    return False


def _shows(a: Any, b: Any) -> bool:
    return type(b) is np.ndarray and np.may_share_memory(a, b) and _share(a, b)


def _second(array: Any, number: int) -> int:
    return number


def declare_outputs(
    graph: Graph, result: Any, name: str, holds: Callable[[Any], bool], scalars: bool = False
) -> Callable[..., Any] | None:
    """Declare what a traced function returned; what makes that of the plan's arrays, or None if these are all.
    `holds` says whether an array is part of the function's own state: then so is the result, in every call. With
    `scalars`, what NumPy returns as a scalar is one.
    """
    if result is None and graph._writes:
        return None  # the plan returns None
    leaves, structure = flatten(result)
    if not structure.is_leaf and any(re.search(_STAND_INS, path) for path in structure.leaf_paths()):
        raise TypeError(
            f"{name} returned a dict with the text of a symbolic array as a key, where NumPy has the text of its "
            "numbers: make such keys of what the compiled function returns"
        )
    if graph._twins is not None:
        _make_fresh(leaves)
    if not scalars and _part_scalars(leaves):
        result = structure.unflatten(leaves)
    if leaves and all(isinstance(leaf, Value) and leaf.node.kind != "constant" for leaf in leaves):
        if not scalars or not any(leaf._is_scalar for leaf in leaves):
            graph.output(result)
            return None
        if structure.is_leaf:
            graph.output(result)
            return scalar_of
    template: list[tuple[str, Any]] = []
    values = []
    for k, leaf in enumerate(leaves):
        if is_number(leaf):
            template.append(("number", None))
            values.append(leaf._value)
        elif isinstance(leaf, Dim):  # a named size is a number when the plan runs
            template.append(("number", None))
            values.append(apply(_second, (graph.inputs[0], leaf), {}, Spec(np.dtype(np.int64), ()), name="size"))
        elif type(leaf) is Unknown:  # so is how many elements a mask has picked
            template.append(("number", None))
            values.append(leaf.computed())
        elif isinstance(leaf, Value) and leaf.node.kind == "constant":
            first = _first(leaf, leaves)
            if any(isinstance(x, Value) and x is not leaf and leaf._shares_memory(x) for x in leaves):
                raise refusal(f"{name} {_ONE_MEMORY}")
            known = graph.run(leaf)
            if leaf._is_scalar:
                template.append(("as it is", scalar_of(known)) if scalars else ("copy", known))
            else:
                template.append(("copy", known) if first == k else ("again", first))
        elif isinstance(leaf, Value):
            template.append(("scalar" if scalars and leaf._is_scalar else "array", None))
            values.append(leaf)
        elif type(leaf) is np.ndarray and leaf.dtype.hasobject and _holds_symbolic(leaf):
            raise may_run_itself(refusal(f"{name} {_AMONG_OBJECTS}"))
        elif type(leaf) is np.ndarray and (first := _first(leaf, leaves)) < k:
            template.append(("again", first))
        elif type(leaf) is np.ndarray and _any_base(leaf, holds):
            template.append(("as it is", leaf))
        elif type(leaf) is np.ndarray and any(_shows(leaf, other) for other in leaves if other is not leaf):
            raise refusal(f"{name} {_ONE_MEMORY}")
        elif type(leaf) is np.ndarray:  # computed of nothing: the same every time, and the caller's own
            template.append(("copy" if leaf.flags.writeable else "read-only copy", _copied(leaf)))
        elif (isinstance(leaf, str) and re.search(_STAND_INS, leaf)) or (
            isinstance(leaf, type) and leaf in (Value, Number, Unknown)
        ):
            raise TypeError(
                f"{name} returned {leaf!r:.80}, which shows what it was traced with, where NumPy has its arguments: "
                "return the array, and make the text of the result"
            )
        elif isinstance(leaf, _ATOMS):
            template.append(("as it is", leaf))
        elif k in structure.beside_fields():
            raise RunItself(
                f"returns an object that holds a {type(leaf).__name__}, which every call may make anew",
                remedy="Return arrays and numbers, and keep such objects outside",
            )
        else:
            raise TypeError(
                f"{name} returned {'' if structure.is_leaf else structure.leaf_paths()[k] + ', '}an object of type "
                f"{type(leaf).__name__}: what is compiled returns arrays, numbers, text or None, in tuples, lists, "
                "dicts, named tuples and dataclasses: return those"
            )
    if structure.is_leaf and template == [("number", None)]:
        graph.output(values[0])
        return np.ndarray.item
    graph.output(tuple(values))
    return _Finish(template, structure)


def _holds_symbolic(x: Any) -> bool:
    from ..tracing.left_behind import holds_symbolic  # on first use

    return holds_symbolic(x)


def _part_scalars(leaves: list[Any]) -> bool:
    """Have a scalar that is returned twice be two arrays: nobody can change one of NumPy's under another name."""
    seen: set[int] = set()
    parted = False
    for k, leaf in enumerate(leaves):
        if type(leaf) is Value and leaf._is_scalar and leaf.node.kind != "constant":
            if id(leaf) in seen:
                leaves[k] = np.copy(leaf)
                parted = True
            seen.add(id(leaf))
    return parted


def _make_fresh(leaves: list[Any]) -> None:
    """Have what the function made of no argument, and returns, made anew in each call, with all that shows it."""
    from ..gradients.fresh import fresh  # on first use: `import pyop` stays light
    from ..graph.known import is_known

    for leaf in leaves:
        if type(leaf) is not Value or leaf._is_scalar or leaf._is_read_only():
            continue  # what nobody can write needs no memory of its own
        if is_known(root := leaf._root()):
            leaf._write_root(apply(fresh, (root,), {}, root.spec, name="fresh", scalar=False))


class Both:
    """One after the other, if there is another."""

    __slots__ = ("first", "second")

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def __call__(self, result: Any, out: Any = None) -> Any:
        result = self.first(result, out)
        return result if self.second is None else in_form(self.second, result, out)


def both(first: Any, second: Any) -> Any:
    """Return what finishes a result by one and then the other, of which either may be None."""
    return second if first is None else first if second is None else Both(first, second)


def in_form(finish: Any, result: Any, out: Any) -> Any:
    """What `finish` makes of a result; an array of the caller's stays one."""
    if finish is scalar_of:
        return result if out is not None else scalar_of(result)
    return finish(result, out) if isinstance(finish, _Finish | Both | Apart) else finish(result)


class Apart:
    """Gives every result memory of its own that has it in the function's result, but not in that of the plan.

    There equal nodes are one, so that two results may be the same array or show the same one, and what depends on no
    argument was computed when the plan was made.
    """

    __slots__ = ("known", "shown", "written")

    def __init__(
        self, known: list[int], shown: list[tuple[int, int, int]], written: list[list[tuple[int, int]]]
    ) -> None:
        self.known = known  # places of what was computed beforehand
        # Of those that nobody can write into, whose memory stays the plan's: the first place that is the same array,
        # and whose memory it is as the function was written.
        self.shown = shown
        self.written = written  # places that show one array, each with whose it is as the function was written

    @classmethod
    def make(cls, owners: Owners, read_only: dict[int, int]) -> Apart | None:
        """None if every array of the result is as much an array of its own as in that of the function."""
        known: list[int] = []
        shown: list[tuple[int, int, int]] = []
        alike: dict[int, list[tuple[int, int]]] = {}
        for k, owner in enumerate(owners):
            assert owner is not None  # only a node that is fetched has none
            before, after, _ = owner
            if after is None and k in read_only:
                shown.append((k, read_only[k], before))
            elif after is None:
                known.append(k)
            else:
                alike.setdefault(after, []).append((k, before))
        written = [places for places in alike.values() if len({before for _, before in places}) > 1]
        return cls(known, shown, written) if known or shown or written else None

    def __call__(self, result: Any, out: Any = None) -> Any:
        leaves, structure = flatten(result)
        copied = self._show(leaves) if self.shown else False
        for k in self.known:
            if not leaves[k].flags.writeable:  # else it is in an array of the caller's
                leaves[k] = _copied(leaves[k])
                copied = True
        for places in self.written:
            apart: list[tuple[Any, int]] = []
            for k, before in places:
                leaf = leaves[k]
                if any(owner != before and _share(leaf, other) for other, owner in apart):
                    leaves[k] = leaf.copy()
                    copied = True
                elif all(other is not leaf for other, _ in apart):
                    apart.append((leaf, before))
        return structure.unflatten(leaves) if copied else result

    def _show(self, leaves: list[Any]) -> bool:
        """Put views in the place of arrays that the plan holds; whether there is any."""
        views: dict[int, tuple[Any, int]] = {}
        for k, first, owner in self.shown:
            if leaves[k].flags.writeable:
                continue
            if first not in views:
                view = leaves[k].view()
                if any(other != owner and _share(view, y) for y, other in views.values()):
                    view = _copied(view)
                views[first] = view, owner
            leaves[k] = views[first][0]
        return bool(views)


def _share(a: Any, b: Any) -> bool:
    try:
        return np.shares_memory(a, b, max_work=1000)  # type: ignore[arg-type]  # stubs of NumPy know -1 and 0 only
    except np.exceptions.TooHardError:
        return True
