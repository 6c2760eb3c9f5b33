"""Make Values of the arrays that a function makes of no symbolic array: what stands for NumPy's functions in twins.

What such an array holds is known, so it is a constant of the graph, in memory of the function's own: it can be written,
by which it becomes what the function writes. `literals` has ``np.array`` and its kin.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from .._core import Value
from ..declare.dims import Dim
from ..declare.rebuild import holds, replaced, walk
from ..declare.spec import Spec
from ..gradients.fresh import fresh
from ..graph.array_protocol import ANSWERED
from ..graph.counter import has_counters, is_counter, size_of
from ..graph.graph import Graph
from ..graph.lists import array_of, holds_values, with_arrays
from ..graph.sizes import apply
from ..graph.symbolic_number import counted, is_number
from .twins import OF_KINDS, STAND_INS, StandIn, graph_under_twins, stand_in

__all__ = ["length", "made_of", "made_value", "uniform"]

_KINDS = "biufc"
_CALLABLE = (FunctionType, BuiltinFunctionType, type)


def made_value(graph: Graph, array: Any) -> Any:
    """Return a Value for an array that nobody else has; anything else as it is.

    >>> import numpy as np, pyop
    >>> from pyop.tracing.made import made_value
    >>> graph = pyop.Graph()
    >>> y = made_value(graph, np.zeros(2))
    >>> y[0] = 1.0
    >>> graph.run(y)
    array([1., 0.])
    """
    if type(array) is not np.ndarray or array.dtype.kind not in _KINDS:
        return array
    return graph._add_constant(array, "array")


def _is_uniform(original: Any, array: Any, args: Any, kwargs: Any) -> bool:
    """Return whether all its elements are the same, in C order."""
    fill = kwargs.get("fill_value", args[1] if len(args) > 1 else 0)
    known = original in _EMPTY or (original in _FULL and np.ndim(fill) == 0 and not isinstance(fill, Dim))
    return known and bool(array.flags.c_contiguous) and array.dtype.kind in _KINDS


def uniform(graph: Graph, array: Any, shape: Any) -> Any:
    """Return a Value for an array all of whose elements are the same, in C order; made when the graph runs."""
    item = graph._add_constant(np.array(array.flat[0]) if array.size else np.zeros((), array.dtype), "element")
    return apply(fresh, (item, shape), {}, Spec(array.dtype, shape), name="array", scalar=False)


def made_of(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with Values for the arrays that it makes."""

    def make(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = with_arrays(original, args, kwargs)
        graph = graph_under_twins()
        if graph is None:
            return original(*args, **kwargs)
        if original in _OF_SIZES and has_counters(args, kwargs):
            args, kwargs = replaced((args, kwargs), size_of)
        if original in _OF_SIZES and holds((args, kwargs), Dim) and not holds((args, kwargs), Value):
            return _made_of_sizes(graph, original, args, kwargs)
        made = original(*args, **kwargs)
        kind = type(made)
        if kind is Value:
            return made
        if kind is np.ndarray:
            if not _is_new(made, args, kwargs):
                return made
            if original is np.broadcast_to:  # a read-only view of an array that is made
                return original(made_value(graph, np.array(args[0] if args else kwargs["array"])), made.shape)
            if made.nbytes > _LARGE and _is_uniform(original, made, args, kwargs):
                return uniform(graph, made, made.shape)
            return made_value(graph, made)
        if issubclass(kind, (tuple, list)) and _are_new(made, args, kwargs):
            items = [made_value(graph, x) for x in made]
            return kind(items) if kind in (tuple, list) else kind(*items)
        return made

    return make


def _are_new(made: Any, args: Any, kwargs: Any) -> bool:
    """Return whether there are arrays among several results, all of them memory of their own."""
    found = [x for x in made if type(x) is np.ndarray]
    return bool(found) and all(_is_new(x, args, kwargs, [y for y in found if y is not x]) for x in found)


def _is_new(array: Any, args: Any, kwargs: Any, others: Any = ()) -> bool:
    """Return whether it is memory that NumPy has made in this call, and nobody else has."""
    base = array if array.base is None else array.base
    if type(base) is not np.ndarray or not base.flags.owndata:
        return False
    given = [*walk((args, kwargs, others))]
    if any(isinstance(x, _CALLABLE) and not isinstance(x, type) for x in given):
        return False  # it may have returned whatever it holds
    return not any(isinstance(x, np.ndarray) and np.may_share_memory(x, array) for x in given)


# --- of symbolic sizes

_RANGES = (np.arange, np.eye, np.identity, np.linspace, np.tri, np.logspace, np.geomspace, np.indices)
_WINDOWS = (np.hanning, np.hamming, np.bartlett, np.blackman)
_OF_SIZES: frozenset[Any] = frozenset((np.zeros, np.ones, np.empty, np.full, *_RANGES, *_WINDOWS))
_LIKE = frozenset((np.zeros_like, np.ones_like, np.full_like, np.empty_like))
_FULL = frozenset((np.full, np.full_like))
_EMPTY = frozenset((np.zeros, np.ones, np.empty)) | (_LIKE - _FULL)
_LARGE = 1 << 16  # bytes: a constant costs as much to copy as the array to fill, but is there all the time
_TRIED = (7, 11, 2, 1, 0)


def _made_of_sizes(graph: Graph, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Add a node that makes the array: its sizes are known when the graph runs."""
    dims = {leaf for leaf in walk((args, kwargs)) if isinstance(leaf, Dim)}
    names = sorted({name for dim in dims for name in dim.names})
    found = []
    for k in range(len(_TRIED)):
        env = {name: _TRIED[k] + 2 * i for i, name in enumerate(names)}
        tried = replaced((args, kwargs), functools.partial(_evaluated, env))
        try:
            found.append((env, original(*tried[0], **tried[1])))
        except ValueError:  # of a size that is negative here
            if k < 2:
                raise
    sample = found[0][1]
    if type(sample) is not np.ndarray or len({made.ndim for _, made in found}) > 1:
        return original(*args, **kwargs)  # its error
    candidates = [*dims, *map(Dim, names)]
    if _is_uniform(original, sample, args, kwargs) and original not in _LIKE:
        sizes = args[0] if args else kwargs["shape"]
        return uniform(graph, sample, tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,))
    shape = tuple(_size([(env, made.shape[k]) for env, made in found], candidates) for k in range(sample.ndim))
    return apply(original, args, kwargs, Spec(sample.dtype, shape), name=original.__name__, scalar=False, graph=graph)


def _evaluated(env: dict[str, int], x: Any) -> Any:
    return x.evaluate(env) if isinstance(x, Dim) else x


def _size(seen: list[tuple[dict[str, int], int]], candidates: list[Dim]) -> Any:
    """Return the size that was seen to be so for these numbers; None if no expression at hand gives it."""
    if len({size for _, size in seen}) == 1:
        return seen[0][1]
    for dim in candidates:
        if all(dim.evaluate(env) == size for env, size in seen):
            return dim
    return None


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **options: Any) -> Any:
    """Return ``np.full`` of a Value, or of a list of such."""
    if isinstance(fill_value, (list, tuple)) and holds_values(fill_value):
        fill_value = array_of(fill_value)
    fill_value = _number_of(fill_value)
    if graph_under_twins() is None or type(fill_value) is not Value or fill_value.dtype is None or options:
        return made_of(np.full)(shape, fill_value, dtype, order, **options)
    made = made_of(np.zeros)(shape, fill_value.dtype if dtype is None else dtype, order)
    made[...] = fill_value
    return made


def _full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``np.full_like`` of a number that is not known."""
    number = _number_of(fill_value)
    if graph_under_twins() is None or number is fill_value:
        return made_of(np.full_like)(a, fill_value, *args, **kwargs)
    made = made_of(np.zeros_like)(a, *args, **kwargs)
    made[...] = number
    return made


def _number_of(x: Any) -> Any:
    """Return a number of Python's that the plan knows as a Value; anything else as it is."""
    if is_counter(x):
        x = x.number()
    if is_number(x):
        return x._value
    graph: Any = graph_under_twins()
    return counted(x, graph) if type(x) is Dim and graph is not None else x


def length(x: Any) -> Any:
    """Return ``len(x)``, which may be a symbolic size."""
    if type(x) is Value and graph_under_twins() is not None and x.shape and isinstance(x.shape[0], Dim):
        return x.shape[0]
    return len(x)


def _functions() -> Iterator[Any]:
    for module in (np, np.linalg, np.fft):
        for name in dir(module):
            found = vars(module).get(name)
            if not name.startswith("_") and isinstance(
                found, (FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum))
            ):
                yield found


class _Ufunc(StandIn):
    """Stand for a ufunc, whose methods have stand-ins, too."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        return StandIn(found, made_of(found)) if name in _METHODS else found


_METHODS = frozenset(("reduce", "accumulate", "outer", "reduceat", "at"))
_OF_DTYPES = (np.result_type, np.can_cast)  # which are lists too


def _asked(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of dtypes and shapes alone with arrays in the place of lists."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = with_arrays(original, args, kwargs)
        return original(*args, **kwargs)

    return ask


for _original in _functions():
    if _original in _OF_DTYPES:
        continue
    _call = (_asked if _original in ANSWERED else made_of)(_original)
    if isinstance(_original, np.ufunc):
        STAND_INS[id(_original)] = _original, _Ufunc(_original, _call)
    else:
        stand_in(_original, _call)
OF_KINDS[np.ufunc] = lambda x: _Ufunc(x, made_of(x))
stand_in(np.full, _full)
stand_in(np.full_like, _full_like)
stand_in(len, length)
