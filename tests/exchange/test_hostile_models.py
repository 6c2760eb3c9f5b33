"""Models from strangers: what they can reach, and that broken ones end in an error."""

import json
import random
import sys
import tracemalloc

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402
from pyop.onnx.loaded import LoadedGraph  # noqa: E402

from . import graphs  # noqa: E402
from .models import F32, X, model, python_op, python_op_grad, value  # noqa: E402


def called(name, **trust):
    made = model([python_op(name)], [value("x")], [value("y", F32, None)])
    return pyop.onnx.load(made, **trust).compile()(x=X)["y"]


def own_function(x):
    return x * 3


FORBIDDEN = [
    "os.system",
    "os.path.os.system",
    "subprocess.run",
    "builtins.eval",
    "builtins.exec",
    "shutil.rmtree",
    "pickle.loads",
    "importlib.import_module",
    "numpy.save",
    "numpy.load",
    "numpy.fromfile",
    "numpy.loadtxt",
    "numpy.genfromtxt",
    "numpy.memmap",
    "numpy.ndarray.tofile",
    "numpy.ndarray.dump",
    "numpy.testing.rundocs",
    "numpy.linalg.LinAlgError",
    "numpy.vectorize",
    "pytest.main",
    "numpy.linalg.test",
    "numpy.fft.test",
    "pyop.trace",
    "pyop.gradients.table.importlib.import_module",
    "pyop.gradients.table.importlib.resources.read_text",
    "pyop.gradients.saved.threading._shutdown",
    "pyop.gradients.table.add",
    "pyop.gradients.rule.defvjp",
    "pyop.graph.array_protocol.lru_cache",
    "pyop.graph.sizes.apply",
    "pyop.load",
    "pyop.onnx.load",
    f"{__name__}.pyop.onnx.load",
    f"{__name__}.own_function.__globals__.get",
    f"{__name__}.json.loads",
    f"{__name__}.random.shuffle",
    "__main__.__builtins__.eval",
    "antigravity.fly",
    "no.such.module",
    "x" * 5000,
    "a b.c",
]


@pytest.mark.parametrize("name", FORBIDDEN, ids=lambda name: name[:40])
def test_a_model_cannot_reach(name):
    before = set(sys.modules)
    with pytest.raises(LookupError, match=r"which is not known here: .*functions="):
        called(name)
    assert not {"antigravity", "no"} & (set(sys.modules) - before)


@pytest.mark.parametrize("name", [f"{__name__}.own_function", f"{graphs.__name__}.noisy", "numpy.sinh", "numpy.cumsum"])
def test_what_a_model_reaches_by_default(name):
    assert called(name).dtype == np.float32


def test_levels_of_trust(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "stranger_module.py").write_text("def double(x):\n    return x * 2\n")
    name = "stranger_module.double"
    with pytest.raises(LookupError, match=r"no module of the path .* modules="):
        called(name)
    assert "stranger_module" not in sys.modules
    with pytest.raises(LookupError, match='trust="none"'):
        called(f"{__name__}.own_function", trust="none")
    np.testing.assert_array_equal(called(name, modules=["stranger_module"]), X * 2)
    del sys.modules["stranger_module"]
    np.testing.assert_array_equal(called(name, trust="imports"), X * 2)
    del sys.modules["stranger_module"]
    with pytest.raises(ValueError, match="trust is one of"):
        called(name, trust="all")


def test_nothing_is_unpickled_unless_asked():
    import base64
    import pickle

    class Evil:
        def __reduce__(self):
            return exec, ("raise SystemError('a pickle was read')",)

    made = model([python_op()], [value("x")], [value("y", F32, None)])
    text = [{"names": ["m.f"], "pickle": base64.b85encode(pickle.dumps(Evil())).decode()}]
    made.metadata_props.add(key="pyop.functions", value=json.dumps(text))
    for trust in (None, "none", "imports"):
        with pytest.raises(LookupError):
            pyop.onnx.load(made, trust=trust).compile()(x=X)
    with pytest.raises(SystemError, match="a pickle was read"):
        pyop.onnx.load(made, trust="pickles").compile()(x=X)


