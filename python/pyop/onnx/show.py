"""Show a model as a table and as a drawing. Nothing of it runs, and none of its functions is looked up."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from .attributes import DOMAIN
from .elements import name_of

__all__ = ["drawing", "table"]

_WIDTH, _HEIGHT, _GAP = 190, 40, 30


class _Row(NamedTuple):
    name: str
    operation: str
    inputs: Sequence[str]
    outputs: Sequence[str]


def _type_text(kind: Any) -> str:
    if kind.WhichOneof("value") != "tensor_type":
        return kind.WhichOneof("value") or "_"
    tensor = kind.tensor_type
    text = name_of(tensor.elem_type) if tensor.elem_type else "_"
    sizes = [str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "_" for dim in tensor.shape.dim]
    return f"{text}[{','.join(sizes)}]" if tensor.HasField("shape") else text


def _operation(node: Any) -> str:
    if node.domain == DOMAIN:
        called = [a.s.decode("utf-8", "replace") for a in node.attribute if a.name in ("func_name", "name")]
        return " ".join([node.op_type, *called[:1]])
    return f"{node.domain}:{node.op_type}" if node.domain else str(node.op_type)


def _read(model: Any) -> tuple[list[_Row], dict[str, str]]:
    """Return the inputs and nodes of a model, and the known types of its tensors."""
    graph = model.graph
    types = {info.name: _type_text(info.type) for info in (*graph.input, *graph.value_info, *graph.output)}
    constants = {t.name: f"{name_of(t.data_type)}[{','.join(map(str, t.dims))}]" for t in graph.initializer}
    rows = [_Row(info.name, "input", (), (info.name,)) for info in graph.input if info.name not in constants]
    rows += [
        _Row(node.name or next(iter(node.output), ""), _operation(node), node.input, node.output) for node in graph.node
    ]
    outputs = {info.name for info in graph.output}
    told = {name: types.get(name, "_") for row in rows for name in row.outputs if name}
    return rows, {name: f"{text} (output)" if name in outputs else text for name, text in told.items()}


def table(model: Any, width: int = 120) -> str:
    """Return the nodes of a model, one a line; texts longer than `width` allows are cut."""
    rows, types = _read(model)
    lines = [("node", "operation", "reads", "gives")]
    for row in rows:
        gives = ", ".join(f"{name}: {types[name]}" for name in row.outputs if name)
        lines.append((row.name, row.operation, ", ".join(name or "-" for name in row.inputs), gives))
    limit = max(width // 4, 12)
    cut = [tuple(_cut(text, limit * 2 if k == 3 else limit) for k, text in enumerate(line)) for line in lines]
    widths = [max(len(line[k]) for line in cut) for k in range(4)]
    text = ["  ".join(part.ljust(size) for part, size in zip(line, widths, strict=True)).rstrip() for line in cut]
    graph = model.graph
    head = f"{graph.name or 'graph'}: {len(graph.node)} nodes, {len(graph.initializer)} constants"
    if model.producer_name:
        head += f", written by {model.producer_name} {model.producer_version}"
    return "\n".join((_cut(head, 500), "", *text))


def _cut(text: str, limit: int) -> str:
    """Return untrusted text, cut, without characters that would control the terminal, or the text direction."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def drawing(model: Any) -> str:
    """Return the model as an HTML page with a drawing, which needs nothing from elsewhere."""
    rows, types = _read(model)
    maker = {name: k for k, row in enumerate(rows) for name in row.outputs if name}
    before = [[maker[name] for name in row.inputs if maker.get(name, k) < k] for k, row in enumerate(rows)]
    level: list[int] = []
    filled: Counter[int] = Counter()  # how many stand beside each other, by level
    place: list[tuple[int, int]] = []
    for sources in before:
        down = 1 + max((level[k] for k in sources), default=-1)
        place.append((filled[down] * (_WIDTH + _GAP) + _GAP, down * (_HEIGHT + 2 * _GAP) + _GAP))
        level.append(down)
        filled[down] += 1
    lines, boxes = [], []
    for row, sources, (x, y) in zip(rows, before, place, strict=True):
        middle = x + _WIDTH // 2
        for x0, y0 in (place[k] for k in sources):
            start, end = x0 + _WIDTH // 2, y0 + _HEIGHT
            lines.append(f'<path d="M{start} {end} C{start} {end + _GAP} {middle} {y - _GAP} {middle} {y}"/>')
        kind = "input" if row.operation == "input" else "python" if row.operation.startswith("PythonOp") else "native"
        told = [f"{name}: {types[name]}" for name in row.outputs if name]
        kind += " output" if any(text.endswith(" (output)") for text in told) else ""
        about = "\n".join(_cut(text, 200) for text in (f"{row.name}: {row.operation}", *told))
        boxes.append(
            f'<g class="{kind}"><title>{html.escape(about)}</title>'
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
            f'<text x="{middle}" y="{y + 17}">{html.escape(_cut(row.operation, 26))}</text>'
            f'<text class="small" x="{middle}" y="{y + 32}">{html.escape(_cut(row.name, 30))}</text></g>'
        )
    width, height = (max(sizes, default=0) for sizes in zip(*place, strict=True)) if place else (0, 0)
    title = html.escape(_cut(model.graph.name or "graph", 200))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n<style>{_STYLE}</style>'
        f'</head>\n<body><h1>{title}</h1>\n<svg width="{width + _WIDTH + _GAP}" height="{height + _HEIGHT + _GAP}">'
        f"{''.join(lines + boxes)}</svg>\n</body></html>\n"
    )


_STYLE = (
    "body{font-family:sans-serif}svg path{fill:none;stroke:#777}rect{fill:#e8eef7;stroke:#456}"
    ".python rect{fill:#fdf1d8}.input rect{fill:#eee}.output rect{stroke-width:3}"
    "text{font-size:12px;text-anchor:middle}.small{font-size:10px;fill:#555}"
)
