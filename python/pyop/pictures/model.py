"""Define a picture: boxes, some with pictures inside, and edges between boxes of one picture."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Box", "Edge", "Picture", "shortened"]

# Kinds of boxes, with what they mean, in the order of the legend.
KINDS = {
    "input": "input",
    "constant": "constant, or computed when the plan was made",
    "node": "node",
    "native": "native loop",
    "group": "group of fused loops",
    "view": "view",
    "update": "write",
    "loop": "loop",
    "branch": "branch",
    "python": "call of Python",
    "output": "output",
}


@dataclass
class Box:
    """Describe one box.

    Parameters
    ----------
    label : str
        The name.
    kind : str
        One of `KINDS`.
    spec : str
        Dtype and shape of what comes out.
    details : list of str
        What it runs, and its other arguments.
    members : list of str
        The nodes of a group, with their specs.
    where, source : str
        The place in the user's code, and its line.
    inside : list of (str, Picture)
        Bodies of a loop or a branch, each with its title.
    time, share : float
        Nanoseconds in all calls of a profile and the part of all that it took; negative where there is none.
    """

    label: str
    kind: str = "node"
    spec: str = ""
    details: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    where: str = ""
    source: str = ""
    inside: list[tuple[str, Picture]] = field(default_factory=list)
    time: float = -1.0
    share: float = -1.0


@dataclass(frozen=True)
class Edge:
    """Describe an array on its way: numbers of boxes of the same picture, and its spec."""

    source: int
    target: int
    label: str = ""


@dataclass
class Picture:
    """Hold boxes and edges under a title; every edge goes from a box to a later one."""

    title: str
    boxes: list[Box] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def count(self) -> int:
        """Return the number of all boxes, including those of bodies."""
        return len(self.boxes) + sum(part.count() for box in self.boxes for _, part in box.inside)


def shortened(text: str, most: int = 40) -> str:
    """Return text in one line that fits a box.

    >>> from pyop.pictures.model import shortened
    >>> shortened("a  b\\nc"), shortened("smoothed", 6)
    ('a b c', 'smoot…')
    """
    text = " ".join(text[: 8 * most + 80].split())
    return text if len(text) <= most else text[: most - 1] + "…"
