"""Convert element types, sizes and contents of tensors between ONNX, NumPy and pyop."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ..declare.dims import Dim
from ..declare.spec import Spec

__all__ = ["STRING", "code_of", "dtype_of", "name_of", "printable", "spec_of", "to_array"]

STRING: int = TensorProto.STRING
_DIM_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")

_DTYPES: dict[int, np.dtype[Any]] = {
    code: np.dtype(helper.tensor_dtype_to_np_dtype(code))
    for code in TensorProto.DataType.values()
    if code not in (TensorProto.UNDEFINED, STRING)
}
_CODES: dict[Any, int] = {dtype: code for code, dtype in _DTYPES.items()}


def dtype_of(code: int) -> np.dtype[Any] | None:
    """Return the dtype of an element type, None for text, which has several; ValueError if there is no such type."""
    if code not in _DTYPES and code != STRING:
        raise ValueError(f"{code} is not an element type of ONNX")
    return _DTYPES.get(code)


def code_of(dtype: Any) -> int:
    """Return the element type of a dtype; ValueError if ONNX has none for it."""
    dtype = np.dtype(dtype)
    if dtype.kind in "UT":
        return STRING
    if dtype not in _CODES:
        raise ValueError(f"ONNX has no element type for {dtype}")
    return _CODES[dtype]


def name_of(code: int) -> str:
    """Return the name of an element type in a message."""
    return "string" if code == STRING else str(_DTYPES.get(code, f"element type {code}"))


def printable(text: object) -> str:
    """Return untrusted text with escapes for characters that would control the terminal, or the text direction."""
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text)])


def to_array(tensor: Any, what: str) -> np.ndarray[Any, Any]:
    """Return the array of a TensorProto; ValueError if its bytes, dims and element type do not fit together."""
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError(f"{what} is kept in another file: load the model by its path")
    if any(size < 0 for size in tensor.dims):
        raise ValueError(f"{what} has a negative size: {list(tensor.dims)!r:.80}")
    try:
        array = numpy_helper.to_array(tensor)
    except Exception as error:
        raise ValueError(f"{what} is no tensor: {type(error).__name__}: {printable(error):.300}") from error
    return np.asarray(array)


def _size_of(dim: Any, what: str) -> int | Dim | None:
    """Return a size of a TypeProto; None where it may be any."""
    case = dim.WhichOneof("value")
    if case == "dim_value":
        if dim.dim_value < 0:
            raise ValueError(f"{what} has the negative size {dim.dim_value}")
        return int(dim.dim_value)
    # Names that shape inference makes up mean nothing: it gives the same ones to unrelated sizes.
    if case == "dim_param" and _DIM_NAME.match(dim.dim_param) and not dim.dim_param.startswith("PythonOp_unknown"):
        return Dim(dim.dim_param)
    return None


def spec_of(kind: Any, what: str) -> Spec | None:
    """Return the spec of a TypeProto, None if it is no tensor; ValueError if NumPy has no such arrays."""
    case = kind.WhichOneof("value")
    if case is None:
        return Spec()
    if case != "tensor_type":
        return None
    tensor = kind.tensor_type
    try:
        dtype = dtype_of(tensor.elem_type) if tensor.elem_type else None
    except ValueError as error:
        raise ValueError(f"{what}: {printable(error)}") from None
    if not tensor.HasField("shape"):
        return Spec(dtype)
    if len(tensor.shape.dim) > 64:
        raise ValueError(f"{what} has {len(tensor.shape.dim)} dimensions: NumPy has at most 64")
    return Spec(dtype, tuple(_size_of(dim, what) for dim in tensor.shape.dim))
