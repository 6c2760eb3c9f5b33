"""Turn lists of symbolic numbers into arrays: ``np.mean([a, b])``, ``np.linalg.solve([[a, b], [c, d]], y)``.

NumPy makes an array of such a list without asking what lies in it. But NumPy's protocol tells which arguments a
function takes for arrays. So the function is called with probes in place of symbolic items, and with lists that take
part in the protocol. Those that it names become arrays (`array_of`) before the call is made; all others (axes, shapes,
sequences of arrays) stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import Any

import numpy as np

from .._core import Tensor, Value
from ..declare.dims import Dim, same
from ..declare.rebuild import walk
from ..refusals import refusal
from .forms import found

__all__ = ["array_of", "holds_values", "is_growing", "is_symbolic", "with_arrays", "with_arrays_of_numbers"]

_MOST_AXES = 64


def array_of(items: Any, dtype: Any = None) -> Any:
    """Return ``np.array(items, dtype)`` of nested lists or tuples with symbols in them, of the dtype that NumPy finds.

    >>> import numpy as np, pyop
    >>> from pyop.graph.lists import array_of
    >>> with pyop.Graph() as g:
    ...     x = g.input("float32[2]")
    >>> str(array_of([[x[0], 1], [2, x[1]]]).spec)
    'float64[2,2]'
    """
    if is_growing(items):
        return items.array(dtype)
    leaves = [*_leaves(items, ())]
    for _, leaf in leaves:
        if type(leaf) is Value and (leaf.dtype is None or leaf.shape is None or None in leaf.shape):
            raise refusal(
                f"np.array([...]) at {Value._here()} is given {leaf.name!r}, whose dtype or shape is not known: "
                "declare them, or put the parts together with np.stack"
            )
    sizes = {n for _, x in leaves if type(x) is Value for n in x.shape or () if isinstance(n, Dim)}
    if sizes and len({len(at) for at, _ in leaves}) > 1:
        raise refusal(
            f"np.array([...]) at {Value._here()} is given arrays of symbolic sizes and others: declare numbers for "
            "them, or put the parts together with np.stack"
        )
    # NumPy itself says what comes of it, given arrays of the same dtypes and shapes.
    sample = np.array(_replaced(items, _sample), dtype=dtype)
    if sample.dtype.kind not in "biufc":
        raise refusal(
            f"np.array([...]) at {Value._here()} makes an array of the dtype {sample.dtype}, which cannot hold "
            "values known only when the graph runs: keep them in a list, or write np.stack([...]) for one of numbers"
        )
    if sizes and not all(_same_shape(leaves[0][1], leaf) for _, leaf in leaves[1:]):
        raise refusal(
            f"np.array([...]) at {Value._here()} is given arrays of different symbolic sizes: put them together with "
            "np.concatenate"
        )
    graph = next((x.graph for x in (x._value if _is_number(x) else x for _, x in leaves) if type(x) is Value), None)
    if graph is None or all(_promotes(leaf, sample.dtype) for _, leaf in leaves):
        return _stacked(items, sample.dtype)
    needed = [x for _, x in leaves if _is_number(x) and not x._fits(sample.dtype)]
    if needed:  # all of them at once, as each takes a trace
        needed[0]._needed_with(needed)
    whole = graph._add_constant(np.zeros_like(sample), "array")
    for at, leaf in leaves:
        whole[at] = leaf
    return whole


def _leaves(x: Any, at: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    if _is_list(x):
        if len(at) == _MOST_AXES:
            raise ValueError(
                f"np.array([...]) at {Value._here()} is given a list that is nested deeper than the {_MOST_AXES} axes "
                "that an array may have; does it contain itself?"
            )
        for k, item in enumerate(x):
            yield from _leaves(item, (*at, k))
    else:
        yield at, x


def _replaced(x: Any, by: Callable[[Any], Any]) -> Any:
    return [_replaced(item, by) for item in x] if _is_list(x) else by(x)


def _sample(x: Any) -> Any:
    if _is_number(x):
        return x._kind(1)
    if not is_symbolic(x):
        return x
    if x._is_scalar if type(x) is Value else x._scalar if type(x) is Tensor else isinstance(x, np.generic):
        return x.dtype.type(0)
    return np.zeros([2 if isinstance(n, Dim) else n for n in x.shape], x.dtype)


def _same_shape(a: Any, b: Any) -> bool:
    shapes: Any = [x.shape if type(x) is Value else np.shape(x) for x in (a, b)]
    return len(shapes[0]) == len(shapes[1]) and all(same(m, n) for m, n in zip(*shapes, strict=True))


def _promotes(x: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether converting to the dtype is the same as promotion, so that all spellings give the same."""
    if _is_number(x):
        return np.can_cast(x._value.dtype, dtype)
    if type(x) is not Value or x._is_scalar is False:
        return True
    have: Any = x.dtype
    return np.can_cast(have, dtype)


def _stacked(x: Any, dtype: np.dtype[Any]) -> Any:
    if _is_list(x):
        parts = [_stacked(item, dtype) for item in x]
        if any(map(is_symbolic, parts)):
            made = np.stack(parts)
            # np.array lays out by rows what np.stack lays out as its parts lie.
            return made if made.ndim is not None and made.ndim < 3 else made.copy()
        return np.array(parts, dtype)
    x = x._value if _is_number(x) else x
    if is_symbolic(x):
        return x if x.dtype == dtype else x.astype(dtype)
    return np.array(x, dtype)


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple))


def _is_number(x: Any) -> bool:
    return getattr(type(x), "_pyop_number", False) is True


