"""Layouts of pictures: pyop's own beside those of elkjs and dagre, by Node.js, which has npm.

``python -m benchmarks.layouts`` installs both of them into a temporary folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyop.pictures.build import picture_of
from pyop.pictures.layout import Layout, place

from .pictures import graph_of

NODES = (12, 100, 400, 1000)
# The second of two layouts is timed: the first one compiles. Lines are broken where the library bends them.
SCRIPT = """
const fs = require("fs"), { boxes, edges } = JSON.parse(fs.readFileSync(0)), out = {};
const timed = async (name, make) => {
  await make();
  const begin = performance.now(), found = await make();
  out[name] = { ms: performance.now() - begin, ...found };
};
(async () => {
  const dagre = require("@dagrejs/dagre"), ELK = require("elkjs"), elk = new ELK();
  await timed("dagre", () => {
    const g = new dagre.graphlib.Graph();
    g.setGraph({ nodesep: 18, edgesep: 18, ranksep: 46 }); g.setDefaultEdgeLabel(() => ({}));
    boxes.forEach(([width, height], n) => g.setNode(n, { width, height }));
    edges.forEach(([a, b]) => g.setEdge(a, b, {}));
    dagre.layout(g);
    return {
      width: g.graph().width,
      boxes: boxes.map(([w, h], n) => [g.node(n).x - w / 2, g.node(n).y - h / 2, w, h]),
      edges: edges.map(([a, b]) => g.edge(a, b).points.map((p) => [p.x, p.y])),
    };
  });
  await timed("elkjs", async () => {
    const layoutOptions = { "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.spacing.nodeNode": "18",
                            "elk.layered.spacing.nodeNodeBetweenLayers": "46" };
    const children = boxes.map(([width, height], n) => ({ id: `n${n}`, width, height }));
    const lines = edges.map(([a, b], n) => ({ id: `e${n}`, sources: [`n${a}`], targets: [`n${b}`] }));
    const r = await elk.layout({ id: "r", layoutOptions, children, edges: lines });
    return {
      width: r.width,
      boxes: r.children.map((b) => [b.x, b.y, b.width, b.height]),
      edges: r.edges.map(({ sections: [s] }) => [s.startPoint, ...(s.bendPoints || []), s.endPoint]
        .map((p) => [p.x, p.y])),
    };
  });
  console.log(JSON.stringify(out));
})();
"""


def through_boxes(boxes: Sequence[Sequence[float]], edges: Sequence[Any], ends: Sequence[tuple[int, int]]) -> int:
    """How many edges run through a box that they do not join."""
    by_top = sorted((y, y + h, x, x + w, n) for n, (x, y, w, h) in enumerate(boxes))
    found = 0
    for points, (a, b) in zip(edges, ends, strict=True):
        top, bottom = (f(y for _, y in points) for f in (min, max))
        near = [box for box in by_top if box[0] < bottom and box[1] > top and box[4] not in (a, b)]
        found += any(_crosses(p, q, box) for p, q in pairwise(points) for box in near)
    return found


def _crosses(p: Sequence[float], q: Sequence[float], box: tuple[float, float, float, float, int]) -> bool:
    """Whether a line enters the inside of a box: what is left of it after each side has cut it."""
    top, bottom, left, right, _ = box
    first, last = 0.0, 1.0
    for begin, end, low, high in ((p[0], q[0], left, right), (p[1], q[1], top, bottom)):
        low, high = low + 0.5, high - 0.5
        if begin == end:
            if not low < begin < high:
                return False
        else:
            near, far = sorted(((low - begin) / (end - begin), (high - begin) / (end - begin)))
            first, last = max(first, near), min(last, far)
    return first < last


def _own(picture: Any) -> dict[str, Any]:
    begin = time.perf_counter()
    layout: Layout = place(picture)
    return {
        "ms": 1e3 * (time.perf_counter() - begin),
        "width": layout.width,
        "boxes": [(b.x, b.y, b.w, b.h) for b in layout.boxes],
        "edges": layout.edges,
    }


def main() -> int:
    """Print the table."""
    print("| boxes, edges | layout | ms | width | edges through boxes |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "@dagrejs/dagre@3", "elkjs@0.12"]
        subprocess.run(npm, cwd=folder, check=True)
        (Path(folder) / "layouts.cjs").write_text(SCRIPT)
        for nodes in NODES:
            picture = picture_of(graph_of(nodes))
            own = _own(picture)
            ends = [(edge.source, edge.target) for edge in picture.edges]
            asked = json.dumps({"boxes": [box[2:] for box in own["boxes"]], "edges": ends})
            node = ["node", "layouts.cjs"]
            done = subprocess.run(node, cwd=folder, input=asked, capture_output=True, text=True, check=True)
            for name, found in {"pyop": own, **json.loads(done.stdout)}.items():
                crossed = through_boxes(found["boxes"], found["edges"], ends)
                size = f"{len(picture.boxes)}, {len(ends)}"
                print(f"| {size} | {name} | {found['ms']:.0f} | {found['width']:.0f} | {crossed} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
