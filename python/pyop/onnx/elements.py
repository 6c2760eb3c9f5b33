"""Element types, sizes and contents of tensors: what ONNX calls them, what NumPy and pyop call them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..declare.dims import Dim

__all__ = ["STRING", "code_of", "dtype_of", "name_of", "printable", "size_of", "to_array"]

STRING = 8
_DIM_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")

_NAMES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
}
_CODES = {np.dtype(name): code for code, name in _NAMES.items()}


def dtype_of(code: int) -> np.dtype[Any] | None:
    """The dtype of an element type, None for text, which NumPy has several for; ValueError if there is no such type."""
    name = _NAMES.get(code)
    if name is not None:
        return np.dtype(name)
    if code == STRING:
        return None
    from onnx import TensorProto, helper

    if code == TensorProto.UNDEFINED or code not in TensorProto.DataType.values():
        raise ValueError(f"{code} is not an element type of ONNX")
    dtype: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(code))
    return dtype


def code_of(dtype: Any) -> int:
    """The element type of a dtype; ValueError if ONNX has none for it."""
    dtype = np.dtype(dtype)
    code = _CODES.get(dtype)
    if code is not None:
        return code
    if dtype.kind in "UT":
        return STRING
    from onnx import helper

    if dtype.kind not in "OSMmV" or dtype.type.__module__.partition(".")[0] == "ml_dtypes":
        try:
            return int(helper.np_dtype_to_tensor_dtype(dtype))
        except ValueError:
            pass
    raise ValueError(f"ONNX has no element type for {dtype}")


def name_of(code: int) -> str:
    """What to call an element type in a message."""
    if code in _NAMES:
        return _NAMES[code]
    if code == STRING:
        return "string"
    try:
        return str(dtype_of(code))
    except ValueError:
        return f"element type {code}"


def printable(text: object) -> str:
    """A stranger's text, which must not speak to the terminal, or turn the direction of what follows."""
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text)])


def to_array(tensor: Any, what: str) -> np.ndarray[Any, Any]:
    """The array of a TensorProto; ValueError if its bytes, dims and element type do not fit together."""
    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError(f"{what} is kept in another file: load the model by its path")
    if any(size < 0 for size in tensor.dims):
        raise ValueError(f"{what} has a negative size: {list(tensor.dims)!r:.80}")
    try:
        array = numpy_helper.to_array(tensor)
    except Exception as error:
        raise ValueError(f"{what} is no tensor: {type(error).__name__}: {printable(error):.300}") from error
    return np.asarray(array)


def size_of(dim: Any, what: str) -> int | Dim | None:
    """A size of a TypeProto; None where it may be any."""
    case = dim.WhichOneof("value")
    if case == "dim_value":
        if dim.dim_value < 0:
            raise ValueError(f"{what} has the negative size {dim.dim_value}")
        return int(dim.dim_value)
    # Names that shape inference makes up mean nothing: it gives the same ones to unrelated sizes.
    if case == "dim_param" and _DIM_NAME.match(dim.dim_param) and not dim.dim_param.startswith("PythonOp_unknown"):
        return Dim(dim.dim_param)
    return None
