"""Differentiate the functions that rules are written with, so that derivatives can be taken again."""

from __future__ import annotations

from ...gradients.rule import structural
from ...gradients.unbroadcast import _cast_like, _fit_like, broadcast_like, unbroadcast

structural(broadcast_like, (lambda ct, ans, x, like: unbroadcast(ct, x, ans), None), ("same", None), ("x", "like"))
structural(
    _fit_like,
    (lambda ct, out, x, ans, like: unbroadcast(broadcast_like(ct, ans), x, ans), None, None),
    ("same", None, None),
    ("ct", "ans", "like"),
)
structural(_cast_like, (lambda ct, ans, x, like: ct, None), ("same", None), ("ct", "like"))
