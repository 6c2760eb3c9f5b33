"""Pictures of graphs, plans and Values: what is in them, and that names of the user's are text in each format."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import types
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import pyop
from pyop.checking import Finding, Report
from pyop.pictures import build
from pyop.pictures.build import picture_of
from pyop.pictures.model import Box, Edge, Picture
from pyop.pictures.page import page
from pyop.pictures.svg import svg
from pyop.pictures.text import dot, mermaid

NASTY = [
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\"'`&amp;", "]]>", "<!--", "a\nb\r\n\tc",
    "λ→\u2028\U0001f600", "\0\x1b[31m", "\ud800", "n" * 10_000, "\\", '\\"', "%%{init}%%", "end", "javascript:alert(1)",
]  # fmt: skip


def model(x, w):
    y = np.tanh(x @ w) * 2.0 + 1.0
    z = pyop.fori_loop(0, 10, lambda i, s: s * 0.5 + i, np.sum(y, axis=0))
    s = np.zeros_like(z)
    s[1:] = z[1:]
    q = np.einsum("i,i", s, s)
    return {"c": pyop.cond(q > 0, lambda a: a + 1, lambda a: a - 1, s), "q": q, "u": np.sort(y, axis=0) * 3 + 2}


@pyop.op("float64[n] -> float64[n]")
def twice(x):
    return x + x


@pytest.fixture
def graph():
    return pyop.trace(model, "float64[n,4]", "float64[4,3]")


@pytest.mark.parametrize("of_plan", [False, True])
def test_boxes_of_a_graph_and_of_its_plan(graph, of_plan):
    picture = picture_of(graph.compile() if of_plan else graph)
    boxes = {box.label: box for box in picture.boxes}
    assert boxes["loop"].kind == "loop"
    assert boxes["cond"].kind == "branch"
    assert boxes["store"].kind == "update"
    (title, body), *_ = boxes["loop"].inside
    assert title == "each iteration"
    assert [box.kind for box in body.boxes].count("input") == 2
    assert [title for title, _ in boxes["cond"].inside] == ["if true", "otherwise"]
    assert [box.label for box in picture.boxes if box.kind == "output"] == ["c", "q", "u"]
    assert all(edge.source < edge.target for edge in picture.edges)
    assert "loop(0, 10, sum)" in boxes["loop"].details  # numbers stand where they are read
    if of_plan:
        group = boxes["tanh multiply add"]
        assert group.kind == "group"
        assert group.members[1] == "multiply(tanh, 2.0)"
        assert group.spec == "float64[n,3]"
        assert group.source == "y = np.tanh(x @ w) * 2.0 + 1.0"
        assert group.where.endswith(f"test_pictures.py:{model.__code__.co_firstlineno + 1}")


def test_python_merged_folded_and_unneeded_nodes_of_a_plan():
    def f(x):
        a = np.sin(x)
        np.cos(x)  # not needed
        return twice(a + np.sin(x)), x, np.arange(3.0)

    picture = picture_of(pyop.trace(f, "float64[n]").compile())
    labels = [box.label for box in picture.boxes]
    assert [box.label for box in picture.boxes if box.kind == "python"] == ["twice"]
    assert not any("cos" in label for label in labels)
    assert "sin_1" not in " ".join(labels)
    into = {name: [e for e in picture.edges if picture.boxes[e.target].label == name] for name in ("0", "1", "2")}
    assert all(len(edges) == 1 for edges in into.values())


def test_unoptimised_stateful_and_empty():
    plan = pyop.trace(model, "float64[n,4]", "float64[4,3]").compile(optimize=False)
    assert "cond" in plan.to_dot()
    empty = pyop.Graph()
    assert picture_of(empty).boxes == []
    assert ElementTree.fromstring(svg(picture_of(empty))) is not None
    with pytest.raises(TypeError, match="a Graph, a Plan or a Value"):
        picture_of(3)


def test_a_picture_changes_no_state_of_the_graph(graph):
    nodes, plans = len(graph), dict(graph._plans)
    picture_of(graph), picture_of(graph.outputs["q"])
    assert len(graph) == nodes
    assert graph._plans == plans


def test_times_of_a_profile(graph, tmp_path):
    plan = graph.compile()
    with pyop.profile() as p:
        plan(np.ones((5, 4)), np.ones((4, 3)))
    boxes = {box.label: box for box in picture_of(plan, p).boxes}
    rows = {row.name: row for row in p.rows}
    for name in ("matmul", "tanh multiply add", "loop", "store"):
        assert boxes[name].time == rows[name].total_ns
        assert boxes[name].share == rows[name].share
    assert boxes["x"].time < 0
    plan.to_html(tmp_path / "plan.html", profile=p)
    assert len(data_in((tmp_path / "plan.html").read_text())["calls"]) == len(p.events)


def data_in(text):
    """The data of a page, read as a browser does: the script ends at the first `</script`."""
    script = re.search(r"<script>(.*?)</script", text, re.DOTALL).group(1)
    return json.loads(
        script[script.rindex('getElementById("pyop"),') + len('getElementById("pyop"),') : script.rindex(")")]
    )


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]


@pytest.mark.parametrize("text", NASTY)
def test_text_of_users_is_text(text):
    inner = Picture(text, [Box(text, "input")])
    box = Box(text, "native", text, [text], [text, text], text, text, [(text, inner)])
    picture = Picture(text, [Box(text, "input", text), box], [Edge(0, 1, text)])
    plain = Picture("p", [Box("a", "input"), Box("b", members=["m", "m"], inside=[("i", Picture("q", [Box("c")]))])])
    for made, other in ((svg(picture), svg(plain)), (page(picture), page(plain))):
        found, wanted = Tags(), Tags()
        found.feed(made.encode("utf-8", "replace").decode())
        wanted.feed(other)
        assert {*found.tags} - {"path"} == {*wanted.tags} - {"path"}
    root = ElementTree.fromstring(svg(picture).encode("utf-8", "strict"))
    assert len([e for e in root.iter() if e.tag.endswith("rect")]) == 3
    kept = text[:10_000]
    assert data_in(page(picture))["texts"][0][0] == kept
    lines = dot(picture).split("\n")
    assert len(lines) == len(dot(Picture("p", plain.boxes, [Edge(0, 1, "e")])).splitlines())
    for line in lines:  # quotes are closed: without escapes and quoted text none is left
        assert '"' not in re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
    for line in mermaid(picture).splitlines():
        inside = re.findall(r'"([^"]*)"', line)
        assert line.count('"') % 2 == 0
        assert not any(set("<>`[]{}\\;") & set(re.sub(r"#\d+;|<br/>", "", t)) for t in inside)


@pytest.mark.parametrize("name", [name for name in NASTY if "\ud800" not in name])
def test_names_of_users_reach_no_markup_by_any_method(name, tmp_path):
    g = pyop.Graph(name="g")
    x = g.input("float64[n]", name="x")
    g.output({name: x + 1.0})
    plan = g.compile()
    for what in (g, plan, x):
        for made in (what._repr_html_(), what._repr_svg_()):
            assert "<script" not in made
            assert "<img" not in made
    plan.to_html(tmp_path / "p.html")
    assert data_in((tmp_path / "p.html").read_text("utf-8"))["texts"][-1][0] == name[:10_000]
    plan.to_dot(), plan.to_mermaid(), plan.show(), str(g)
    assert "<script" not in plan.explain()._repr_html_()


def test_tables_escape_and_are_there(graph):
    report = Report("f", (Finding("<script>", "FAIL", "<img>"),))
    assert "&lt;script&gt;" in report._repr_html_()
    assert "<img" not in report._repr_html_()
    p = pyop.profile()
    assert "not begun" in p._repr_html_()
    with p:
        graph.compile()(np.ones((2, 4)), np.ones((4, 3)))
    assert "<table>" in p._repr_html_()
    assert "tanh multiply add" in p._repr_html_()
    assert "group #1 of 3" in graph.compile().explain()._repr_html_()


def test_show(graph, capsys):
    graph.compile().show()
    out = capsys.readouterr().out
    assert "  group   tanh multiply add  float64[n,3]  <- matmul\n" in out
    assert "    each iteration:\n" in out


def test_a_repr_that_raises_spoils_no_picture(monkeypatch):
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    call = types.SimpleNamespace(args=(Broken(),), kwargs={})
    monkeypatch.setattr(build, "call_of", lambda node, inputs: call)
    assert "add(…)" in picture_of(pyop.trace(lambda x: x + 1.0, "float64[n]")).boxes[1].details


def test_the_page_needs_no_network_and_assets_are_small(graph, tmp_path):
    graph.to_html(tmp_path / "g.html")
    text = (tmp_path / "g.html").read_text()
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert "default-src 'none'" in text
    from pyop.pictures.page import part

    assert len(part("page.js")) <= 20_000
    assert len(part("page.css")) <= 5_000


def test_large_graphs_in_a_notebook_say_how_to_see_them():
    g = pyop.Graph()
    x = g.input("float64[n]")
    for _ in range(500):
        x = x + 1.0
    assert "to_html(path)" in g._repr_svg_()
    assert len(g._repr_svg_()) < 1000


def test_cells_of_notebooks_have_numbers(monkeypatch):
    file = "/tmp/ipykernel_1/123.py"
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map={file: 3}))
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    space = {"np": np}
    exec(compile("def f(x):\n    return np.sin(x) @ x\n", file, "exec"), space)
    plan = pyop.trace(space["f"], "float64[n]").compile()
    assert picture_of(plan).boxes[1].where == "In [3]:2"
    assert "\nIn [3]\n" in str(plan.explain())
    with pyop.profile() as p:
        plan(np.ones(3))
    assert {row.where for row in p.rows if row.name == "sin"} == {"In [3]:2"}
    assert picture_of(plan, p).boxes[1].time > 0
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert picture_of(plan).boxes[1].where == f"{file}:2"


def test_explore_without_anywidget_says_what_to_install():
    code = "import sys; sys.modules['anywidget'] = None\nimport pyop\n"
    code += "try: pyop.explore(pyop.Graph())\nexcept ImportError as e: print(e)"
    assert (
        "pyop-core[notebook]"
        in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )


def test_explore(graph):
    pytest.importorskip("anywidget")
    plan = graph.compile()
    with pyop.profile() as p:
        plan(np.ones((5, 4)), np.ones((4, 3)))
    for what in (graph, plan, p):
        assert pyop.explore(what).data["views"][0]["boxes"]
    assert pyop.explore(p).data["calls"]