def is_symbolic(x: Any) -> bool:
    """Return whether an object stands for an array or a number that NumPy cannot read from it."""
    kind = type(x)
    return kind is Value or kind is Tensor or _is_number(x) or getattr(kind, "_pyop_example", False) is True


def is_growing(x: Any) -> bool:
    """Return whether it stands for a list that a loop holds as an array (`pyop.loops.growing`)."""
    return getattr(type(x), "_pyop_list", False) is True


def holds_values(x: Any) -> bool:
    """Return whether nested lists or tuples hold what is symbolic; each is looked into once: a list may hold itself."""
    waiting, seen = [x], set()
    while waiting:
        part = waiting.pop()
        if is_growing(part):
            return True
        if not isinstance(part, (list, tuple)):
            if is_symbolic(part):
                return True
        elif id(part) not in seen:
            seen.add(id(part))
            waiting += part
    return False


# --- which lists are arrays

_DISPATCHED = type(np.sum)
# Functions that raise for a list, return one, or go by its depth.
_OTHERWISE = found(
    *("apply_over_axes", "array2string", "astype", "block", "common_type", "isfortran", "put_along_axis", "rollaxis"),
    *("take_along_axis", "trim_zeros", "unstack"),
)
_OPTIONS = frozenset(("axis", "axes", "dtype", "out", "signature"))  # of ufuncs; these are no arrays


def with_arrays(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call of NumPy with arrays in the place of lists that hold what is symbolic.

    >>> import numpy as np, pyop
    >>> from pyop.graph.lists import with_arrays
    >>> with pyop.Graph() as g:
    ...     x = g.input("float64[2]")
    ...     (y,), _ = with_arrays(np.mean, ([x[0], 1.0],), {})
    ...     (z, _), _ = with_arrays(np.reshape, (x, [x[0], -1]), {})
    >>> str(y.spec), z is x
    ('float64[2]', True)
    """
    of_ufunc = isinstance(original, np.ufunc) or isinstance(getattr(original, "__self__", None), np.ufunc)
    given = [x for name, x in kwargs.items() if not (of_ufunc and name in _OPTIONS)]
    if not any(_is_list(x) and holds_values(x) for x in (*args, *given)):
        return args, kwargs
    if of_ufunc:
        at = original.__name__ == "at"  # whose tuple of places is an index of several dimensions
        arrays = tuple([x if at and k == 1 and isinstance(x, tuple) else _array(x) for k, x in enumerate(args)])
        arrays = args if all(map(is_, arrays, args)) else arrays
        as_truths = {"where": bool}  # of what dtype they are in the list, NumPy does not ask
        return arrays, {name: x if name in _OPTIONS else _array(x, as_truths.get(name)) for name, x in kwargs.items()}
    if not isinstance(original, _DISPATCHED) or original in _OTHERWISE:
        return args, kwargs
    marks = _Marks()
    marked = [marks.of(x, k, 0) for k, x in enumerate(args)]
    named = {name: marks.of(x, name, 0) for name, x in kwargs.items()}
    try:
        original(*marked, **named)
    except _Asked as asked:
        kinds = asked.kinds
    except Exception:  # it takes none of them for an array
        return args, kwargs
    else:
        return args, kwargs
    return tuple([_arrays(x, kinds) for x in marked]), {name: _arrays(x, kinds) for name, x in named.items()}


def with_arrays_of_numbers(
    original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments as `with_arrays` if unknown Python numbers are among them: Values may stay in lists."""
    return with_arrays(original, args, kwargs) if any(map(_is_number, walk((args, kwargs)))) else (args, kwargs)


class _Asked(BaseException):
    """Report, from inside NumPy, that it asks which arguments take part in a call."""

    def __init__(self, kinds: frozenset[type]) -> None:
        super().__init__()
        self.kinds = kinds


class _Mark:
    """Mark a list as one of the arrays of a call."""

    __slots__ = ()
    original: Any

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise _Asked(frozenset(types))


class _Probe:
    """Stand for what is symbolic, and leave the answer to the lists."""

    __slots__ = ("original",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, original: Any) -> None:
        self.original = original

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return NotImplemented

    def __iter__(self) -> Iterator[Any]:
        return iter(())


_kinds: list[tuple[type, type]] = []
_MOST_KINDS = 60  # NumPy takes 64 in one call


class _Marks:
    """Mark the lists of one call by a class for each argument and depth, as the protocol passes only classes."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, int], int] = {}

    def of(self, x: Any, argument: Any, depth: int) -> Any:
        """Return what the function is called with to find out."""
        if is_symbolic(x):
            return _Probe(x)
        if not _is_list(x) or not holds_values(x):
            return x
        index = self._known.setdefault((argument, depth), min(len(self._known), _MOST_KINDS))
        while index >= len(_kinds):
            _kinds.append((type("_List", (_Mark, list), {}), type("_Tuple", (_Mark, tuple), {})))
        items = [] if is_growing(x) else [self.of(item, argument, depth + 1) for item in x]
        marked: Any = _kinds[index][isinstance(x, tuple)](items)
        marked.original = x
        return marked


def _arrays(x: Any, kinds: frozenset[type]) -> Any:
    """Return what the function is to be called with, now that the classes of its arrays are known."""
    if type(x) is _Probe:
        return x.original
    if not isinstance(x, _Mark):
        return x
    if type(x) in kinds:
        return _array(x.original)
    items = [_arrays(item, kinds) for item in x]  # type: ignore[attr-defined]
    return items if isinstance(x, list) else tuple(items)


def _array(x: Any, dtype: Any = None) -> Any:
    return array_of(x, dtype) if _is_list(x) and holds_values(x) else x
