"""Compute shapes of results in the symbolic sizes of another framework: torch's SymInt, JAX's dimensions.

A framework's size is an opaque object that can be added, multiplied and divided. The declaration is evaluated with
names of our own that stand for these (`declare/infer.py`, and an abstract rule, which takes such). The result is then
computed in the framework's sizes. So no size is ever asked for its number, which frameworks answer by fixing it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..declare.dim import Dim
from ..declare.marks import Broadcast, Optional, is_open
from ..declare.spec import Spec

__all__ = ["Names", "broadcast_sizes", "declared_equal", "split_loops"]

Shape = tuple[Any, ...] | None


class Names:
    """Map a framework's sizes to our own names in one inference."""

    def __init__(self, key: Callable[[Any], Any]) -> None:
        self._key = key
        self._names: dict[Any, str] = {}
        self._sizes: dict[str, Any] = {}

    def of(self, shape: Shape) -> tuple[Any, ...] | None:
        """Return a shape with names in place of sizes that are no numbers."""
        return None if shape is None else tuple([self._of(size) for size in shape])

    def _of(self, size: Any) -> Any:
        if size is None or type(size) is int:
            return size
        key = self._key(size)
        if type(key) is int:
            return key
        name = self._names.setdefault(key, f"size_{len(self._names)}")
        self._sizes.setdefault(name, size)
        return Dim(name)

    def back(self, shape: Any) -> Shape:
        """Return an inferred shape in the framework's sizes; None for a size that is known only after the call."""
        if shape is None:
            return None
        return tuple([self._computed(size) if isinstance(size, Dim) else size for size in shape])

    def _computed(self, size: int | Dim) -> Any:
        if not isinstance(size, Dim):
            return size
        total: Any = None
        for factors, coefficient in size.terms:
            product: Any = None
            for factor in factors:
                if isinstance(factor, str):
                    part = self._sizes[factor]
                else:
                    part = self._computed(factor.num) // self._computed(factor.den)
                product = part if product is None else product * part
            if product is None:
                product = coefficient
            elif coefficient != 1:
                product = product * coefficient
            total = product if total is None else total + product
        return 0 if total is None else total


def declared_equal(
    declared: Sequence[Spec], shapes: Sequence[Shape], key: Callable[[Any], Any], equal: Callable[[Any, Any], Any]
) -> None:
    """Call `equal` for every two sizes that a declaration makes one, unless they are plainly equal."""
    first: dict[str, Any] = {}
    for spec, shape in zip(declared, shapes, strict=True):
        if spec.shape is None or shape is None or any(map(is_open, spec.shape)) or len(spec.shape) != len(shape):
            continue
        for dim, size in zip(spec.shape, shape, strict=True):
            if size is None:
                continue
            if isinstance(dim, Dim) and dim.name is not None:
                other = first.setdefault(dim.name, size)
            elif type(dim) is int:
                other = dim
            else:
                continue
            if other is not size and key(other) != key(size):
                equal(other, size)


def split_loops(declared: Sequence[Spec], shapes: Sequence[Shape]) -> tuple[list[Shape], list[Shape]] | None:
    """Return leading and core dimensions of the arguments of a gufunc declaration; None if only the call tells."""
    loops: list[Shape] = []
    cores: list[Shape] = []
    for spec, shape in zip(declared, shapes, strict=True):
        if shape is None or spec.shape is None or any(isinstance(d, Optional | Broadcast) for d in spec.shape):
            return None
        at = len(shape) - len(spec.shape)
        if at < 0:
            return None
        loops.append(shape[:at])
        cores.append(shape[at:])
    return loops, cores


def broadcast_sizes(*shapes: Any) -> tuple[Any, ...]:
    """Return the shape that arrays of these shapes broadcast to, None for a size that only the call tells.

    Examples
    --------
    >>> n, m = Dim("n"), Dim("m")
    >>> broadcast_sizes((n, 1), (3,)) == (n, 3), broadcast_sizes((n,), (m,))
    (True, (None,))
    """
    rank = max(map(len, shapes), default=0)
    sizes: list[Any] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            have = sizes[axis]
            if type(have) is int and have == 1:
                sizes[axis] = size
            elif (type(size) is int and size == 1) or have is size:
                continue
            elif type(have) is int:
                if type(size) is int and size != have:
                    raise ValueError(f"the leading dimensions of the arguments do not fit: {have} and {size}")
            elif type(size) is int:
                sizes[axis] = size
            elif type(have) is not type(size) or not isinstance(have, Dim) or have != size:
                sizes[axis] = None
    return tuple(sizes)
