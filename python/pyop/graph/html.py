"""Write text and tables as HTML, for objects that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["clean", "table"]


def clean(text: str) -> str:
    """Return text for HTML and SVG: escaped, without characters that XML does not allow.

    >>> from pyop.graph.html import clean
    >>> clean("<a & 'b'\\x00>")
    '&lt;a &amp; &#x27;b&#x27;\\ufffd&gt;'
    """
    from html import escape

    return escape("".join(c if _in_xml(ord(c)) else "\ufffd" for c in text))


def _in_xml(c: int) -> bool:
    return c in (9, 10, 13) or 32 <= c < 0xD800 or 0xE000 <= c < 0xFFFE or c >= 0x10000


def table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table; its cells are text and contain no markup.

    >>> from pyop.graph.html import table
    >>> "<td" in table("t", ["a"], [["<b>"]]), "<b>" in table("t", ["a"], [["<b>"]])
    (True, False)
    """
    left = 'style="text-align:left"'
    cells = "".join(f'<th scope="col" {left}>{clean(x)}</th>' for x in head)
    # No <code>: notebooks give it a ground of its own, in empty cells too. Short text, "In [3]:4", stays on one line.
    style = 'style="text-align:left;font-family:monospace'
    lines = [
        "".join(f'<td {style}{";white-space:nowrap" * (len(x) < 24)}">{clean(x)}</td>' for x in row) for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    caption = f"<caption {left}>{clean(title)}</caption>"
    return f'<div style="overflow-x:auto"><table>{caption}<tr>{cells}</tr>{body}</table></div>'
