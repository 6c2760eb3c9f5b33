"""A model for people: as a table, and as a drawing. Nothing of it runs, and none of its functions is looked up."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from .attributes import DOMAIN
from .elements import name_of

__all__ = ["drawing", "table"]

_WIDTH, _HEIGHT, _GAP = 190, 40, 30


@dataclass(frozen=True)
class _Row:
    name: str
    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def _type_text(kind: Any) -> str:
    if kind.WhichOneof("value") != "tensor_type":
        return kind.WhichOneof("value") or "_"
    tensor = kind.tensor_type
    text = name_of(tensor.elem_type) if tensor.elem_type else "_"
    if not tensor.HasField("shape"):
        return text
    sizes = [
        str(dim.dim_value) if dim.WhichOneof("value") == "dim_value" else dim.dim_param or "_"
        for dim in tensor.shape.dim
    ]
    return f"{text}[{','.join(sizes)}]"


def _operation(node: Any) -> str:
    if node.domain == DOMAIN:
        for attribute in node.attribute:
            if attribute.name in ("func_name", "name"):
                return f"{node.op_type} {attribute.s.decode('utf-8', 'replace')}"
    return f"{node.domain}:{node.op_type}" if node.domain not in ("", DOMAIN) else str(node.op_type)


def _rows(model: Any) -> list[_Row]:
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    rows = [_Row(info.name, "input", (), (info.name,)) for info in graph.input if info.name not in constants]
    return rows + [
        _Row(node.name or next(iter(node.output), ""), _operation(node), tuple(node.input), tuple(node.output))
        for node in graph.node
    ]


def _types(model: Any) -> dict[str, str]:
    graph = model.graph
    known = {info.name: _type_text(info.type) for info in (*graph.input, *graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        known[tensor.name] = f"{name_of(tensor.data_type)}[{','.join(map(str, tensor.dims))}]"
    return known


def table(model: Any, width: int = 120) -> str:
    """The nodes of a model, one a line; longer texts than `width` allows are cut."""
    types = _types(model)
    outputs = {info.name for info in model.graph.output}
    lines = [("node", "operation", "reads", "gives")]
    for row in _rows(model):
        gives = ", ".join(
            f"{name}: {types.get(name, '_')}{' (output)' if name in outputs else ''}" for name in row.outputs if name
        )
        lines.append((row.name, row.operation, ", ".join(name or "-" for name in row.inputs), gives))
    limit = max(width // 4, 12)
    cut = [tuple(_cut(text, limit * 2 if k == 3 else limit) for k, text in enumerate(line)) for line in lines]
    widths = [max(len(line[k]) for line in cut) for k in range(4)]
    text = ["  ".join(part.ljust(size) for part, size in zip(line, widths, strict=True)).rstrip() for line in cut]
    graph = model.graph
    head = f"{graph.name or 'graph'}: {len(graph.node)} nodes, {len(graph.initializer)} constants"
    if model.producer_name:
        head += f", written by {model.producer_name} {model.producer_version}"
    head = _cut(head, 500)
    return "\n".join((head, "", *text))


def _cut(text: str, limit: int) -> str:
    """A stranger's text, which must not speak to the terminal, or turn the direction of what follows."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def drawing(model: Any) -> str:
    """The model as an HTML page with a drawing, which needs nothing from elsewhere."""
    rows, types = _rows(model), _types(model)
    maker = {name: k for k, row in enumerate(rows) for name in row.outputs if name}
    level: list[int] = []
    for k, row in enumerate(rows):
        before = [level[maker[name]] for name in row.inputs if maker.get(name, k) < k]
        level.append(max(before, default=-1) + 1)
    filled: dict[int, int] = {}
    place: list[tuple[int, int]] = []
    for row_level in level:
        column = filled.get(row_level, 0)
        filled[row_level] = column + 1
        place.append((column * (_WIDTH + _GAP) + _GAP, row_level * (_HEIGHT + 2 * _GAP) + _GAP))
    parts = []
    for k, row in enumerate(rows):
        x, y = place[k]
        for name in row.inputs:
            if maker.get(name, k) < k:
                x0, y0 = place[maker[name]]
                parts.append(
                    f'<path d="M{x0 + _WIDTH // 2} {y0 + _HEIGHT} C{x0 + _WIDTH // 2} {y0 + _HEIGHT + _GAP} '
                    f'{x + _WIDTH // 2} {y - _GAP} {x + _WIDTH // 2} {y}"/>'
                )
    outputs = {info.name for info in model.graph.output}
    for k, row in enumerate(rows):
        x, y = place[k]
        kind = "input" if row.operation == "input" else "python" if row.operation.startswith("PythonOp") else "native"
        kind += " output" if outputs & set(row.outputs) else ""
        about = "\n".join(_cut(f"{name}: {types.get(name, '_')}", 200) for name in row.outputs if name)
        head = _cut(f"{row.name}: {row.operation}", 200)
        parts.append(
            f'<g class="{kind}"><title>{html.escape(head)}\n{html.escape(about)}</title>'
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
            f'<text x="{x + _WIDTH // 2}" y="{y + 17}">{html.escape(_cut(row.operation, 26))}</text>'
            f'<text class="small" x="{x + _WIDTH // 2}" y="{y + 32}">{html.escape(_cut(row.name, 30))}</text></g>'
        )
    size = (
        max((x for x, _ in place), default=0) + _WIDTH + _GAP,
        max((y for _, y in place), default=0) + _HEIGHT + _GAP,
    )
    title = html.escape(_cut(model.graph.name or "graph", 200))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n<style>{_STYLE}</style>'
        f'</head>\n<body><h1>{title}</h1>\n<svg width="{size[0]}" height="{size[1]}">{"".join(parts)}</svg>\n'
        "</body></html>\n"
    )


_STYLE = (
    "body{font-family:sans-serif}svg path{fill:none;stroke:#777}rect{fill:#e8eef7;stroke:#456}"
    ".python rect{fill:#fdf1d8}.input rect{fill:#eee}.output rect{stroke-width:3}"
    "text{font-size:12px;text-anchor:middle}.small{font-size:10px;fill:#555}"
)
