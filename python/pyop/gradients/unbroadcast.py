"""Convert cotangents to the dtype and shape of their arrays, or of Values whose sizes may be unknown.

Where shapes are known the answer is a few NumPy calls, or nothing. Otherwise it is one call of a function that looks
when it runs; `primitive` makes such functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from .._core import Value, fill_up_call
from ..declare.dims import Extent
from ..declare.rebuild import walk
from ..declare.spec import Spec
from ..functions import rule as spec_rule
from .extents import Described, alike, extents_of, has_shape_of, same_shape
from .scalar import Scalar

__all__ = ["broadcast_like", "conj", "dtype_of", "fit_dtype", "is_complex", "may_stay", "number_of", "primitive"]
__all__ += ["protocol_of", "shape_of", "unbroadcast", "unbroadcast_loosely"]

F = TypeVar("F", bound=Callable[..., Any])
Shape = tuple[Extent, ...] | None
# Asked of the type: a Tensor or Value says of itself that it is what it stands for.
_NUMBERS = (int, float, complex)
_PLAIN = (*_NUMBERS, np.generic)


def primitive(infer: Callable[..., Any]) -> Callable[[F], F]:
    """Make a function of arrays take part in NumPy's protocol as NumPy's own functions do.

    `infer` tells the spec of the result, from the arguments with a Spec in place of each Value.
    """

    def make(function: F) -> F:
        @functools.wraps(function)
        def public(*args: Any, **kwargs: Any) -> Any:
            asked = protocol_of(args)
            return function(*args, **kwargs) if asked is None else asked[1](public, asked[:1], args, kwargs)

        spec_rule(public)(infer)
        return public  # type: ignore[return-value]

    return make


def protocol_of(arguments: Iterable[Any]) -> tuple[type, Any] | None:
    """Return the first type among arguments, and in lists of them, that has a say in functions, and its protocol."""
    for argument in arguments:
        for item in argument if type(argument) in (tuple, list) else (argument,):
            kind = type(item)
            if kind is not np.ndarray and not issubclass(kind, _PLAIN) and hasattr(kind, "__array_function__"):
                return kind, item.__array_function__
    return None


def shape_of(x: Any) -> Shape:
    """Return the shape of an array, a Value or a number; None if it is not known."""
    shape: Shape
    if hasattr(x, "shape"):
        shape = x.shape
    else:
        for _ in walk(x):  # raises where a list holds itself, of which NumPy would make arrays without end
            pass
        shape = np.shape(x)
    return shape


def dtype_of(x: Any) -> np.dtype[Any] | None:
    """Return the dtype of an array or Value; None if unknown, and for Python numbers, which have none of their own."""
    return getattr(x, "dtype", None)


def is_complex(x: Any) -> bool | None:
    """Return whether an array has complex elements; None if it is not known."""
    dtype = dtype_of(x)
    if dtype is not None:
        return dtype.kind == "c"
    return issubclass(type(x), complex) if issubclass(type(x), _NUMBERS) else None


def number_of(x: Any) -> Any:
    """Return the number an argument is, if it is one and known: a Python number, or a constant of the graph."""
    if issubclass(type(x), _NUMBERS):
        return x
    if isinstance(x, Value) and x.shape == () and x.node.kind == "constant":
        return x.graph.run(x).item()
    return None


def conj(x: Any) -> Any:
    """Return the complex conjugate; of real numbers these themselves."""
    return x if issubclass(type(x), float) or is_complex(x) is False else np.conjugate(x)


def fit_dtype(ct: Any, like: Any, ans: Any = None) -> Any:
    """Return a cotangent in the dtype of its argument: the real part of a complex one for a real argument."""
    if ct is None:
        return None
    target = dtype_of(like)
    if target is None:
        return np.real(ct) if issubclass(type(like), float) and is_complex(ct) else ct
    have = dtype_of(ct)
    if have is target or target.kind not in "fc":
        return ct
    if have is None:
        return ct if issubclass(type(ct), (int, float)) else _cast_like(ct, like)
    if have.kind == "c" and target.kind == "f":
        ct = np.real(ct)
    return ct if dtype_of(ct) == target else ct.astype(target)


def unbroadcast(ct: Any, like: Any, ans: Any = None) -> Any:
    """Return a cotangent in dtype and shape of an argument, `like`, which was broadcast to `ans`.

    The shape of `ct` broadcasts to that of `ans`, and is that of `ans` by default.
    """
    if ct is None:
        return None
    have, want = shape_of(ct), shape_of(like)
    full = have if ans is None else shape_of(ans)
    if not (have == want == full) or have is None or None in have:
        ct = _fit_shape(ct, have, like, want, ct if ans is None else ans, full)
    return fit_dtype(ct, like)


def unbroadcast_loosely(ct: Any, like: Any, ans: Any) -> Any:
    """Return a cotangent as `unbroadcast`, except that a smaller one may stay so if it broadcasts to its argument.

    That is allowed for an argument of the result's shape.
    """
    if ct is None:
        return None
    if may_stay(ct, like, ans):
        return fit_dtype(ct, like)
    return unbroadcast(ct.array() if isinstance(ct, Scalar) else ct, like, ans)


def may_stay(ct: Any, like: Any, ans: Any) -> bool:
    """Return whether an argument is as large as the result, so that a smaller cotangent shows by its shape.

    A smaller cotangent broadcasts to it.
    """
    want = shape_of(like)
    if want is None or want != shape_of(ans):
        return False
    if None not in want:
        return True
    described = extents_of(like)
    if not same_shape(described, extents_of(ans)):
        return False
    have = shape_of(ct)
    return have is not None and (None not in have or same_shape(extents_of(ct), described))


def _fit_shape(ct: Any, have: Shape, like: Any, want: Shape, ans: Any, full: Shape) -> Any:
    plan = None
    if have is not None and want is not None and full is not None:
        sizes = (have, want, full)
        if any(None in shape for shape in sizes):
            sizes = tuple(map(extents_of, (ct, like, ans)))  # type: ignore[assignment]
        plan = _plan(*sizes)
    if plan is None:
        return _fit_like(ct, ans, like)
    lead, kept, grows = plan
    if not lead and not kept:
        return broadcast_like(ct, like) if grows else ct
    if grows:
        ct = broadcast_like(ct, ans)
    if kept:
        ct = np.sum(ct, axis=kept, keepdims=True)
    return np.sum(ct, axis=tuple(range(lead))) if lead else ct


def _plan(
    have: tuple[Described, ...], want: tuple[Described, ...], full: tuple[Described, ...]
) -> tuple[int, tuple[int, ...], bool] | None:
    """Return how many leading axes to sum, which others, and whether to broadcast first; None if unknown."""
    lead = len(full) - len(want)
    missing = len(full) - len(have)
    if lead < 0 or missing < 0:
        return None
    kept = []
    grows = missing > 0
    for axis, size in enumerate(full):
        h = have[axis - missing] if axis >= missing else 1
        w = want[axis - lead] if axis >= lead else size
        if not alike(h, size):
            if h != 1:
                return None
            grows = True
        if axis >= lead and not alike(w, size):
            if w != 1:
                return None
            kept.append(axis)
    return lead, tuple(kept), grows


# --- functions that look when they run


def _spec_like(ct: Any, like: Any) -> Spec:
    dtype = dtype_of(ct) if isinstance(ct, Spec) else getattr(np.asarray(ct), "dtype", None)
    return Spec(
        dtype if isinstance(dtype, np.dtype) else None, like.shape if isinstance(like, Spec) else np.shape(like)
    )


@primitive(_spec_like)
def broadcast_like(x: Any, like: Any) -> Any:
    """Return `x` broadcast to the shape of `like`."""
    return np.broadcast_to(x, np.shape(like))


fill_up_call("broadcast_like", broadcast_like)
has_shape_of(broadcast_like, 1)


@primitive(lambda ct, ans, like: _spec_like(ct, like))
def _fit_like(ct: Any, ans: Any, like: Any) -> Any:
    """Return `ct`, which broadcasts to `ans`, summed over the axes along which `like` was broadcast to `ans`."""
    ct = np.broadcast_to(ct, np.shape(ans))
    want = np.shape(like)
    lead = ct.ndim - len(want)
    if lead > 0:
        ct = ct.sum(axis=tuple(range(lead)))
    kept = tuple(k for k, (m, n) in enumerate(zip(ct.shape, want, strict=True)) if n == 1 != m)
    return ct.sum(axis=kept, keepdims=True) if kept else ct


has_shape_of(_fit_like, 2)


def _dtype_like(ct: Any, like: Any) -> Spec:
    known = like.dtype if isinstance(like, Spec) else np.asarray(like).dtype
    known = known if isinstance(known, np.dtype) and known.kind in "fc" else None
    return Spec(known, ct.shape if isinstance(ct, Spec) else np.shape(ct))


@primitive(_dtype_like)
def _cast_like(ct: Any, like: Any) -> Any:
    """Return `ct` in the dtype of `like`, if that is one of real or complex numbers."""
    return fit_dtype(np.asarray(ct), np.asarray(like))


has_shape_of(_cast_like, 0)
