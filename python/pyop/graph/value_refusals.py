"""Refuse methods and attributes of an ndarray that a Value cannot have.

Each error says what to write instead. It is recorded, so that a function that catches it does not take another path
than with arrays (`pyop.refusals`).
"""

from __future__ import annotations

import opcode
import sys
from typing import Any, NoReturn

from .._core import GraphError, Value
from ..functions.surface import Name, refusing
from ..refusals import may_run_itself, refusal

__all__ = ["REFUSING", "is_store", "refuse_write", "text_of_store"]

# `a[i:j] = value` is an instruction of its own since CPython 3.12.
_STORES = frozenset(opcode.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in opcode.opmap)

_BY_NAME = frozenset(("setitem", "__setitem__"))

_NUMBERS = "a Value has no numbers until its graph runs: "
_RUN = "take them from what g.run(...) or a compiled plan returns, or use a pyop.op, which is called with arrays"
_IMMUTABLE = "a Value is immutable: "
_MEMORY = "a Value has no memory until its graph runs: "
_IN_OP = "use a pyop.op, which is called with arrays"

# Why a Value has not what a name of this sort gives, and what to write instead if the name has no remedy of its own.
_BY_SORT = {
    "write": (_IMMUTABLE, ""),
    "number": (_NUMBERS, _RUN),
    "memory": (_MEMORY, _IN_OP),
    "identity": ("a Value means nothing outside of its graph: ", "instead of it pickle what g.run(...) returns"),
}
_OTHERS = {
    **{f"__{name}__": Name("number", remedy=f"use np.{name}({{x}})") for name in ("trunc", "floor", "ceil")},
    "__reduce_ex__": Name("identity"),
    "__sizeof__": Name("memory"),
}


def refuse(value: Any, what: str, entry: Name) -> NoReturn:
    """Raise what a Value says where it is asked for a part of the ndarray's surface that it has not."""
    late = value._kept_text()
    if late is not None:
        raise GraphError(late)
    why, remedy = _BY_SORT[entry.sort]
    # No AttributeError of an attribute: where a function asks hasattr(), NumPy's array has it.
    error = refusal(f"Value.{what}: {why}{entry.remedy.format(x='value') or remedy}")
    raise error


def refuse_write(what: str, remedy: str) -> Exception:
    """Return the error of a write into a Value."""
    return may_run_itself(
        refusal(f"{what} at {Value._here()} writes into a symbolic array, which pyop does not follow: {remedy}")
    )


def __delitem__(self: Any, key: Any) -> None:
    """Raise TypeError: a Value has no items to delete."""
    raise TypeError(_IMMUTABLE + "use np.delete(x, key), which returns a new one")


def __format__(self: Any, spec: str) -> str:
    """Return the text of the Value itself; a format of numbers is an error."""
    if spec:
        said = (
            f"format {spec!r} needs a number, and {_NUMBERS}format what g.run(...) returns, or use a pyop.op with "
            "stateful=True, which is called with arrays"
        )
        raise may_run_itself(refusal(said))
    return str(self)


def text_of_store(shown: str) -> str | None:
    """Return the message for putting a Value into an item of a plain array, or of another store of numbers.

    It is None elsewhere. The slots that NumPy asks for a number call this: the frame below is the user's, if that has
    written ``a[k] = value``.
    """
    if not is_store():
        return None
    return (
        f"`a[k] = value` at {Value._here()} puts {shown} into a plain array, which cannot hold values known only "
        "when the graph runs: make `a` of a symbolic array, a = np.zeros_like(x) or np.zeros_like(x, shape=...), put "
        "its parts together with np.stack, np.concatenate or np.where, or fill it inside a pyop.op, which is called "
        "with arrays"
    )


def is_store() -> bool:
    """Return whether the code that called the caller is at ``x[key] = y``, or calls it by its name.

    A function that exchanges elements does not count.
    """
    frame = sys._getframe(2)
    if not _BY_NAME.isdisjoint(frame.f_code.co_names):
        return True
    code = frame.f_code.co_code
    return 0 <= frame.f_lasti < len(code) and code[frame.f_lasti] in _STORES


REFUSING = refusing(refuse) | refusing(refuse, _OTHERS)
