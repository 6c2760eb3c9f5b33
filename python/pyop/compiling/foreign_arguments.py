"""Call compiled functions with arrays of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import as_array, has_own_rules
from .arguments import call_on_arrays, met_as_memory

__all__ = ["call_on_foreign"]


def call_on_foreign(
    fn: Any, name: str, function: Any, args: Any, n: int, names: Sequence[str], out: Any, arguments: Any
) -> tuple[Any]:
    """Return the result of a call with array-likes, in a tuple: compiled for what they are as arrays, if these say all
    about them.
    """
    foreign = [p.value for _, places in arguments for p in places if p.kind == b"?"]
    # An ndarray is among them where its bytes are swapped, or its dtype has metadata.
    if any(type(x) is np.ndarray or has_own_rules(x) for x in foreign):
        if out is not None:
            raise TypeError(
                f"{name}: out= needs plain arrays, and a container with rules of its own or an array of "
                "swapped bytes is among the arguments: pass np.asarray(x) for its numbers alone, or x.astype(float)"
            )
        return (fn(*args[:n], **dict(zip(names, args[n:], strict=True))),)
    met_as_memory.update(type(x) for x in args if any(x is other for other in foreign))
    converted = [
        tree.unflatten([as_array(p.value) if p.kind == b"?" else p.value for p in places]) for tree, places in arguments
    ]
    extra = {} if out is None else {"out": out}
    return call_on_arrays(fn, function, args, converted, n, names, **extra)
