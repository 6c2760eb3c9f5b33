"""Infer shapes of generalised ufuncs from their core signature: ``(n?,k),(k,m?)->(n?,m?)``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from ..declare.dims import Extent
from .operand import Shape
from .shape import axis_of, broadcast, merge


@lru_cache(maxsize=256)
def _core(signature: str) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
    left, right = signature.replace(" ", "").split("->")

    def side(text: str) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(filter(None, group.split(","))) for group in re.findall(r"\(([^)]*)\)", text))

    return side(left), side(right)


def core_shapes(ufunc: np.ufunc, shapes: list[Shape], kwargs: dict[str, Any]) -> list[Shape]:
    """Return the shapes of the results of a gufunc call."""
    assert ufunc.signature is not None
    inputs, outputs = _core(ufunc.signature)
    if any(shape is None for shape in shapes):
        return [None] * len(outputs)
    axes = _input_axes(inputs, shapes, kwargs)
    if axes is None:
        return [None] * len(outputs)
    bound: dict[str, Extent] = {}
    absent: set[str] = set()
    loops: list[Shape] = []
    for k, (names, shape) in enumerate(zip(inputs, shapes, strict=True)):
        assert shape is not None
        missing = len(names) - len(shape)
        if missing > 0:
            optional = [name for name in names if name.endswith("?")]
            if missing > len(optional):
                raise ValueError(
                    f"{ufunc.__name__}: Input operand {k} does not have enough dimensions "
                    f"(has {len(shape)}, gufunc core with signature {ufunc.signature} requires {len(names)})"
                )
            absent.update(optional)
            names = tuple(name for name in names if not name.endswith("?"))
        core = [axis_of(axis, len(shape)) for axis in axes[k][-len(names) :]] if names else []
        loops.append(tuple(size for i, size in enumerate(shape) if i not in core))
        for name, axis in zip(names, core, strict=True):
            _bind(ufunc, bound, name, shape[axis], k)
    loop = broadcast(*loops)
    if loop is None:
        return [None] * len(outputs)
    return [_result(loop, [n for n in names if n not in absent], bound, len(inputs[0]), kwargs) for names in outputs]


def _bind(ufunc: np.ufunc, bound: dict[str, Extent], name: str, size: Extent, k: int) -> None:
    name = name.rstrip("?")
    if name.isdigit():
        bound[name] = merge(
            int(name), size, f"{ufunc.__name__}: Input operand {k} has a mismatch in its core dimension"
        )
    elif name in bound:
        bound[name] = merge(
            bound[name],
            size,
            f"{ufunc.__name__}: Input operand {k} has a mismatch in its core dimension {name}, "
            f"with gufunc signature {ufunc.signature}",
        )
    else:
        bound[name] = size


def _input_axes(
    inputs: tuple[tuple[str, ...], ...], shapes: list[Shape], kwargs: dict[str, Any]
) -> list[tuple[int, ...]] | None:
    """Return where the core dimensions of each input are, or None if ``axes=`` leaves that open."""
    if kwargs.get("axes") is not None:
        axes = kwargs["axes"]
        given = [(item,) if isinstance(item, int) else tuple(item) for item in axes[: len(inputs)]]
        # Placing the results' axes, too, is rare enough to leave it to the run.
        return (
            None
            if len(axes) > len(inputs) or any(len(a) != len(n) for a, n in zip(given, inputs, strict=True))
            else given
        )
    if kwargs.get("axis") is not None:
        return [(kwargs["axis"],)] * len(inputs)
    return [tuple(range(-len(names), 0)) for names in inputs]


def _result(
    loop: tuple[Extent, ...], names: list[str], bound: dict[str, Extent], depth: int, kwargs: dict[str, Any]
) -> Shape:
    if kwargs.get("axes") is not None and names:
        return (None,) * (len(loop) + len(names))
    core = tuple(int(name) if name.isdigit() else bound.get(name.rstrip("?")) for name in names)
    if kwargs.get("keepdims"):
        if kwargs.get("axis") is not None:
            axis = axis_of(kwargs["axis"], len(loop) + 1)
            return (*loop[:axis], 1, *loop[axis:])
        return loop + (1,) * depth
    return loop + core
