"""Differentiate functions that return several parts of one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...gradients import table
from ...gradients.table import Pullback, Rule
from ...gradients.unbroadcast import fit_dtype
from ..joining.grad import rank_of


class Take(Rule):
    """Differentiate a linear function of one argument with several results, by joining the cotangents."""

    def __init__(self, func: Any, join: Callable[..., Any]) -> None:
        super().__init__(func)
        self.join = join

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return "array" if parameter == 0 else ""

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        if not isinstance(ans, (tuple, list)):
            ans = (ans,)

        def pullback(ct: Any) -> tuple[Any, ...]:
            cts = ct if isinstance(ct, (tuple, list)) else (ct,)
            full = [np.zeros_like(part) if c is None else c for c, part in zip(cts, ans, strict=True)]
            return (fit_dtype(self.join(full, *args, **kwargs), args[0]),)

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        output_tangents = self.func(tangents[0], *args[1:], **kwargs)
        return tuple(output_tangents) if isinstance(ans, (tuple, list)) else output_tangents[0]


def _join_split(cts: Any, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return np.concatenate(cts, axis=axis)


table.add(Take(np.split, _join_split))
table.add(Take(np.array_split, _join_split))
table.add(Take(np.vsplit, lambda cts, ary, sections: np.concatenate(cts, axis=0)))
table.add(Take(np.hsplit, lambda cts, ary, sections: np.concatenate(cts, axis=0 if rank_of(ary) == 1 else 1)))
table.add(Take(np.dsplit, lambda cts, ary, sections: np.concatenate(cts, axis=2)))
if hasattr(np, "unstack"):  # NumPy 2.1
    table.add(Take(np.unstack, lambda cts, x, axis=0: np.stack(cts, axis=axis)))
