"""Handle the keywords that every ufunc takes in its derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from .table import NoRule, name_of
from .unbroadcast import is_complex

__all__ = ["OPTIONS", "check_options", "computed_with", "refuse_narrowing"]

OPTIONS = frozenset(("where", "dtype", "casting", "order", "subok", "signature", "out"))


def check_options(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise NoRule for options of an elementwise ufunc that change its derivative."""
    refuse_narrowing(func, kwargs.get("dtype"), *args)
    if kwargs.get("where", True) is not True:
        raise NoRule(
            f"{name_of(func)}(where=...) leaves elements undefined and has no gradient: "
            "use np.where(mask, result, other)"
        )


def computed_with(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments as a ufunc computes with them: complex ones with ``dtype=complex``."""
    dtype = kwargs.get("dtype")
    if dtype is None or np.dtype(dtype).kind != "c":
        return args
    zero = np.zeros((), dtype)
    return tuple([x if is_complex(x) else x + zero for x in args])


def refuse_narrowing(func: Any, dtype: Any, *args: Any) -> None:
    """Raise for a ``dtype=`` that drops imaginary parts before a function that is not linear is computed."""
    if dtype is None or dtype is np._NoValue or np.dtype(dtype).kind == "c":
        return
    if any(is_complex(x) for x in args):
        raise NoRule(f"{name_of(func)}(dtype={np.dtype(dtype)}) of complex numbers has no gradient rule: use np.real")
