"""Pages: one HTML file that shows a picture, with all that it needs."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from ..graph.html import clean
from .layout import Layout, place
from .model import KINDS, Picture
from .svg import COLOURS

__all__ = ["data_of", "page", "part"]


def part(name: str) -> str:
    """The text of a file of this folder."""
    return files(__package__).joinpath(name).read_text("utf-8")


def page(picture: Picture, profile: Any = None) -> str:
    """The page of a picture; no text of the user's is anywhere but in its data and its title.

    >>> from pyop.pictures.model import Box, Picture
    >>> from pyop.pictures.page import page
    >>> "</script><b>" in page(Picture("p", [Box("</script><b>")]))
    False
    """
    title = clean(picture.title)
    # In a script of a page "<" could end it, and U+2028 and U+2029 ended lines once: all of them are escapes in JSON.
    data = json.dumps(data_of(picture, profile), separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none';style-src 'unsafe-inline';script-src 'unsafe-inline'\">"
        f"<style>html,body{{margin:0;height:100%}}{part('page.css')}</style>"
        f'<main id="pyop" style="height:100%"></main><script>{part("page.js").replace("export default ", "")}\n'
        f'show(document.getElementById("pyop"),{data})</script></html>'
    )


def data_of(picture: Picture, profile: Any = None) -> dict[str, Any]:
    """What the page's code draws: boxes unfolded and folded, their texts once, and the calls of the profile."""
    texts: list[Any] = []
    known: dict[int, int] = {}
    views = [_flat(place(picture), known, texts)]
    if any(box.inside or box.members for box in picture.boxes):
        views.append(_flat(place(picture, folded=True), known, texts))
    return {
        "title": picture.title,
        "kinds": [[kind, words, *COLOURS[kind]] for kind, words in KINDS.items()],
        "texts": texts,
        "views": views,
        "calls": [] if profile is None else _calls(profile),
    }


def _flat(layout: Layout, known: dict[int, int], texts: list[Any]) -> dict[str, Any]:
    boxes: list[Any] = []
    edges: list[Any] = []
    titles: list[Any] = []

    def add(layout: Layout, x: float, y: float) -> None:
        first = len(boxes)
        kinds = list(KINDS)
        for placed in layout.boxes:
            box = placed.box
            if id(box) not in known:
                known[id(box)] = len(texts)
                told = [part[:10_000] for part in box.details + (box.members if len(box.members) > 1 else [])]
                texts.append([box.label[:10_000], box.spec, told, box.where, box.source, box.time, box.share])
            place = [round(v) for v in (x + placed.x, y + placed.y, placed.w, placed.h)]
            boxes.append([*place, kinds.index(box.kind), known[id(box)], placed.lines, len(placed.inside)])
        for points, (a, b) in zip(layout.edges, layout.ends, strict=True):
            edges.append([first + a, first + b, *(round(v, 1) for px, py in points for v in (px + x, py + y))])
        for placed in layout.boxes:
            for title, dx, dy, inner in placed.inside:
                titles.append([round(x + placed.x + dx), round(y + placed.y + dy - 5), title])
                add(inner, x + placed.x + dx, y + placed.y + dy)

    add(layout, 0.0, 0.0)
    return {"w": layout.width, "h": layout.height, "boxes": boxes, "edges": edges, "titles": titles}


def _calls(profile: Any) -> list[Any]:
    """The first calls of a profile, for the timeline: thread, depth, start, duration, name and place."""
    found = []
    for event in profile.events[:5000]:
        row = profile.rows[event["row"]]
        times = [round(float(event[name])) for name in ("start_ns", "duration_ns")]
        found.append([int(event["thread"]), int(event["depth"]), *times, row.name[:200], row.where])
    return found
