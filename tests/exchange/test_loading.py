"""What `pyop.load` does with a file: it runs nothing of it, and sees when a model is no longer what was saved."""

import json
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402

from . import graphs  # noqa: E402

ran = []


@dataclass
class Settings:
    power: float
    names: list = field(default_factory=list)
    kept: float = field(init=False, default=0.0)

    def __post_init__(self):
        ran.append("Settings")
        self.kept = self.power * 2


@dataclass(frozen=True, slots=True)
class Frozen:
    power: float
    twice: float = field(init=False)

    def __post_init__(self):
        ran.append("Frozen")
        object.__setattr__(self, "twice", self.power * 2)


class Point(NamedTuple):
    x: object
    y: object


class Watched(Point):
    def __new__(cls, x, y):
        ran.append("Watched")
        return super().__new__(cls, x, y)


class Odd(NamedTuple):
    x: float

    def __hash__(self):
        ran.append("Odd")
        return 3


@dataclass
class Watching:
    power: float

    @property
    def power(self):
        return self._power

    @power.setter
    def power(self, value):
        ran.append("Watching")
        self._power = value


@pyop.op("float64[n] -> float64[n]")
def raised(x, *, by):
    if isinstance(by, dict):
        (by,) = by
    power = getattr(by, "power", None)
    return x ** (by[0] if power is None else power) + getattr(by, "kept", 0.0)


HELD = {
    "dataclass": lambda: Settings(2.0, ["a"]),
    "frozen, with slots": lambda: Frozen(2.0),
    "named tuple": lambda: Watched(2.0, 1),
    "key": lambda: {Frozen(2.0): 1},
}


def saved(fn, path):
    graph = pyop.trace(fn, "float64[3]")
    graph.save(path)
    ran.clear()
    return graph


@pytest.mark.parametrize("kind", HELD)
def test_no_constructor_runs_while_a_file_is_read(kind, tmp_path):
    held = HELD[kind]()
    graph = saved(lambda x: raised(x, by=held), tmp_path / "g.onnx")
    loaded = pyop.load(tmp_path / "g.onnx")
    assert ran == []
    (made,) = loaded.nodes[-1]._form[1]
    assert (type(made), made) == (type(held), held)
    if isinstance(held, Settings | Frozen):
        assert all(getattr(made, name) == getattr(held, name) for name in held.__dataclass_fields__)
    np.testing.assert_array_equal(loaded.compile()(np.arange(3.0)), graph.compile()(np.arange(3.0)))


def test_containers_of_results_are_not_constructed_either(tmp_path):
    saved(lambda x: (Settings(x, [x + 1]), Watched(x, x * 2)), tmp_path / "g.onnx")
    loaded = pyop.load(tmp_path / "g.onnx")
    assert ran == []
    settings, point = loaded.compile()(np.arange(3.0))
    np.testing.assert_array_equal(settings.kept, [0.0, 2.0, 4.0])
    assert type(point) is Watched


@pytest.mark.parametrize("held", [lambda: {Odd(2.0): 1}, lambda: frozenset([(Odd(2.0), 1)])])
def test_a_hash_of_a_class_is_not_computed(held, tmp_path):
    held = held()
    saved(lambda x: raised(x, by=held), tmp_path / "g.onnx")
    with pytest.raises(ValueError, match=rf"Odd is the key.*reading a graph runs nothing: .*modules=\['{__name__}'\]"):
        pyop.load(tmp_path / "g.onnx")
    assert ran == []
    assert pyop.load(tmp_path / "g.onnx", modules=[__name__]).nodes[-1]._form[1] == (held,)


def described(path, change):
    """A file with another description, as an earlier pyop or somebody else wrote it."""
    model = onnx.load(path)
    for entry in model.metadata_props:
        if entry.key == "pyop.graph":
            entry.value = change(entry.value)
    return model