def test_a_saved_graph_reaches_no_more(tmp_path):
    path = tmp_path / "g.onnx"
    pyop.trace(graphs.GRAPHS["py_func"][0], "float64[n]").save(path)
    made = onnx.load(path)
    for entry in made.metadata_props:
        entry.value = entry.value.replace(f"{graphs.__name__}.sorted_down", "os.system")
    with pytest.raises(LookupError, match=r"os\.system.*not known here"):
        pyop.load(made)


@pytest.mark.parametrize(
    ("name", "number", "key", "change", "match"),
    [
        ("containers", 1, "specs", lambda specs: specs * 2, "2 arguments and 2 results, and add has 2 and 1"),
        ("ops", 2, "specs", lambda specs: specs * 2, "has 2 results, and its op declares 1"),
        ("sizes", 2, "inputs", lambda inputs: inputs[:1], "has 1 inputs, and places for 2 among its arguments"),
    ],
)
def test_saved_calls_of_other_numbers_of_arrays_are_refused(name, number, key, change, match, tmp_path):
    path = tmp_path / "g.onnx"
    graphs.build(name).save(path)
    made = onnx.load(path)
    (entry,) = [entry for entry in made.metadata_props if entry.key == "pyop.graph"]
    description = json.loads(entry.value)
    description["nodes"][number][key] = change(description["nodes"][number][key])
    entry.value = json.dumps(description)
    with pytest.raises(ValueError, match=match):
        pyop.load(made)


def test_installed_packages_are_nobodys_own(tmp_path, monkeypatch):
    place = tmp_path / "lib" / "site-packages"
    place.mkdir(parents=True)
    (place / "somebodys_package.py").write_text("def wipe(x):\n    raise SystemError('it was called')\n")
    monkeypatch.syspath_prepend(place)
    import somebodys_package

    with pytest.raises(LookupError, match="the caller has not listed"):
        called("somebodys_package.wipe")
    with pytest.raises(SystemError, match="it was called"):
        called("somebodys_package.wipe", modules=["somebodys_package"])
    assert somebodys_package.wipe


@pytest.mark.parametrize("op_type", ["ConstantOfShape", "Expand", "Tile"])
def test_what_is_made_of_constants_is_not_computed_before_the_run(op_type):
    size = numpy_helper.from_array(np.array([10**13]), "size")
    one = numpy_helper.from_array(np.ones(1, np.float32), "one")
    inputs = ["size"] if op_type == "ConstantOfShape" else ["one", "size"]
    made = model([helper.make_node(op_type, inputs, ["y"])], [value("x")], [value("y", F32, None)], [size, one])
    plan = pyop.onnx.load(made).compile()
    with pytest.raises(MemoryError):
        plan(x=X)


