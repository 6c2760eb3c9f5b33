"""Write the schema of a torch op from a declaration."""

from __future__ import annotations

import inspect
import itertools
import json
import keyword
import re
import threading
from collections.abc import Sequence
from typing import Any

from .hooks import Hooks

__all__ = ["free_name", "returns_of", "schema_of"]

_TYPES = {"bool": "bool", "int": "int", "float": "float", "str": "str"}
_lock = threading.Lock()
_taken: dict[str, Any] = {}


def free_name(wanted: str) -> str:
    """Return a name that no op of this process has had: `wanted`, or that with a number.

    Examples
    --------
    >>> free_name("a name"), free_name("a name")
    ('a_name', 'a_name_1')
    """
    base = re.sub(r"\W", "_", wanted, flags=re.ASCII)
    if not base[:1].isalpha() or keyword.iskeyword(base):  # torch writes torch.ops.pyop.NAME into code of its own
        base = f"op_{base}"
    with _lock:
        for k in itertools.count():
            name = f"{base}_{k}" if k else base
            if name not in _taken:
                _taken[name] = True
                return name
    raise AssertionError


def schema_of(hooks: Hooks, bound: dict[str, Any], written: Sequence[bool]) -> str:
    """Return the parameters of the schema, in parentheses."""
    parts = [f"Tensor(a{k}!) {_label(hooks, k)}" if w else f"Tensor {_label(hooks, k)}" for k, w in enumerate(written)]
    statics = {name: default for name, default in hooks.statics.items() if name not in bound}
    if statics:
        parts.append("*")
    for name, default in statics.items():
        kind = _static_type(hooks, name, default)
        parts.append(f"{kind} {name}" if default is inspect.Parameter.empty else f"{kind} {name}={_literal(default)}")
    return f"({', '.join(parts)})"


def returns_of(n_results: int, saves: bool) -> str:
    """Return the results of the schema, the context of the gradient last."""
    count = n_results + saves
    return "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _label(hooks: Hooks, k: int) -> str:
    """Return torch's name for an argument: that of the function, where torch allows it."""
    name = hooks.inputs[k].name
    fits = re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) and name not in ("self", "out")
    return name if fits else f"x{k}_"


def _static_type(hooks: Hooks, name: str, default: Any) -> str:
    """Return the type of a static parameter: of its default, or as it is annotated."""
    if type(default).__name__ in _TYPES and type(default).__module__ == "builtins":
        return _TYPES[type(default).__name__]
    try:
        annotation: Any = inspect.signature(hooks.op.__wrapped__).parameters[name].annotation
    except (TypeError, ValueError, KeyError):
        annotation = inspect.Parameter.empty
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    if not isinstance(annotation, type):
        text = str(annotation)
    inner = re.sub(r"\s*\|\s*None$|^(?:typing\.)?Optional\[(\w+)\]$", r"\1", text.strip())
    if inner in _TYPES:
        return _TYPES[inner] + ("?" if inner != text.strip() or default is None else "")
    raise TypeError(
        f"{name}= of op {hooks.name!r} is static, and torch asks for its type: annotate it as bool, int, float or str, "
        f"or fix what it is, wrap({hooks.name}, statics={{{name!r}: ...}})"
    )


def _literal(default: Any) -> str:
    return json.dumps(default) if isinstance(default, str) else repr(default)
