"""Record calls of opaque Python functions as nodes, for other libraries under ``pyop.compile(f, fallback=True)``.

The first call teaches what such a function returns (`pyop.tracing.foreign`): the arrays, their containers, dtypes and
shapes. A run that finds anything else raises `Differs`, and the compiled function runs its original. The function gets
copies, laid out as the arrays are. It may do anything with them but write into them, or return memory that is held
elsewhere too. The results of the call that was learnt from are those of the first run, so that the number of calls is
the same as without a plan.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any

import numpy as np

from .._core import PyopError
from .._tree import flatten
from ..declare.spec import Spec

__all__ = ["Callback", "Differs", "Learnt", "OpaqueCall", "copy_of", "rebuilt"]

_NUMBERS = (float, int, complex)
_STATICS = (bool, str, bytes, type(None))
_KINDS = "biufc"
_INT64 = range(-(1 << 63), 1 << 63)


class Differs(PyopError):
    """Report that a call returned, or did, something else than the one that was learnt from."""


class Callback:
    """Rebuild an argument function that holds symbolic arrays, around the arrays of a run."""

    __slots__ = ("function", "held")

    def __init__(self, function: FunctionType, held: int) -> None:
        self.function = function
        self.held = held  # how many objects it holds, which come before it among the leaves

    def around(self, held: Sequence[Any]) -> FunctionType:
        """Return the function with other objects in its closure and for its defaults."""
        fn = self.function
        n, m = len(fn.__closure__ or ()), len(fn.__defaults__ or ())
        cells = tuple(map(CellType, held[:n]))
        made = FunctionType(fn.__code__, fn.__globals__, fn.__name__, tuple(held[n : n + m]) or None, cells or None)
        made.__kwdefaults__ = dict(zip(fn.__kwdefaults__ or (), held[n + m :], strict=True)) or None
        return made


def copy_of(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy with the same strides.

    >>> import numpy as np
    >>> from pyop.graph.opaque import copy_of
    >>> copy_of(np.arange(6.0)[::-2]).strides
    (-16,)
    """
    if a.flags.forc:
        return a.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(a)
    made: np.ndarray[Any, Any] = np.ndarray(
        a.shape, a.dtype, np.empty(high - low, np.uint8), a.__array_interface__["data"][0] - low, a.strides
    )
    made[...] = a
    return made


def as_given(kind: Any, array: Any) -> Any:
    """Return the argument for an array of the plan.

    It is a copy, a scalar of NumPy (`kind` is True), or a number of this Python type.
    """
    if kind is None:
        return copy_of(array)
    scalar = np.asarray(array)[()]
    return scalar if kind is True else kind(scalar.item())


class Learnt:
    """Hold what one call has returned: its containers and a description of its leaves."""

    __slots__ = ("leaves", "results", "tree", "why")

    def __init__(self, result: Any, given: Sequence[Any], unchanged: Sequence[Any]) -> None:
        self.why = ""  # it cannot be a node
        self.results: list[Any] = []  # the arrays
        self.leaves: list[tuple[Any, ...]] = []
        arrays = [x for x in given if type(x) is np.ndarray]
        for x, before in zip(given, unchanged, strict=True):
            if type(x) is np.ndarray and x.tobytes() != before.tobytes():
                self.why = "writes into its argument"
        leaves, self.tree = flatten(_opened(result))
        # References to a result that nobody else has: the lists here, the loop's variable, the tree that it came in.
        for k in range(len(leaves)):
            self.leaves.append(self._leaf(leaves, k, given, arrays))
        for k, a in enumerate(self.results):
            if type(a) is np.ndarray and any(np.may_share_memory(a, b) for b in self.results[:k]):
                self.why = "returns arrays that share memory"

    def _leaf(self, found: list[Any], k: int, given: Sequence[Any], arrays: list[Any]) -> tuple[Any, ...]:
        x = found[k]
        kind = type(x)
        if kind is np.ndarray:
            for index, argument in enumerate(given):
                if x is argument:
                    return "argument", index
            if any(np.may_share_memory(x, a) for a in arrays):
                self.why = "returns a view of its argument"
            if x.dtype.kind not in _KINDS or not x.dtype.isnative:
                self.why = f"returns an array of {x.dtype}"
            if _is_held(x):
                x = copy_of(x)
                self.results.append(x)
                return "held", x.dtype, x.shape
            self.results.append(x)
            return "array", x.dtype, x.shape
        if kind in _NUMBERS:
            if kind is int and x not in _INT64:
                self.why = "returns an int of more than 64 bits"
                return "static", x
            self.results.append(np.array(x))
            return "number", kind
        if isinstance(x, np.generic) and x.dtype.kind in _KINDS:
            self.results.append(np.array(x))
            return "scalar", x.dtype
        if kind not in _STATICS and kind is not _Bunch:
            self.why = f"returns a {kind.__module__}.{kind.__qualname__}"
        return "static", x

    def same(self, other: Learnt, sized: bool) -> bool:
        """Return whether another call has returned the same kinds of results, of the same sizes if `sized`."""
        if other.why or self.tree != other.tree:
            return False
        if sized:
            return self.leaves == other.leaves
        return list(map(_without_sizes, self.leaves)) == list(map(_without_sizes, other.leaves))

    def specs(self, sized: bool) -> list[Spec]:
        """Return the specs of the arrays."""
        return [Spec(a.dtype, a.shape if sized else (None,) * a.ndim) for a in self.results]

    @property
    def scalar(self) -> bool | None:
        """Return whether results of no dimension are scalars, for the node; None if only some are."""
        kinds = {leaf[0] in ("scalar", "number") for leaf in self.leaves if leaf[0] in ("scalar", "number")}
        kinds |= {False for leaf in self.leaves if leaf[0] in ("array", "held") and not leaf[2]}
        return None if len(kinds) > 1 else True in kinds


