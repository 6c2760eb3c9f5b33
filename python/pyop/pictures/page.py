"""Write pages: one HTML file that shows a picture, with all that it needs."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from ..graph.html import clean
from .layout import Layout, body_of, head_of, place, size_of, width_of
from .model import KINDS, Picture
from .svg import COLOURS

__all__ = ["data_of", "page", "part"]


def part(name: str) -> str:
    """Return the text of a file of this folder."""
    return files(__package__).joinpath(name).read_text("utf-8")


def page(picture: Picture, profile: Any = None) -> str:
    """Return the page of a picture; the user's texts are only in its data and its title.

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
        "<style>html{color-scheme:light dark;color:CanvasText;background:Canvas}"
        f"html,body{{margin:0;height:100%}}{part('page.css')}</style>"
        f'<main id="pyop" style="height:100%"></main><script>{part("page.js").replace("export default ", "")}\n'
        f'show(document.getElementById("pyop"),{data})</script></html>'
    )


def data_of(picture: Picture, profile: Any = None) -> dict[str, Any]:
    """Return the data that the page's code draws: texts and sizes of boxes once, and positions, unfolded and folded.

    A reader folds single boxes too; the page then moves the others, along the layers that it has here.
    """
    texts: list[Any] = []
    known: dict[int, int] = {}
    views = [_tree(place(picture), known, texts)]
    if any(box.inside or box.members for box in picture.boxes):
        views.append(_tree(place(picture, folded=True), known, texts))
    return {
        "title": picture.title,
        "kinds": [[kind, words, "{}{:02x}".format(*COLOURS[kind])] for kind, words in KINDS.items()],
        "texts": texts,
        "views": views,
        "calls": [] if profile is None else _calls(profile),
    }


def _tree(layout: Layout, known: dict[int, int], texts: list[Any]) -> dict[str, Any]:
    """Return a layout: for each box its middle, width, layer, kind, text and contents; for each edge its passages."""
    kinds = list(KINDS)
    boxes: list[Any] = []
    for placed in layout.boxes:
        box = placed.box
        if id(box) not in known:
            known[id(box)] = len(texts)
            told = [part[:10_000] for part in box.details + (box.members if len(box.members) > 1 else [])]
            head, body = head_of(box), body_of(box)
            sizes = [round(v, 1) for lines in (head, head + body) for v in size_of(lines)]
            texts.append([box.label[:10_000], box.spec, told, box.where, box.source, box.time, box.share])
            texts[-1] += [head, body, *sizes]
        inside = [[title, round(width_of(title)), _tree(inner, known, texts)] for title, _, _, inner in placed.inside]
        middle, kind = round(placed.x + placed.w / 2, 1), kinds.index(box.kind)
        boxes.append([middle, round(placed.w, 1), placed.row, kind, known[id(box)], *([inside] if inside else [])])
    edges = [
        [a, b, *(value for x, first, last in passed for value in (round(x, 1), first, last))]
        for passed, (a, b) in zip(layout.passed, layout.ends, strict=True)
    ]
    rows = [[round(top, 1), round(bottom, 1)] for top, bottom in layout.rows]
    return {"w": round(layout.width), "h": round(layout.height), "rows": rows, "boxes": boxes, "edges": edges}


def _calls(profile: Any) -> list[Any]:
    """Return the first calls of a profile, for the timeline: thread, depth, start, duration, name and place."""
    calls = []
    for event in profile.events[:5000]:
        row = profile.rows[event["row"]]
        times = [round(float(event[name])) for name in ("start_ns", "duration_ns")]
        calls.append([int(event["thread"]), int(event["depth"]), *times, row.name[:200], row.where])
    return calls
