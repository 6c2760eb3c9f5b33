"""Interpolate between the steps of an integration, as SciPy does. Needs SciPy: imported on first use."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import DenseOutput

from .._core import _Integration

__all__ = ["Interpolant", "blas"]

# As `csrc/ode/blas.h` reads them: by the name of the module of SciPy, and how the signature begins.
_FUNCTIONS = {
    "cython_blas": {"dgemv": "cii", "dgemm": "ccii", "ddot": "i", "zgemv": "cii", "zdotu": "i"},
    "cython_lapack": {"dgetrf": "ii", "dgetrs": "cii", "zgetrf": "ii", "zgetrs": "cii"},
}
_TYPES = {"c": "char *", "i": "int *"}


@cache
def blas() -> tuple[Any, ...] | None:
    """Return the functions of BLAS and LAPACK that SciPy has; None if they have other signatures than here."""
    from scipy.linalg import cython_blas, cython_lapack

    pointers = []
    for module, functions in ((cython_blas, _FUNCTIONS["cython_blas"]), (cython_lapack, _FUNCTIONS["cython_lapack"])):
        for name, begins in functions.items():
            capsule = module.__pyx_capi__.get(name)
            # The text of a capsule's signature: <capsule object "void (char *, int *, ...)" at 0x...>
            if f"({', '.join(_TYPES[c] for c in begins)}" not in repr(capsule):
                return None
            pointers.append(capsule)
    return tuple(pointers)


class Interpolant(DenseOutput):  # type: ignore[misc, unused-ignore]
    """Interpolate the state within one step."""

    def __init__(self, method: int, n: int, columns: int, segment: bytes) -> None:
        t_old, t = np.frombuffer(segment, count=2).tolist()
        super().__init__(t_old, t)
        self._made_of = method, n, columns, segment

    def _call_impl(self, t: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        times = np.ascontiguousarray(t, np.float64)
        states = np.frombuffer(_Integration.interpolate(blas(), *self._made_of, times.tobytes()))
        return states if t.ndim == 0 else states.reshape(self._made_of[1], -1)
