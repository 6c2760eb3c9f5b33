"""Graphs of models, written as models again: with what was added, in every dialect."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, checker, helper, numpy_helper, parser  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402

from . import graphs  # noqa: E402
from .models import F32, I64, X, elsewhere, model, python_op, python_op_grad, value, written  # noqa: E402
from .node_cases import same_bits  # noqa: E402

HERE = Path(__file__).parent

CAPTURES = """
<ir_version: 8, opset_import: ["": 13]>
captures (float[n] x, bool c) => (float[n] y)
{
  t = Add(x, x)
  u = Mul(t, x)
  y = If(c) <
    then_branch = then () => (float[n] r) { w = ReduceMean<axes = [0], keepdims = 1>(u)  r = Add(w, t) },
    else_branch = else () => (float[n] r2) {
      w = Neg(u)
      r2 = If(c) <
        then_branch = inner () => (float[n] q) { q = Softmax<axis = 0>(w) },
        else_branch = other () => (float[n] q2) { q2 = Sub(w, t) }>
    }>
}
"""

FUNCTIONS = """
<ir_version: 8, opset_import: ["": 17, "local": 1]>
functions (float[n] x) => (float[n] y)
{
  a = local.outer<slope = 3.0>(x)
  y = Abs(a)
}
<domain: "local", opset_import: ["": 17]>
inner (a) => (b) { b = Neg(a) }
<domain: "local", opset_import: ["": 17, "local": 1]>
outer <slope> (a) => (c) { b = local.inner(a)  k = Constant<value_float: float = @slope>()  c = Mul(b, k) }
<domain: "local", opset_import: ["": 17]>
unused (a) => (b) { b = Abs(a) }
"""

SEQUENCES = """
<ir_version: 8, opset_import: ["": 18]>
sequences (float[n] x, int64 k, seq(float[n]) s, optional(float[n]) o) => (seq(float[n]) t, float[n] y, float[n] z)
{
  u = SequenceInsert(s, x)
  t = SequenceInsert(u, x, k)
  v = SequenceMap<body = b (float[n] e, float[n] d) => (float[n] f) { f = Add(e, d) }>(t, x)
  y = SequenceAt(v, k)
  z = OptionalGetElement(o)
}
"""


# Outputs that are inputs, constants and each other; names as exporters make them.
NAMES = """
<ir_version: 8, opset_import: ["": 18]>
names (float[n] x, float[n] "a/b:0") => (float[n] x, float[n] "1", float[3] k, float[n] "it's.é", float[n] z)
  <float[3] k = {1, 2, 3}>
{
  "1" = Elu(x)
  "it's.é" = Elu("a/b:0")
  z = Elu("1")
}
"""


def by_reference(made, feeds):
    return ReferenceEvaluator(made).run(None, {name: pyop.onnx.boxes.unbox(x) for name, x in feeds.items()})


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        (CAPTURES, {"x": X, "c": np.array(True)}),
        (CAPTURES, {"x": X, "c": np.array(False)}),
        (FUNCTIONS, {"x": X}),
        (NAMES, {"x": X, "a/b:0": X}),
        (
            SEQUENCES,
            {"x": X, "k": np.array(0), "s": pyop.onnx.box([X * 2, X * 3]), "o": pyop.onnx.box(X * 5)},
        ),
    ],
)
def test_a_model_that_was_read_is_written_from_its_graph(text, feeds):
    source = parser.parse_model(text)
    graph = pyop.onnx.load(source)
    again = written(graph)
    assert list(again.graph.input) == list(source.graph.input)
    assert [info.name for info in again.graph.output] == [info.name for info in source.graph.output]
    assert sorted(n.op_type for n in again.graph.node if n.op_type != "Identity") == sorted(
        n.op_type for n in source.graph.node
    )
    assert {f.name for f in again.functions} == {f.name for f in source.functions} - {"unused"}
    expected = graph.compile()(**feeds)
    assert same_bits(list(expected.values()), by_reference(again, feeds))
    assert same_bits(expected, pyop.onnx.load(again).compile()(**feeds))


def added(graph):
    """A graph with nodes of its own on those of its model."""
    with graph:
        y = graph.outputs["y"]
        shift = graph.input("float32[n]", name="w")  # a name that means something inside a node of the model
        graph.output({"t": np.exp(y) * 2 + shift, "y": y, "q": y[::2], "sorted": graphs.sorted_down_op(y)})
    return graph


def test_what_was_added_is_written_too(tmp_path):
    for choice in (True, False):
        graph = added(pyop.onnx.load(parser.parse_model(CAPTURES)))
        feeds = {"x": X, "c": np.array(choice), "w": X}
        expected = graph.compile()(**feeds)
        made = written(graph)
        assert [info.name for info in made.graph.output] == ["t", "y", "q", "sorted"]
        assert made.graph.node[-1].op_type == "PythonOp"
        got = pyop.onnx.load(made).compile()(**feeds)
        assert list(got) == ["t", "y", "q", "sorted"]
        for name, array in expected.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-6)


def test_what_was_added_runs_elsewhere():
    graph = pyop.onnx.load(parser.parse_model(CAPTURES))
    with graph:
        y = graph.outputs["y"]
        graph.output({"t": np.exp(y) * 2, "y": y, "w": y[::2]})
    for choice in (True, False):
        feeds = {"x": X, "c": np.array(choice)}
        got = elsewhere(written(graph), feeds)
        for a, b in zip(got, graph.compile()(**feeds).values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_graph_with_nodes_added_is_saved_bit_for_bit(tmp_path):
    graph = added(pyop.onnx.load(parser.parse_model(CAPTURES)))
    graph.save(tmp_path / "g.onnx")
    sequences = pyop.onnx.load(parser.parse_model(SEQUENCES))
    sequences.save(tmp_path / "s.onnx")
    program = (
        "import sys, pickle, numpy as np, pyop, pyop.onnx, importlib\n"
        "importlib.import_module(sys.argv[2])\n"
        "graph = pyop.load(sys.argv[1] + '/g.onnx')\n"
        "x = np.array([-1.0, 2.0, -3.0], np.float32)\n"
        "found = [graph.compile()(x=x, c=np.array(c), w=x) for c in (True, False)]\n"
        "graph = pyop.load(sys.argv[1] + '/s.onnx')\n"
        "found.append(graph.compile()(x=x, k=np.array(0), s=pyop.onnx.box([x * 2]), o=pyop.onnx.box(x)))\n"
        "open(sys.argv[1] + '/found', 'wb').write(pickle.dumps(found))\n"
    )
    path = [str(HERE.parent), *(entry for entry in sys.path if entry)]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), graphs.__name__],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": ":".join(path)},
    )
    assert done.returncode == 0, done.stderr
    expected = [graph.compile()(x=X, c=np.array(c), w=X) for c in (True, False)]
    expected.append(sequences.compile()(x=X, k=np.array(0), s=pyop.onnx.box([X * 2]), o=pyop.onnx.box(X)))
    assert same_bits(expected, pickle.loads((tmp_path / "found").read_bytes()))
    for made in (pyop.load(tmp_path / "g.onnx"), pickle.loads(pickle.dumps(graph))):
        assert written(made) == written(graph)


def test_numbers_that_numpy_does_not_have_are_written_and_saved(tmp_path):
    import ml_dtypes

    constants = [
        numpy_helper.from_array(np.array([[1, 2, 3]], dtype), dtype.__name__)
        for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint4)
    ]
    nodes = [helper.make_node("Transpose", [tensor.name], [f"{tensor.name}_t"]) for tensor in constants]
    outputs = [value(f"{tensor.name}_t", tensor.data_type, 2) for tensor in constants]
    source = model(nodes, [], outputs, constants, opset=21)
    graph = pyop.onnx.load(source)
    assert list(written(graph).graph.initializer) == constants
    graph.save(tmp_path / "g.onnx")
    assert same_bits(graph.run(), pyop.load(tmp_path / "g.onnx").run())


def test_the_outputs_of_a_loaded_graph_can_be_declared_again():
    graph = pyop.onnx.load(parser.parse_model(FUNCTIONS))
    other = pyop.Graph()
    with pytest.raises(pyop.GraphError, match="belongs to"):
        graph.output(other.input("float32[n]"))
    assert list(graph.outputs) == ["y"]
    with graph:
        graph.output(graph.outputs["y"] + 1)
    np.testing.assert_array_equal(graph.compile()(x=X), np.abs(X) * 3 + 1)


# --- dialects


def scale(x, k, flag=True):
    return x * np.float32(k) if flag else x


def test_python_ops_are_written_in_both_dialects():
    op = python_op(
        convention="dc", input_int_scalars=[3], input_int_scalar_positions=[1], input_requires_grads=[1, 0],
        training_mode=1, comment="a note", safe_run_mode=1, tensor_reuse_map=[-1, -1],
    )  # fmt: skip
    grad = python_op_grad(convention="dc", tensor_reuse_map=[-1])
    source = model([op, grad], [value("x"), value("g")], [value("y"), value("dx")])
    functions = {"m.f": (scale, lambda ctx, g: (g * np.float32(ctx.inputs[1]), None))}
    graph = pyop.onnx.load(source, functions)
    expected = graph.compile()(x=X, g=X)
    np.testing.assert_array_equal(expected["dx"], X * 3)
    same = written(graph)
    assert [n.op_type for n in same.graph.node] == ["PythonOp", "PythonOpGrad"]
    assert same_bits(pyop.onnx.load(same, functions).compile()(x=X, g=X), expected)
    old = written(graph, "name")
    names = [{a.name for a in n.attribute} for n in old.graph.node]
    assert all("name" in found for found in names)
    assert not any(found & {"func_name", "comment", "safe_run_mode", "tensor_reuse_map"} for found in names)
    again = pyop.onnx.load(old, functions)
    assert same_bits(again.compile()(x=X, g=X), expected)
    assert "func_name" in {a.name for a in written(again).graph.node[0].attribute}
    assert same_bits(pyop.onnx.load(written(again), functions).compile()(x=X, g=X), expected)
    # The rank of a gradient is in its node, and NumPy's functions of it are written by that.
    with graph:
        graph.output({"more": np.sum(graph.outputs["dx"] * 2)})
    assert [n.op_type for n in written(graph).graph.node][2:] == ["Mul", "ReduceSum"]


@pytest.mark.parametrize(
    ("extra", "dialect", "problem"),
    [
        (
            {"input_bool_scalars": [1], "input_bool_scalar_positions": [1], "convention": "dc"},
            "name",
            "argument 1 is True",
        ),
        ({"inplace": 1}, "func_name", "it writes into its arguments"),
    ],
)  # fmt: skip
def test_what_a_dialect_cannot_say_is_an_error(extra, dialect, problem):
    inside = helper.make_graph([python_op(**extra)], "then", [], [value("y")])
    plain = helper.make_graph([helper.make_node("Identity", ["x"], ["y2"])], "else", [], [value("y2")])
    held = helper.make_node("If", ["c"], ["z"], then_branch=inside, else_branch=plain)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    for source in (
        model([python_op(**extra)], [value("x")], [value("y")]),
        model([held], [condition, value("x")], [value("z")]),
    ):
        graph = pyop.onnx.load(source, {"m.f": scale})
        with pytest.raises(ValueError, match=rf"node 'n'.* cannot be exported.*{problem}.*dialect '{dialect}'"):
            pyop.onnx.export(graph, dialect=dialect)
        pyop.onnx.export(graph, dialect="name" if dialect == "func_name" else "func_name")
        with pytest.raises(ValueError, match=r"node 'n'.*onnxruntime-extensions"):
            pyop.onnx.export(graph, dialect="extensions")


def test_functions_stored_by_value_stay_so(tmp_path):
    pytest.importorskip("cloudpickle")
    op = pyop.op("float32[n] -> float32[n]")(lambda x: x + 7)
    traced = pyop.trace(lambda x: op(x), "float32[n]")
    source = pyop.onnx.export(traced, embed=True, names={op.__wrapped__: "nowhere.seven"})
    graph = pyop.onnx.load(source)
    graph.save(tmp_path / "g.onnx")
    for made in (pyop.onnx.load(written(graph), trust="pickles"), pyop.load(tmp_path / "g.onnx", trust="pickles")):
        np.testing.assert_array_equal(next(iter(made.compile()(x=X).values())), X + 7)
    with pytest.raises(LookupError, match="pickles"):
        pyop.onnx.load(written(graph)).compile()(x=X)
    # Functions that were given are stored when it is asked for.
    given = pyop.onnx.load(model([python_op()], [value("x")], [value("y")]), {"m.f": lambda x: x + 1})
    embedded = pyop.onnx.export(given, embed=True)
    np.testing.assert_array_equal(pyop.onnx.load(embedded, trust="pickles").compile()(x=X)["y"], X + 1)


def test_integers_that_stand_for_objects_are_saved_as_the_objects(tmp_path):
    op = python_op(convention="dc", input_pointer_scalars=[4711], input_pointer_scalar_positions=[1])
    source = model([op], [value("x")], [value("y")])
    graph = pyop.onnx.load(source, {"m.f": scale}, pointers={4711: 2.5})
    graph.save(tmp_path / "g.onnx")
    np.testing.assert_array_equal(pyop.load(tmp_path / "g.onnx", {"m.f": scale}).compile()(x=X)["y"], X * 2.5)


# --- initializers


def test_sparse_initializers_are_laid_out():
    def sparse(name, indices):
        return helper.make_sparse_tensor(
            numpy_helper.from_array(np.array([5, 7], np.float32), name),
            numpy_helper.from_array(np.array(indices, np.int64), f"{name}_indices"),
            [2, 3],
        )

    inner = helper.make_graph(
        [helper.make_node("Add", ["a", "inside"], ["r"])], "b", [], [value("r", F32, 2)],
        sparse_initializer=[sparse("inside", [1, 4])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["k"], sparse_value=sparse("", [0, 5])),
        helper.make_node("Add", ["s", "k"], ["a0"]),
        helper.make_node("Add", ["a0", "x"], ["a"]),
        helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
    ]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    source = model(nodes, [value("x", F32, 2), condition], [value("y", F32, 2)])
    source.graph.sparse_initializer.append(sparse("s", [[0, 1], [1, 2]]))
    checker.check_model(source)
    graph = pyop.onnx.load(source)
    expected = [[5, 10, 0], [0, 7, 14]]
    x, c = np.zeros((2, 3), np.float32), np.array(True)
    np.testing.assert_array_equal(graph.compile()(x=x, c=c)["y"], expected)
    np.testing.assert_array_equal(pyop.onnx.load(pyop.onnx.export(graph)).compile()(x=x, c=c)["y"], expected)
    for wrong, message in (
        ([1, 9], "outside"), ([-1, 2], "outside"), ([4, 1], "must grow"), ([1, 1], "must grow"), ([1], "shape"),
    ):  # fmt: skip
        source.graph.sparse_initializer[0].CopyFrom(sparse("s", wrong))
        with pytest.raises(ValueError, match=rf"initializer 's' .*{message}|.*{message}.* initializer 's'"):
            pyop.onnx.load(source)
    source.graph.sparse_initializer[0].CopyFrom(sparse("s", [0, 1]))
    source.graph.sparse_initializer[0].dims[:] = [2**40, 2**40]
    with pytest.raises(ValueError, match=r"initializer 's' .*too many"):
        pyop.onnx.load(source)


def test_inputs_with_a_default_are_constants_or_inputs():
    weights = numpy_helper.from_array(np.array([2, 2, 2], np.float32), "w")
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("CumSum", ["m", "axis"], ["y"])]
    axis = numpy_helper.from_array(np.array(0), "axis")
    source = model(nodes, [value("x"), value("w"), value("axis", I64, 0)], [value("y")], [weights, axis])
    plain = pyop.onnx.load(source)
    assert [value.name for value in plain.inputs] == ["x"]
    np.testing.assert_array_equal(plain.compile()(x=X)["y"], np.cumsum(X * 2))
    np.testing.assert_array_equal(plain.run(feeds={"x": X, "w": X})["y"], np.cumsum(X * X))
    first = pyop.onnx.load(source, overridable=["w"])
    for graph in (first, pyop.onnx.load(written(first), overridable=["w"])):
        assert [value.name for value in graph.inputs] == ["x", "w"]
        assert list(graph.defaults) == ["w"]
        plan = graph.compile()
        np.testing.assert_array_equal(plan(x=X, **graph.defaults)["y"], np.cumsum(X * 2))
        np.testing.assert_array_equal(plan(x=X, w=X)["y"], np.cumsum(X * X))
        np.testing.assert_array_equal(graph.run(feeds={"x": X})["y"], np.cumsum(X * 2))
        np.testing.assert_array_equal(graph.run(feeds={"x": X, "w": X})["y"], np.cumsum(X * X))
        again = pyop.onnx.load(written(graph), overridable=True)
        assert list(again.defaults) == ["w"]
        assert [value.name for value in pickle.loads(pickle.dumps(again)).inputs] == ["x", "w"]
    assert [info.name for info in written(plain).graph.input] == ["x"]
    with pytest.raises(ValueError, match=r"overridable: \['x'\] are not inputs with an initializer"):
        pyop.onnx.load(source, overridable=["x"])
    with pytest.raises(TypeError, match=r"overridable=\['w'\]"):
        pyop.onnx.load(source, overridable="w")


def test_unknown_operators_of_the_added_kind_are_named():
    """A node of the model that is no tensor cannot be read by NumPy."""
    graph = pyop.onnx.load(parser.parse_model(SEQUENCES))
    with graph:
        graph.output({"y": pyop.py_func(len, [graph.outputs["t"]], np.int64)})
    with pytest.raises(ValueError, match=r"node 'len' .* cannot be exported as a PythonOp"):
        pyop.onnx.export(graph)


def test_graphs_of_models_inside_another_graph_are_written_and_saved(tmp_path):
    from pyop.transforms.inline import Inlined

    outer = pyop.Graph()
    with outer:
        x, c = outer.input("float32[n]", name="x"), outer.input("bool[]", name="c")
        parts = [Inlined(pyop.onnx.load(parser.parse_model(CAPTURES)))(x * k, c)["y"] for k in (1, 2)]
        outer.output({"w": parts[0] + parts[1]})
    outer.save(tmp_path / "g.onnx")
    for choice in (True, False):
        feeds = {"x": X, "c": np.array(choice)}
        expected = outer.compile()(**feeds)
        for made in (pyop.onnx.load(written(outer)), pyop.load(tmp_path / "g.onnx"), pickle.loads(pickle.dumps(outer))):
            assert same_bits(expected, made.compile()(**feeds))
