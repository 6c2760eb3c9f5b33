"""What graphs become in ONNX: standard operators, PythonOp, and errors where neither can say it."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402
from pyop._tree import flatten  # noqa: E402

RNG = np.random.default_rng(5)


@pyop.op("float64[n], float64[n] -> float64[]")
def scaled_dot(x, y, *, k=3, shift=0.0):
    return np.dot(x, y) * k + shift


@scaled_dot.vjp
def _(ct, x, y, *, k):
    return ct * y * k, ct * x * k


@pyop.op("float64[n] -> float64[n]")
def root(x):
    y = np.sqrt(x)
    return pyop.saved(y, slope=0.5 / y)


@root.vjp
def _(ct, x, *, saved):
    return ct * saved.slope


def twice(x):
    return x * 2


def halves(x):
    return x[::2], x[1::2]


V, M = "float64[n]", "float64[n,3]"
# What is traced, the specs of its arguments, and the operators it becomes where that is the point.
STANDARD = {
    "arithmetic": (lambda x, y: np.tanh(x * y - x / y + 2) ** 2.0, [V, V]),
    "weak numbers": (lambda x: 2 * x + 1, ["float32[n]"]),
    "promotion": (lambda x, y: x + y, ["int32[n]", "float32[n]"]),
    "integers": (lambda x, y: (x % (y * y + 1), -x, abs(x), np.sign(x)), ["int64[n]", "int64[n]"]),
    "truth": (lambda x, y: (x < y) & ~(x == y) | np.isnan(x) ^ (x != x), [V, V]),
    "choice": (lambda x, y: (np.where(x > 0, x, y), np.maximum(x, 0), np.minimum(x, y), np.clip(x, -1, 1)), [V, V]),
    "sums": (lambda x: (x.sum(), x.sum(0), x.sum(axis=(0, 1), keepdims=True), np.prod(x, axis=-1), x.mean(1)), [M]),
    "sums of integers": (lambda x: (np.sum(x), np.mean(x), np.cumsum(x)), ["int32[n]"]),
    "extrema": (lambda x: (x.max(), x.min(axis=1), np.argmax(x, axis=1), np.argmin(x)), [M]),
    "spread": (lambda x: (x.std(axis=0), x.var(), np.cumsum(x, axis=1)), [M]),
    "truth of all": (lambda x: (np.any(x), np.all(x, axis=0)), ["bool[n,3]"]),
    "products": (lambda x, y: (x @ x.T, np.dot(x, y), np.outer(y, y)), [M, "float64[3]"]),
    "views": (lambda x: (x.T, x.reshape(-1), x.reshape(3, -1), x[None], np.swapaxes(x, 0, 1)), [M]),
    "moved": (lambda x: np.moveaxis(x, 0, 1), [M]),
    "symbolic shapes": (lambda x: (x.reshape(x.shape[0] * 3), np.broadcast_to(x[0], (2, *x.shape))), [M]),
    "slices": (lambda x: (x[1:], x[::-1], x[..., 0], x[-1], x[:, None, 1:3], x[1:-1:2, ::-2]), [M]),
    "joining": (lambda x: (np.concatenate([x, x], 1), np.stack([x, x]), np.vstack([x, x]), np.hstack([x, x])), [M]),
    "splitting": (lambda x: (*np.split(x, 3, axis=1), *np.split(x, [1], axis=1)), [M]),
    "gathering": (lambda x: (x[np.array([0, 2, -1])], np.take(x, [1, 0], axis=1), x[:, [2]]), [M]),
    "filled": (lambda x: (np.zeros_like(x), np.full_like(x, 7), np.ones_like(x, dtype="i4")), [M]),
    "casts": (lambda x: (x.astype("f4"), x.astype("i8"), np.round(x), np.floor(x)), [V]),
    "triangles": (lambda x: (np.triu(x), np.tril(x, -1), np.flip(x), np.tile(x, (2, 1))), ["float64[3,3]"]),
    "untouched": (lambda x: (x, {"named": x, "doubled": x * 2}), [V]),
}  # fmt: skip


def arguments(graph, n=6):
    found = []
    for value in graph.inputs:
        shape = tuple(size if isinstance(size, int) else n for size in value.shape)
        array = RNG.normal(size=shape) * 3
        found.append((array + 5 if value.dtype.kind == "i" else array).astype(value.dtype))
    return found


def assert_same(got, expected, exact=False):
    leaves = flatten(expected)[0]
    assert len(got) == len(leaves)
    for mine, theirs in zip(got, leaves, strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        if exact:
            np.testing.assert_array_equal(mine, theirs)
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-5 if theirs.dtype == np.float32 else 1e-12, atol=1e-12)


@pytest.mark.parametrize("name", STANDARD)
def test_numpy_functions_become_standard_operators(name):
    fn, specs = STANDARD[name]
    graph = pyop.trace(fn, *specs)
    model = pyop.onnx.export(graph)
    onnx.checker.check_model(model, full_check=True)
    assert {node.domain for node in model.graph.node} == {""}
    args = arguments(graph)
    feeds = {value.name: arg for value, arg in zip(graph.inputs, args, strict=True)}
    expected = graph.compile()(*args)
    loaded = pyop.onnx.load(model, trust="none").compile()(**feeds)
    assert_same(list(loaded.values()), expected)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert_same(session.run(None, feeds), expected)


@pytest.mark.parametrize("dialect", ["func_name", "name"])
def test_python_functions_become_python_ops_of_the_dialect(dialect):
    graph = pyop.trace(lambda x, y: scaled_dot(np.exp(x), y, k=4), V, V)
    model = pyop.onnx.export(graph, dialect=dialect)
    onnx.checker.check_model(model)
    (node,) = [node for node in model.graph.node if node.domain]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    name = f"{__name__}.scaled_dot" if dialect == "func_name" else "scaled_dot"
    assert attributes.pop(dialect).decode() == name
    assert attributes == {
        "input_convention": b"ddcc",
        "input_tensor_types": [TensorProto.DOUBLE] * 2,
        "input_tensor_ranks": [1, 1],
        "input_int_scalars": [4],
        "input_int_scalar_positions": [2],
        "input_float_scalars": [0.0],
        "input_float_scalar_positions": [3],
        "input_requires_grads": [0, 0, 0, 0],
        "output_tensor_types": [TensorProto.DOUBLE],
        "output_tensor_ranks": [0],
        "training_mode": 0,
    }
    assert {info.name for info in model.graph.value_info} == {"exp"}
    args = arguments(graph)
    functions = None if dialect == "func_name" else {"scaled_dot": scaled_dot}
    got = pyop.onnx.load(model, functions).compile()(x=args[0], y=args[1])
    assert_same(list(got.values()), graph.compile()(*args), exact=True)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: pyop.grad(lambda x: scaled_dot(np.exp(x), x, k=4))(x),
        lambda x: pyop.grad(lambda x: np.sum(root(x * x)))(x),
        lambda x: pyop.value_and_grad(lambda x: np.sum(np.sin(x) * x[::-1]))(x),
    ],
)
def test_gradients_become_python_op_grads(fn):
    graph = pyop.trace(fn, "float64[5]")
    model = pyop.onnx.export(graph)
    onnx.checker.check_model(model)
    (x,) = arguments(graph)
    assert_same(list(pyop.onnx.load(model).compile()(x=x).values()), graph.compile()(x))


@pyop.op("float64[n], float64[n] -> float64[n], float64[]")
def pair(x, y, *, k=2):
    return x * y * k, np.sum(x)


@pair.vjp
def _(cts, x, y, *, k):
    return cts[0] * y * k + cts[1], cts[0] * x * k


def pulled_twice(x):
    found, pull = pyop.vjp(lambda x: root(x), x)
    return found, pull(x), pull(2 * x)


@pytest.mark.parametrize(
    ("fn", "calls"),
    [
        (pyop.grad(lambda x: np.sum(pair(x, x, k=3)[0]) + 10 * np.sum(pair(x, x, k=4)[0])), 2),
        (pyop.grad(lambda x: np.sum(pair(x, x)[0]) * pair(x, x)[1]), 2),
        (pulled_twice, 2),
        (pyop.jacobian(lambda x: root(x)), 5),
    ],
)
def test_each_gradient_has_a_context_of_its_call(fn, calls):
    graph = pyop.trace(fn, "float64[5]")
    model = pyop.onnx.export(graph)
    onnx.checker.check_model(model)
    described = {info.name for info in (*model.graph.value_info, *model.graph.output)}
    described |= {node.output[0] for node in model.graph.node if node.op_type == "PythonOp"}  # the contexts
    assert {name for node in model.graph.node if node.domain for name in node.output} <= described
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("PythonOp") == kinds.count("PythonOpGrad") == calls
    x = np.arange(1.0, 6)
    assert_same(list(pyop.onnx.load(model).compile()(x=x).values()), graph.compile()(x))


@pytest.mark.parametrize("dialect", ["func_name", "name"])
def test_derivatives_by_other_rules_are_an_error(dialect):
    sine = pyop.op("float64[n] -> float64[n]", grad="fd")(lambda x: np.sin(x))
    graph = pyop.trace(pyop.grad(lambda x: np.sum(sine(x))), V)
    with pytest.raises(ValueError, match=r"by differences, and PythonOpGrad has gradients by @op\.vjp alone"):
        pyop.onnx.export(graph, dialect=dialect)


def test_gradients_of_ops_are_python_op_grads_that_read_the_context():
    graph = pyop.trace(pyop.grad(lambda x: np.sum(root(x))), "float64[5]")
    nodes = {node.op_type: node for node in pyop.onnx.export(graph).graph.node}
    assert nodes["PythonOpGrad"].input[0] == nodes["PythonOp"].output[0]


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda x: pyop.py_func(twice, [x], np.float64), r"rank of output 0 is not known"),
        (lambda x: scaled_dot(x, x, shift=0.1), r"argument shift= is 0.1, which float32 cannot hold"),
        (lambda x: scaled_dot(x, x, k=2**63), r"argument k= is 9223372036854775808, which int64"),
        (lambda x: scaled_dot(x, x, k="a"), r"argument k= is str 'a', an object"),
        (lambda x: scaled_dot(x, x, k=(1, 2.0)), r"argument k= is tuple \(1, 2.0\), an object"),
        (lambda x: scaled_dot(x, x, k=None), r"argument k= is NoneType None, an object"),
        (lambda x: pyop.op("float64[n] -> float64[n]")(lambda y: y)(x) + pyop.op(like=0)(lambda y: -y)(x),
         r"two functions are called"),
        (lambda x: np.sort(x, kind="stable"), r"argument kind= is str 'stable', an object"),
        (lambda x: x.astype("M8[s]"), r"ONNX has no element type|no cast"),
    ],
)  # fmt: skip
def test_what_onnx_cannot_express_is_an_error_that_names_node_and_argument(build, match):
    graph = pyop.trace(build, V)
    with pytest.raises(ValueError, match=match) as error:
        pyop.onnx.export(graph)
    assert "node " in str(error.value) or "output " in str(error.value)


@pyop.op(inputs=[V], outputs={"all": V, "ends": ("float64[]", "float64[]")})
def parts(x):
    return {"all": x, "ends": (x[0], x[-1])}


@pyop.op(inputs=[V], outputs="float64[3]")
def spelled(x):
    return [x[0], x[1], 7.0]


def shifted(x, y=None, *, k=1):
    return x + y * k


def test_results_and_arguments_that_an_op_has_in_containers():
    def build(x):
        found = parts(x)
        flat = pyop.contrib.py_func(shifted, (x,), {"y": x, "k": 3}, output_types=np.float64, output_shapes=(None,))
        return found, flat, spelled(x)

    graph = pyop.trace(build, V)
    x = np.arange(3.0)
    assert_same(list(pyop.onnx.load(pyop.onnx.export(graph)).compile()(x=x).values()), graph.compile()(x))
    op = pyop.op(inputs=[V], outputs={"y": V})(lambda x: {"y": x})
    with pytest.raises(ValueError, match="results stand in containers"):
        pyop.onnx.export(pyop.trace(lambda x: op(x), V), names={op.__wrapped__: "f"})


def test_functions_of_py_func_take_text_as_bytes():
    def sizes(texts):
        return np.array([len(text) for text in texts], np.int64)

    graph = pyop.trace(
        lambda t: pyop.contrib.py_func(sizes, (t,), output_types=np.int64, output_shapes=(None,)), "U5[n]"
    )
    model = pyop.onnx.export(graph, names={sizes: "sizes"})
    texts = np.array(["a", "é"], "U5")
    for fed in (texts, texts.astype(object)):
        (got,) = pyop.onnx.load(model, {"sizes": sizes}).compile()(t=fed).values()
        assert got.tolist() == graph.compile()(texts).tolist() == [1, 2]


def test_arrays_of_bytes_are_text():
    op = pyop.op("S3[n] -> S3[n]")(lambda x: x[::-1])
    model = pyop.onnx.export(pyop.trace(lambda x: op(x), "S3[n]"), names={op.__wrapped__: "f"})
    (got,) = pyop.onnx.load(model, {"f": op.__wrapped__}).compile()(x=np.array([b"a", b"bc"])).values()
    assert got.tolist() == [b"bc", b"a"]


@pyop.op("(n),(n)->(n)", dtype="float64")
def backwards(x, y):
    return (x + y)[::-1]


@pyop.op("(n)->(n)", dtype="float64")
def into(x, *, out):
    out[:] = x * 3


def test_what_an_op_does_beside_its_function():
    graph = pyop.trace(lambda x, y: backwards(into(x), y), "float64[m,n]", V)
    x, y = np.arange(6.0).reshape(2, 3), np.ones(3)
    assert_same(list(pyop.onnx.load(pyop.onnx.export(graph)).compile()(x=x, y=y).values()), graph.compile()(x, y))
    op = pyop.op("(n)->()", dtype="float64")(lambda x: x.sum())
    names = {op.__wrapped__: "total"}
    pyop.onnx.export(pyop.trace(lambda x: op(x), V), names=names)
    with pytest.raises(ValueError, match="loops over leading axes"):
        pyop.onnx.export(pyop.trace(lambda x: op(x), "float64[m,n]"), names=names)


class Scale:
    factor = 2

    def times(self, x, y=1):
        return x * self.factor * y


@pytest.mark.parametrize("dialect", ["func_name", "name", "extensions"])
def test_a_method_of_an_object_has_no_import_path(dialect):
    method = Scale().times
    op = pyop.op(inputs=[V, V], outputs=V)(method)
    graph = pyop.trace(lambda x: op(x, x), V)
    with pytest.raises(ValueError, match="has no import path; give it a name"):
        pyop.onnx.export(graph, dialect=dialect)
    model = pyop.onnx.export(graph, names={method: "scale"})
    got = pyop.onnx.load(model, {"scale": method}).compile()(x=np.ones(2))
    assert_same(list(got.values()), np.full(2, 2.0))


def test_a_call_that_no_operator_does_leaves_nothing_behind():
    graph = pyop.trace(lambda x: np.linalg.norm(x, 2, axis=(0, 1)) + np.sum(x[::2]), "float64[4,3]")
    model = pyop.onnx.export(graph)
    assert [node.op_type for node in model.graph.node if node.domain] == ["PythonOp"]
    read = {name for node in model.graph.node for name in node.input}
    assert {tensor.name for tensor in model.graph.initializer} <= read


def test_numbers_beside_arrays_in_ufuncs_that_have_no_operator_are_arrays():
    graph = pyop.trace(lambda x: (np.ldexp(x, 2), np.nextafter(x, 0.1), x * 2j), "float32[n]")
    model = pyop.onnx.export(graph)
    assert [node.op_type for node in model.graph.node] == ["PythonOp"] * 3
    x = np.ones(3, np.float32)
    assert_same(list(pyop.onnx.load(model).compile()(x=x).values()), graph.compile()(x), exact=True)


@pyop.op("float64[n], float64[n] -> float64[], float64[n]", mutates="y")
def added_to(x, y):
    y += x
    return y.sum(), y


def test_what_an_op_writes_into_is_said_in_either_dialect():
    graph = pyop.trace(lambda x, y: added_to(x, y), V, V)
    x, y = np.arange(3.0), np.ones(3)
    for dialect, name, expected in (("func_name", "tensor_reuse_map", [-1, -1, 1]), ("name", "inplace", 1)):
        model = pyop.onnx.export(graph, dialect=dialect)
        attributes = {a.name: helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
        assert attributes[name] == expected
        loaded = pyop.onnx.load(model, {"added_to": added_to})
        assert_same(list(loaded.compile()(x=x, y=y).values()), graph.compile()(x, y))
        np.testing.assert_array_equal(y, np.ones(3))
    total = pyop.op("float64[n] -> float64[]", mutates="x")(lambda x: np.add(x, 1, out=x).sum())
    graph = pyop.trace(lambda x: total(x), V)
    with pytest.raises(ValueError, match=r"writes into input 0 .* 0 results have its dtype and shape"):
        pyop.onnx.export(graph, names={total.__wrapped__: "total"})
    pyop.onnx.export(graph, dialect="name", names={total.__wrapped__: "total"})


def test_the_old_dialect_has_no_bool():
    graph = pyop.trace(lambda x: scaled_dot(x, x, k=True), V)
    with pytest.raises(ValueError, match="has no bool"):
        pyop.onnx.export(graph, dialect="name")
    loaded = pyop.onnx.load(pyop.onnx.export(graph))
    assert_same(list(loaded.compile()(x=np.ones(3)).values()), 3.0)


def test_outputs_keep_their_names_and_files_their_content(tmp_path):
    graph = pyop.trace(lambda x: {"out": x * 2, "in": x, "tree": [x + 1, x - 1]}, V)
    path = tmp_path / "model.onnx"
    model = pyop.onnx.export(graph, path)
    assert [info.name for info in model.graph.output] == ["out", "in", "tree.0", "tree.1"]
    assert path.read_bytes() == model.SerializeToString()
    assert list(tmp_path.iterdir()) == [path]
    got = pyop.onnx.load(path).compile()(x=np.ones(2))
    assert list(got) == ["out", "in", "tree.0", "tree.1"]
    np.testing.assert_array_equal(got["tree.1"], np.zeros(2))


def test_lambdas_travel_under_given_names_or_by_value():
    shift = 5.0
    f = lambda x: x + shift
    op = pyop.op("float64[n] -> float64[n]")(f)
    graph = pyop.trace(lambda x: op(x), V)
    model = pyop.onnx.export(graph, names={f: "my.shift"})
    assert model == pyop.onnx.export(graph, names={op: "my.shift"})
    got = pyop.onnx.load(model, {"my.shift": f}).compile()(x=np.zeros(1))
    assert list(got.values()) == [5.0]
    pytest.importorskip("cloudpickle")
    model = pyop.onnx.export(graph, embed=True)
    with pytest.raises(LookupError, match='trust="pickles"'):
        pyop.onnx.load(model).compile()(x=np.zeros(1))
    got = pyop.onnx.load(model, trust="pickles").compile()(x=np.zeros(1))
    assert list(got.values()) == [5.0]


@pytest.mark.parametrize("key", ["my.shift", np.tanh, lambda x: x, pyop.op("float64[n] -> float64[n]")(abs)])
def test_names_for_what_a_model_does_not_call_are_an_error(key):
    op = pyop.op("float64[n] -> float64[n]")(lambda x: x + 1)
    graph = pyop.trace(lambda x: op(np.tanh(x)), V)
    with pytest.raises(ValueError, match=r"names= has .*, which no PythonOp of this model calls"):
        pyop.onnx.export(graph, names={op: "shift", key: "other"})


def test_text_and_results_of_several_kinds():
    def join(texts, numbers):
        return np.array(
            [f"{t.decode()}{n}".encode() for t, n in zip(texts, numbers, strict=True)], object
        ), numbers.sum()

    graph = pyop.Graph()
    with graph:
        texts, numbers = graph.input("string", name="t"), graph.input("int64[n]", name="n")
        graph.output(pyop.py_func(join, [texts, numbers], ["string", "int64[]"]))
    with pytest.raises(ValueError, match="rank of input 0"):
        pyop.onnx.export(graph, names={join: "join"})
