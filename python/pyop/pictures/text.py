"""Write pictures as text: a tree for terminals, DOT, Mermaid."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Box, Picture

__all__ = ["dot", "lines_of", "mermaid"]


def lines_of(picture: Picture, depth: int = 0) -> Iterator[tuple[int, Box, list[str]]]:
    """Yield the boxes in order, bodies below theirs: depth, box, and the names of the boxes that it reads."""
    reads: list[list[str]] = [[] for _ in picture.boxes]
    for edge in picture.edges:
        reads[edge.target].append(picture.boxes[edge.source].label)
    for box, names in zip(picture.boxes, reads, strict=True):
        yield depth, box, names
        for title, part in box.inside:
            yield depth + 1, Box(title, ""), []
            yield from lines_of(part, depth + 2)


def _dot_text(text: str) -> str:
    """Return text for a quoted string in DOT, where only a quote ends it and a backslash begins an escape."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ").replace("\0", " ")


def dot(picture: Picture) -> str:
    """Return the picture in the language of Graphviz.

    >>> from pyop.pictures.model import Box, Edge, Picture
    >>> from pyop.pictures.text import dot
    >>> print(dot(Picture("p", [Box("a"), Box('say "b"')], [Edge(0, 1, "f8[n]")])))
    digraph "p" {
      node [shape=box, fontname=monospace]; edge [fontname=monospace, fontsize=9];
      n0 [label="a", class="node"];
      n1 [label="say \\"b\\"", class="node"];
      n0 -> n1 [label="f8[n]"];
    }
    """
    out = [f'digraph "{_dot_text(picture.title)}" {{']
    out.append("  node [shape=box, fontname=monospace]; edge [fontname=monospace, fontsize=9];")
    _dot_part(picture, "n", "  ", out)
    return "\n".join([*out, "}"])


def _dot_part(picture: Picture, prefix: str, indent: str, out: list[str]) -> None:
    for k, box in enumerate(picture.boxes):
        text = "\\n".join(_dot_text(line) for line in (box.label, box.spec, *box.members) if line)
        shape = ", shape=ellipse" if box.kind in ("input", "output") else ""
        out.append(f'{indent}{prefix}{k} [label="{text}", class="{box.kind}"{shape}];')
        for j, (title, part) in enumerate(box.inside):
            out.append(f'{indent}subgraph cluster_{prefix}{k}_{j} {{ label="{_dot_text(f"{box.label}: {title}")}";')
            _dot_part(part, f"{prefix}{k}_{j}_", indent + "  ", out)
            out.append(f"{indent}}}")
    for edge in picture.edges:
        label = f' [label="{_dot_text(edge.label)}"]' if edge.label else ""
        out.append(f"{indent}{prefix}{edge.source} -> {prefix}{edge.target}{label};")


def _mermaid_text(text: str) -> str:
    """Return text for a quoted label in Mermaid, with all but harmless characters by their number."""
    return "".join(c if c.isalnum() or c in " .,:_+*/()=-'…" else f"#{ord(c)};" for c in " ".join(text.split()))


def mermaid(picture: Picture) -> str:
    """Return the picture as a flowchart of Mermaid, which GitHub and many notebooks show.

    >>> from pyop.pictures.model import Box, Edge, Picture
    >>> from pyop.pictures.text import mermaid
    >>> print(mermaid(Picture("p", [Box("a"), Box("b", spec="f8[n]")], [Edge(0, 1)])))
    flowchart TD
      n0["a"]
      n1["b<br/>f8#91;n#93;"]
      n0 --> n1
    """
    out = ["flowchart TD"]
    _mermaid_part(picture, "n", "  ", out)
    return "\n".join(out)


def _mermaid_part(picture: Picture, prefix: str, indent: str, out: list[str]) -> None:
    for k, box in enumerate(picture.boxes):
        text = "<br/>".join(_mermaid_text(line) for line in (box.label, box.spec, *box.members) if line)
        left, right = ("([", "])") if box.kind in ("input", "output") else ("[", "]")
        out.append(f'{indent}{prefix}{k}{left}"{text}"{right}')
        for j, (title, part) in enumerate(box.inside):
            out.append(f'{indent}subgraph s{prefix}{k}_{j}["{_mermaid_text(f"{box.label}: {title}")}"]')
            _mermaid_part(part, f"{prefix}{k}_{j}_", indent + "  ", out)
            out.append(f"{indent}end")
    for edge in picture.edges:
        label = f'|"{_mermaid_text(edge.label)}"|' if edge.label else ""
        out.append(f"{indent}{prefix}{edge.source} -->{label} {prefix}{edge.target}")
