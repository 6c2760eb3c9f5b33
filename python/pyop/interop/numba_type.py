"""`Plan._numba_type_`, by which numba finds what it calls for a plan (`numba.py`); without numba there is none."""

from __future__ import annotations

from typing import Any

from .._core import Plan

__all__: list[str] = []


@property  # type: ignore[misc]
def _numba_type(self: Plan) -> Any:
    """What numba asks of an object that it meets in a function to compile."""
    try:
        from .numba import dispatcher_of
    except ImportError as error:
        raise AttributeError(f"numba cannot be imported: {error}") from error
    return dispatcher_of(self)._numba_type_


setattr(Plan, "_numba_type_", _numba_type)  # noqa: B010
