"""Write pictures as SVG, for notebooks and documents, in the surrounding colours, light or dark."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.html import clean
from .layout import Layout, Placed, place
from .model import Picture

__all__ = ["svg"]

# Fill of each kind: a hue, and how much of 255 lies over the ground, so that one is right on light and on dark ground.
COLOURS = {
    "input": ("#3b82f6", 51), "constant": ("#888888", 51), "node": ("#888888", 20), "native": ("#2f9e44", 43),
    "group": ("#2f9e44", 92), "view": ("#7950f2", 38), "update": ("#f59f00", 61), "loop": ("#e8590c", 33),
    "branch": ("#e8590c", 33), "python": ("#e03131", 61), "output": ("#1c7ed6", 82),
}  # fmt: skip
# In a document the colour of text is that of what is around: the theme's, in a notebook or on a site, whatever the
# system prefers. A file of its own goes by the system, on its own ground.
_GROUND = "<style>svg:root{color-scheme:light dark;color:CanvasText;background:Canvas}"
MOST = 400  # boxes in a notebook's static picture: more are for the page


def svg(picture: Picture) -> str:
    """Return the picture as one ``<svg>``, whose titles describe the boxes.

    >>> from pyop.pictures.model import Box, Picture
    >>> from pyop.pictures.svg import svg
    >>> svg(Picture("p", [Box("a")])).startswith("<svg ")
    True
    """
    if picture.count() > MOST:
        words = f"{picture.title}: {picture.count()} boxes; to_html(path) writes a page that shows so many"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{8 * len(words) + 20}" height="30">'
            f'{_GROUND}</style><text x="8" y="20" font-family="sans-serif" font-size="13" fill="currentColor">'
            f"{clean(words)}</text></svg>"
        )
    layout = place(picture)
    w, h = layout.width, layout.height
    style = "".join(
        f".pyop .{kind}>rect{{fill:{hue};fill-opacity:{much / 255:.2f}}}" for kind, (hue, much) in COLOURS.items()
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pyop" role="img" aria-label="{clean(picture.title)}" '
        f'viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}" style="max-width:100%;height:auto">'
        f"<title>{clean(picture.title)}</title>{_GROUND}"
        f".pyop text{{font-family:monospace;font-size:11px;fill:currentColor}}"
        f".pyop rect{{stroke:#888}}.pyop path{{fill:none;stroke:#888}}{style}</style>"
    )
    return head + "".join(_parts(layout, 0.0, 0.0)) + "</svg>"


def _parts(layout: Layout, x: float, y: float) -> Iterator[str]:
    for points in layout.edges:
        yield f'<path d="{_path(points, x, y)}"/>'
    for placed in layout.boxes:
        yield from _box(placed, x + placed.x, y + placed.y)


def _path(points: list[tuple[float, float]], x: float, y: float) -> str:
    """Return a path straight down, or a curve that leaves and arrives downwards, between its ends' heights."""
    out, last = [f"M{points[0][0] + x:.1f} {points[0][1] + y:.1f}"], points[0]
    for point in points[1:]:
        (a, b), middle = (point[0] + x, point[1] + y), (last[1] + point[1]) / 2 + y
        if point[0] == last[0]:
            out.append(f"V{b:.1f}")
        else:
            out.append(f"C{last[0] + x:.1f} {middle:.1f} {a:.1f} {middle:.1f} {a:.1f} {b:.1f}")
        last = point
    return "".join(out)


def _box(placed: Placed, x: float, y: float) -> Iterator[str]:
    box = placed.box
    radius = 12 if box.kind in ("input", "output") else 3
    told = "\n".join(part[:400] for part in (box.label, box.spec, *box.details, box.where, box.source) if part)
    yield f'<g class="{box.kind}"><title>{clean(told)}</title>'
    yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{placed.w:.1f}" height="{placed.h:.1f}" rx="{radius}"/>'
    for k, line in enumerate(placed.lines):
        bold = ' font-weight="bold"' if k == 0 else ""
        yield f'<text x="{x + 8:.1f}" y="{y + 16 + 14 * k:.1f}"{bold}>{clean(line)}</text>'
    for title, dx, dy, inner in placed.inside:
        yield f'<text x="{x + dx:.1f}" y="{y + dy - 5:.1f}" font-style="italic">{clean(title)}</text>'
        yield from _parts(inner, x + dx, y + dy)
    yield "</g>"
