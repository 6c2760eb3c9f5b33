"""Compute tokens for Dask that are equal for equal content, in any process: `__dask_tokenize__`."""

from __future__ import annotations

import hashlib
from typing import Any

from .._core import CompiledFunction, Op, Plan
from ..graph.graph import Graph
from .failures import cloudpickle_dumps
from .memory import pack

__all__ = ["tokenize"]


def tokenize(self: Any) -> tuple[str, str]:
    """Return the token by which Dask knows it: a digest of its pickle."""
    packed = pack(self, dumps=cloudpickle_dumps())
    hasher = hashlib.sha256(packed.pickled)
    for each in packed.inline:
        hasher.update(each)
    return f"pyop.{type(self).__name__}", hasher.hexdigest()


for _kind in (Graph, Plan, CompiledFunction, Op):
    setattr(_kind, "__dask_tokenize__", tokenize)  # noqa: B010