def test_tensors_in_other_files_stay_in_the_folder(tmp_path):
    (tmp_path / "secret.bin").write_bytes(np.ones(3, np.float32).tobytes())
    folder = tmp_path / "inner"
    folder.mkdir()
    tensor = numpy_helper.from_array(np.ones(3, np.float32), "k")
    made = model([helper.make_node("Add", ["x", "k"], ["y"])], [value("x")], [value("y", F32, None)], [tensor])
    (stored,) = made.graph.initializer
    stored.ClearField("raw_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    stored.external_data.add(key="location", value="../secret.bin")
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(ValueError, match="other files, which"):
        pyop.onnx.load(folder / "m.onnx")
    with pytest.raises(ValueError, match="another file"):
        pyop.onnx.load(made)


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x08\x0a", b"\xff" * 100])
def test_what_is_no_model_is_a_clear_error(data, tmp_path):
    (tmp_path / "m.onnx").write_bytes(data)
    for given in (data, tmp_path / "m.onnx"):
        with pytest.raises(ValueError, match="no ONNX model"):
            pyop.onnx.load(given)


# --- mutations


def seeds(tmp_path):
    """Models with everything that a loader looks at."""
    constants = {
        "input_int_tuples": [1, 2, 3],
        "input_int_tuple_positions": [1, 3],
        "input_int_tuple_begins": [0, 2],
        "input_float_scalars": [0.5],
        "input_float_scalar_positions": [2],
    }
    body = helper.make_graph([helper.make_node("Neg", ["y"], ["z"])], "body", [], [value("z")])
    nodes = [
        python_op(convention="dccc", training_mode=1, input_requires_grads=[1, 0, 0, 0], **constants),
        python_op_grad(convention="dccc"),
        helper.make_node("If", ["c"], ["w"], then_branch=body, else_branch=body),
        helper.make_node("Reshape", ["w", "shape"], ["v"]),
        helper.make_node("Add", ["v", "k"], ["sum"]),
    ]
    tensors = [
        numpy_helper.from_array(np.array([3], np.int64), "shape"),
        numpy_helper.from_array(np.ones(3, np.float32), "k"),
    ]
    inputs = [value("x"), value("g"), value("c", onnx.TensorProto.BOOL, 0)]
    made = model(nodes, inputs, [value("sum", F32, None), value("dx", F32, None)], tensors)
    path = tmp_path / "g.onnx"
    graphs.build("ops").save(path)
    # A model that was loaded, extended and saved, with an input that has a default and a sparse initializer.
    made.graph.input.append(value("k"))
    made.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            numpy_helper.from_array(np.ones(2, np.float32), "sparse"),
            numpy_helper.from_array(np.array([0, 2], np.int64), "indices"),
            [3],
        )
    )
    made.graph.node.add(op_type="Mul", input=["sum", "sparse"], output=["last"])
    loaded = pyop.onnx.load(made, overridable=True)
    with loaded:
        loaded.output({"y": np.exp(loaded.outputs["sum"]), "dx": loaded.outputs["dx"]})
    loaded.save(tmp_path / "loaded.onnx")
    return [
        made.SerializeToString(),
        (tmp_path / "loaded.onnx").read_bytes(),
        path.read_bytes(),
        pyop.onnx.export(graphs.build("sizes")).SerializeToString(),
    ]


def mutated(data, rng, seeds):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        kind, at = rng.randrange(6), rng.randrange(len(data))
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at : at + rng.randint(1, 8)]
        elif kind == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
        elif kind == 4:
            del data[at:]
            data += b"\0"
        else:
            other = rng.choice(seeds)
            start = rng.randrange(len(other))
            data[at : at + 16] = other[start : start + 16]
    return bytes(data)


EXTREMES = (0, -1, 1, 2, 7, 99, 2**31, 2**40, -(2**63), 2**63 - 1)
ODD = (
    None,
    True,
    -1,
    2**70,
    "x",
    "os.system",
    [],
    {},
    {"tuple": []},
    {"array": "x"},
    {"spec": "f8["},
    [[]],
    {"function": 3},
)


def mutate_json(x, rng, chance):
    """The same with some parts replaced by something else."""
    if rng.random() < chance:
        return rng.choice(ODD)
    if isinstance(x, list):
        return [mutate_json(item, rng, chance) for item in x]
    return {key: mutate_json(item, rng, chance) for key, item in x.items()} if isinstance(x, dict) else x


def restructured(data, rng):
    """A model that is still one, with its fields changed: what gets past the parser."""
    made = onnx.load_model_from_string(data)
    for entry in made.metadata_props:
        if entry.key == "pyop.graph" and rng.random() < 0.8:
            entry.value = json.dumps(mutate_json(json.loads(entry.value), rng, 0.003))
    for _ in range(rng.randint(1, 3)):
        node = rng.choice(made.graph.node)
        kind = rng.randrange(8)
        if kind == 0 and node.attribute:
            attribute = rng.choice(node.attribute)
            if len(attribute.ints):
                attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(EXTREMES)
            attribute.i = rng.choice(EXTREMES)
        elif kind == 1 and node.attribute:
            attribute = rng.choice(node.attribute)
            attribute.ints.append(rng.choice(EXTREMES))
        elif kind == 2 and node.attribute:
            del node.attribute[rng.randrange(len(node.attribute))]
        elif kind == 3 and node.attribute:
            rng.choice(node.attribute).type = rng.randrange(15)
        elif kind == 4 and node.input:
            other = rng.choice(made.graph.node)
            node.input[rng.randrange(len(node.input))] = rng.choice(["", "x", *other.output])
        elif kind == 5:
            node.op_type = rng.choice(
                ["PythonOp", "PythonOpGrad", "Loop", "Constant", "Reshape", "Nope", "If", node.op_type]
            )
            node.domain = rng.choice(["", "com.microsoft", node.domain])
        elif kind == 6 and made.graph.initializer:
            tensor = rng.choice(made.graph.initializer)
            tensor.dims.append(rng.choice(EXTREMES))
            tensor.data_type = rng.choice([tensor.data_type, rng.randrange(30)])
        elif kind == 7 and made.graph.input:
            info = rng.choice(made.graph.input).type.tensor_type
            info.elem_type = rng.randrange(30)
            info.shape.dim.add().dim_value = rng.choice(EXTREMES)
    return made.SerializeToString()


