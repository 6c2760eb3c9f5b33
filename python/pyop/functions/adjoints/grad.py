"""Rules of the functions that rules are written with, so that derivatives can be taken again."""

from __future__ import annotations

from ...gradients import unbroadcast as fit
from ...gradients.rule import structural

_broadcast, _fit, _cast = fit.broadcast_like, fit._fit_like, fit._cast_like

# fmt: off
structural(_broadcast, (lambda ct, ans, x, like: fit.fit(ct, x, ans), None), ("same", None), ("x", "like"))
structural(_fit, (lambda ct, out, x, ans, like: fit.fit(_broadcast(ct, ans), x, ans), None, None), ("same", None, None),
           ("ct", "ans", "like"))
structural(_cast, (lambda ct, ans, x, like: ct, None), ("same", None), ("ct", "like"))
# fmt: on