def test_fields_that_only_the_class_can_make_are_refused(tmp_path):
    held = Settings(2.0, ["a"])
    saved(lambda x: raised(x, by=held), tmp_path / "g.onnx")

    def without(name):
        def change(text):
            found = json.loads(text)
            (entry,) = [entry for entry in found["nodes"] if entry["kind"] == "py"]
            (statics,) = entry["form"][1]["tuple"]
            statics["dataclass"][1] = [item for item in statics["dataclass"][1] if item[0] != name]
            return json.dumps(found)

        return described(tmp_path / "g.onnx", change)

    assert pyop.load(without("kept")).nodes[-1]._form[1][0].kept == 0.0
    for name in ("names", "power"):
        with pytest.raises(ValueError, match=rf"field '{name}' of .*runs nothing: load\(\.\.\., modules="):
            pyop.load(without(name))
    assert ran == []
    assert pyop.load(without("names"), modules=[__name__]).nodes[-1]._form[1][0].kept == 4.0
    renamed = described(tmp_path / "g.onnx", lambda text: text.replace('["power",', '["powder",'))
    with pytest.raises(ValueError, match="had the field 'powder' when the graph was written, and no longer has it"):
        pyop.load(renamed)
    watching = described(tmp_path / "g.onnx", lambda text: text.replace(".Settings", ".Watching"))
    ran.clear()
    with pytest.raises(ValueError, match="'names'"):
        pyop.load(watching)
    assert ran == []


# --- models that other tools have changed


def initializers(model):
    for tensor in model.graph.initializer:
        tensor.raw_data = bytes(len(tensor.raw_data))
    return model


def extracted(model):
    return onnx.utils.Extractor(model).extract_model(["x"], [model.graph.node[0].output[0]])


def merged(model):
    other = onnx.parser.parse_model(
        f'<ir_version: {model.ir_version}, opset_import: ["": {model.opset_import[0].version}]> '
        "g (double[n] z) => (double[n] w) { w = Neg(z) }"
    )
    return onnx.compose.merge_models(without_pyop_domain(model), other, io_map=[(model.graph.output[0].name, "z")])


def without_pyop_domain(model):
    kept = [entry for entry in model.opset_import if entry.domain == ""]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    return model


def other_size(model):
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 7
    return model


def other_operator(model):
    model.graph.node[0].op_type = "Cos"
    return model


def inferred(model):
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def documented(model):
    model.doc_string = model.graph.doc_string = model.graph.node[0].doc_string = "words"
    model.graph.node[0].name = "another"
    model.producer_name = "somebody"
    return model


def in_other_files(model, folder):
    onnx.save(model, folder / "outside.onnx", save_as_external_data=True, size_threshold=0)
    return folder / "outside.onnx"


@pytest.mark.parametrize("change", [initializers, extracted, merged, other_size, other_operator])
def test_a_changed_model_is_not_taken_for_the_graph_that_was_saved(change, tmp_path):
    saved(lambda x: np.sin(x) * 2.5 + 1.0, tmp_path / "g.onnx")
    model = change(onnx.load(tmp_path / "g.onnx"))
    keys = {entry.key for entry in model.metadata_props}
    if "pyop.graph" in keys:
        with pytest.raises(ValueError, match=r"changed after pyop saved it.*save it again"):
            pyop.load(model)
    x = np.arange(3.0) if change is not other_size else np.arange(7.0)
    got = list(pyop.onnx.load(model).compile()(x=x).values())[-1]
    expected = {
        "initializers": 0.0 * x,
        "extracted": np.sin(x),
        "merged": -(np.sin(x) * 2.5 + 1.0),
        "other_size": np.sin(x) * 2.5 + 1.0,
        "other_operator": np.cos(x) * 2.5 + 1.0,
    }[change.__name__]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["ufuncs", "vjp", "constants", "functions"])
def test_what_tools_add_changes_nothing(name, tmp_path):
    graph = graphs.build(name)
    graph.save(tmp_path / "g.onnx")
    args = graphs.arguments(graph)
    expected = pyop._tree.flatten(graph.compile()(*args))[0]
    changes = [inferred, documented, lambda model: in_other_files(model, tmp_path)]
    for change in changes:
        loaded = pyop.load(change(onnx.load(tmp_path / "g.onnx")))
        for mine, theirs in zip(pyop._tree.flatten(loaded.compile()(*args))[0], expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_files_of_earlier_versions_have_no_digest(tmp_path):
    saved(lambda x: np.sin(x) * 2.5, tmp_path / "g.onnx")

    def without(text):
        return json.dumps({key: value for key, value in json.loads(text).items() if key != "describes"})

    model = initializers(described(tmp_path / "g.onnx", without))
    assert pyop.load(model).compile()(np.ones(3)).shape == (3,)
