"""Define `Emitter`, which writes operators for one call, and `Operand`, an array on the ONNX side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from onnx import TensorProto, defs, helper

from ...declare.dim import Quotient
from ...declare.dims import Dim
from ..elements import code_of

__all__ = ["OPSET", "Emitter", "NotStandard", "Operand"]


OPSET = 20

# What onnxruntime has no kernels for, although ONNX has: the dtype to compute with instead, whose results are the same.
_INSTEAD: dict[str, dict[str, str]] = {
    "ArgMax": {"uint16": "int32", "int16": "int32", "uint32": "int64"},
    "CumSum": {"uint32": "int64", "uint64": "int64"},
    "Max": {"uint16": "int32", "int16": "int32"},
    "MatMul": {"uint8": "int32", "int8": "int32", "uint16": "int32", "int16": "int32"},
    "NonZero": {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "float64": "bool"},
    "Pad": {"uint16": "int32", "int16": "int32"},
    "ReduceMax": {"uint16": "int32", "int16": "int32", "uint32": "int64", "bool": "uint8"},
    "ReduceSum": dict.fromkeys(("uint8", "int8", "uint16", "int16"), "int32") | {"uint32": "int64", "uint64": "int64"},
    "Trilu": dict.fromkeys(("uint8", "int8", "uint16", "int16"), "int32") | {"uint32": "int64", "uint64": "int64"},
    "Where": dict.fromkeys(("int8", "int16", "uint16"), "int32")
    | {"bool": "uint8", "uint32": "int64", "uint64": "int64"},
}
for _same, _as in (("ArgMin", "ArgMax"), ("Min", "Max"), ("ReduceMin", "ReduceMax"), ("ReduceProd", "ReduceSum")):
    _INSTEAD[_same] = _INSTEAD[_as]


@lru_cache(maxsize=1024)
def _types_of(op_type: str, k: int) -> frozenset[str]:
    """Return the types that input k of an operator may have."""
    inputs = defs.get_schema(op_type, OPSET).inputs
    return frozenset(inputs[min(k, len(inputs) - 1)].types)


@lru_cache(maxsize=64)
def _type_text(dtype: Any) -> str:
    try:
        code = code_of(dtype)
    except ValueError:
        return ""
    return f"tensor({TensorProto.DataType.Name(code).lower()})"


class NotStandard(Exception):
    """Report that no operator of ONNX does this, with the reason."""


@dataclass(frozen=True)
class Operand:
    """Represent a named tensor, with its known dtype and shape."""

    name: str
    dtype: Any
    shape: tuple[Any, ...] | None = None

    def like(self, other: Operand) -> Operand:
        """Return the same, of which the shape of another is known."""
        return Operand(self.name, self.dtype, other.shape)

    def with_rank(self, ndim: int) -> Operand:
        """Return the same, of which no more than the rank is known."""
        return Operand(self.name, self.dtype, (None,) * ndim)

    @property
    def ndim(self) -> int:
        """Return the rank; NotStandard if it is not known."""
        if self.shape is None or any(size is Ellipsis for size in self.shape):
            raise NotStandard("the rank of an argument is not known")
        return len(self.shape)


class Emitter:
    """Collect the operators of one call.

    `writer` has ``fresh(hint)`` and ``initializer(array, hint)``, each of which returns a name; names begin with
    `base`. `carriers` gives the number of a symbolic size: an array and its axis. `outputs` is what the call computes,
    as far as that is known.
    """

    def __init__(
        self, writer: Any, base: str, carriers: dict[str, tuple[Operand, int]], outputs: tuple[Operand, ...]
    ) -> None:
        self.writer = writer
        self.base = base
        self.carriers = carriers
        self.outputs = outputs
        self.nodes: list[Any] = []
        self._sizes: dict[str, Operand] = {}

    def add(self, op_type: str, *inputs: Operand | None, dtype: Any = None, **attributes: Any) -> Operand:
        """Add an operator with one result, of the dtype of its first input if none is given."""
        return self.add_many(op_type, 1, *inputs, dtype=dtype, **attributes)[0]

    def add_many(
        self, op_type: str, count: int, *inputs: Operand | None, dtype: Any = None, **attributes: Any
    ) -> list[Operand]:
        """Add an operator with several results."""
        first = next(operand for operand in inputs if operand is not None)
        data = inputs[1] if op_type == "Where" else first
        other = _INSTEAD.get(op_type, {}).get(str(None if data is None else data.dtype))
        if data is not None and other is not None:
            have = data.dtype
            start = int(op_type == "Where")
            given = [
                self.cast(x, other) if k >= start and x is not None and x.dtype == have else x
                for k, x in enumerate(inputs)
            ]
            kind = have if dtype is None else np.dtype(dtype)
            computed = np.dtype(other) if kind == have else kind
            made = self.add_many(op_type, count, *given, dtype=computed, **attributes)
            return [self.cast(x, kind) for x in made]
        for k, operand in enumerate(inputs):
            if operand is not None and operand.dtype is not None:
                takes = _types_of(op_type, k)
                if _type_text(operand.dtype) not in takes:
                    raise NotStandard(f"{op_type} takes no {operand.dtype}")
        names = [self.writer.fresh(f"{self.base}/{op_type}") for _ in range(count)]
        self.nodes.append(
            helper.make_node(
                op_type,
                ["" if operand is None else operand.name for operand in inputs],
                names,
                name=names[0],
                **{key: value for key, value in attributes.items() if value is not None},
            )
        )
        if dtype is None:
            dtype = first.dtype
        return [Operand(name, np.dtype(dtype)) for name in names]

    def constant(self, value: Any, dtype: Any = None) -> Operand:
        """Add an initializer."""
        try:
            array = np.asarray(value, dtype)
        except OverflowError as error:
            raise NotStandard(str(error)) from None
        if array.dtype == object and not all(isinstance(item, str | bytes) for item in array.ravel().tolist()):
            raise NotStandard(f"an array of objects, {value!r:.80}")
        return Operand(self.writer.initializer(array, f"{self.base}/constant"), array.dtype, array.shape)

    def operand(self, x: Any) -> Operand:
        """Return an argument as a tensor: an array of the graph, or a constant."""
        if isinstance(x, Operand):
            return x
        if isinstance(x, Dim):
            return Operand(
                self.add("Reshape", self.size(x), self.constant(np.empty(0, np.int64))).name, np.dtype(np.int64), ()
            )
        array = np.asarray(x)
        if array.dtype.kind not in "biufc":
            raise NotStandard(f"{type(x).__name__} {x!r:.80} is no tensor")
        return self.constant(array)

    def of_kind(self, x: Any, kinds: str, what: str) -> Operand:
        """Return an argument as a tensor of one of these kinds of dtype; NotStandard, with what is of it, otherwise."""
        tensor = self.operand(x)
        if tensor.dtype is None or tensor.dtype.kind not in kinds:
            raise NotStandard(f"{what} of {tensor.dtype}")
        return tensor

    def cast(self, x: Operand, dtype: Any) -> Operand:
        """Return the same numbers of another dtype."""
        dtype = np.dtype(dtype)
        if x.dtype is None:
            raise NotStandard("the dtype of an argument is not known")
        if x.dtype == dtype:
            return x
        if x.dtype.kind == "c" or dtype.kind not in "biuf":
            raise NotStandard(f"ONNX has no cast from {x.dtype} to {dtype}")
        made = self.add("Cast", x, dtype=dtype, to=code_of(dtype))
        return Operand(made.name, dtype, x.shape)

    def shape(self, x: Operand, axis: int | None = None) -> Operand:
        """Return the sizes of an array as an int64 vector; of one axis alone, if that is given."""
        only = {} if axis is None else {"start": axis, "end": axis + 1}
        return self.add("Shape", x, dtype=np.int64, **only)

    def size(self, dim: Any) -> Operand:
        """Return a size as an int64 tensor of shape ``[1]``."""
        return self._symbolic(dim) if isinstance(dim, Dim) else self.ints([dim])

    def ints(self, values: Any) -> Operand:
        """Return sizes, or other integers, as an int64 vector."""
        values = list(values) if isinstance(values, tuple | list | np.ndarray) else [values]
        if any(isinstance(value, Dim) for value in values):
            return self.add("Concat", *map(self.size, values), axis=0)
        try:
            return self.constant(np.array([int(value) for value in values], np.int64))
        except TypeError:
            raise NotStandard(f"{values!r:.80} are no integers") from None

    def _symbolic(self, dim: Dim) -> Operand:
        total: Operand | None = None
        for monomial, factor in dim.terms:
            term = self.size(factor) if factor != 1 or not monomial else None
            for atom in monomial:
                value = self._atom(atom)
                term = value if term is None else self.add("Mul", term, value)
            assert term is not None
            total = term if total is None else self.add("Add", total, term)
        return self.size(0) if total is None else total

    def _atom(self, atom: Any) -> Operand:
        if isinstance(atom, Quotient):
            if any(factor < 0 for part in (atom.num, atom.den) if isinstance(part, Dim) for _, factor in part.terms):
                raise NotStandard(f"{atom.text} may be negative, where the division of ONNX rounds another way")
            return self.add("Div", self.size(atom.num), self.size(atom.den))
        name = str(atom)
        if name not in self._sizes:
            if name not in self.carriers:
                raise NotStandard(f"no array of the call has an axis of the size {name}")
            array, axis = self.carriers[name]
            # Without an axis the array is the number itself, that of an iteration.
            self._sizes[name] = self.shape(array, axis) if axis >= 0 else self.add("Reshape", array, self.ints([1]))
        return self._sizes[name]
