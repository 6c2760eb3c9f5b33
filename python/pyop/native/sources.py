"""Find compiled code and its types: Cython modules, capsules, ctypes, cffi, numba, addresses."""

from __future__ import annotations

import ctypes
import importlib
import re
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from .c_types import CSignature, dtype_of_ctype, read_c_signature

__all__ = ["Kind", "Source", "find"]

KERNEL_CAPSULE = b"pyop.kernel"
KERNEL_VERSION = 1
_GIL, _STATEFUL, _RAISES = 1, 2, 4  # enum pyop_kernel_flags
_PYTHON_API = 4  # ctypes' FUNCFLAG_PYTHONAPI


class Kind(IntEnum):
    """Number what a function is called with; ``enum pyop_kernel_kind`` of <pyop/kernel.h>."""

    KERNEL = 0
    UFUNC_LOOP = 1
    SCALAR = 2


KINDS = {"kernel": Kind.KERNEL, "ufunc_loop": Kind.UFUNC_LOOP, "scalar": Kind.SCALAR}


class Source(NamedTuple):
    """Hold a function in memory, the object that keeps it there, and what is known of it."""

    address: int
    owner: Any
    name: str
    kind: Kind
    c: CSignature | None = None  # of a function of numbers
    gil: bool = False
    raises: bool = False
    stateful: bool = False
    data: int = 0
    message: int = 0
    declaration: str | None = None
    parameters: tuple[str, ...] | None = None
    importable: tuple[str, str] | None = None  # module and name
    zeros: int = 0  # arguments behind those of the text, which are zero


