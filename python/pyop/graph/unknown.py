"""What is not known of a Value until its graph runs, before the eyes of the function under trace: it may be passed
around, and decides nothing.

``y = x[x > 0]`` has as many elements as there are positive numbers. Those who write graphs see None in ``y.shape``; a
function that is traced would take it for a number (``if y.size == 0:``), and go another way without a word.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .._core import Value, shown
from ..refusals import refusal

__all__ = ["Unknown", "unknown_attribute"]

_ATTRIBUTES = frozenset(("shape", "ndim", "dtype", "size", "nbytes", "itemsize"))


class Unknown:
    """A size, a shape, a dtype that nobody knows yet. Whatever it is asked, it refuses."""

    __slots__ = ("_of", "_refused", "_what")

    def __init__(self, what: str, of: Value) -> None:
        self._what, self._of = what, of
        self._refused: Exception | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return {"the shape": tuple, "the dtype": np.dtype}.get(self._what, int)

    def __repr__(self) -> str:
        if self._refused is not None:  # NumPy makes of an error one with the text in it
            raise self._refused
        return shown("?", f"{self._what} of {self._of.node.name!r}")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return self.__repr__() if not spec else self._refuse()

    def _refuse(self, *args: Any) -> NoReturn:
        error = self._refused = refusal(
            f"{self._what} of {Value.__repr__(self._of)} (node {self._of.node.name!r}, created at "
            f"{self._of.node.origin}) is not known when the graph is built, and the function goes by it: choose by "
            "value with np.where, use the where= of reductions (np.sum(x, where=mask) for x[mask].sum()), declare what "
            "an op returns, or do this part in a pyop.op, which is called with arrays"
        )
        raise error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle, protocols: a plain object has none of these
            raise AttributeError(name)
        self._refuse()

    __hash__ = __bool__ = __int__ = __index__ = __float__ = __complex__ = __len__ = __iter__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __getitem__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = _refuse
    __neg__ = __pos__ = __abs__ = __round__ = __trunc__ = __floor__ = __ceil__ = __call__ = _refuse
    __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    __array__ = __array_ufunc__ = _refuse


def unknown_attribute(value: Value, name: str, known: Any) -> Any:
    """Return what the function under trace sees where an attribute of a Value (`known`: None, or a shape with None in
    it) is not known.
    """
    if name not in _ATTRIBUTES:
        return known
    if type(known) is tuple:
        return tuple(Unknown(f"size {k} of the shape", value) if n is None else n for k, n in enumerate(known))
    return Unknown(f"the {name}", value)
