"""What a Value refuses of an ndarray's methods and attributes: each says what to write instead, and is noted, so that a
function that catches it does not go another way than with arrays (`pyop.refusals`)."""

from __future__ import annotations

import opcode
import sys
from collections.abc import Callable
from typing import Any

from .._core import GraphError, Value
from ..refusals import refusal

__all__ = ["ATTRIBUTES", "ERRORS", "METHODS", "attribute", "method", "refuse_write"]

# `a[i:j] = value` is an instruction of its own since CPython 3.12.
_STORES = frozenset(opcode.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in opcode.opmap)

_NUMBERS = "a Value has no numbers until its graph runs: "
_RUN = "take them from what g.run(...) or a compiled plan returns, or use a pyop.op, which is called with arrays"
_IMMUTABLE = "a Value is immutable: "
_MEMORY = "a Value has no memory until its graph runs: "
_IN_OP = "use a pyop.op, which is called with arrays"

ERRORS = {
    "item": _NUMBERS + _RUN,
    "tolist": _NUMBERS + _RUN,
    "tobytes": _NUMBERS + _RUN,
    "tofile": _NUMBERS + _RUN,
    "dump": _NUMBERS + _RUN,
    "dumps": _NUMBERS + _RUN,
    "fill": _IMMUTABLE + "use np.full_like(value, number)",
    "sort": "ndarray.sort works in place, and " + _IMMUTABLE + "use np.sort(value), which returns a new one",
    "partition": "ndarray.partition works in place, and " + _IMMUTABLE + "use np.partition(value, kth)",
    "put": _IMMUTABLE + "use np.where with a mask, or a pyop.op that writes into a copy and returns it",
    "resize": "ndarray.resize works in place, and " + _IMMUTABLE + "use np.resize(value, shape)",
    "itemset": _IMMUTABLE + "use np.where with a mask",
    "setfield": _IMMUTABLE + "use a pyop.op that writes into a copy and returns it",
    "setflags": _MEMORY + "it has no flags to set; leave the call away, or " + _IN_OP,
    "getfield": _MEMORY + "use value['name'] for a field of a record array",
    "__trunc__": _NUMBERS + "use np.trunc(value)",
    "__floor__": _NUMBERS + "use np.floor(value)",
    "__ceil__": _NUMBERS + "use np.ceil(value)",
    "__reduce_ex__": "a Value means nothing outside of its graph: instead of it pickle what g.run(...) returns",
    "__dlpack__": _MEMORY + _IN_OP,
    "__dlpack_device__": _MEMORY + _IN_OP,
}
ATTRIBUTES = {
    "flat": "it is an iterator over memory: use value.ravel(), and index that",
    "data": _MEMORY + _IN_OP,
    "ctypes": _MEMORY + _IN_OP,
    "strides": _MEMORY + "how the elements lie is decided then; " + _IN_OP,
    "flags": _MEMORY + "how the elements lie, and whether they may be written, is decided then; " + _IN_OP,
    "base": _MEMORY + "whose it shows is decided then; " + _IN_OP,
}


def method(name: str) -> Callable[..., Any]:
    """A method of this name that refuses."""
    message = ERRORS[name]

    def refusing(self: Any, *args: Any, **kwargs: Any) -> Any:
        _check_in_time(self)
        raise refusal(f"Value.{name}(): {message}")

    refusing.__doc__ = f"Not for a Value: {message}."
    return refusing


def attribute(name: str) -> Callable[[Any], Any]:
    """The getter of an attribute of this name that refuses."""
    message = ATTRIBUTES[name]

    def getter(self: Any) -> Any:
        _check_in_time(self)
        # No AttributeError: where a function asks hasattr(), NumPy's array has it.
        raise refusal(f"Value.{name}: {message}")

    getter.__doc__ = f"Not for a Value: {message}."
    return getter


def _check_in_time(value: Any) -> None:
    late = value._kept_text()
    if late is not None:
        raise GraphError(late)


def refuse_write(what: str, remedy: str) -> Exception:
    """The error of a write into a Value."""
    return refusal(f"{what} at {Value._here()} writes into an array, and a Value is immutable: {remedy}")


def __setitem__(self: Any, key: Any, value: Any) -> None:
    """Not for a Value."""
    raise refuse_write(
        "`x[key] = y`",
        "instead of x[key] = y write x = np.where(mask, y, x), put parts together with np.concatenate or np.stack, "
        "or declare a pyop.op that writes into a copy and returns it",
    )


def __delitem__(self: Any, key: Any) -> None:
    """Not for a Value."""
    raise TypeError(_IMMUTABLE + "use np.delete(x, key), which returns a new one")


def __format__(self: Any, spec: str) -> str:
    """The text of the Value itself; a format of numbers is an error."""
    if spec:
        raise refusal(
            f"format {spec!r} needs a number, and {_NUMBERS}format what g.run(...) returns, or use a pyop.op with "
            "stateful=True, which is called with arrays"
        )
    return str(self)


def text_of_store(shown: str) -> str | None:
    """The message where a Value is put into an item of a plain array, or of what else takes numbers alone.

    Called from the slots that NumPy asks for a number: the frame below is the user's, if he wrote ``a[k] = value``.
    """
    frame = sys._getframe(1)
    code = frame.f_code.co_code
    if not 0 <= frame.f_lasti < len(code) or code[frame.f_lasti] not in _STORES:
        return None
    return (
        f"`a[k] = value` at {Value._here()} puts {shown} into a plain array, which has no place for what is known only "
        "when the graph runs: instead of filling an array make it of its parts, with np.stack, np.concatenate or "
        "np.where, or fill it inside a pyop.op, which is called with arrays"
    )


METHODS: tuple[Callable[..., Any], ...] = (__setitem__, __delitem__, __format__)
