"""Infer the outputs of a declaration from the specs of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .dim import Dim, DimTooLarge
from .dims import Extent, broadcast_shapes, floordiv, same, sub
from .dtype_text import AnyDType, is_of_kind
from .marks import Broadcast, DimLike, Late, Optional, Variadic, is_open
from .spec import Spec, dim_text

__all__ = ["infer_outputs", "what_is_known"]

Shape: TypeAlias = tuple[Extent, ...] | None


class _Mismatch(Exception):
    """Report that an argument does not match its declaration."""


class _Scope:
    """Bind the names of one call, as far as they are known."""

    def __init__(self) -> None:
        self.sizes: dict[str, Extent] = {}  # a name bound to None is bound, but to an unknown size
        self.dtypes: dict[str, AnyDType] = {}
        self.variadics: dict[str, Shape] = {}
        self.loops: list[Shape] = []
        self.absent: set[str] = set()  # optional dimensions that the arguments lack
        self.ones: set[str] = set()  # names that met a 1 where that is allowed

    def bind_dtype(self, declared: AnyDType | str | None, got: AnyDType | None) -> None:
        if declared is None or got is None:
            return
        if isinstance(declared, str):
            if not is_of_kind(got, declared):
                raise _Mismatch(f"the dtype is {got}, which is not {declared}")
            known = self.dtypes.setdefault(declared, got)
            if known != got and not _any_length(known, got):
                raise _Mismatch(f"{declared} is {known} in an earlier argument")
        elif declared != got and not _any_length(declared, got):
            raise _Mismatch(f"the dtype is {got}, not {declared}")

    def bind_size(self, name: str, got: Extent) -> None:
        if name not in self.sizes:
            self.sizes[name] = got
            return
        known = self.sizes[name]
        if same(known, got) is False:
            raise _Mismatch(f"{name} is {known} already, not {got}")
        # Keep what says most: a number, then an expression.
        if known is None or (isinstance(known, Dim) and isinstance(got, int)):
            self.sizes[name] = got

    def bind_variadic(self, name: str, got: Shape) -> None:
        known = self.variadics.get(name)
        if known is None or got is None:
            self.variadics[name] = known if got is None else got
            return
        if len(known) != len(got) or any(same(a, b) is False for a, b in zip(known, got, strict=True)):
            raise _Mismatch(f"*{name} is {_tuple(known)} already, not {_tuple(got)}")
        self.variadics[name] = tuple(
            b if a is None or (isinstance(a, Dim) and isinstance(b, int)) else a
            for a, b in zip(known, got, strict=True)
        )

    def solve(self, dim: Dim, got: Extent) -> None:
        solution = dim.affine()
        if solution is None:
            return
        coefficient, name, constant = solution
        if dim.name is not None:
            self.bind_size(name, got)
            return
        rest = sub(got, constant)
        if isinstance(rest, int) and (rest % coefficient or rest // coefficient < 0):
            raise _Mismatch(f"no size {name} makes {dim} equal to {got}")
        self.bind_size(name, floordiv(rest, coefficient))

    def evaluate(self, dim: Dim) -> Extent:
        env: dict[str, int | Dim] = {}
        for name in dim.names:
            size = self.sizes.get(name)
            if size is None:
                return None
            env[name] = size
        try:
            return dim.evaluate(env)
        except (DimTooLarge, ZeroDivisionError):
            return None


def infer_outputs(
    declared: Sequence[Spec] | None,
    outputs: Sequence[Spec],
    like: Sequence[int],
    gufunc: bool,
    given: Sequence[Spec],
    label: Callable[[int], str],
) -> list[Spec]:
    """Return the specs of the outputs for inputs of the specs `given`; ValueError if the declaration forbids these.

    `like` holds the input leaf that each output is like (-1 for none), or nothing. `label` names an input for errors.
    """
    scope = _Scope()
    known = [what_is_known(spec) for spec in given]
    loop: Shape = ()
    if declared is not None:
        if len(known) != len(declared):
            raise ValueError(f"expected {len(declared)} arrays, as declared, got {len(known)}")
        if gufunc:
            scope.absent = _absent(declared, [shape for _, shape in known])
        parts: list[list[tuple[DimLike, Extent]]] = []
        for k, spec in enumerate(declared):
            try:
                scope.bind_dtype(spec.dtype, known[k][0])
                parts.append(_aligned(scope, spec, known[k][1], gufunc))
                _bind(scope, parts[k])
            except _Mismatch as why:
                raise _error(label(k), spec, given[k], why) from None
        for k, spec in enumerate(declared):
            try:
                _check(scope, parts[k])
            except _Mismatch as why:
                raise _error(label(k), spec, given[k], why) from None
        for name in scope.ones:
            scope.sizes.setdefault(name, 1)
        try:
            loop = broadcast_shapes(*scope.loops)
        except ValueError as error:
            raise ValueError(f"the leading dimensions of the arguments do not fit: {error}") from None
    result = []
    for k, spec in enumerate(outputs):
        source = like[k] if like else -1
        if source >= 0:
            dtype, shape = known[source] if source < len(known) else (None, None)
            result.append(Spec(dtype, shape))
        else:
            result.append(_output(scope, spec, loop, k))
    return result


def _aligned(scope: _Scope, spec: Spec, got: Shape, gufunc: bool) -> list[tuple[DimLike, Extent]]:
    """Pair each declared dim with the size it meets; leading dimensions are set aside."""
    declared = spec.shape
    if declared is None:
        if gufunc:
            scope.loops.append(None)
        return []
    if got is None:
        if gufunc:
            scope.loops.append(None)
        for dim in declared:
            if isinstance(dim, Variadic):
                scope.bind_variadic(dim.name, None)
        return []
    if gufunc:
        declared = _present(declared, scope.absent)
        split = len(got) - len(declared)
        if split < 0:
            raise _Mismatch(f"it has {len(got)} dimensions, fewer than {len(declared)}")
        scope.loops.append(got[:split])
        return list(zip(declared, got[split:], strict=True))
    at = next((k for k, dim in enumerate(declared) if is_open(dim)), None)
    if at is None:
        if len(got) != len(declared):
            raise _Mismatch(f"it has {len(got)} dimensions, not {len(declared)}")
        return list(zip(declared, got, strict=True))
    behind = len(declared) - at - 1
    if len(got) < at + behind:
        raise _Mismatch(f"it has {len(got)} dimensions, fewer than {at + behind}")
    middle = len(got) - behind
    variadic = declared[at]
    if isinstance(variadic, Variadic):
        scope.bind_variadic(variadic.name, got[at:middle])
    return [*zip(declared[:at], got[:at], strict=True), *zip(declared[at + 1 :], got[middle:], strict=True)]


def _absent(declared: Sequence[Spec], shapes: Sequence[Shape]) -> set[str]:
    """Return the names of the optional core dimensions that arguments of too low a rank leave out."""
    absent: set[str] = set()
    for spec, shape in zip(declared, shapes, strict=True):
        if shape is not None and len(shape) < len(_present(spec.shape or (), absent)):
            absent |= {dim.name for dim in spec.shape or () if isinstance(dim, Optional)}
    return absent


def _present(dims: tuple[DimLike, ...], absent: set[str]) -> tuple[DimLike, ...]:
    return tuple(dim for dim in dims if not (isinstance(dim, Optional) and dim.name in absent))


def _bind(scope: _Scope, part: list[tuple[DimLike, Extent]]) -> None:
    """Bind names that stand alone or can be solved for."""
    for dim, got in part:
        if isinstance(dim, int):
            if same(dim, got) is False:
                raise _Mismatch(f"the size is {got}, not {dim}")
        elif isinstance(dim, Optional):
            scope.bind_size(dim.name, got)
        elif isinstance(dim, Dim):
            scope.solve(dim, got)


def _check(scope: _Scope, part: list[tuple[DimLike, Extent]]) -> None:
    """Compare expressions, whose names are all bound by now, and bind what may also be 1."""
    for dim, got in part:
        if isinstance(dim, Dim) and dim.name is None:
            size = scope.evaluate(dim)
            if same(size, got) is False:
                raise _Mismatch(f"{dim} is {size}, not {got}")
        elif isinstance(dim, Broadcast):
            if not isinstance(got, int):
                scope.sizes.setdefault(dim.name, None)
            elif got == 1:
                scope.ones.add(dim.name)
            else:
                scope.bind_size(dim.name, got)


def _output(scope: _Scope, spec: Spec, loop: Shape, k: int) -> Spec:
    dtype = scope.dtypes.get(spec.dtype) if isinstance(spec.dtype, str) else spec.dtype
    if spec.shape is None or loop is None:
        return Spec(dtype)
    shape: list[Extent] = list(loop)
    for dim in spec.shape:
        if dim is None or isinstance(dim, int):
            shape.append(dim)
        elif isinstance(dim, Dim):
            size = scope.evaluate(dim)
            if isinstance(size, int) and size < 0:
                raise ValueError(f"output {k} declared {spec}: the size {dim} would be {size}")
            shape.append(size)
        elif isinstance(dim, Variadic):
            bound = scope.variadics.get(dim.name)
            if bound is None:
                return Spec(dtype)
            shape.extend(bound)
        elif dim is Ellipsis:
            return Spec(dtype)
        elif isinstance(dim, Optional):
            if dim.name not in scope.absent:
                shape.append(scope.sizes.get(dim.name))
        else:
            shape.append(None)
    return Spec(dtype, shape)


def what_is_known(spec: Spec) -> tuple[AnyDType | None, Shape]:
    """Return the dtype and shape of a spec without the entries that only a declaration can have."""
    dtype = None if isinstance(spec.dtype, str) else spec.dtype
    if spec.shape is None:
        return dtype, None
    shape: list[Extent] = []
    for dim in spec.shape:
        if dim is None or isinstance(dim, int | Dim):
            shape.append(dim)
        elif isinstance(dim, Late):
            shape.append(None)
        else:
            return dtype, None
    return dtype, tuple(shape)


def _any_length(declared: AnyDType, got: AnyDType) -> bool:
    """Return whether one of two text or bytes dtypes has no length of its own, so that any length fits."""
    return declared.kind == got.kind and declared.kind in "US" and (not declared.itemsize or not got.itemsize)


def _error(label: str, declared: Spec, given: Spec, why: _Mismatch) -> ValueError:
    return ValueError(f"{label} declared {declared} got {given}: {why}")


def _tuple(shape: tuple[Extent, ...]) -> str:
    return f"({','.join(map(dim_text, shape))})"
