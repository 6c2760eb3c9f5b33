"""Find the ufunc that NumPy's ``array ** number`` calls: for some numbers not np.power, and by release.

A subclass of ndarray is asked, once for each dtype and number: the operator passes its ufunc to ``__array_ufunc__``.
The answer is used only if a plain array then gives the bits of that ufunc.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["power_of"]

_CALLS: list[tuple[np.ufunc, str, tuple[Any, ...], dict[str, Any]]] = []


class _Listening(np.ndarray[Any, Any]):
    """Record which ufunc an array is passed to."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        _CALLS.append((ufunc, method, inputs, kwargs))
        return self


def power_of(dtype: np.dtype[Any], number: Any) -> np.ufunc | None:
    """Return the ufunc that ``array ** number`` calls on an array of this dtype, with the number if it takes two.

    It is None where the operator does something else, or where that is uncertain.

    >>> import numpy as np
    >>> from pyop.graph.powers import power_of
    >>> power_of(np.dtype(float), 0.5)
    <ufunc 'sqrt'>
    """
    return _power_of(dtype, str(type(number)), number)


@lru_cache(maxsize=1024)  # 2 and 2.0 are equal, but may be powers of their own; -0.0 and 0.0 are alike
def _power_of(dtype: np.dtype[Any], kind: str, number: Any) -> np.ufunc | None:
    sample = _sample(dtype)
    _CALLS.clear()
    try:
        with np.errstate(all="ignore"):
            sample.view(_Listening) ** number
            if len(_CALLS) != 1:
                return None
            ufunc, method, inputs, kwargs = _CALLS[0]
            given = (sample, number) if ufunc.nin == 2 else (sample,)
            same = inputs[0].dtype == dtype and inputs[0].shape == sample.shape and (inputs[1:] == given[1:])
            if method != "__call__" or kwargs or ufunc.nout != 1 or not same:
                return None
            want, got = sample**number, ufunc(*given)
    except Exception:  # the operator itself will raise it, when it runs
        return None
    finally:
        _CALLS.clear()
    return ufunc if want.dtype == got.dtype and (want == got).all() else None


def _sample(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return numbers whose powers by different ufuncs differ in the last bit here and there."""
    numbers = np.linspace(0.5, 9.0, 777)  # no random ones: importing np.random takes milliseconds
    return (numbers * (1 + 0.5j)).astype(dtype) if dtype.kind == "c" else numbers.astype(dtype)
