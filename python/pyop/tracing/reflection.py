"""Answer twins that ask a symbolic array what it is.

``type(x)`` is NumPy's type or Python's, and ``hasattr(x, "name")`` and ``getattr(x, "name", None)`` find no attribute
that NumPy's arrays and scalars do not have.

Nothing can answer `type` for an object, so another function is called in its place.
"""

from __future__ import annotations

from typing import Any

from .._core import Value
from ..graph.symbolic_number import is_number
from ..refusals import refusal
from .twins import StandIn, called_instead, graph_under_twins, stand_in
from .type_checks import own_names

__all__: list[str] = []


def _type(*args: Any, **kwargs: Any) -> Any:
    graph: Any = graph_under_twins()
    if len(args) != 1 or kwargs or not _is_symbolic(args[0]) or graph is None:
        return type(*args, **kwargs)
    (x,) = args
    if type(x) is Value and (x._is_scalar is None or (x._is_scalar and x.dtype is None)):
        raise refusal(f"type(x) of {x!r:.80} at {x._here()}: its dtype or dimensions are not known")
    return graph._twins.of(x.__class__)  # as the name of the class is there


def _is_symbolic(x: Any) -> bool:
    """Return whether something stands for what is not known yet: an array, a number, the list or range of a loop."""
    kind = type(x)
    return kind is Value or is_number(x) or (kind.__module__.startswith("pyop.") and x.__class__ is not kind)


def _hides(args: tuple[Any, ...]) -> bool:
    """Return whether an attribute is asked for that what the object stands for does not have."""
    if len(args) < 2 or not _is_symbolic(args[0]) or type(args[1]) is not str or args[1] not in own_names():
        return False
    return graph_under_twins() is not None and not hasattr(args[0].__class__, args[1])


def _hasattr(*args: Any) -> bool:
    return False if _hides(args) and len(args) == 2 else hasattr(*args)


def _getattr(*args: Any) -> Any:
    if not _hides(args) or len(args) > 3:
        return getattr(*args)
    if len(args) == 3:
        return args[2]
    raise AttributeError(f"{args[0].__class__.__module__}.{args[0].__class__.__name__} has no attribute {args[1]!r}")


called_instead(type, StandIn(type, _type))
stand_in(hasattr, _hasattr)
stand_in(getattr, _getattr)
