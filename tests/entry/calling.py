"""Calls of plans through their addresses, as C makes them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

# The order of `pyop_table` in <pyop/entry.h>, behind version and size.
_NAMES = ("call", "message", "raise", "is_native", "n_inputs", "n_outputs", "input", "output")


class Array(ctypes.Structure):
    """`pyop_array`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("itemsize", ctypes.c_size_t),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_size_t),
    ]

    def told(self) -> tuple[str, str, tuple[int, ...]]:
        return self.name.decode(), self.dtype.decode(), tuple(self.shape[: self.ndim])


def function(plan: Any, name: str, restype: Any, *argtypes: Any, gil: bool = False) -> Any:
    """A function of the plan's table; `gil`: called as who holds it calls, and then Python's error is raised."""
    table = ctypes.c_void_p.from_address(plan.address).value
    at = ctypes.c_void_p.from_address(table + 8 * (1 + _NAMES.index(name))).value
    return (ctypes.PYFUNCTYPE if gil else ctypes.CFUNCTYPE)(restype, *argtypes)(at)


def pointers(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])


def told(plan: Any) -> tuple[list[Any], list[Any]]:
    """What `pyop_input` and `pyop_output` say."""
    sides = []
    for side in ("input", "output"):
        n = function(plan, f"n_{side}s", ctypes.c_size_t, ctypes.c_void_p)(plan.address)
        one = function(plan, side, ctypes.POINTER(Array), ctypes.c_void_p, ctypes.c_size_t)
        sides.append([one(plan.address, i).contents.told() for i in range(n)])
        assert not one(plan.address, n)
    return sides[0], sides[1]


def call(plan: Any, arrays: list[np.ndarray], results: list[np.ndarray], *, gil: bool = False) -> int:
    arrays = [np.asarray(a) for a in arrays]  # kept until the end
    kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return function(plan, "call", ctypes.c_int, *kinds, gil=gil)(plan.address, pointers(arrays), pointers(results))


def message(plan: Any) -> str:
    return function(plan, "message", ctypes.c_char_p)().decode()


def results_for(plan: Any) -> list[np.ndarray]:
    """Arrays of the plan's results, with a pattern in them that no plan writes by chance."""
    return [np.frombuffer(bytearray(b"\xa5" * (int(np.prod(shape)) * np.dtype(dtype).itemsize)), dtype).reshape(shape)
            for _, dtype, shape in told(plan)[1]]  # fmt: skip
