"""Check and hold the options of `compile`."""

from __future__ import annotations

from typing import Any

from .._core import Plan
from ..graph.graph import Graph

__all__ = ["Options", "compiled"]


class Options:
    """Hold the options of `compile`, checked."""

    def __init__(
        self,
        static: Any,
        threads: Any,
        optimize: Any,
        disable: Any,
        precision: Any,
        max_plans: Any,
        fallback: Any = False,
        scalars: Any = True,
        machine_code: Any = None,
    ) -> None:
        self.static: tuple[str | int, ...] = (static,) if isinstance(static, str | int) else tuple(static)
        if isinstance(disable, str):
            raise TypeError(f"disable takes several names of passes: disable=[{disable!r}]")
        if precision not in ("exact", "fast"):
            raise ValueError(f"precision must be 'exact' or 'fast', not {precision!r}")
        if not (isinstance(threads, int) and 1 <= threads <= 1024):
            raise ValueError(f"threads must be between 1 and 1024, not {threads!r}")
        if machine_code not in (None, "off", "hot", "now"):
            raise ValueError(f"machine_code must be 'off', 'hot' or 'now', not {machine_code!r}")
        disable = tuple(disable)
        for name in disable:
            if name not in (passes := Graph.passes()):
                raise ValueError(f"there is no pass {name!r}; there are {', '.join(passes)}")
        self.plan: dict[str, Any] = {
            "threads": threads,
            "optimize": bool(optimize),
            "disable": disable,
            "precision": precision,
        }
        self.machine_code: str | None = machine_code
        self.max_plans = max_plans
        self.fallback = bool(fallback)
        self.scalars = bool(scalars)
        self.key = (self.static, *self.plan.values(), max_plans, self.fallback, self.scalars)  # equal for equal ones

    def keeping_all(self) -> dict[str, Any]:
        """Return the options of a plan that computes what nobody reads, too: for the sake of its exceptions."""
        others = [name for name in Graph.passes() if name != "prune"]
        disabled = self.plan["disable"] if self.plan["optimize"] else others
        return {**self.plan, "optimize": True, "disable": (*disabled, "prune")}


def compiled(graph: Graph, options: dict[str, Any], catches: bool, machine_code: str | None) -> Plan:
    """Return the plan of a graph. `catches`: the function may catch errors that are known beforehand, so these are
    raised when the plan runs.
    """
    try:
        plan = graph.compile(**options)
    except Exception:
        if not catches:
            raise
        plan = graph.compile(**{**options, "disable": (*options["disable"], "fold")})
    if machine_code is not None:
        plan._make_machine_code(machine_code)
    return plan
