"""Differentiate functions that choose elements by conditions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients import table
from ...gradients.adjoints import movement
from ...gradients.rule import PerArgument
from ...gradients.unbroadcast import unbroadcast
from ...transforms.composite import composite

movement(np.compress, 1, ("condition", "a"))
movement(np.extract, 1, ("condition", "arr"))
movement(np.trim_zeros, names=("filt",))
_CHOSEN = (None, lambda t, ans, mask, x, y: np.where(mask, t, 0), lambda t, ans, mask, x, y: np.where(mask, 0, t))
table.add(PerArgument(np.where, _CHOSEN, _CHOSEN, ("condition", "x", "y"), unbroadcast))


@composite(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = np.where(condition, choice, result)
    return result


@composite(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    count = len(choices)
    which = a % count if mode == "wrap" else np.clip(a, 0, count - 1) if mode == "clip" else a
    result = choices[0]
    for k in range(1, count):
        result = np.where(which == k, choices[k], result)
    return result
