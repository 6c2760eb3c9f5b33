"""What the tests of compile share."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, NamedTuple

import numpy as np

import pyop


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class State:
    x: Any
    v: Any


def same(got: Any, want: Any) -> None:
    """Equal trees of equal arrays, where NumPy's scalars may be arrays of no dimension."""
    if isinstance(want, np.ndarray | np.generic):
        assert isinstance(got, np.ndarray | np.generic)
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)
    elif dataclasses.is_dataclass(want):
        assert type(got) is type(want)
        same(vars(got), vars(want))
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key])
    elif isinstance(want, tuple | list):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
    else:
        assert type(got) is type(want)
        assert got == want or (got != got and want != want)


def outcome(f: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or that it raises: which of two errors comes first is not promised."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        try:
            return f(*args, **kwargs)
        except (ArithmeticError, LookupError, ValueError, TypeError):
            return "raises"


def agree(f: Any, compiled: Any, *args: Any, **kwargs: Any) -> None:
    want, got = outcome(f, *args, **kwargs), outcome(compiled, *args, **kwargs)
    same(got, want)


def named(f: Any) -> Any:
    f.__name__ = "f"
    return f
