"""Resolve which part of a declaration binds which name, and encode the result for the C++ ``Contract``.

The encoding is a dict::

    {"inputs": None | (spec, ...), "outputs": (spec, ...), "names": (str, ...), "typevars": (str, ...),
     "variadics": (str, ...), "gufunc": bool}

    spec = (dtype | None, index of the type variable | -1, None | (dim, ...), like: index of an input leaf | -1)
    dim  = (kind, payload)

``None`` for the inputs means undeclared, and for the dims that the rank is unknown. Kinds and payloads are those of
`Kind`; an expression is a postfix program of ``(Step, value)`` pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

from .dim import Dim, Quotient
from .dtype_text import AnyDType
from .marks import Broadcast, DimLike, Late, Optional, Variadic
from .spec import Spec

__all__ = ["Binding", "DeclarationError", "Encoded", "Kind", "Step"]


class Kind(IntEnum):
    """Number the kinds of an encoded dim; the comments say what the payload is."""

    FIXED = 0  # the size
    NAME = 1  # index of the name
    ANY = 2  # 0
    LATE = 3  # index of the name, -1 for none
    EXPR = 4  # the program; in inputs it is checked when all names are bound
    VARIADIC = 5  # index of the variadic name, -1 for `...`
    SOLVE = 6  # (index of the name, a, b): the size is a*name + b, which binds the name
    OPTIONAL = 7  # index of the name
    BROADCAST = 8  # index of the name


class Step(IntEnum):
    """Number the operations of a size program."""

    CONST = 0
    VAR = 1
    ADD = 2
    SUB = 3
    MUL = 4
    FLOORDIV = 5


Payload: TypeAlias = int | tuple[int, int, int] | tuple[tuple[int, int], ...]
EncodedDim: TypeAlias = tuple[int, Payload]
EncodedSpec: TypeAlias = tuple[AnyDType | None, int, tuple[EncodedDim, ...] | None, int]
Encoded: TypeAlias = dict[str, Any]


class DeclarationError(ValueError):
    """Report a declaration whose names do not fit together, and the place to point at."""

    def __init__(self, message: str, side: str, leaf: int, dim: int | None) -> None:
        super().__init__(message)
        self.side = side  # "input" or "output"
        self.leaf = leaf
        self.dim = dim  # None: the dtype


class Binding:
    """Resolve the names of a declaration: which part binds each, and the encoding.

    `inputs` are the leaves of the inputs in order, None if undeclared. `like` has the input leaf that each output is
    like, or -1; it is empty for none. DeclarationError if nothing binds a name, or if a size that is known only after
    the call is needed before it.
    """

    def __init__(
        self, inputs: Sequence[Spec] | None, outputs: Sequence[Spec], like: Sequence[int], gufunc: bool
    ) -> None:
        self._declared = inputs is not None
        self._gufunc = gufunc
        self._names: dict[str, int] = {}
        self._typevars: dict[str, int] = {}
        self._variadics: dict[str, int] = {}
        self.solved = _solvers(inputs or ())
        """Where a name is found by solving ``a*name + b`` for it: (leaf, dim) of the inputs."""
        self._bound = _plain_names(inputs or ()) | set(self.solved.values())
        self._late = {dim.name for spec in outputs for dim in spec.shape or () if isinstance(dim, Late)}
        self._late_bound: set[str] = set()  # by the outputs read so far
        encoded_inputs = None
        if inputs is not None:
            encoded_inputs = tuple(self._spec(spec, "input", k, -1) for k, spec in enumerate(inputs))
        self._input_typevars = frozenset(self._typevars)
        self._input_variadics = frozenset(self._variadics)
        encoded_outputs = tuple(
            self._spec(spec, "output", k, like[k] if like else -1) for k, spec in enumerate(outputs)
        )
        self.encoded: Encoded = {
            "inputs": encoded_inputs,
            "outputs": encoded_outputs,
            "names": tuple(self._names),
            "typevars": tuple(self._typevars),
            "variadics": tuple(self._variadics),
            "gufunc": gufunc,
        }

    def _spec(self, spec: Spec, side: str, leaf: int, like: int) -> EncodedSpec:
        if like >= 0:
            return None, -1, None, like
        dtype, typevar = None, -1
        if isinstance(spec.dtype, str):
            if side == "output" and self._declared and spec.dtype not in self._input_typevars:
                raise DeclarationError(
                    f"no input binds the type variable {spec.dtype!r}: use it in an input, or write a dtype or '_'",
                    side,
                    leaf,
                    None,
                )
            typevar = self._typevars.setdefault(spec.dtype, len(self._typevars))
        else:
            dtype = spec.dtype
        if spec.shape is None:
            return dtype, typevar, None, -1
        dims: list[EncodedDim] = []
        for k, dim in enumerate(spec.shape):
            encoded = self._input_dim(dim, (leaf, k)) if side == "input" else self._output_dim(dim)
            if isinstance(encoded, str):
                raise DeclarationError(encoded, side, leaf, k)
            dims.append(encoded)
        return dtype, typevar, tuple(dims), -1

    # Each of these returns the encoding, or the text of what is wrong.

    def _common(self, dim: DimLike) -> EncodedDim | str | None:
        """Encode a dim that inputs and outputs encode alike."""
        if dim is None:
            return Kind.ANY, 0
        if isinstance(dim, int):
            return Kind.FIXED, dim
        if dim is Ellipsis:
            return Kind.VARIADIC, -1
        if isinstance(dim, Optional | Broadcast) and not self._gufunc:
            return f"'{dim}' belongs to gufunc declarations, such as '(n?),(m|1)->(n?)'"
        return None

    def _input_dim(self, dim: DimLike, place: tuple[int, int]) -> EncodedDim | str:
        common = self._common(dim)
        if common is not None:
            return common
        if isinstance(dim, Dim):
            if dim.name is not None:
                return Kind.NAME, self._name(dim.name)
            if place in self.solved:
                return self._solve(dim)
            for name in sorted(dim.names - self._bound):
                return (
                    f"the size {dim} does not determine {name!r}: "
                    f"use {name!r} alone in an input, or write '_' for any size"
                )
            return Kind.EXPR, self._program(dim)
        if isinstance(dim, Variadic):
            return Kind.VARIADIC, self._variadics.setdefault(dim.name, len(self._variadics))
        if isinstance(dim, Optional):
            return Kind.OPTIONAL, self._name(dim.name)
        if isinstance(dim, Broadcast):
            return Kind.BROADCAST, self._name(dim.name)
        return f"'{dim}' is a size known only after the call, which an input cannot have: write it without '!'"

    def _output_dim(self, dim: DimLike) -> EncodedDim | str:
        common = self._common(dim)
        if common is not None:
            return common
        if isinstance(dim, Dim):
            return self._output_size(dim)
        if isinstance(dim, Variadic):
            if self._declared and dim.name not in self._input_variadics:
                return f"no input binds '{dim}': use it in an input, or write '...' for any dimensions"
            return Kind.VARIADIC, self._variadics.setdefault(dim.name, len(self._variadics))
        if isinstance(dim, Late):
            if not dim.name:
                return Kind.LATE, -1
            if dim.name in self._bound:
                return f"an input binds {dim.name!r} already: write it without '!'"
            return self._bind_late(dim.name)
        if isinstance(dim, Optional):
            return (Kind.OPTIONAL, self._name(dim.name)) if dim.name in self._bound else _unbound(dim.name)
        return f"'{dim}' stands in inputs only: write the size that the inputs fix"

    def _output_size(self, dim: Dim) -> EncodedDim | str:
        if dim.name is not None and dim.name in self._bound:
            return Kind.NAME, self._name(dim.name)
        open_names = dim.names - self._bound
        if self._declared:
            for name in sorted(open_names - self._late):
                return _unbound(name)
        if dim.name is not None:
            return self._bind_late(dim.name)
        open_names -= self._late_bound
        if not open_names:
            return Kind.EXPR, self._program(dim)
        if dim.affine() is not None:
            self._late_bound |= open_names
            return self._solve(dim)
        return (
            f"the size {dim} needs {_listed(open_names)}, which no earlier output has alone: "
            "declare an output that does before it, or write '_!'"
        )

    def _bind_late(self, name: str) -> EncodedDim:
        self._late_bound.add(name)
        return Kind.LATE, self._name(name)

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _solve(self, dim: Dim) -> EncodedDim:
        solution = dim.affine()
        assert solution is not None
        coefficient, name, constant = solution
        return Kind.SOLVE, (self._name(name), coefficient, constant)

    def _program(self, size: int | Dim) -> tuple[tuple[int, int], ...]:
        """Return the size as a program in postfix order."""
        if isinstance(size, int):
            return ((Step.CONST, size),)
        program: list[tuple[int, int]] = []
        for position, (factors, coefficient) in enumerate(size.terms):
            subtract = position > 0 and coefficient < 0
            if subtract:
                coefficient = -coefficient
            parts: list[tuple[tuple[int, int], ...]] = []
            if coefficient != 1 or not factors:
                parts.append(((Step.CONST, coefficient),))
            for factor in factors:
                if isinstance(factor, Quotient):
                    parts.append((*self._program(factor.num), *self._program(factor.den), (Step.FLOORDIV, 0)))
                else:
                    parts.append(((Step.VAR, self._name(factor)),))
            for count, part in enumerate(parts):
                program += part
                if count:
                    program.append((Step.MUL, 0))
            if position:
                program.append((Step.SUB if subtract else Step.ADD, 0))
        return tuple(program)


def _unbound(name: str) -> str:
    return f"no input binds {name!r}: use it in an input, or write '{name}!' for a size known only after the call"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(map(repr, sorted(names)))


def _plain_names(inputs: Sequence[Spec]) -> set[str]:
    """Return the names that stand alone in some input, so that its size binds them."""
    names: set[str] = set()
    for spec in inputs:
        for dim in spec.shape or ():
            if isinstance(dim, Dim | Optional | Broadcast) and dim.name is not None:
                names.add(dim.name)
    return names


def _solvers(inputs: Sequence[Spec]) -> dict[tuple[int, int], str]:
    """Return the first affine size that holds each name which stands alone nowhere, with the name."""
    plain = _plain_names(inputs)
    places: dict[str, tuple[int, int]] = {}
    for leaf, spec in enumerate(inputs):
        for k, dim in enumerate(spec.shape or ()):
            solution = dim.affine() if isinstance(dim, Dim) else None
            if solution is not None and solution[1] not in plain:
                places.setdefault(solution[1], (leaf, k))
    return {place: name for name, place in places.items()}
