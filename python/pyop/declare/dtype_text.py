"""Read NumPy dtypes from the text of declarations, and write them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, cast

import numpy as np

__all__ = ["KINDS", "AnyDType", "as_dtype", "dtype_name", "dtype_named", "expected_dtype", "is_of_kind"]

AnyDType = np.dtype[np.generic]

# Letters that are not NumPy type codes, and T: that is one (StringDType), but everybody's name of a type variable too.
# StringDType goes by its full name.
_TYPE_VARIABLE: Final = r"[ACEJKRTWXYZ]\d{0,6}"
_CODE: Final = r"[<>=|]?([A-Za-z_][A-Za-z0-9_]{0,63}(\[\d*(generic|[A-Za-z]{1,2})\])?|\?)"
# Kinds of dtypes in NumPy's words, each a type variable of that name that is bound to dtypes of the kind alone;
# csrc/array/contract/match.cpp has the same.
KINDS: Final[dict[str, str]] = {
    "number": "iufc",
    "integer": "iu",
    "signedinteger": "i",
    "unsignedinteger": "u",
    "inexact": "fc",
    "floating": "f",
    "complexfloating": "c",
}
# Dtypes of the package ml_dtypes, which NumPy knows by these names once it is imported.
_OF_ML_DTYPES: Final = r"bfloat16|float8_e[0-9a-z]+|float6_e[0-9a-z]+|float4_e[0-9a-z]+|u?int[124]"
_STRING_DTYPE: Final = cast(AnyDType, np.dtypes.StringDType())
_PYTHON_TYPES: Final = (bool, int, float, complex, str, bytes, object)


@lru_cache(maxsize=512)
def dtype_named(text: str) -> AnyDType | str | None:
    """Return the native dtype, or the type variable, that a text names; None if it names neither.

    A type variable is one upper-case letter, optionally followed by digits, that is not a NumPy type code: T, T1, X.

    >>> dtype_named("f8"), dtype_named("T"), dtype_named("float46")
    (dtype('float64'), 'T', None)
    """
    if re.fullmatch(_TYPE_VARIABLE, text, re.ASCII) or text in KINDS:
        return text
    if text == "StringDType":
        return _STRING_DTYPE
    # NumPy reads "a" as bytes, but warns that it will not for long.
    if not re.fullmatch(_CODE, text, re.ASCII) or re.fullmatch(r"[<>=|]?a\d*", text):
        return None
    if re.fullmatch(_OF_ML_DTYPES, text):
        return _of_ml_dtypes(text)
    try:
        return _native(np.dtype(text))
    except Exception:  # NumPy has several ways of saying no: TypeError, ValueError, a warning made an error
        return None


def _of_ml_dtypes(name: str) -> AnyDType | None:
    try:
        import ml_dtypes
    except ImportError:
        return None
    dtype = getattr(ml_dtypes, name, None)
    return None if dtype is None else np.dtype(dtype)


def is_of_kind(dtype: AnyDType, kind: str) -> bool:
    """Return whether a dtype may be bound to a type variable of this name; ml_dtypes are judged by their names.

    >>> import numpy as np
    >>> is_of_kind(np.dtype("float32"), "floating"), is_of_kind(np.dtype("int8"), "floating")
    (True, False)
    >>> is_of_kind(np.dtype("int8"), "T")
    True
    """
    letters = KINDS.get(kind)
    if letters is None:
        return True
    if dtype.num < 256:
        return dtype.kind in letters
    name = dtype.name.removeprefix("b")
    return name.startswith(tuple(_BEGINNINGS[letter] for letter in letters))


_BEGINNINGS: Final = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


def dtype_name(dtype: AnyDType | str | None) -> str:
    """Return text that `dtype_named` reads back; NumPy's own for a structured dtype, which has no such text."""
    if dtype is None:
        return "_"
    if isinstance(dtype, str):
        return dtype
    if (name := _NAMES.get(dtype.num)) is not None:
        return name
    if dtype.char == "T":
        return "StringDType"
    if dtype.names is not None or dtype.subdtype is not None:
        return str(dtype)
    if (
        dtype.kind in "USV"
        and dtype.itemsize
        and type(dtype)
        in (
            np.dtypes.StrDType,
            np.dtypes.BytesDType,
            np.dtypes.VoidDType,
        )
    ):
        return dtype.str[1:]
    return dtype.name


def as_dtype(obj: Any) -> AnyDType | str | None:
    """Return the dtype that the user gave as text, np.dtype, scalar type, dtype class, or None for any.

    Byte order is dropped: it describes how an array is stored, not what a function takes.
    """
    if obj is None:
        return None
    if isinstance(obj, np.dtype):
        return _NUMBERS.get(obj.num) or _native(obj)
    if isinstance(obj, str):
        dtype = dtype_named(obj) if obj != "_" else None
        if dtype is None and obj != "_":
            raise ValueError(f"{obj[:80]!r} is not a dtype: {expected_dtype(obj)}")
        return dtype
    if isinstance(obj, type):
        if obj.__name__ in KINDS and obj is getattr(np, obj.__name__):
            return str(obj.__name__)
        if obj in _PYTHON_TYPES or issubclass(obj, np.generic):
            try:
                return _native(np.dtype(obj))
            except Exception as error:
                raise TypeError(f"{obj.__name__} is an abstract type, not a dtype: {error}") from None
        if issubclass(obj, np.dtype):
            dtype_class: Any = obj
            try:
                return _native(dtype_class())
            except Exception as error:
                raise TypeError(f"the dtype class {obj.__name__} needs parameters: give an instance") from error
    raise TypeError(
        f"expected a dtype (a NumPy name, np.dtype, scalar type, a type variable such as 'T', or None), "
        f"got {type(obj).__name__} {obj!r:.80}"
    )


def expected_dtype(text: str) -> str:
    """Return the error text for a text that is not a dtype, with a close match if there is one."""
    from difflib import get_close_matches  # only on the way to an error

    known = {np.dtype(code).name for code in np.typecodes["All"]} | {"str", "bytes", "object", "void"}
    if re.fullmatch(_OF_ML_DTYPES, text):
        return "it is a dtype of the package ml_dtypes, which is not installed or has no dtype of this name"
    close = get_close_matches(text[:64], {*known, *KINDS}, n=1)
    hint = f", did you mean {close[0]!r}?" if close else ""
    return f"expected a NumPy dtype, a type variable such as T, or _ for any{hint}"


# One object for each built-in number type ("longlong" is "int64", and so is ">i8"), which the core compares by address.
_NAMES: Final = {np.dtype(code).num: np.dtype(code).name for code in "?bBhHiIlLqQefdgFDG"}
_NUMBERS: Final = {np.dtype(code).num: np.dtype(np.dtype(code).str) for code in "?bBhHiIlLqQefdgFDG"}


def _native(dtype: AnyDType) -> AnyDType:
    return _NUMBERS.get(dtype.num) or (dtype if dtype.isnative else dtype.newbyteorder("="))