def run_mutants(count, seed, tmp_path):
    """How many mutants loaded."""
    rng = random.Random(seed)
    originals = seeds(tmp_path)
    loaded = 0
    for _ in range(count):
        data = rng.choice(originals)
        data = restructured(data, rng) if rng.random() < 0.7 else mutated(data, rng, originals)
        try:
            graph = pyop.load(data)
            loaded += 1
            if isinstance(graph, LoadedGraph):
                pyop.onnx.export(graph)
        except (ValueError, LookupError, TypeError, pyop.GraphError) as error:
            assert str(error)  # noqa: PT017
    return loaded


def test_mutated_models_end_in_an_error_or_a_graph(tmp_path):
    tracemalloc.start()
    try:
        loaded = run_mutants(400, 1, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < loaded < 400
    assert peak < 100e6


@pytest.mark.campaign
def test_ten_thousand_mutated_models(tmp_path):
    assert 0 < run_mutants(10_000, 2, tmp_path) < 10_000


ESCAPE = "\x1b[31m\x9b\u202e"


def texts_of(message, path=()):
    """Every text of a model, as a way to change it."""
    for field, content in list(message.ListFields()):
        repeated = not isinstance(content, str | bytes) and hasattr(content, "__len__")
        first = next(iter(content), None) if repeated else content
        if hasattr(first, "ListFields"):
            for part in content if repeated else [content]:
                yield from texts_of(part, (*path, field.name))
        elif isinstance(first, str | bytes) and field.name != "raw_data":
            added = ESCAPE if isinstance(first, str) else ESCAPE.encode()

            def change(field=field, added=added, k=None):
                if k is None:
                    setattr(message, field.name, getattr(message, field.name) + added)
                else:
                    getattr(message, field.name)[k] += added

            if repeated:
                for k in range(len(content)):
                    yield (*path, field.name), lambda change=change, k=k: change(k=k)
            else:
                yield (*path, field.name), change


def spoken(made):
    """The texts of the errors that a model leads to: loaded, run with what it does not expect, exported again."""
    try:
        graph = pyop.onnx.load(made, functions={"m.f": lambda x: x.astype(np.float64)})
    except Exception as error:
        yield error
        return
    for use in (
        lambda: graph.compile()(X),
        lambda: graph.compile()(X.astype(complex)),
        lambda: graph.compile()(type(ESCAPE, (), {})()),
        lambda: graph.compile()(nothing=X),
        lambda: pyop.onnx.export(graph, dialect="extensions"),
        lambda: pyop.onnx.export(graph),
    ):
        try:
            use()
        except Exception as error:
            yield error


@pytest.mark.parametrize("op_type", ["PythonOp", "Relu", "NoSuch", "Cast"])
def test_no_text_of_a_model_speaks_to_the_terminal(op_type):
    def make():
        if op_type == "PythonOp":
            return model([python_op()], [value("x")], [value("y")])
        inner = helper.make_node(op_type, ["x"], ["y"], name="n", **({"to": F32} if op_type == "Cast" else {}))
        made = model([inner], [value("x", rank=None), value("z")], [value("y", rank=None)])
        made.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "k"
        made.graph.name, made.producer_name = "g", "p"
        made.metadata_props.add(key="pyop", value="{}")
        return made

    said = 0
    for k in range(len(list(texts_of(make())))):
        made = make()
        path, change = list(texts_of(made))[k]
        change()
        for error in spoken(made):
            for text in (str(error), *getattr(error, "__notes__", ())):
                said += "x1b" in text
                assert text.replace("\n", "").isprintable(), (path, text)
    assert said >= 3
