"""python -m pyop show."""

import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("onnx")

import itertools

import pyop
import pyop.onnx
from pyop.__main__ import main

from . import graphs


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.onnx"
    graph = pyop.trace(lambda x, y: {"r": graphs.dot(x[1:], y[1:], k=2)}, "float64[n]", "float64[n]", name="shown")
    pyop.onnx.export(graph, path)
    return path


def test_a_table_has_a_line_for_each_node(model, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["show", str(model)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("shown: 3 nodes, ")
    assert [line.split()[0] for line in lines[3:5]] == ["x", "y"]
    (last,) = [line for line in lines if "PythonOp" in line]
    assert re.search(r"dot\s+PythonOp .*graphs\.d.*r: float64\[\] \(output\)", last)


def test_a_page_draws_nodes_and_edges_and_needs_nothing_else(model, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["show", str(model), "--html", str(page)]) == 0
    tags = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)

    text = page.read_text()
    Parser().feed(text)
    assert tags.count("rect") == 5
    assert tags.count("path") == 4
    assert "http" not in text
    assert "script" not in tags


def test_names_of_a_stranger_are_text(tmp_path):
    from onnx import helper

    from pyop.onnx.show import drawing, table

    from .models import F32, value
    from .models import model as make

    node = helper.make_node("Neg", ["x"], ["<script>alert(1)</script>\x1b[2J"], name="<b>")
    made = make([node], [value("x", F32)], [])
    made.graph.name = made.producer_name = "\x1b]0;title\x07\u202e<script>"
    for text in (drawing(made), table(made)):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "<script>" not in drawing(made)


def test_what_is_no_model_is_told(tmp_path, capsys):
    path = tmp_path / "no.onnx"
    path.write_bytes(b"nothing")
    assert main(["show", str(path)]) == 1
    assert "no ONNX model" in capsys.readouterr().err
    assert main(["show", str(tmp_path / "none.onnx")]) == 1


def test_a_page_that_cannot_be_written_and_tensors_that_are_elsewhere(tmp_path, capsys):
    import onnx
    from onnx import helper

    from .models import F32, value
    from .models import model as make

    tensor = onnx.TensorProto(name="k", dims=[3], data_type=F32, data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights.bin")
    made = make([helper.make_node("Add", ["x", "k"], ["y"])], [value("x")], [value("y")], [tensor])
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    assert main(["show", str(path)]) == 0
    assert "Add" in capsys.readouterr().out
    assert main(["show", str(path), "--html", str(tmp_path / "no" / "page.html")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough(tmp_path):
    import subprocess
    import sys

    import onnx
    from onnx import helper

    from .models import F32, value

    names = ["x", *(f"y{k}" for k in range(5000))]
    nodes = [helper.make_node("Neg", [a], [b]) for a, b in itertools.pairwise(names)]
    graph = helper.make_graph(nodes, "g", [value("x", F32)], [])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph), path)
    command = [sys.executable, "-m", "pyop", "show", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("g: 5000 nodes")
        process.stdout.close()
        assert process.stderr.read() == ""