def _without_sizes(leaf: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*leaf[:2], len(leaf[2])) if len(leaf) == 3 else leaf


def _opened(x: Any) -> Any:
    """Return a result with names (``OptimizeResult``) as its class and its items, else the object."""
    if isinstance(x, dict) and type(x) is not dict and type(x).__module__.startswith("scipy."):
        return _Bunch(type(x)), dict(x)
    return x


class _Bunch:
    """Hold the class of a result with names, before its items."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return type(other) is _Bunch and other.kind is self.kind

    def __hash__(self) -> int:
        return hash(self.kind)


def _is_held(x: np.ndarray[Any, Any]) -> bool:
    """Return whether somebody else holds the memory of a result, which is then a view."""
    base = x.base
    return base is not None and sys.getrefcount(base) > 3


class OpaqueCall:
    """Call the function of an opaque node with the arrays of a run in place of those of the first call."""

    _pyop_opaque = True

    def __init__(
        self, fn: Any, line: str, fill: Callable[[Sequence[Any]], Any], kinds: tuple[Any, ...], sized: bool, tell: Any
    ) -> None:
        self.fn = fn
        self.line = line
        self._fill = fill  # from what it is given for the arrays to (args, kwargs)
        self._kinds = kinds
        self._sized = sized  # its results have the sizes of the first call
        self._tell = tell  # says that the function itself runs
        self._first: tuple[Sequence[Any], Learnt] | None = None
        self.learnt: Learnt | None = None

    @property
    def __name__(self) -> str:
        return str(getattr(self.fn, "__name__", None) or type(self.fn).__name__)

    def __repr__(self) -> str:
        return f"OpaqueCall({self.fn!r})"

    def _call(self, arrays: Sequence[Any]) -> Learnt:
        given = [as_given(kind, array) for kind, array in zip(self._kinds, arrays, strict=True)]
        args, kwargs = self._fill(given)
        result = self.fn(*args, **kwargs)
        del args, kwargs
        return Learnt(result, given, arrays)

    def learn(self, arrays: Sequence[Any], earlier: OpaqueCall | None) -> Learnt:
        """Call it with the arrays of the call that is traced, if an earlier trace of that has not."""
        first = None if earlier is None or earlier.fn != self.fn else earlier._first
        if first is not None and len(arrays) == len(first[0]) and all(map(_same_bits, first[0], arrays)):
            self._first, self.learnt = first, first[1]
            return first[1]
        self.learnt = self._call(arrays)
        self._first = [copy_of(np.asarray(a)) for a in arrays], self.learnt
        return self.learnt

    def __call__(self, *arrays: Any) -> Any:
        first, self._first = self._first, None
        assert self.learnt is not None
        if first is not None and all(map(_same_bits, first[0], arrays)):
            first_results = first[1]
        else:
            first_results = self._call(arrays)
            if not self.learnt.same(first_results, self._sized):
                raise self._differs(first_results)
        results, first_results.results = first_results.results, []
        return results[0] if len(results) == 1 else tuple(results)

    def _differs(self, found: Learnt) -> Differs:
        did = found.why or "returns results of another kind, dtype or shape"
        text = (
            f"{self.__name__!r}, called at {self.line}, {did} than in the call that was traced"
            if not found.why
            else f"{self.__name__!r}, called at {self.line}, {did}, which it did not in the call that was traced"
        )
        self._tell(f"{text}: here the function itself runs")
        return Differs(f"{text}: call the compiled function, which then runs the original, instead of its plan")


def _same_bits(a: Any, b: Any) -> bool:
    b = np.asarray(b)
    alike = a.dtype == b.dtype and a.strides == b.strides and a.shape == b.shape
    return bool(alike and a.tobytes() == b.tobytes())


def rebuilt(learnt: Learnt, handles: Sequence[Any], given: Sequence[Any]) -> Any:
    """Return the result with symbolic arrays in it: `handles` are those of the node, `given` the arguments."""
    rest = iter(handles)
    leaves = [
        given[leaf[1]] if leaf[0] == "argument" else leaf[1] if leaf[0] == "static" else next(rest)
        for leaf in learnt.leaves
    ]
    made = learnt.tree.unflatten(leaves)
    if type(made) is tuple and len(made) == 2 and type(made[0]) is _Bunch:
        return made[0].kind(made[1])
    return made
