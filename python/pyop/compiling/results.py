"""Make the results of a compiled function: the arrays of its plan, and what the function put beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import Plan, ResultForms, Value, scalar_of
from .._tree import TreeDef, flatten
from ..declare.dims import Dim
from ..declare.rebuild import walk
from ..declare.spec import Spec
from ..graph.counter import Counter
from ..graph.deciding import RunItself
from ..graph.graph import Graph
from ..graph.sizes import apply
from ..graph.symbolic_number import Number, is_number
from ..graph.unknown import Unknown
from ..refusals import refusal
from .arguments import NUMBERS, STATIC_TYPES

if TYPE_CHECKING:
    from ..graph.merged import Owners

__all__ = ["Listed", "declare_outputs", "finishing"]

# The leaves of a result, each with its kind (csrc/plan/result_forms.h), and its structure.
Listed = tuple[list[tuple[str, Any]], TreeDef]
_TAKEN = "asn"
_NOT_HELD = ("-", 0, 0)
# What C++ knows without a list (csrc/plan/quick/number_form.h), where the result is one of them.
_ALONE: dict[str, Any] = {"s": scalar_of, "n": np.ndarray.item}

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
_SYMBOLIC = frozenset((Value, Number, Counter, Dim, Unknown))
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
    """Return whether `holds` is true of an array, or of one that it is a view of."""
    while isinstance(x, np.ndarray):
        if holds(x):
            return True
        x = x.base
    return False


def _shows(a: Any, b: Any) -> bool:
    return type(b) is np.ndarray and np.may_share_memory(a, b) and _share(a, b)


def _share(a: Any, b: Any) -> bool:
    try:
        return np.shares_memory(a, b, max_work=1000)  # type: ignore[arg-type]  # stubs of NumPy know -1 and 0 only
    except np.exceptions.TooHardError:
        return True


def _second(array: Any, number: int) -> int:
    return number


def declare_outputs(
    graph: Graph, result: Any, name: str, holds: Callable[[Any], bool], scalars: bool = False
) -> Listed | None:
    """Declare what a traced function returned; list the leaves of it, or None if these are the plan's arrays.

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
            return [("s", None)], structure
    listed: list[tuple[str, Any]] = []
    values = []
    for k, leaf in enumerate(leaves):
        if is_number(leaf):
            listed.append(("n", None))
            values.append(leaf._value)
        elif type(leaf) is slice and not _SYMBOLIC.isdisjoint(map(type, walk(leaf))):
            raise refusal(f"{name} returned a slice of numbers that it computes: return the numbers")
        elif isinstance(leaf, Dim):  # a named size is a number when the plan runs
            listed.append(("n", None))
            values.append(apply(_second, (graph.inputs[0], leaf), {}, Spec(np.dtype(np.int64), ()), name="size"))
        elif getattr(type(leaf), "_pyop_list", False):  # that a loop holds as an array (pyop.loops.growing)
            form, arrays = leaf.listed()
            listed.append(("l", (len(arrays), form)))
            values += arrays
        elif type(leaf) is Unknown:  # so is how many elements a mask has picked
            listed.append(("n", None))
            values.append(leaf.computed())
        elif isinstance(leaf, Value) and leaf.node.kind == "constant":
            first = _first(leaf, leaves)
            if any(isinstance(x, Value) and x is not leaf and leaf._shares_memory(x) for x in leaves):
                raise refusal(f"{name} {_ONE_MEMORY}")
            known = graph.run(leaf)
            if leaf._is_scalar:
                listed.append(("o", scalar_of(known)) if scalars else ("c", known))
            else:
                listed.append(("c", known) if first == k else ("r", first))
        elif isinstance(leaf, Value):
            listed.append(("s" if scalars and leaf._is_scalar else "a", None))
            values.append(leaf)
        elif type(leaf) is np.ndarray and leaf.dtype.hasobject and _holds_symbolic(leaf):
            raise refusal(f"{name} {_AMONG_OBJECTS}")
        elif type(leaf) is np.ndarray and (first := _first(leaf, leaves)) < k:
            listed.append(("r", first))
        elif type(leaf) is np.ndarray and _any_base(leaf, holds):
            listed.append(("o" if holds(leaf) else "w", leaf))
        elif type(leaf) is np.ndarray and any(_shows(leaf, other) for other in leaves if other is not leaf):
            raise refusal(f"{name} {_ONE_MEMORY}")
        elif type(leaf) is np.ndarray:  # computed of nothing: the same every time, and the caller's own
            listed.append(("c" if leaf.flags.writeable else "f", _copied(leaf)))
        elif (isinstance(leaf, str) and re.search(_STAND_INS, leaf)) or (
            isinstance(leaf, type) and leaf in (Value, Number, Unknown)
        ):
            raise TypeError(
                f"{name} returned {leaf!r:.80}, which shows what it was traced with, where NumPy has its arguments: "
                "return the array, and make the text of the result"
            )
        elif isinstance(leaf, _ATOMS):
            listed.append(("o", leaf))
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
    graph.output(values[0] if structure.is_leaf and listed == [("n", None)] else tuple(values))
    return listed, structure


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
    """Call `first` with a result, and then `second` with what comes of it, if there is a second."""

    __slots__ = ("first", "second")

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def __call__(self, result: Any, out: Any = None) -> Any:
        result = self.first(result, out)
        if self.second is None or (self.second is scalar_of and out is not None):  # an array of the caller's stays one
            return result
        return self.second(result, out) if isinstance(self.second, ResultForms) else self.second(result)


def finishing(graph: Graph, plan: Plan, listed: Listed | None, warns: Callable[..., Any] | None) -> Any:
    """Return what makes the function's result of the plan's, or None if it is that; `warns` is called before."""
    finish = _forms(graph, plan, listed)
    return finish if warns is None else Both(warns, finish)


def _forms(graph: Graph, plan: Plan, listed: Listed | None) -> Any:
    owners = plan._owners() if plan._merged_or_folded() else None
    held = {} if owners is None else _held(owners, graph._read_only_outputs)
    if listed is None and not held:
        return None
    places, given = graph._output_leaves()
    leaves, structure = listed or ([("a", None)] * len(places), given)
    if structure.is_leaf and leaves[0][0] in _ALONE:
        return _ALONE[leaves[0][0]]
    rows: list[tuple[str, str, int, int, Any]] = []
    taken = 0
    for kind, value in leaves:
        if kind in _TAKEN:
            rows.append((kind, *held.get(taken, _NOT_HELD), None))
            taken += 1
        elif kind == "l":  # so many arrays, whose elements it has
            rows.append((kind, "-", value[0], 0, value[1]))
            taken += value[0]
        else:
            rows.append((kind, "-", value, 0, None) if kind == "r" else (kind, *_NOT_HELD, value))
    return ResultForms(tuple(rows), structure, given if listed is None else None)


def _held(owners: Owners, read_only: dict[int, int]) -> dict[int, tuple[str, int, int]]:
    """Return which results the plan may hold, as what depends on no argument was computed when it was made: of each how
    a call gets it, the first one that is the same array, and whose memory it is as the function was written.

    What nobody can write into is shown, and its memory stays the plan's. What was computed in a call, and is one array
    or shows one only since equal nodes are one, the plan parts itself (csrc/plan/call.cpp: keep_apart).
    """
    found: dict[int, tuple[str, int, int]] = {}
    for k, owner in enumerate(owners):
        assert owner is not None  # only a node that is fetched has none
        if owner[1] is None:
            found[k] = ("v", read_only[k], owner[0]) if k in read_only else ("c", k, owner[0])
    return found
