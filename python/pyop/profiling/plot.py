"""Draw a profile by matplotlib: a lane for each thread, a bar for each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import Profile

__all__ = ["draw"]

_COLOURS = {
    "op": "C0",
    "node": "C0",
    "function": "C0",
    "plan": "0.8",
    "group": "C2",
    "native": "C1",
    "view": "C4",
    "backward": "C3",
}


def draw(p: Profile, ax: Any = None) -> Any:
    """Draw bars on `ax`, or on axes of a new figure."""
    try:
        from matplotlib.patches import Patch
        from matplotlib.pyplot import subplots
    except ImportError as error:
        raise ModuleNotFoundError(
            "Profile.plot needs the package 'matplotlib': pip install 'pyop-core[plot]'", name="matplotlib"
        ) from error
    if ax is None:
        ax = subplots(figsize=(10, 1 + 1.2 * max(1, len(p.threads))), layout="constrained")[1]
    events, rows = p.events, p.rows
    deepest = int(events["depth"].max(initial=0)) + 1
    kinds = [rows[k].kind for k in events["row"]]
    for kind in dict.fromkeys(kinds):
        mine = events[[k == kind for k in kinds]]
        for lane in {(int(e["thread"]), int(e["depth"])) for e in mine}:
            here = mine[(mine["thread"] == lane[0]) & (mine["depth"] == lane[1])]
            bars = [(float(e["start_ns"]) / 1e6, float(e["duration_ns"]) / 1e6) for e in here]
            low = lane[0] + 0.9 * lane[1] / deepest
            ax.broken_barh(bars, (low, 0.85 / deepest), facecolors=_COLOURS.get(kind, "C7"))
    ax.set_yticks([k + 0.45 for k in range(len(p.threads))], p.threads)
    ax.set_xlim(0, max(p.wall_ns / 1e6, 1e-9))
    ax.set_xlabel("ms")
    if kinds:
        handles = [Patch(color=_COLOURS.get(k, "C7"), label=k) for k in dict.fromkeys(kinds)]
        # Above the bars: looking for a free place among so many is slow, and matplotlib warns of that.
        ax.legend(handles=handles, ncols=7, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return ax
