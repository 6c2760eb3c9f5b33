"""Differentiate functions that repeat and remove elements, and margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients.adjoints import move_back, movement
from ...gradients.rule import linear, structural
from ...gradients.table import NoRule
from ...gradients.unbroadcast import shape_of


def _repeat(ct: Any, ans: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    shape = shape_of(a)
    if not isinstance(repeats, int) or axis is None or not shape:
        return move_back(np.repeat, 0, ct, (a, repeats), {"axis": axis})
    k = axis % len(shape)
    size = shape[k]
    if size is None:
        return move_back(np.repeat, 0, ct, (a, repeats), {"axis": axis})
    apart = np.reshape(ct, (*(shape_of(ct) or ())[:k], size, repeats, *shape[k + 1 :]))
    return np.sum(apart, axis=k + 1)


def _pad(ct: Any, ans: Any, a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Any:
    _check_mode(mode, kw)
    around = pad_with_zeros if mode in ("constant", "empty") else np.pad
    return move_back(around, 0, ct, (a, pad_width, mode), kw)


def pad_with_zeros(a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Any:
    return np.pad(a, pad_width)


def _pad_tangent(t: Any, ans: Any, a: Any, pad_width: Any, mode: Any = "constant", **kw: Any) -> Any:
    _check_mode(mode, kw)
    return np.pad(t, pad_width) if mode in ("constant", "empty") else np.pad(t, pad_width, mode, **kw)


def _check_mode(mode: Any, kw: dict[str, Any]) -> None:
    if callable(mode) or mode not in _COPIES or kw.get("reflect_type", "even") != "even":
        how = "".join(f", {key}={value!r:.40}" for key, value in kw.items())
        raise NoRule(
            f"np.pad(mode={mode!r:.80}{how}) has no gradient rule: use a mode that copies elements, {sorted(_COPIES)}, "
            "or np.concatenate"
        )


_COPIES = frozenset(("constant", "edge", "reflect", "symmetric", "wrap", "empty"))


movement(np.tile, names=("A",))
linear(np.repeat, _repeat)
structural(np.pad, (_pad,), (_pad_tangent,), ("array",))
movement(np.delete, names=("arr",))
