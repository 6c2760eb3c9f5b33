"""Convert tensors of torch to arrays and back, over the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

__all__ = ["as_array", "as_tensor", "as_tensors", "dtype_of", "torch_dtype"]

_BY_NUMPY = {
    np.dtype(name): getattr(torch, name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
_BY_TORCH = {theirs: ours for ours, theirs in _BY_NUMPY.items()}
# NumPy has them by the package ml_dtypes; torch shows their memory as integers of the same size.
_OF_ML_DTYPES = {
    name: getattr(torch, name)
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    if hasattr(torch, name)
}
_INTEGERS = {1: (torch.uint8, np.uint8), 2: (torch.uint16, np.uint16)}


def dtype_of(dtype: torch.dtype) -> np.dtype[Any]:
    """Return NumPy's dtype for one of torch's."""
    known: np.dtype[Any] | None = _BY_TORCH.get(dtype)
    if known is not None:
        return known
    name = str(dtype).removeprefix("torch.")
    if name in _OF_ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError(f"NumPy has {name} where the package ml_dtypes is installed, and it is not") from None
        converted: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        _BY_TORCH[dtype], _BY_NUMPY[converted] = converted, dtype
        return converted
    raise TypeError(f"NumPy has no dtype for {dtype}: pass x.to(...) of another one")


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return torch's dtype for one of NumPy's; TypeError if it has none."""
    known: torch.dtype | None = _BY_NUMPY.get(dtype)
    if known is None and dtype.name in _OF_ML_DTYPES:
        known = _BY_NUMPY[dtype] = _OF_ML_DTYPES[dtype.name]
    if known is None:
        raise TypeError(f"torch has no dtype for {dtype}: return arrays of another one, y.astype(...)")
    return known


def as_array(x: torch.Tensor) -> Any:
    """Return a tensor of the CPU as an array over its memory, in a kernel, where nobody asks for its gradient.

    A tensor that torch only marks as conjugated or negated is copied.
    """
    try:
        return x.numpy()
    except (TypeError, RuntimeError):
        x = x.detach().resolve_conj().resolve_neg()
    dtype = dtype_of(x.dtype)
    if x.dtype in _OF_ML_DTYPES.values():
        return x.view(_INTEGERS[dtype.itemsize][0]).numpy().view(dtype)
    return x.numpy()


def as_tensor(y: Any) -> torch.Tensor:
    """Return a result as a tensor, over its memory where that is the result's own and laid out in C order.

    Others are copied: torch compiles for the layout that it was told of, and writes into its inputs.
    """
    if not y.flags.carray:
        y = np.array(y, order="C")
    try:
        return torch.from_numpy(y)
    except TypeError:
        theirs = torch_dtype(y.dtype)
    return torch.from_numpy(y.view(_INTEGERS[y.dtype.itemsize][1])).view(theirs)


def as_tensors(results: tuple[Any, ...], arguments: list[Any]) -> tuple[torch.Tensor, ...]:
    """Return results as tensors, none of which shows the memory of another, or of an argument.

    A function that returns its argument returns the very array that was passed; other views of it are read-only.
    """
    made: list[Any] = []
    for y in results:
        shared = any(y is x for x in arguments) or any(np.may_share_memory(y, other) for other in made)
        made.append(y.copy() if shared else y)
    return tuple([as_tensor(y) for y in made])
