"""Read C types of numbers, and the signatures of C functions in text: ``"double (double, int)"``."""

from __future__ import annotations

import ctypes
import platform
import re
from typing import NamedTuple

import numpy as np

__all__ = ["CSignature", "dtype_of_ctype", "read_c_signature"]

_MODIFIERS = {"const", "volatile", "register", "restrict"}
_FLOATS = {"float": "f", "double": "d", "npy_float": "f", "npy_double": "d", "npy_float32": "f", "npy_float64": "d"}
_NAMED = {
    "size_t": "N",
    "ssize_t": "n",
    "Py_ssize_t": "n",
    "ptrdiff_t": "n",
    "npy_intp": "n",
    "npy_uintp": "N",
    "intptr_t": "n",
    "uintptr_t": "N",
    "bool": "?",
    "_Bool": "?",
    "bint": "i",
    "npy_bool": "?",
    "__pyx_t_5numpy_float64_t": "d",
    "__pyx_t_5numpy_float32_t": "f",
}
_SIZED = re.compile(r"(?:npy_)?(u?int)(8|16|32|64)(?:_t)?|__pyx_t_5numpy_(u?int)(8|16|32|64)_t")
_WORDS = {"signed", "unsigned", "char", "short", "int", "long"}
_INTEGERS = {("char",): "b", ("short",): "h", (): "i", ("long",): "l", ("long", "long"): "q"}
_SIGNATURE = re.compile(r"\s*(?P<result>[^()]+?)\s*\((?P<arguments>[^()]*)\)\s*", re.DOTALL)


class CSignature(NamedTuple):
    """Hold the argument and result dtypes of a C function of numbers, and its text."""

    inputs: tuple[np.dtype, ...]
    output: np.dtype
    text: str


def dtype_of_c(words: str) -> np.dtype | None:
    """Return the dtype of a C type of numbers; None for any other.

    >>> from pyop.native.c_types import dtype_of_c
    >>> dtype_of_c("unsigned long"), dtype_of_c("const double"), dtype_of_c("double *")
    (dtype('uint64'), dtype('float64'), None)
    """
    if "*" in words or "[" in words:
        return None
    names = [word for word in words.split() if word not in _MODIFIERS]
    if len(names) == 1:
        code = _FLOATS.get(names[0]) or _NAMED.get(names[0])
        if code is not None:
            return np.dtype(code)
        if sized := _SIZED.fullmatch(names[0]):
            return np.dtype((sized[1] or sized[3]) + (sized[2] or sized[4]))
    if not names or not _WORDS.issuperset(names):
        return None
    unsigned = "unsigned" in names
    kind = tuple(word for word in names if word in ("char", "short", "long"))
    if kind == ("char",) and not unsigned and "signed" not in names:
        return np.dtype("b" if _CHAR_IS_SIGNED else "B")
    code = _INTEGERS.get(kind)
    return None if code is None else np.dtype(code.upper() if unsigned else code)


_CHAR_IS_SIGNED = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


def read_c_signature(text: str, name: str) -> CSignature:
    """Read the text of a C signature.

    Raises
    ------
    TypeError
        It is no function of numbers; the message says which part.

    Examples
    --------
    >>> from pyop.native.c_types import read_c_signature
    >>> read_c_signature("double (double, int)", "f").inputs
    (dtype('float64'), dtype('int32'))
    """
    matched = _SIGNATURE.fullmatch(text)
    if matched is None:
        raise TypeError(f"the C signature of {name!r} is {text!r}, expected such as 'double (double, int)'")
    parts = [part.strip() for part in matched["arguments"].split(",")]
    inputs = tuple(_need(part, text, name) for part in parts if part not in ("", "void"))
    if not inputs:
        raise TypeError(f"the C function {name!r}, {text!r}, takes nothing: an op takes at least one array")
    return CSignature(inputs, _need(matched["result"], text, name), " ".join(text.split()))


def _need(part: str, text: str, name: str) -> np.dtype:
    words = part.split()
    dtype = dtype_of_c(part)
    if dtype is None and len(words) > 1 and words[-1].isidentifier() and words[-1] not in _WORDS:
        dtype = dtype_of_c(" ".join(words[:-1]))  # the last is the name of the argument
    if dtype is not None:
        return dtype
    raise TypeError(
        f"pyop cannot loop over the C function {name!r}, {text!r}: {part!r} is not a number type that it knows (float, "
        "double, bool and the integers); a kernel over arrays (<pyop/kernel.h>) can do anything: pass kind='kernel'"
    )


def dtype_of_ctype(kind: type | None) -> np.dtype | None:
    """Return the dtype of one of ctypes' types of numbers; None for any other.

    >>> import ctypes
    >>> from pyop.native.c_types import dtype_of_ctype
    >>> dtype_of_ctype(ctypes.c_double), dtype_of_ctype(ctypes.c_void_p)
    (dtype('float64'), None)
    """
    code = getattr(kind, "_type_", None)
    if kind is ctypes.c_longdouble or not isinstance(code, str) or code not in "?bBhHiIlLqQfd":
        return None
    return np.dtype(kind)
