"""Element types of tensors: what ONNX numbers them, what NumPy calls them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["STRING", "code_of", "dtype_of", "name_of"]

STRING = 8

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
    """The dtype of an element type; None for text, which NumPy has several dtypes for.

    Raises
    ------
    ValueError
        There is no such element type.
    """
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
    """The element type of a dtype.

    Raises
    ------
    ValueError
        ONNX has none for it.
    """
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
