"""Tell ONNX Runtime the shapes of results while it loads a model: `shapes_told` makes the function that it calls.

It is called for each node, several times, with shapes that have numbers and the model's own names for sizes. A size
that is one of the arguments' gets that one's name. One that is computed, or known only after the call, gets a name that
no other size has: ONNX Runtime takes sizes of one name for equal, and shares memory by that.

Nothing here is an error: a shape that is not told is found by the call, whose checks report mismatches.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from ..declare.dim import Dim

__all__ = ["shapes_told"]

Pointer = ctypes.c_void_p

# The places of ONNX Runtime's functions in its table, from version 17 on.
_CREATE_INFO, _SET_DIMENSIONS, _RANK, _DIMENSIONS, _NAMES = 57, 59, 61, 62, 63
_RELEASE_STATUS, _RELEASE_INFO = 93, 99
_INPUT, _SET_OUTPUT, _SET_NAMES = 268, 270, 271


class _Failed(Exception):
    """Report that ONNX Runtime has failed; its text is of no use here."""


def shapes_told(
    declared: Sequence[tuple[Any, ...] | None], infer: Callable[[Sequence[Any]], Sequence[Any]]
) -> Callable[[int, int], None]:
    """Return the function that tells ONNX Runtime the shapes of results.

    Parameters
    ----------
    declared : sequence of tuple or None
        Shapes of the inputs, None where any number of dimensions is taken.
    infer : callable
        From the shapes of the inputs, of ints and Dims, to those of the results: None for a shape or a size that is
        known only after the call.
    """

    def told(context: int, api: int) -> None:
        table = ctypes.cast(api, ctypes.POINTER(Pointer))

        def call(place: int, *arguments: Any) -> None:
            status = ctypes.CFUNCTYPE(Pointer, *map(type, arguments))(table[place])(*arguments)
            if status:
                ctypes.CFUNCTYPE(None, Pointer)(table[_RELEASE_STATUS])(status)
                raise _Failed

        try:
            names: dict[Any, str] = {}  # the model's, by what stands for them
            given = [_input(call, Pointer(context), k, shape, names) for k, shape in enumerate(declared)]
            for k, shape in enumerate(infer(given)):
                if shape is not None:
                    _tell(call, table, Pointer(context), k, shape, names)
        except Exception:
            return

    return told


def _at(x: Any) -> Any:
    return Pointer(ctypes.addressof(x))


def _input(call: Any, context: Any, k: int, told: tuple[Any, ...] | None, names: dict[Any, str]) -> tuple[Any, ...]:
    info, rank = Pointer(), ctypes.c_size_t()
    call(_INPUT, context, ctypes.c_size_t(k), _at(info))  # of the context, which drops it
    call(_RANK, info, _at(rank))
    n = rank.value
    if n == 0 and told != ():  # a shape that is not known looks the same
        if told is None:
            raise _Failed
        return tuple([size if type(size) is int else Dim(f"input_{k}_{j}") for j, size in enumerate(told)])
    sizes, texts = (ctypes.c_int64 * n)(), (ctypes.c_char_p * n)()
    call(_DIMENSIONS, info, _at(sizes), rank)
    call(_NAMES, info, _at(texts), rank)
    shape: list[Any] = []
    for j, (size, text) in enumerate(zip(sizes, texts, strict=True)):
        if size >= 0 and not text:
            shape.append(size)
        elif not text:
            shape.append(Dim(f"input_{k}_{j}"))
        else:
            known = [dim for dim, name in names.items() if name == text.decode()]
            dim = known[0] if known else Dim(f"name_{len(names)}")
            names[dim] = text.decode()
            shape.append(dim)
    return tuple(shape)


def _tell(call: Any, table: Any, context: Any, k: int, shape: Sequence[Any], names: dict[Any, str]) -> None:
    n = ctypes.c_size_t(len(shape))
    numbers = (ctypes.c_int64 * len(shape))(*[size if type(size) is int else -1 for size in shape])
    texts = (ctypes.c_char_p * len(shape))(*[_name(size, names).encode() for size in shape])
    info = Pointer()
    call(_CREATE_INFO, _at(info))
    try:
        call(_SET_DIMENSIONS, info, _at(numbers), n)
        call(_SET_NAMES, info, _at(texts), n)
        call(_SET_OUTPUT, context, ctypes.c_size_t(k), info)
    finally:
        ctypes.CFUNCTYPE(None, Pointer)(table[_RELEASE_INFO])(info)


def _name(size: Any, names: dict[Any, str]) -> str:
    if type(size) is int:
        return ""
    fresh = f"pyop {uuid.uuid4().hex}"
    return fresh if size is None else names.setdefault(size, fresh)
