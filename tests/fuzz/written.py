"""Functions that write by other names, as users' own do: called on arrays, and traced."""

from __future__ import annotations

from typing import Any

import numpy as np


def _raise_by(y: Any, b: Any) -> None:
    y += b


def aliased(a: Any, b: Any) -> Any:
    """Two names."""
    y = a * 1
    z = y
    y += b
    return z


def boxed(a: Any, b: Any) -> Any:
    """A name, and a place in a list."""
    y = np.negative(a)
    box = [y]
    box[0] -= b
    return y


def helped(a: Any, b: Any) -> Any:
    """A function that writes into its argument, an array used before."""
    y = a * 1
    before = y + b
    _raise_by(y, b)
    return y + before  # what nobody reads is not computed


def multiplied(a: Any, b: Any) -> Any:
    """The loops of NumPy that run in place."""
    y = a * 1
    y *= b
    y -= a
    y *= y
    return y


def rebound(a: Any) -> Any:
    """A scalar changes by no other name."""
    s = a.sum()
    t = s
    s += 1
    s *= 2
    return s, t


def kept(a: Any, b: Any) -> Any:
    """What is no name but a copy."""
    y = a + b
    old = y.copy()
    y //= 2
    return y + old


def viewed(a: Any) -> Any:
    """A view is written."""
    y = a * 1
    v = y[1:]
    v += 1
    return y


def assigned(a: Any, b: Any) -> Any:
    """Elements are written."""
    y = a.copy()
    y[...] = b
    y[:1] *= 2
    return y


def outed(a: Any, b: Any) -> Any:
    """A function writes its result."""
    y = a * 1
    np.add(y, b, out=y)
    return y


FUNCTIONS = {f.__name__: f for f in (aliased, boxed, helped, multiplied, rebound, kept, viewed, assigned, outed)}
