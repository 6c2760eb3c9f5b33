"""Functions that change the shape, or the order of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Tensor
from .adjoints import move_back, reshape_like
from .rule import composite, linear, movement, structural, zero
from .table import NoRule
from .unbroadcast import fit, shape_of


def _in_order(a: Any, order: Any, what: str) -> Any:
    """The order in which elements were read: "A" and "K" mean that in which the argument lies in memory."""
    if order in ("C", "F"):
        return order
    array = a.numpy() if type(a) is Tensor else a
    if type(array) is np.ndarray:
        if array.flags.c_contiguous or (order == "A" and not array.flags.f_contiguous):
            return "C"
        if array.flags.f_contiguous:
            return "F"
    raise NoRule(
        f'{what}(order={order!r}) has no gradient rule where the order of memory is not known: use order="C" or "F"'
    )


def _reshape(ct: Any, ans: Any, a: Any, shape: Any = None, order: Any = "C", **kw: Any) -> Any:
    return reshape_like(ct, a, _in_order(a, order, "np.reshape"))


def _reshape_tangent(t: Any, ans: Any, a: Any, shape: Any = None, order: Any = "C", **kw: Any) -> Any:
    shape = kw.get("newshape") if shape is None else shape
    return np.reshape(t, shape, order=_in_order(a, order, "np.reshape"))


def _ravel(ct: Any, ans: Any, a: Any, order: Any = "C") -> Any:
    return reshape_like(ct, a, _in_order(a, order, "np.ravel"))


def _ravel_tangent(t: Any, ans: Any, a: Any, order: Any = "C") -> Any:
    return np.ravel(t, _in_order(a, order, "np.ravel"))


def _transpose(ct: Any, ans: Any, a: Any, axes: Any = None) -> Any:
    return np.transpose(ct) if axes is None else np.transpose(ct, _inverse(axes))


def _inverse(axes: Any) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argsort([axis % len(axes) for axis in axes]))


def _roll(ct: Any, ans: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    back = tuple(-k for k in shift) if isinstance(shift, (tuple, list)) else -shift
    return np.roll(ct, back, axis)


def _repeat(ct: Any, ans: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    shape = shape_of(a)
    if not isinstance(repeats, int) or axis is None or not shape:
        return move_back(np.repeat, 0, ct, (a, repeats), {"axis": axis})
    k = axis % len(shape)
    size = shape[k]
    if size is None:
        return move_back(np.repeat, 0, ct, (a, repeats), {"axis": axis})
    apart = np.reshape(ct, (*(shape_of(ct) or ())[:k], size, repeats, *shape[k + 1 :]))
    return np.sum(apart, axis=k + 1)


def _pad(ct: Any, ans: Any, a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Any:
    around = _pad_with_zeros if mode in ("constant", "empty") else np.pad
    return move_back(around, 0, ct, (a, pad_width, mode), kw)


def _pad_with_zeros(a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Any:
    return np.pad(a, pad_width)


def _pad_tangent(t: Any, ans: Any, a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Any:
    _check_mode(mode, kw)
    return np.pad(t, pad_width) if mode in ("constant", "empty") else np.pad(t, pad_width, mode, **kw)


def _check_mode(mode: Any, kw: dict[str, Any]) -> None:
    if callable(mode) or mode not in _COPIES or kw.get("reflect_type", "even") != "even":
        how = "".join(f", {key}={value!r:.40}" for key, value in kw.items())
        raise NoRule(
            f"np.pad(mode={mode!r:.80}{how}) has no gradient rule: use a mode that copies elements, {sorted(_COPIES)}, "
            "or np.concatenate"
        )


_COPIES = frozenset(("constant", "edge", "reflect", "symmetric", "wrap", "empty"))


def _pad_checked(ct: Any, ans: Any, a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Any:
    _check_mode(mode, kw)
    return _pad(ct, ans, a, pad_width, mode, **kw)


# fmt: off
structural(np.reshape, (_reshape,), (_reshape_tangent,), ("a",))
structural(np.ravel, (_ravel,), (_ravel_tangent,), ("a",))
linear(np.transpose, _transpose)
linear(np.matrix_transpose, lambda ct, ans, x: np.matrix_transpose(ct), ("x",))
linear(np.swapaxes, lambda ct, ans, a, axis1, axis2: np.swapaxes(ct, axis1, axis2))
linear(np.moveaxis, lambda ct, ans, a, source, destination: np.moveaxis(ct, destination, source))
movement(np.rollaxis, names=("a",))
linear(np.expand_dims, lambda ct, ans, a, axis: np.squeeze(ct, axis=axis))
linear(np.squeeze, lambda ct, ans, a, axis=None: reshape_like(ct, a))
linear(np.broadcast_to, lambda ct, ans, array, shape, subok=False: fit(ct, array, ans), ("array",))
linear(np.flip, lambda ct, ans, m, axis=None: np.flip(ct, axis), ("m",))
linear(np.fliplr, lambda ct, ans, m: np.fliplr(ct), ("m",))
linear(np.flipud, lambda ct, ans, m: np.flipud(ct), ("m",))
linear(np.rot90, lambda ct, ans, m, k=1, axes=(0, 1): np.rot90(ct, -k, axes), ("m",))
linear(np.roll, _roll)
movement(np.tile, names=("A",))
linear(np.repeat, _repeat)
movement(np.resize, names=("a",))
structural(np.pad, (_pad_checked,), (_pad_tangent,), ("array",))
linear(np.tril, lambda ct, ans, m, k=0: fit(np.tril(ct, k), m), ("m",))
linear(np.triu, lambda ct, ans, m, k=0: fit(np.triu(ct, k), m), ("m",))
movement(np.diag, names=("v",))
movement(np.diagflat, names=("v",))
movement(np.diagonal, names=("a",))
linear(np.fft.fftshift, lambda ct, ans, x, axes=None: np.fft.ifftshift(ct, axes), ("x",))
linear(np.fft.ifftshift, lambda ct, ans, x, axes=None: np.fft.fftshift(ct, axes), ("x",))
zero(np.shape, np.ndim, np.size)
# fmt: on


@composite(np.trace)
def _trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


if hasattr(np.linalg, "diagonal"):
    composite(np.linalg.trace)(lambda x, *, offset=0, dtype=None: np.sum(np.diagonal(x, offset, -2, -1), axis=-1))
    composite(np.linalg.diagonal)(lambda x, *, offset=0: np.diagonal(x, offset, -2, -1))
    linear(np.linalg.matrix_transpose, lambda ct, ans, x: np.matrix_transpose(ct), ("x",))
