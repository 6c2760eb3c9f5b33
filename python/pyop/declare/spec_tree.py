"""Make trees of specs from what the user writes, and write them as text."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from .._tree import flatten
from .dim import Dim
from .marks import Mark
from .signature_text import read_spec_list
from .spec import Spec, dim_text

__all__ = ["core_text", "dim_position", "make_inputs", "make_outputs", "one_or_all", "tree_text"]


def make_outputs(outputs: Any) -> Any:
    """Return a tree of Spec from a tree of spellings; text at the top may hold several specs."""
    return one_or_all(read_spec_list(outputs)) if isinstance(outputs, str) else _make(outputs, "outputs")


def make_inputs(inputs: Any) -> tuple[Any, ...]:
    """Return one tree of Spec for each positional argument."""
    if isinstance(inputs, str):
        return tuple(read_spec_list(inputs))
    if type(inputs) in (tuple, list):
        return tuple(_make(entry, f"inputs[{k}]") for k, entry in enumerate(inputs))
    if isinstance(inputs, Spec):
        return (inputs,)
    raise TypeError(
        "inputs= is a sequence with one entry for each positional argument, or the text of their specs, "
        f"got {type(inputs).__name__} {inputs!r:.80}"
    )


def one_or_all(specs: list[Spec]) -> Any:
    """Return the only spec of a list, else a tuple: one output is not a tuple of one."""
    return specs[0] if len(specs) == 1 else tuple(specs)


def _make(tree: Any, what: str) -> Any:
    leaves, structure = flatten(tree, _is_pair)
    specs: list[Spec] = []
    for k, leaf in enumerate(leaves):
        try:
            specs.append(Spec.make(leaf))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{what}{structure.leaf_paths()[k]}: {error}") from None
    return structure.unflatten(specs)


def _is_pair(x: Any) -> bool:
    """Return whether a tuple is (dtype, shape) and not two specs: its second part has a size that is no spec."""
    if type(x) is not tuple or len(x) != 2 or not isinstance(x[0], str | type | np.dtype):
        return False
    shape = x[1]
    if type(shape) not in (tuple, list):
        return False
    if not all(s is None or isinstance(s, int | np.integer | Dim | Mark | EllipsisType | str) for s in shape):
        return False
    return not shape or not all(isinstance(s, str) for s in shape)


def tree_text(tree: Any) -> str:
    """Return the tree as Python would write it, with the text of specs for leaves."""
    if isinstance(tree, Spec):
        return str(tree)
    if type(tree) is list:
        return f"[{', '.join(map(tree_text, tree))}]"
    if type(tree) is tuple:
        return f"({', '.join(map(tree_text, tree))}{',' if len(tree) == 1 else ''})"
    if type(tree) is dict:
        return "{" + ", ".join(f"{key!r}: {tree_text(part)}" for key, part in tree.items()) + "}"
    names = getattr(tree, "_fields", None) or tree.__dataclass_fields__
    return f"{type(tree).__name__}({', '.join(f'{name}={tree_text(getattr(tree, name))}' for name in names)})"


def core_text(spec: Spec) -> str:
    """Return the core shape of an array of a gufunc declaration."""
    return f"({','.join(map(dim_text, spec.shape or ()))})"


def dim_position(spec: Spec, dim: int | None) -> int:
    """Return where a dim starts in the text of the spec."""
    if dim is None or spec.shape is None:
        return 0
    behind = ",".join(map(dim_text, spec.shape[dim:]))
    return len(str(spec)) - len(behind) - 1
