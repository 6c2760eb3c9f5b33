"""Place boxes and edges of a picture: layers from top to bottom, and edges that cross no box.

The scheme is Sugiyama's: longest paths give layers. An edge over several layers gets points in those between. Sweeps of
barycentres order each layer. Then isotonic regression moves each layer towards its neighbours, which keeps order and
distances. An edge bends in the free space between two layers only, and passes a layer straight, at a point that has
room there as a box has. An edge that would pass more layers than `_reach` allows takes a lane beside all boxes, one for
each source at a time. So the work stays proportional to the picture, however long edges are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from unicodedata import east_asian_width

from .model import Box, Picture, shortened

__all__ = ["Layout", "Placed", "place"]

_GAP_X, _GAP_Y, _PAD = 18.0, 46.0, 12.0
_POINT = 6.0  # the room of an edge that passes a layer
_MANY = 20_000  # boxes and points: beyond, fewer sweeps
_LEAN, _NEAR = 1.2, 6  # how much wider than its widest layer a picture may be; layers on each side
_CHARACTER, _LINE, _TITLE = 6.6, 14.0, 18.0


@dataclass
class Placed:
    """Hold a box, its rectangle and its layer; `inside` has the layouts of its contents, each with its start."""

    box: Box
    x: float = 0.0
    y: float = 0.0
    w: float = 0.0
    h: float = 0.0
    row: int = 0
    lines: list[str] = field(default_factory=list)
    inside: list[tuple[str, float, float, Layout]] = field(default_factory=list)


@dataclass
class Layout:
    """Hold boxes as in the picture, and for each edge its points.

    Between its points an edge goes straight down or bends between layers; `ends` has its boxes. `rows` has where each
    layer begins and ends, and `passed` for each edge the stretches that it goes straight: x, the first layer and the
    last one. From these the page finds the points again when layers grow.
    """

    width: float
    height: float
    boxes: list[Placed]
    edges: list[list[tuple[float, float]]]
    ends: list[tuple[int, int]]
    rows: list[tuple[float, float]]
    passed: list[list[tuple[float, int, int]]]


def place(picture: Picture, folded: bool = False) -> Layout:
    """Return the layout of a picture; if `folded`, without members of groups and bodies of loops.

    >>> from pyop.pictures.layout import place
    >>> from pyop.pictures.model import Box, Edge, Picture
    >>> layout = place(Picture("p", [Box("a"), Box("b")], [Edge(0, 1)]))
    >>> layout.boxes[0].y < layout.boxes[1].y, len(layout.edges[0])
    (True, 2)
    """
    boxes = [_sized(box, folded) for box in picture.boxes]
    return _Layers(boxes, [(edge.source, edge.target) for edge in picture.edges]).layout()


def head_of(box: Box) -> list[str]:
    """Return the lines of a folded box: its name and its spec."""
    return [shortened(box.label, 32), *([shortened(box.spec, 40)] if box.spec else [])]


def body_of(box: Box) -> list[str]:
    """Return the further lines of an unfolded box."""
    more = [f"… {len(box.members) - 12} more"] if len(box.members) > 12 else []
    return [shortened(text, 48) for text in box.members[:12]] + more


def width_of(text: str) -> float:
    """Return the width of a line in a box: characters of East Asia and emoji take two columns."""
    count = len(text) if text.isascii() else sum(1 + (east_asian_width(c) in "WF") for c in text)
    return _CHARACTER * count


def size_of(lines: list[str]) -> tuple[float, float]:
    """Return width and height of a box of these lines."""
    return max(44.0, 16 + max(map(width_of, lines), default=0.0)), 10 + _LINE * len(lines)


def _sized(box: Box, folded: bool) -> Placed:
    """Return a box with its lines and the size of its contents; a folded one keeps those beside its size."""
    placed = Placed(box, lines=head_of(box) + ([] if folded else body_of(box)))
    placed.w, placed.h = size_of(placed.lines)
    x, tallest = _PAD, 0.0
    for title, part in box.inside:
        inner = place(part, folded)
        placed.inside.append((title, x, placed.h + _TITLE, inner))
        x += max(inner.width, width_of(title)) + _PAD
        tallest = max(tallest, inner.height)
    if box.inside and not folded:
        placed.w, placed.h = max(placed.w, x), placed.h + _TITLE + tallest + _PAD
    return placed


class _Layers:
    """Hold the layers of one picture while it is laid out: numbers of boxes, then of points of edges."""

    def __init__(self, boxes: list[Placed], edges: list[tuple[int, int]]) -> None:
        self.boxes = boxes
        self.edges = edges
        self.layer = self._layers()
        self.width = [box.w for box in boxes]
        self.up: list[list[int]] = [[] for _ in boxes]
        self.down: list[list[int]] = [[] for _ in boxes]
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for k, layer in enumerate(self.layer):
            self.rows[layer].append(k)
        self.x = [0.0] * len(boxes)
        self.chains = self._chains()

    def _layers(self) -> list[int]:
        """Return the layer of each box: below all that it reads; if it reads at most one, just above its reader."""
        layer, reads = [0] * len(self.boxes), [0] * len(self.boxes)
        readers: list[list[int]] = [[] for _ in self.boxes]
        for a, b in sorted(self.edges, key=lambda edge: edge[1]):
            layer[b] = max(layer[b], layer[a] + 1)
            reads[b] += 1
            readers[a].append(b)
        for k in range(len(layer) - 1, -1, -1):
            if readers[k] and reads[k] <= 1:
                layer[k] = min([layer[m] for m in readers[k]]) - 1
        return layer

    def _reach(self) -> int:
        """Return how many layers an edge may pass by points of its own: three points for each box, sixty at least."""
        spans = sorted(self.layer[b] - self.layer[a] - 1 for a, b in self.edges)
        room, total = 3 * len(self.boxes) + 60, 0
        for span in spans:
            total += span
            if total > room:
                return max(span - 1, 1)
        return spans[-1] if spans else 0

    def _chains(self) -> list[list[int] | None]:
        """Return the points of each edge, shared by those of one source; None for one that takes a lane."""
        reach, shared = self._reach(), dict[tuple[int, int], int]()
        chains: list[list[int] | None] = []
        for a, b in self.edges:
            if self.layer[b] - self.layer[a] - 1 > reach:
                chains.append(None)
                continue
            chain, last = [a], a
            for layer in range(self.layer[a] + 1, self.layer[b]):
                point = shared.get((a, layer))
                if point is None:
                    point = shared[a, layer] = len(self.layer)
                    self.layer.append(layer)
                    self.width.append(_POINT)
                    self.x.append(0.0)
                    self.up.append([last])
                    self.down.append([])
                    self.down[last].append(point)
                    self.rows[layer].append(point)
                chain.append(point)
                last = point
            self.down[last].append(b)
            self.up[b].append(last)
            chains.append([*chain, b])
        return chains

    def _order(self) -> None:
        place = [0.0] * len(self.layer)
        for row in self.rows:
            for k, node in enumerate(row):
                place[node] = float(k)
        for sweep in range(6 if len(place) < _MANY else 4):
            beside = self.down if sweep % 2 else self.up
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                for node in row:
                    near = beside[node]
                    if near:
                        place[node] = sum([place[m] for m in near]) / len(near)
                row.sort(key=place.__getitem__)
                for k, node in enumerate(row):
                    place[node] = float(k)

    def _align(self) -> None:
        for row in self.rows:
            x = 0.0
            for node in row:
                self.x[node] = x + self.width[node] / 2
                x += self.width[node] + _GAP_X
        if not self.rows:
            return
        middle = max(self.x[row[-1]] for row in self.rows) / 2
        for row in self.rows:
            shift = middle - self.x[row[-1]] / 2
            for node in row:
                self.x[node] += shift
        sweeps = 8 if len(self.x) < _MANY else 4
        for sweep in range(sweeps):
            beside = self.up if sweep % 2 == 0 else self.down
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                self._align_row(row, [self.up, self.down] if sweep >= sweeps - 2 else [beside])
        self._straighten()

    def _straighten(self) -> None:
        """Move layers so that the middles of near ones are in a line, where a picture leans, as unrolled loops do."""
        sides = [
            (self.x[row[0]] - self.width[row[0]] / 2, self.x[row[-1]] + self.width[row[-1]] / 2) for row in self.rows
        ]
        if max(b for _, b in sides) - min(a for a, _ in sides) < _LEAN * max(b - a for a, b in sides):
            return
        sums = [0.0, *accumulate((a + b) / 2 for a, b in sides)]
        for k, row in enumerate(self.rows):
            first, last = max(k - _NEAR, 0), min(k + _NEAR + 1, len(self.rows))
            middle = (sums[last] - sums[first]) / (last - first)
            for node in row:
                self.x[node] -= middle

    def _align_row(self, row: list[int], beside: list[list[list[int]]]) -> None:
        """Place a row nearest to the wished places, by least squares, in order and without overlap (pooling)."""
        pools: list[tuple[float, float, int]] = []  # of wished places less offsets: their mean, weight, how many
        offsets, offset = [], 0.0
        for k, node in enumerate(row):
            if k:
                offset += (self.width[row[k - 1]] + self.width[node]) / 2 + _GAP_X
            offsets.append(offset)
            near = [self.x[m] for lists in beside for m in lists[node]]
            weight = 1.0 if near else 0.1
            if near and self.width[node] == _POINT:
                weight = 4.0  # long edges are straight
            mean = (sum(near) / len(near) if near else self.x[node]) - offset
            count = 1
            while pools and pools[-1][0] >= mean:
                other, heavy, n = pools.pop()
                mean = (mean * weight + other * heavy) / (weight + heavy)
                weight += heavy
                count += n
            pools.append((mean, weight, count))
        k = 0
        for mean, _, count in pools:
            for node in row[k : k + count]:
                self.x[node] = mean + offsets[k]
                k += 1

    def layout(self) -> Layout:
        self._order()
        self._align()
        n = len(self.boxes)
        left = min((self.x[k] - self.width[k] / 2 for k in range(len(self.x))), default=0.0) - _PAD
        right = max((self.x[k] + self.width[k] / 2 for k in range(len(self.x))), default=0.0) + _PAD - left
        top, bottom, y = list[float](), list[float](), _PAD
        for row in self.rows:
            tall = max((self.boxes[k].h for k in row if k < n), default=0.0)
            top.append(y)
            bottom.append(y + tall)
            y += tall + _GAP_Y
        for k, box in enumerate(self.boxes):
            box.x, box.y, box.row = self.x[k] - left - box.w / 2, top[self.layer[k]], self.layer[k]
        lanes = self._lanes(right + _GAP_X)
        edges, passed = [], []
        for (a, b), chain in zip(self.edges, self.chains, strict=True):
            start = self.boxes[a]
            if chain is None:
                straight = [(lanes[a], self.layer[a] + 1, self.layer[b] - 1)]
            else:
                straight = [(self.x[k] - left, self.layer[k], self.layer[k]) for k in chain[1:-1]]
            points = [(self.x[a] - left, start.y + start.h)]
            if start.y + start.h < bottom[self.layer[a]]:
                points.append((points[0][0], bottom[self.layer[a]]))
            for x, first, last in straight:
                points += [(x, top[first]), (x, bottom[last])]
            points.append((self.x[b] - left, top[self.layer[b]]))
            edges.append(points)
            passed.append(straight)
        width = max([right, *(x + _GAP_X for x in lanes.values())])
        height = y - (_GAP_Y - _PAD if self.rows else 0)
        rows = list(zip(top, bottom, strict=True))
        return Layout(width, height, self.boxes, edges, self.edges, rows, passed)

    def _lanes(self, first: float) -> dict[int, float]:
        """Return the lane of each source of long edges, which others use above and below."""
        until = dict[int, int]()
        for (a, b), chain in zip(self.edges, self.chains, strict=True):
            if chain is None:
                until[a] = max(until.get(a, 0), self.layer[b])
        ends: list[int] = []
        lanes = {}
        for a in sorted(until, key=lambda k: self.layer[k]):
            lane = next((k for k, end in enumerate(ends) if end <= self.layer[a]), len(ends))
            ends[lane : lane + 1] = [until[a]]
            lanes[a] = first + 7.0 * lane
        return lanes
