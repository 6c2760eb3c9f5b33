"""Differentiate Fourier transforms: linear, and the adjoint of each is one of the others.

A transform divides by nothing, by the square root of the length, or by the length. Its adjoint is the conjugate one
with the same divisor, which NumPy names from the other end: "backward" for "forward".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import resize_like
from ...gradients.rule import linear, structural
from ...gradients.unbroadcast import primitive, shape_of
from ...transforms.composite import composite

_OTHER: dict[Any, Any] = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _complex(back: Any, default: Any) -> Any:
    """Return the adjoint of a transform of complex arrays along an axis, or along several."""

    def vjp(ct: Any, ans: Any, a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None,
            **of_one: Any) -> Any:  # fmt: skip
        s, axes = of_one.get("n", s), of_one.get("axis", axes)
        gradient = back(ct, None, axes, _OTHER[norm])
        if s is None:
            return gradient
        return resize_like(gradient, a, (axes,) if np.ndim(s) == 0 else axes or range(-len(s), 0))

    return vjp


for _func, _back, _axes in (
    (np.fft.fft, np.fft.ifft, -1),
    (np.fft.fftn, np.fft.ifftn, None),
    (np.fft.fft2, np.fft.ifft2, (-2, -1)),
):
    linear(_func, _complex(_back, _axes))
    linear(_back, _complex(_func, _axes))


# --- of real arrays: half of the coefficients say it all


def _rfft(ct: Any, ans: Any, a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    size = (shape_of(a) or (None,))[axis] if n is None else n
    spectrum = np.real(
        _full_inverse(ct, a, axis, _OTHER[norm])
        if not isinstance(size, int)
        else np.fft.ifft(ct, size, axis, _OTHER[norm])
    )
    return spectrum if n is None else resize_like(spectrum, a, (axis,))


@primitive(lambda ct, like, axis, norm: type(like)(ct.dtype, like.shape))
def _full_inverse(ct: Any, like: Any, axis: Any, norm: Any) -> Any:
    return np.fft.ifft(ct, np.shape(like)[axis], axis, norm)


structural(
    _full_inverse,
    (lambda ct, ans, x, like, axis, norm: resize_like(np.fft.fft(ct, None, axis, _OTHER[norm]), x, (axis,)), None),
    ("same", None),
    ("ct", "like"),
)


@primitive(lambda x, like, axis: x)
def _doubled(x: Any, like: Any, axis: Any) -> Any:
    """Double the coefficients that stand for two: all but the first and, of an even length, the last."""
    size = np.shape(like)[axis]
    weights = np.full(np.shape(x)[axis], 2.0, x.real.dtype)
    weights[0] = 1.0
    if size % 2 == 0:
        weights[-1] = 1.0
    return x * np.expand_dims(weights, tuple(k for k in range(np.ndim(x)) if k != axis % np.ndim(x)))


structural(_doubled, (lambda ct, ans, x, like, axis: _doubled(ct, like, axis), None), ("same", None), ("x", "like"))


def _irfft(ct: Any, ans: Any, a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    gradient = _doubled(np.fft.rfft(ct, None, axis, _OTHER[norm]), ct, axis)
    return gradient if n is None else resize_like(gradient, a, (axis,))


linear(np.fft.rfft, _rfft)
linear(np.fft.irfft, _irfft)


@composite(np.fft.hfft)
def _hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return np.fft.irfft(np.conjugate(a), n, axis, _OTHER[norm])


@composite(np.fft.ihfft)
def _ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return np.conjugate(np.fft.rfft(a, n, axis, _OTHER[norm]))


def _sizes(a: Any, s: Any, axes: Any) -> tuple[list[Any], list[int]]:
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(-len(shape_of(a) or ()), 0)
    axes = list(axes)
    return ([None] * len(axes) if s is None else list(s)), axes


def _rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    sizes, axes = _sizes(a, s, axes)
    spectrum = np.fft.rfft(a, sizes[-1], axes[-1], norm)
    for size, axis in zip(sizes[:-1], axes[:-1], strict=True):
        spectrum = np.fft.fft(spectrum, size, axis, norm)
    return spectrum


def _irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    sizes, axes = _sizes(a, s, axes)
    for size, axis in zip(sizes[:-1], axes[:-1], strict=True):
        a = np.fft.ifft(a, size, axis, norm)
    return np.fft.irfft(a, sizes[-1], axes[-1], norm)


composite(np.fft.rfftn)(_rfftn)
composite(np.fft.irfftn)(_irfftn)
composite(np.fft.rfft2)(lambda a, s=None, axes=(-2, -1), norm=None, out=None: _rfftn(a, s, axes, norm))
composite(np.fft.irfft2)(lambda a, s=None, axes=(-2, -1), norm=None, out=None: _irfftn(a, s, axes, norm))
linear(np.fft.fftshift, lambda ct, ans, x, axes=None: np.fft.ifftshift(ct, axes), ("x",))
linear(np.fft.ifftshift, lambda ct, ans, x, axes=None: np.fft.fftshift(ct, axes), ("x",))
