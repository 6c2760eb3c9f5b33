"""Follow memory that is a view or a copy by its layout, which NumPy decides when the graph runs.

``y.reshape(-1)`` of an array that the function has made is a view of `y` or a copy. Both are followed: after a write to
it `y` holds what `store_shown` returns, after a write to `y` it holds what `shown` returns. The copies that plans make
lie as NumPy's arrays do, so NumPy's answer for them is that for the arrays of the function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..declare.spec import Spec
from .rule import structural
from .store import Views, seen
from .unbroadcast import primitive

__all__ = ["linked_part", "shown", "store_shown"]


@primitive(lambda x, part, views: x)
def store_shown(x: Any, part: Any, views: Views) -> Any:
    """Return a copy of `x`, laid out as that is, which holds `part` where these views show it; where they copy, `x`."""
    made = np.array(x, order="K")
    view = seen(made, views)
    if np.may_share_memory(view, made):
        view[...] = part
    return made


@primitive(lambda x, part, views: part)
def shown(x: Any, part: Any, views: Views) -> Any:
    """Return what these views show of `x`; where they copy, `part`."""
    view = seen(x, views)
    return view if np.may_share_memory(view, x) else part


def _spec(x: Any, like: Any, part: Any, what: str, views: Views) -> Spec:
    return Spec(x.dtype, (like if what in ("rest", "back") else part).shape)


@primitive(_spec)
def linked_part(x: Any, like: Any, part: Any, what: str, views: Views) -> Any:
    """Return a linear part of the two above: where `views` show `like` without copying, and where not.

    "rest": `x` in the shape of `like` with zeros where it is shown; "part": what is shown of it, else zeros; "back":
    zeros with `x`, in the shape of `part`, where it is shown; "apart": zeros where it is shown, else `x`.
    """
    places = np.arange(np.size(like)).reshape(np.shape(like))
    laid = np.empty_like(like, np.intp)
    laid[...] = places
    view = seen(laid, views)
    is_view = np.may_share_memory(view, laid)
    if what == "apart":
        return np.zeros_like(x) if is_view else np.array(x)
    if what == "part":
        return np.reshape(x, -1)[view] if is_view else np.zeros(np.shape(part), np.asarray(x).dtype)
    flat = np.array(x).reshape(-1) if what == "rest" else np.zeros(np.size(like), np.asarray(x).dtype)
    if is_view:
        flat[view] = 0 if what == "rest" else x
    return flat.reshape(np.shape(like))


_ADJOINT = {"rest": "rest", "part": "back", "back": "part", "apart": "apart"}

structural(
    linked_part,
    (
        lambda ct, ans, x, like, part, what, views: linked_part(ct, like, part, _ADJOINT[what], views),
        *(None,) * 4,
    ),
    (lambda t, ans, x, like, part, what, views: linked_part(t, like, part, what, views), *(None,) * 4),
    ("x", "like", "part", "what", "views"),
)


def _structural(function: Any, by_x: tuple[str, str], by_part: tuple[str, str]) -> None:
    """Register the rules of a function of `x` and `part` by its result in each: reverse, and forward."""
    structural(
        function,
        (
            lambda ct, ans, x, part, views: linked_part(ct, x, part, by_x[0], views),
            lambda ct, ans, x, part, views: linked_part(ct, x, part, by_part[0], views),
            None,
        ),
        (
            lambda t, ans, x, part, views: linked_part(t, x, part, by_x[1], views),
            lambda t, ans, x, part, views: linked_part(t, x, part, by_part[1], views),
            None,
        ),
        ("x", "part", "views"),
    )


_structural(store_shown, ("rest", "rest"), ("part", "back"))
_structural(shown, ("back", "part"), ("apart", "apart"))
