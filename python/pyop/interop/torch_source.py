"""Write the source of the function that is called in place of an op: torch.compile reads it like the user's code.

It takes what the op takes and returns what the op returns, and calls a torch op of flat tensors in between.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from torch.compiler import is_compiling

from .._tree import TreeDef

__all__ = ["callable_of"]


def callable_of(
    target: Any,
    parameters: tuple[str, ...],
    statics: dict[str, Any],
    in_tree: TreeDef,
    out_tree: TreeDef | None,
    returns_tuple: bool,
) -> Callable[..., Any]:
    """Return ``__call__(self, ...)`` of a wrapped op; `out_tree` is None if the result of `target` stays as it is."""
    names: dict[str, Any] = {"_target": target}
    paths = in_tree.leaf_paths()
    taken = ["_self", *parameters]
    if statics:
        taken.append("*")
    for name, default in statics.items():
        if default is not inspect.Parameter.empty:
            names[f"_default_{name}"] = default
            taken.append(f"{name}=_default_{name}")
        else:
            taken.append(name)
    body = []
    if paths == [f"[{k}]" for k in range(len(parameters))]:
        sent = list(parameters)
    else:
        names["_check"], names["_compiling"] = in_tree.flatten_up_to, is_compiling
        body = [f"_a = ({''.join(f'{name}, ' for name in parameters)})", "if not _compiling(): _check(_a)"]
        sent = [f"_a{path}" for path in paths]
    call = f"_target({', '.join([*sent, *(f'{name}={name}' for name in statics)])})"
    if out_tree is None or (out_tree.is_leaf and not returns_tuple):
        body.append(f"return {call}")
    else:
        places = [_Place(f"_r[{k}]" if returns_tuple else "_r") for k in range(out_tree.num_leaves)]
        body += [f"_r = {call}", f"return {_written(out_tree.unflatten(places), names)}"]
    source = f"def make({', '.join(names)}):\n    def __call__({', '.join(taken)}):\n        "
    source += "\n        ".join(body) + "\n    return __call__\n"
    scope: dict[str, Any] = {}
    exec(compile(source, "<an op in torch>", "exec"), scope)
    made: Callable[..., Any] = scope["make"](**names)
    return made


class _Place:
    def __init__(self, text: str) -> None:
        self.text = text


def _written(part: Any, names: dict[str, Any]) -> str:
    """Return a container of places as an expression; other objects that it needs are added to `names`."""
    if isinstance(part, _Place):
        return part.text

    def named(x: Any) -> str:
        label = f"_k{len(names)}"
        names[label] = x
        return label

    if isinstance(part, dict):
        keys = [repr(key) if type(key) in (str, int, bool) else named(key) for key in part]
        return "{" + ", ".join(f"{key}: {_written(x, names)}" for key, x in zip(keys, part.values(), strict=True)) + "}"
    if isinstance(part, list):
        return "[" + ", ".join(_written(x, names) for x in part) + "]"
    if type(part) is tuple:
        return "(" + "".join(_written(x, names) + ", " for x in part) + ")"
    if isinstance(part, tuple):
        return f"{named(type(part))}({', '.join(_written(x, names) for x in part)})"
    fields = [f"{f.name}={_written(getattr(part, f.name), names)}" for f in dataclasses.fields(part) if f.init]
    return f"{named(type(part))}({', '.join(fields)})"
