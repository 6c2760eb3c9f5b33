"""Write structures of containers with dataclasses as their parts: an instance would need its constructor."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from .._tree import TreeDef, flatten
from .instances import check_key

if TYPE_CHECKING:
    from .values import Reader, Writer

__all__ = ["has_dataclass", "read_steps", "write_steps"]

_DICT, _NAMED, _DATACLASS = 3, 4, 5  # of src/_tree.pyx
_MAX_DEPTH = 200


def _taken_apart(tree: TreeDef) -> tuple[Any, list[Any]]:
    """Return the constructor of a structure, and the steps that it takes."""
    reduced: Any = tree.__reduce__()
    return reduced[0], reduced[1][0]


def has_dataclass(tree: TreeDef) -> bool:
    """Return whether a dataclass is among the containers."""
    return any(kind == _DATACLASS for kind, *_ in _taken_apart(tree)[1])


def write_steps(w: Writer, tree: TreeDef) -> Any:
    """Return the JSON of a structure: each container after those in it."""
    return {
        "steps": [
            [kind, None if kind < _NAMED else w.reference(cls), w.write(keys), w.write(late), n]
            for kind, cls, keys, late, n in _taken_apart(tree)[1]
        ]
    }


def read_steps(r: Reader, x: Any) -> TreeDef:
    """Return the structure of `write_steps`; ValueError if it is none, or its classes have other fields now."""
    steps: list[Any] = []
    depths: list[int] = []
    for kind, path, keys, late, n in x:
        kind, n, cls = int(kind), int(n), None
        names, rest = r.read(keys), r.read(late)
        if not 0 <= n <= len(depths):
            raise ValueError("these are not the steps of a structure")
        depths[len(depths) - n :] = [1 + max(depths[len(depths) - n :], default=0)]
        if depths[-1] > _MAX_DEPTH:
            raise ValueError("containers nest too deep")
        if kind >= _NAMED:
            cls = r.resolve(path)
            _check_fields(kind, cls, names, path)
        elif kind == _DICT:
            check_key(names, r.may_run)
        steps.append((kind, cls, names, rest, n))
    decode, _ = _taken_apart(flatten(None)[1])
    made: TreeDef = decode(steps)
    return made


def _check_fields(kind: int, cls: Any, names: Any, path: Any) -> None:
    held = set(names)  # fields, and what else an instance held
    if kind == _DATACLASS and isinstance(cls, type) and dataclasses.is_dataclass(cls):
        needed = {f.name for f in dataclasses.fields(cls) if not hasattr(cls, f.name)}
        same = needed <= held
    elif kind == _NAMED and isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields"):
        same = list(names)[: len(cls._fields)] == list(cls._fields)
    else:
        raise ValueError(f"{path!r:.200} is no dataclass or named tuple")
    if not same:
        raise ValueError(
            f"{path!r:.200} had other fields when the graph was written: {', '.join(map(str, names)):.200}"
        )