class _KernelInfo(ctypes.Structure):
    """Mirror ``pyop_kernel_info`` of <pyop/kernel.h>."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("function", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("declaration", ctypes.c_char_p),
        ("c_signature", ctypes.c_char_p),
        ("message", ctypes.c_void_p),
    )


def find(source: Any, name: str | None, signature: str | None, kind: str | None) -> Source:
    """Find the code that `pyop.native_op` is given."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind={kind!r}: expected one of {', '.join(map(repr, KINDS))}")
    capsules = getattr(source, "__pyx_capi__", None)
    if capsules is not None:
        _only_for_addresses(signature, "a Cython module, which tells the C signature itself")
        return _of_cython(source, capsules, name, kind)
    if type(source).__name__ == "PyCapsule":
        _only_for_addresses(signature, "a capsule, which tells what it holds")
        return _of_capsule(source, name)
    if isinstance(source, int) and not isinstance(source, bool):
        return _of_address(source, name, signature, kind)
    if hasattr(source, "address") and hasattr(source, "ctypes"):  # numba's cfunc
        _only_for_addresses(signature, "a numba cfunc, which tells its types")
        return _of_ctypes(source.ctypes, name or source.__name__, kind, source, _names_of(source))
    if isinstance(source, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        _only_for_addresses(signature, "a function of ctypes: set its argtypes and restype")
        return _of_ctypes(source, name or getattr(source, "__name__", None) or "kernel", kind, source, None)
    if type(source).__module__ == "_cffi_backend":
        _only_for_addresses(signature, "a function of cffi, which tells its types")
        return _of_cffi(source, name, kind)
    if isinstance(source, np.ufunc) or hasattr(source, "ufunc"):
        raise TypeError(
            f"native_op takes no ufunc, got {source!r:.80}: plans run ufuncs as they are; to declare one, pyop.op "
            "takes it"
        )
    raise TypeError(
        "native_op takes a Cython module and a name, a PyCapsule 'pyop.kernel', a function of ctypes or cffi, a numba "
        f"cfunc, or an address with signature=, got {type(source).__name__} {source!r:.80}"
    )


def _only_for_addresses(signature: str | None, what: str) -> None:
    if signature is not None:
        raise TypeError(f"signature= goes with an address, and this is {what}")


# --- by the text of a C signature


def kind_of_text(text: str, kind: str | None) -> Kind:
    """Return the kind of a function of this C signature: over arrays if it takes four pointers, or as `kind` says."""
    if kind is not None:
        return KINDS[kind]
    result, _, rest = text.partition("(")
    parts = rest.rstrip(") ").split(",")
    stars = [part.count("*") + part.count("[") for part in parts]
    if len(parts) == 4 and stars[0] == 2 and stars[1:] == [1, 1, 1]:
        if result.split() == ["int"]:
            return Kind.KERNEL
        if result.split() == ["void"]:
            return Kind.UFUNC_LOOP
    return Kind.SCALAR


def _of_text(text: str, name: str, kind: str | None, **known: Any) -> Source:
    calls = kind_of_text(text, kind)
    c = read_c_signature(text, name) if calls is Kind.SCALAR else None
    return Source(name=name, kind=calls, c=c, **known)


# What a 'cpdef' function takes behind its arguments, and one with optional arguments. Cython's own calls pass zero:
# "look for a method of a subclass, where there is one" and "none of them is given".
_OF_CYTHON_ALONE = re.compile(r",? *(int __pyx_skip_dispatch|struct __pyx_opt_args_\w+ \*__pyx_optional_args)")


def _of_cython(module: Any, capsules: dict[str, Any], name: str | None, kind: str | None) -> Source:
    functions = ", ".join(sorted(capsules)) or "none"
    label = getattr(module, "__name__", type(module).__name__)
    if name is None:
        raise TypeError(f"native_op({label}): name the function of the module; it has {functions}")
    capsule = capsules.get(name)
    if capsule is None:
        raise AttributeError(
            f"module {label!r} exports no C function {name!r}, only: {functions}; declare it 'cdef api' in Cython"
        )
    text = _capsule_name(capsule).decode()
    plain, zeros = _OF_CYTHON_ALONE.subn("", text)
    if zeros and kind in ("kernel", "ufunc_loop"):
        raise TypeError(
            f"{label}.{name} is {text!r} in C, with an argument that no {kind} has: declare a 'cdef api' function"
        )
    # The text tells neither `nogil` nor `except`: without the GIL only who says so, and errors are looked for.
    importable = (label, name) if isinstance(label, str) else None
    return _of_text(
        plain,
        name,
        "scalar" if zeros else kind,
        zeros=zeros,
        address=_capsule_pointer(capsule, text.encode()),
        owner=(module, capsule),
        gil=True,
        raises=True,
        importable=importable,
    )


def _of_address(address: int, name: str | None, signature: str | None, kind: str | None) -> Source:
    if address <= 0:
        raise ValueError(f"native_op({address}): no function is at this address")
    if kind in ("kernel", "ufunc_loop"):
        return Source(address, None, name or "kernel", KINDS[kind], gil=True, raises=True)
    if signature is None:
        raise TypeError(
            "native_op of an address needs signature=, such as 'double (double, double)', or kind='kernel' or "
            "'ufunc_loop'"
        )
    return _of_text(signature, name or "kernel", kind, address=address, owner=None, gil=True, raises=True)


# --- capsules

_capsule_name_of = ctypes.pythonapi.PyCapsule_GetName
_capsule_name_of.restype, _capsule_name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer_of.restype, _capsule_pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _capsule_name(capsule: Any) -> bytes:
    name: bytes | None = _capsule_name_of(capsule)
    return name or b""


def _capsule_pointer(capsule: Any, name: bytes) -> int:
    pointer: int = _capsule_pointer_of(capsule, name)
    return pointer


def _of_capsule(capsule: Any, name: str | None) -> Source:
    label = _capsule_name(capsule)
    if label != KERNEL_CAPSULE:
        raise TypeError(f"native_op takes a capsule named 'pyop.kernel' (<pyop/kernel.h>), got {label.decode()!r}")
    info = _KernelInfo.from_address(_capsule_pointer(capsule, label))
    if info.version != KERNEL_VERSION:
        raise ValueError(
            f"the kernel was compiled for version {info.version} of <pyop/kernel.h>, this pyop reads version "
            f"{KERNEL_VERSION}"
        )
    if info.kind not in tuple(Kind):
        raise ValueError(f"the capsule's kernel is of kind {info.kind}, which <pyop/kernel.h> does not know")
    kind = Kind(info.kind)
    label_text = name or (info.name or b"kernel").decode()
    c = None
    if kind is Kind.SCALAR:
        if not info.c_signature:
            raise ValueError(f"the capsule of {label_text!r} holds a function of numbers without its c_signature")
        c = read_c_signature(info.c_signature.decode(), label_text)
    return Source(
        info.function or 0,
        capsule,
        label_text,
        kind,
        c,
        gil=bool(info.flags & _GIL),
        raises=bool(info.flags & (_RAISES | _GIL)),
        stateful=bool(info.flags & _STATEFUL),
        data=info.data or 0,
        message=info.message or 0,
        declaration=info.declaration.decode() if info.declaration else None,
    )


# --- ctypes, numba and cffi


def _of_ctypes(function: Any, name: str, kind: str | None, owner: Any, parameters: tuple[str, ...] | None) -> Source:
    if any(type(held).__name__ == "CThunkObject" for held in _held(function)):
        raise TypeError(
            f"native_op({name!r}): this function of ctypes calls Python, and its exceptions are lost there: declare "
            "the Python function itself by pyop.op"
        )
    if function.argtypes is None:
        raise TypeError(
            f"native_op({name!r}): set argtypes and restype of the function of ctypes, for example "
            "f.argtypes, f.restype = [ctypes.c_double], ctypes.c_double"
        )
    python_api = bool(function._flags_ & _PYTHON_API)
    known: dict[str, Any] = {
        "address": ctypes.cast(function, ctypes.c_void_p).value,
        "owner": owner,
        "gil": python_api,
        "raises": python_api,
        "parameters": parameters,
    }
    inputs = [dtype_of_ctype(part) for part in function.argtypes]
    output = dtype_of_ctype(function.restype)
    text = f"{_ctype_name(function.restype)} ({', '.join(map(_ctype_name, function.argtypes))})"
    pointers = len(inputs) == 4 and all(map(_is_pointer, function.argtypes))
    if kind in ("kernel", "ufunc_loop") or (kind is None and pointers and function.restype in (None, ctypes.c_int)):
        calls = KINDS[kind] if kind is not None else Kind.UFUNC_LOOP if function.restype is None else Kind.KERNEL
        if not pointers or function.restype is not (ctypes.c_int if calls is Kind.KERNEL else None):
            raise TypeError(
                f"native_op({name!r}): a {calls.name.lower()} is {'int' if calls is Kind.KERNEL else 'void'} (char **, "
                f"const intptr_t *, const intptr_t *, void *), but the function of ctypes is {text!r}"
            )
        return Source(name=name, kind=calls, **known)
    if output is None or not inputs or any(dtype is None for dtype in inputs):
        raise TypeError(
            f"native_op({name!r}): pyop loops over C functions of numbers (float, double, bool and the integers), but "
            f"the function of ctypes is {text!r}"
        )
    c = CSignature(tuple(dtype for dtype in inputs if dtype is not None), output, text)
    return Source(name=name, kind=Kind.SCALAR, c=c, **known)


def _held(function: Any) -> list[Any]:
    held = getattr(function, "_objects", None)
    return list(held.values()) if isinstance(held, dict) else [held]


def _ctype_name(kind: Any) -> str:
    return "void" if kind is None else getattr(kind, "__name__", repr(kind))


def _is_pointer(kind: Any) -> bool:
    return kind is ctypes.c_void_p or (isinstance(kind, type) and issubclass(kind, ctypes._Pointer))


def _names_of(cfunc: Any) -> tuple[str, ...] | None:
    code: Any = getattr(getattr(cfunc, "__wrapped__", None), "__code__", None)
    return None if code is None else code.co_varnames[: code.co_argcount]


def _of_cffi(function: Any, name: str | None, kind: str | None) -> Source:
    _cffi_backend: Any = importlib.import_module("_cffi_backend")

    ctype = _cffi_backend.typeof(function)
    if ctype.kind != "function":
        raise TypeError(f"native_op takes a function of cffi, got {function!r:.80}; ffi.addressof(lib, 'name') is one")
    if "OwnGC" in type(function).__name__ or "calling" in repr(function):
        raise TypeError(
            f"native_op({name!r}): this callback of cffi calls Python, and its exceptions are lost there: declare "
            "the Python function itself by pyop.op"
        )
    if ctype.ellipsis:
        raise TypeError(f"native_op: {ctype.cname!r} takes a variable number of arguments")
    text = f"{ctype.result.cname} ({', '.join(part.cname for part in ctype.args)})"
    address = int(_cffi_backend.cast(_cffi_backend.new_primitive_type("uintptr_t"), function))
    return _of_text(text, name or "kernel", kind, address=address, owner=function)
