"""Layouts: boxes apart, and edges that run through no box."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.layouts import through_boxes
from pyop.pictures.layout import Layout, place
from pyop.pictures.model import Box, Edge, Picture


def curve(start, end):
    """Points of an edge between two of its points, as they are drawn."""
    (a, b), (c, d) = start, end
    middle = (b + d) / 2
    for k in range(17):
        t = k / 16
        s = 1 - t
        x = s**3 * a + 3 * s * s * t * a + 3 * s * t * t * c + t**3 * c
        yield x, s**3 * b + 3 * s * s * t * middle + 3 * s * t * t * middle + t**3 * d


def check(layout: Layout, folded: bool = False):
    boxes = layout.boxes
    for k, box in enumerate(boxes):
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.w <= layout.width
        assert box.y + box.h <= layout.height
        for other in boxes[:k]:
            apart_x = box.x + box.w <= other.x + 1e-6 or other.x + other.w <= box.x + 1e-6
            assert apart_x or box.y + box.h <= other.y or other.y + other.h <= box.y
        for _, x, y, inner in () if folded else box.inside:
            assert x + inner.width <= box.w + 1e-6
            assert y + inner.height <= box.h + 1e-6
            check(inner)
    for points, (a, b) in zip(layout.edges, layout.ends, strict=True):
        first, last = boxes[a], boxes[b]
        assert points[0] == pytest.approx((first.x + first.w / 2, first.y + first.h))
        assert points[-1] == pytest.approx((last.x + last.w / 2, last.y))
        drawn = [point for pair in itertools.pairwise(points) for point in curve(*pair)]
        assert all(y <= z + 1e-6 for (_, y), (_, z) in itertools.pairwise(drawn))
        for box in boxes:
            near = [(x, y) for x, y in drawn if box.y + 0.01 < y < box.y + box.h - 0.01]
            assert not any(box.x - 0.5 < x < box.x + box.w + 0.5 for x, _ in near)


@st.composite
def pictures(draw, depth=0):
    n = draw(st.integers(0, 5 if depth else 24))
    texts = st.sampled_from(["a", "a long name of a node", "f", "x" * 200, ""])
    boxes = [Box(draw(texts), members=draw(st.lists(texts, max_size=3))) for _ in range(n)]
    if depth < 2 and n:
        for _ in range(draw(st.integers(0, 2))):
            boxes[draw(st.integers(0, n - 1))].inside.append(("body", draw(pictures(depth + 1))))
    pairs = st.tuples(st.integers(0, max(n - 1, 0)), st.integers(0, max(n - 1, 0))).filter(lambda e: e[0] < e[1])
    edges = draw(st.lists(pairs, max_size=40, unique=True)) if n > 1 else []
    return Picture("p", boxes, [Edge(a, b) for a, b in edges])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(pictures(), st.booleans())
def test_edges_run_through_no_box(picture, folded):
    check(place(picture, folded), folded)


@pytest.mark.campaign
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(pictures(), st.booleans())
def test_edges_run_through_no_box_in_many_pictures(picture, folded):
    check(place(picture, folded), folded)


def test_edges_that_pass_very_many_layers_take_lanes():
    n = 120
    edges = (
        [Edge(k, k + 1) for k in range(n - 1)]
        + [Edge(0, k) for k in range(2, n)]
        + [Edge(k, n - 1) for k in range(n - 1)]
    )
    layout = place(Picture("p", [Box(str(k)) for k in range(n)], list(dict.fromkeys(edges))))
    assert sum(map(len, layout.edges)) < 30 * n  # and not as many points as there are layers, for each edge
    check(layout)


def unrolled(passes):
    """Two states, parts of one array, and a constant: what a loop of so many passes is when it is unrolled."""
    boxes, edges = [Box("x"), Box("y"), Box("zs"), Box("a constant")], []
    last = [0, 1]
    for k in range(passes):
        part, product, total = len(boxes), len(boxes) + 1, len(boxes) + 2
        boxes += [Box(f"part {k}"), Box(f"product {k}"), Box(f"sum {k}")]
        edges += [(2, part), (3, product), (last[0], product), (product, total), (part, total), (last[1], total)]
        last = [total, product]
    return Picture("p", boxes, [Edge(*edge) for edge in edges])


@pytest.mark.parametrize("passes", [3, 50, 400])
def test_an_unrolled_loop_is_as_wide_as_a_pass(passes):
    layout = place(unrolled(passes))
    check(layout)
    assert layout.width < 800
    part = next(box for box in layout.boxes if box.box.label == f"part {passes - 1}")
    total = next(box for box in layout.boxes if box.box.label == f"sum {passes - 1}")
    assert part.row == total.row - 1


def test_a_chain_is_straight():
    layout = place(Picture("p", [Box("a"), Box("longer name"), Box("c")], [Edge(0, 1), Edge(1, 2)]))
    assert len({round(x, 6) for points in layout.edges for x, _ in points}) == 1


@pytest.mark.parametrize(
    ("points", "n"), [([(5, 10), (5, 50)], 1), ([(5, 10), (45, 30), (5, 50)], 0), ([(5, 10), (12, 30)], 1)]
)
def test_what_counts_edges_through_boxes_finds_them(points, n):
    boxes = [(0, 0, 10, 10), (0, 50, 10, 10), (4, 25, 10, 10)]
    assert through_boxes(boxes, [points], [(0, 1)]) == n
