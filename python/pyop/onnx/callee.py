"""Encode what a PythonOp node calls: the name of a function, and the names of its last arguments.

Other tools drop everything of a node but its attributes, so nothing else may change a call. All static arguments of an
op are written, with their defaults, in the order of their declaration, which identifies them. Anything else is part of
the name: ``mine.f(k=, shift=)`` has its last two arguments by keyword, and ``mine.f(b'')`` takes text as bytes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._core import Op
from ..declare.parameters import Parameters

__all__ = ["Callee", "GivenNames", "declared_statics", "read_callee", "static_names", "write_callee"]

_BYTES = "b''"
_WITH_PARTS = re.compile(r"(?P<path>.*[^()])\((?P<parts>b''|(?:b'', )?[^\W\d]\w*=(?:, [^\W\d]\w*=)*)\)", re.DOTALL)


class Callee(NamedTuple):
    """Hold what the name in a node says."""

    path: str  # the name of the function
    keywords: tuple[str, ...] | None = None  # the names of its last arguments, if they are told
    text_as_bytes: bool = False


class GivenNames:
    """Hold the names that a caller of `export` gives to functions, or to ops of them."""

    def __init__(self, names: Mapping[Any, str] | None) -> None:
        self._keys: dict[Any, Any] = {}  # what the caller wrote, by the function that a node calls
        self._names: dict[Any, str] = dict(names or {})
        self._read: set[Any] = set()
        for key in self._names:
            self._keys[key] = key
            if isinstance(key, Op):
                self._keys[getattr(key, "__wrapped__", key)] = key

    def of(self, function: Any) -> str | None:
        """Return the name given to a function, if there is one."""
        try:
            key = self._keys[function]
        except (KeyError, TypeError):  # TypeError: it has no hash
            return None
        self._read.add(key)
        return self._names[key]

    def check_all_read(self) -> None:
        """Raise a ValueError for a key that names nothing the model calls."""
        unread = [key for key in self._names if key not in self._read]
        if unread:
            raise ValueError(
                f"names= has {unread[0]!r:.80}, which no PythonOp of this model calls"
                f"{f' (nor {len(unread) - 1} more)' if unread[1:] else ''}: a key is a function or an op that the "
                "graph calls and that is no standard operator"
            )


def write_callee(callee: Callee) -> str:
    """Return the name for a node; ValueError if that of the function would be read as one with more in it."""
    if read_callee(callee.path).path != callee.path:
        raise ValueError(
            f"{callee.path!r:.200} is no name for a function: it ends as if it named arguments; "
            "give it another with export(..., names={function: name})"
        )
    parts = [_BYTES] * callee.text_as_bytes + [f"{name}=" for name in callee.keywords or ()]
    return f"{callee.path}({', '.join(parts)})" if parts else callee.path


def read_callee(name: str) -> Callee:
    """Return what a name says."""
    matched = _WITH_PARTS.fullmatch(name)
    if matched is None:
        return Callee(name)
    parts = matched["parts"].split(", ")
    as_bytes = parts[0] == _BYTES
    keywords = tuple(part[:-1] for part in parts[as_bytes:])
    return Callee(matched["path"], keywords or None, as_bytes)


def _parameters(fn: Callable[..., Any], declared: int | None) -> Parameters:
    parameters = Parameters.of(fn)
    return parameters if declared is None else parameters.declared(declared)


def declared_statics(
    fn: Callable[..., Any], given: dict[str, Any], declared: int | None = None
) -> tuple[dict[str, Any], bool]:
    """Return all static arguments of a call of an op, as declared, and whether their number identifies them.

    Parameters behind the `declared` arrays of the op are static; those that are not given have their defaults.
    """
    parameters = _parameters(fn, declared)
    if not set(given) <= set(parameters.statics):
        return given, False
    defaults = inspect.signature(fn).parameters if parameters.statics else {}
    values = {name: given[name] if name in given else defaults[name].default for name in parameters.statics}
    return values, not parameters.variadic and parameters.n_required == len(parameters.arrays)


def static_names(
    fn: Callable[..., Any], constants: Sequence[bool], is_op: bool, declared: int | None = None
) -> tuple[str, ...]:
    """Return the names of the last arguments of a call whose node gives none.

    `constants` says which arguments are constants. For an op arrays are tensors, so that any constant is a static
    argument. ValueError if the names cannot be known: arguments would be passed under those of others.
    """
    parameters = _parameters(fn, declared)
    statics, count = parameters.statics, len(constants)
    trailing = next((k for k, constant in enumerate(reversed(constants)) if not constant), count)
    if not statics or not trailing:
        return ()
    least, most = parameters.n_required, float("inf") if parameters.variadic else len(parameters.arrays)
    by_keyword = trailing >= len(statics) and least <= count - len(statics) <= most
    by_position = least <= count <= most and not parameters.required_statics
    if by_keyword and (is_op or not by_position):
        return statics
    # The exporter names the keywords of NumPy's functions, so what has no name there stands in its place.
    of_numpy = (getattr(fn, "__module__", None) or "").partition(".")[0] in ("numpy", "scipy")
    if by_position and not (by_keyword and not of_numpy) and not (is_op and parameters.variadic):
        return ()
    raise ValueError(
        f"its last {trailing} arguments are constants, where the function has the static parameters "
        f"{', '.join(statics)}: which they are is not told, as in a model that an earlier pyop exported and another "
        "tool has written again. Export the graph again, or give a function that takes them by position"
    )
