"""The text of a Value while a function is traced, or of an example under vmap: it may be shown, not looked into.

``print(x)`` in a traced function shows the Value, once, as one would want it. A function that goes by the text of an
array (``"nan" in str(x)``, ``len(f"{x}")``, a key of a dict) would go by the text of the Value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..refusals import refusal
from .libraries import is_installed

__all__ = ["Shown"]


class Shown(str):
    """A text that the file or the message it is put into can read, but the function cannot."""

    __slots__ = ()


def _refused(name: str) -> Callable[..., Any]:
    plain = getattr(str, name)

    def method(self: Shown, *args: Any, **kwargs: Any) -> Any:
        asking = sys._getframe(1).f_globals.get("__name__", "")
        if is_installed(asking.partition(".")[0]):  # reprlib, a formatter of messages
            return plain(self, *args, **kwargs)
        raise refusal(
            f"{name} of the text of {str.__str__(self)} was asked for, while NumPy's text is of its numbers, which it "
            "does not have here: decide by values with np.where, make texts of what the compiled "
            "function returns, or use a pyop.op, which is called with arrays"
        )

    method.__name__ = method.__qualname__ = name
    return method


_LOOKING = (
    *("__len__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__getitem__"),
    *("__iter__", "__add__", "__mul__", "__rmul__", "count", "endswith", "find", "index", "partition", "replace"),
    *("rfind", "rindex", "rpartition", "rsplit", "split", "splitlines", "startswith", "encode", "strip", "lstrip"),
    *("rstrip", "lower", "upper", "removeprefix", "removesuffix", "translate"),
)
for _name in _LOOKING:
    setattr(Shown, _name, _refused(_name))
