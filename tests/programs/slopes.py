"""Derivatives of kernels along a direction, in both modes, against differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .judge import REFUSED, RIGHT, WRONG, Judgement
from .registry import Kernel

LEFT_OUT = "left out"


def is_smooth(a: Any) -> bool:
    return type(a) is np.ndarray and a.dtype == np.float64 and a.size > 0


def numbers(tree: Any) -> list[Any]:
    """The floats and complex numbers of a result."""
    if isinstance(tree, list | tuple):
        return [leaf for item in tree for leaf in numbers(item)]
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in numbers(item)]
    kind = getattr(getattr(tree, "dtype", None), "kind", "f" if isinstance(tree, float) else "")
    return [tree.real + 0.5 * tree.imag if kind == "c" else tree] if kind in tuple("fc") else []


def loss_of(kernel: Kernel, places: list[int], others: list[Any]) -> Callable[..., Any]:
    """A number from all that a kernel returns and writes: of its smooth arguments, which stay as they are."""
    function = kernel.function  # by a name: what is behind an attribute is not traced with stand-ins

    def loss(*given: Any) -> Any:
        arguments = list(others)
        for place, a in zip(places, given, strict=True):
            arguments[place] = a * 1.0
        result = function(*arguments)
        total = 0.0
        for k, a in enumerate(numbers([result, *(arguments[place] for place in places)])):
            weights = np.cos(np.arange(float(np.size(a)))).reshape(np.shape(a)) + 0.1 * k
            total = total + np.sum(np.tanh(0.1 * a) * weights)
        return total

    return loss


def judge_slope(kernel: Kernel, seed: int = 0) -> Judgement:
    """Reverse and forward, compiled, and reverse of a second point with what was compiled for the first."""
    made = kernel.make("small", seed)
    places = [k for k, a in enumerate(made) if is_smooth(a)]
    if not places:
        return Judgement(LEFT_OUT, "no argument of floats")
    loss = loss_of(kernel, places, made)
    reverse = pyop.compile(pyop.value_and_grad(loss, argnums=tuple(range(len(places)))))
    forward = pyop.compile(lambda given, along: pyop.jvp(loss, given, along))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for at in (seed, seed + 1):
            given = tuple(kernel.make("small", at)[place] for place in places)
            along = tuple(np.sin(1.0 + np.arange(float(a.size))).reshape(a.shape) for a in given)
            step = 1e-6
            try:
                ends = [loss(*(a + s * step * b for a, b in zip(given, along, strict=True))) for s in (1, -1, 2, -2)]
            except Exception as error:
                return Judgement(LEFT_OUT, f"NumPy raises {error!r}")
            want = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)
            rough = abs((ends[0] - ends[1]) / (2 * step) - (ends[2] - ends[3]) / (4 * step))
            if not np.isfinite(want) or rough > 1e-4 * (1 + abs(want)):
                return Judgement(LEFT_OUT, "not smooth there")
            try:
                value, slopes = reverse(*given)
                _, slope = forward(given, along)
            except Exception as error:
                return Judgement(REFUSED, f"{type(error).__name__}: {error}")
            got = sum(float(np.sum(a * b)) for a, b in zip(slopes, along, strict=True))
            if not np.allclose(value, loss(*given), rtol=1e-12, atol=1e-12):
                return Judgement(WRONG, f"seed {at}: value {value}, {loss(*given)} in NumPy")
            for mode, found in (("reverse", got), ("forward", float(slope))):
                # A loop that ends when it is near enough has small steps everywhere, which differences see.
                if abs(found - want) > 2e-4 * (1 + abs(want)):
                    return Judgement(WRONG, f"seed {at}: {mode} {found}, by differences {want}")
    return Judgement(RIGHT)
