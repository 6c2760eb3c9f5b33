"""Read an argument of a rule, and learn dtypes from NumPy itself.

Shapes follow from short laws, which the rules state. Dtypes follow from NumPy's promotion tables, which differ between
releases and between functions. So a rule does not repeat them: it runs the function once on arrays of one element
(`probe`) and reads the dtype of the result. Answers are kept, so a graph of a million additions asks once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..declare.dims import Dim, Extent
from ..declare.rebuild import deeper
from ..declare.spec import Optional, Spec, Variadic

DType = np.dtype[Any]
Sizes = tuple[Extent, ...]
Shape = Sizes | None

BOOL: DType = np.dtype(np.bool_)
INTP: DType = np.dtype(np.intp)
FLOAT: DType = np.dtype(np.float64)
OBJECT: DType = np.dtype(object)

UNKNOWN = Spec()


class Operand(NamedTuple):
    """Hold the dtype and shape of one argument; ``weak`` is int, float or complex for a Python number."""

    dtype: DType | None
    shape: Shape
    weak: type | None = None

    @property
    def ndim(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def spec(self) -> Spec:
        return Spec(self.dtype, self.shape)

    @property
    def kind(self) -> str:
        """Return the dtype's kind, or the empty string if the dtype is not known."""
        return "" if self.dtype is None else self.dtype.kind


class Sample:
    """Stand for an array of ones in the arguments of a probe."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: DType | None, shape: tuple[int, ...]) -> None:
        self.dtype, self.shape = dtype, shape

    def __eq__(self, other: object) -> bool:
        return type(other) is Sample and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))


class Number:
    """Stand for a Python number in the key of a probe, where the number 1 would equal 1.0."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return type(other) is Number and self.kind is other.kind

    def __hash__(self) -> int:
        return hash(self.kind)


def extents(shape: Any) -> Shape:
    """Return a spec's shape as extents: unknown rank if it has a variadic part, unknown size where one is late."""
    if shape is None:
        return None
    result: list[Extent] = []
    for size in shape:
        if size is None or isinstance(size, (int, Dim)):
            result.append(size)
        elif size is Ellipsis or isinstance(size, (Variadic, Optional)):
            return None
        else:
            result.append(None)
    return tuple(result)


def holds_spec(x: Any, depth: int = 0) -> bool:
    """Return whether a Spec or a Dim lies anywhere inside nested lists and tuples."""
    if isinstance(x, (list, tuple)):
        depth = deeper(depth)
        return any(holds_spec(item, depth) for item in x)
    return isinstance(x, (Spec, Dim))


def operand(x: Any) -> Operand:
    """Return what is known of one argument: a Spec, an array, a Python number, or anything NumPy can convert."""
    if isinstance(x, Spec):
        dtype = x.dtype if isinstance(x.dtype, np.dtype) else None
        return Operand(dtype, extents(x.shape))
    if isinstance(x, (np.ndarray, np.generic)):
        return Operand(x.dtype, x.shape)
    if isinstance(x, Dim):
        return Operand(INTP, (), int)  # a number by the time of the call
    if type(x) in (int, float, complex):
        return Operand(np.asarray(x).dtype, (), type(x))
    if isinstance(x, (list, tuple)) and holds_spec(x):
        return stacked(x)
    array = np.asarray(x)
    return Operand(array.dtype, array.shape)


def stacked(items: Any) -> Operand:
    """Return a list with Specs in it, as NumPy would convert it: one more axis in front of what its items have."""
    parts = [operand(item) for item in items]
    shape: tuple[Extent, ...] = (len(parts),)
    for part in parts:
        if part.shape is None:
            return Operand(None, None)
    first = parts[0].shape
    assert first is not None
    inner: list[Extent] = list(first)
    for part in parts[1:]:
        assert part.shape is not None
        if len(part.shape) != len(inner):
            return Operand(None, None)
        inner = [a if a is not None else b for a, b in zip(inner, part.shape, strict=True)]
    return Operand(promote(*parts), shape + tuple(inner))


def operands(*args: Any) -> list[Operand]:
    return [operand(arg) for arg in args]


def promote(*parts: Operand) -> DType | None:
    """Return the common dtype, Python numbers being weak; None if one is not known."""
    known: list[Any] = []
    for part in parts:
        if part.dtype is None:
            return None
        known.append(part.weak(1) if part.weak is not None else part.dtype)
    return np.result_type(*known)


def one(x: Any, ndim: int = 1) -> Any:
    """Return the stand-in for an argument in a probe: one element of its dtype, or a Python number of its type."""
    part = x if isinstance(x, Operand) else operand(x)
    if part.weak is not None:
        return Number(part.weak)
    return Sample(part.dtype, (1,) * ndim)


def probe(func: Callable[..., Any], *args: Any, **kwargs: Any) -> DType | None:
    """Return the dtype that ``func`` returns for arguments with Samples for arrays; None if that of a Sample is
    unknown.
    """
    return probe_all(func, *args, **kwargs)[0]


def probe_all(func: Callable[..., Any], *args: Any, count: int = 1, **kwargs: Any) -> tuple[DType | None, ...]:
    """Return the dtypes of a function of ``count`` arrays, as `probe` of one."""
    items = tuple(kwargs.items())
    try:
        hash((args, items))
    except TypeError:
        return _probe.__wrapped__(func, args, items, count)
    return _probe(func, args, items, count)


@lru_cache(maxsize=8192)
def _probe(
    func: Callable[..., Any], args: tuple[Any, ...], items: tuple[tuple[str, Any], ...], count: int
) -> tuple[DType | None, ...]:
    dtypes = [leaf.dtype for leaf in _leaves((args, tuple(value for _, value in items))) if isinstance(leaf, Sample)]
    if any(dtype is None for dtype in dtypes):  # not `None in dtypes`: NumPy takes None for float64
        return (None,) * count
    kinds = {dtype.kind for dtype in dtypes if dtype is not None}
    try:
        return _run(func, args, dict(items), count, "O" in kinds)
    except Exception:
        # Elements of object and record arrays may support what the ones of the sample do not.
        if kinds & {"O", "V"}:
            return (None,) * count
        raise


def _run(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], count: int, objects: bool
) -> tuple[DType | None, ...]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = func(*_arrays(args), **{key: _arrays(value) for key, value in kwargs.items()})
    if count == 1:
        result = (result,)
    # A bare object has been taken out of an array of them.
    return tuple(OBJECT if objects and not isinstance(part, np.ndarray) else np.asarray(part).dtype for part in result)


def _leaves(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [leaf for item in x for leaf in _leaves(item)]
    return [x]


def _arrays(x: Any) -> Any:
    if isinstance(x, Sample):
        try:
            return np.ones(x.shape, x.dtype)
        except (TypeError, ValueError):
            return np.zeros(x.shape, x.dtype)  # times of no unit, records of text: ones do not convert
    if isinstance(x, Number):
        return x.kind(1)
    if isinstance(x, (tuple, list)):
        return type(x)(_arrays(item) for item in x)
    return x
