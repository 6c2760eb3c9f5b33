"""What other runtimes ask of an exported model: names, contexts, arguments, the order of what has effects."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402


@pyop.op("float64[n], float64[n] -> float64[n]")
def product(x, y):
    return x * y


@product.vjp
def _(ct, x, y):
    return ct * y, ct * x


@pyop.op("float64[n] -> float64[]")
def energy(x):
    return pyop.saved(np.sum(x * x), slope=2 * x)


@energy.vjp
def _(ct, x, *, saved):
    return ct * saved.slope


@pyop.op("float64[n] -> float64[n]")
def shifted(x, *, k=2.0, shift=0.25):
    return x * k + shift


@pyop.op("float64[n] -> float64[n]")
def labelled(x, *, k=2.0, how="plain", shift=0.1):
    return x * k + shift


@shifted.vjp
def _(ct, x, *, k):
    return ct * k


@pyop.op("float64[n] -> float64[n]")
def behind(x, keep=0.5, *, k=2.0):
    return x * keep + k


@pyop.op(outputs="float64[n!]")
def perhaps(x, y=None, *, k=2.0):
    return x * k if y is None else x * k + y


@pyop.op(outputs="float64[n!]")
def summed(*xs, k=2.0):
    return sum(xs) * k


ticks = []


@pyop.op("float64[*s] -> float64[*s]", stateful=True)
def tick(x):
    ticks.append(x.shape)
    return np.full_like(x, len(ticks))


def lengths(texts):
    return np.array([len(text) for text in texts], np.int64)


def session(model, functions=None):
    """The model in stock onnxruntime, by onnxruntime-extensions."""
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxruntime_extensions")
    options = ort.SessionOptions()
    if any(node.domain == "ai.onnx.contrib" for node in model.graph.node):
        options.register_custom_ops_library(pyop.onnx.register_extensions(model, functions))
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def test_several_gradients_of_one_call_are_nodes_of_different_names():
    graph = pyop.trace(lambda x, y: pyop.jacobian(lambda x: product(x, y))(x), "float64[3]", "float64[3]")
    model = pyop.onnx.export(graph)
    names = [node.name for node in model.graph.node]
    assert sum(node.op_type == "PythonOpGrad" for node in model.graph.node) == 3
    assert len(set(names)) == len(names)
    again = pyop.onnx.load(model)
    with again:
        again.output({"sum": product(again.outputs["stack"][0], again.outputs["stack"][1])})
    names = [node.name for node in pyop.onnx.export(again).graph.node]
    assert len(set(names)) == len(names)


def test_nothing_is_said_of_the_context():
    graph = pyop.trace(lambda x: (energy(x), pyop.grad(energy)(x), product(x, x)), "float64[3]")
    model = pyop.onnx.export(graph)
    contexts = {node.output[0] for node in model.graph.node if node.op_type == "PythonOp"}
    assert len(contexts) == 3
    assert not contexts & {info.name for info in (*model.graph.value_info, *model.graph.output)}
    np.testing.assert_array_equal(pyop.onnx.load(model).compile()(x=np.arange(3.0))["energy_vjp"], [0.0, 2.0, 4.0])


def test_an_op_that_saves_residuals_runs_in_onnxruntime():
    model = pyop.onnx.export(pyop.trace(lambda x: energy(x) + 1.0, "float64[3]"), dialect="extensions")
    (node,) = [node for node in model.graph.node if node.domain == "ai.onnx.contrib"]
    assert len(node.output) == 1
    assert session(model).run(None, {"x": np.arange(3.0)})[0] == 6.0


def test_sessions_outlive_the_operators_of_others():
    x = np.arange(3.0)
    sessions = []
    for k in range(12):  # in the list of onnxruntime-extensions, which would move several times
        model = pyop.onnx.export(
            pyop.trace(lambda x, k=k: shifted(x, k=k, shift=k), "float64[3]"), dialect="extensions"
        )
        sessions.append(session(model))
        for j, made in enumerate(sessions):
            np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * j + j)


def test_a_missing_folder_is_named_and_not_the_part(tmp_path):
    graph = pyop.trace(lambda x: x + 1, "float64[n]")
    path = tmp_path / "nowhere" / "g.onnx"
    for write in (lambda: pyop.onnx.export(graph, path), lambda: graph.save(path)):
        with pytest.raises(FileNotFoundError) as error:
            write()
        assert error.value.filename == str(path)
        assert "part-" not in str(error.value)
        assert "os.makedirs" in error.value.__notes__[0]


# --- arguments


def without_metadata(model):
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info):
        del part.metadata_props[:]
    return model


def converted(model):
    from onnx import version_converter

    return version_converter.convert_version(model, model.opset_import[0].version + 1)


def as_text(model):
    return onnx.parser.parse_model(onnx.printer.to_text(model))


CALLS = {
    "one of two": lambda x: shifted(x, shift=0.5),
    "the other": lambda x: shifted(x, k=0.5),
    "both, turned round": lambda x: shifted(x, shift=0.5, k=0.25),
    "none": lambda x: shifted(x),
    "by position": lambda x: (behind(x), behind(x, keep=0.25), behind(x, k=4.0)),
    "beside a default that a node cannot hold": lambda x: labelled(x, k=0.5),
    "defaults that a node cannot hold": lambda x: labelled(x),
    "an array left out": lambda x: (perhaps(x, k=0.5), perhaps(x, x, k=0.5), perhaps(x)),
    "any number of arrays": lambda x: (summed(x, k=0.5), summed(x, 2.0, k=0.5), summed(x, 2.0)),
    "functions of NumPy": lambda x: np.linalg.cond(np.outer(x, x) + np.eye(3), p=-2) + np.nanpercentile(x, 30, axis=0),
    "a gradient": lambda x: pyop.grad(lambda x: np.sum(shifted(x, shift=0.5, k=3.0)))(x),
    "text": lambda x: pyop.py_func(lengths, [np.array(["a", "b\u00e9"])], "int64[2]") + x[:2],
}


@pytest.mark.parametrize("change", [without_metadata, converted, as_text], ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", CALLS)
def test_arguments_keep_their_names_without_the_metadata(name, change):
    graph = pyop.trace(CALLS[name], "float64[3]")
    x = np.array([1.0, 3.0, 4.0])
    expected = graph.compile()(x)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    model = pyop.onnx.export(graph)
    for made in (model, change(model)):
        got = list(pyop.onnx.load(made).compile()(x=x).values())
        for mine, theirs in zip(got, expected, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)


def test_two_calls_of_an_op_are_told_apart():
    graph = pyop.trace(lambda x: (shifted(x, k=0.5), shifted(x, shift=0.5), labelled(x, k=0.5), labelled(x)), "f8[3]")
    told = []
    for node in pyop.onnx.export(graph).graph.node:
        told.append({a.name: onnx.helper.get_attribute_value(a) for a in node.attribute})
    assert told[0]["func_name"] == told[1]["func_name"] == f"{__name__}.shifted".encode()
    assert [list(entry["input_float_scalars"]) for entry in told[:2]] == [[0.5, 0.25], [2.0, 0.5]]
    (node,) = pyop.onnx.export(pyop.trace(lambda x: behind(x, k=4.0), "f8[3]")).graph.node
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert attributes["func_name"] == f"{__name__}.behind".encode()
    assert list(attributes["input_float_scalars"]) == [0.5, 4.0]
    assert [entry["func_name"].decode().partition("labelled")[2] for entry in told[2:]] == ["(k=)", ""]


def an_earlier_model(names):
    """As it was written before: static arguments that were given, their names in the metadata of the node."""
    model = pyop.onnx.export(pyop.trace(lambda x: shifted(x, shift=0.5), "float64[3]"))
    (node,) = model.graph.node
    for attribute in node.attribute:
        if attribute.name in ("input_float_scalar_positions", "input_requires_grads"):
            del attribute.ints[-1]
        if attribute.name == "input_convention":
            attribute.s = b"dc"
        if attribute.name == "input_float_scalars":
            attribute.floats[:] = [0.5]
    node.metadata_props.add(key="pyop.keywords", value=names)
    return model


def test_models_of_earlier_versions_load_as_before_or_are_refused():
    model = an_earlier_model("shift")
    x = np.arange(3.0)
    np.testing.assert_array_equal(pyop.onnx.load(model).compile()(x=x)["shifted"], x * 2 + 0.5)
    for functions in (None, {f"{__name__}.shifted": shifted.__wrapped__}):
        plan = pyop.onnx.load(without_metadata(an_earlier_model("shift")), functions).compile()
        with pytest.raises(pyop.InputError, match=r"static parameters k, shift: which they are is not told.*Export"):
            plan(x=x)
    plan = pyop.onnx.load(without_metadata(model), {f"{__name__}.shifted": lambda x, shift: x + shift}).compile()
    np.testing.assert_array_equal(plan(x=x)["shifted"], x + 0.5)


def test_a_function_that_a_caller_gives_has_its_arguments_by_name_or_position():
    model = without_metadata(pyop.onnx.export(pyop.trace(lambda x: shifted(x, shift=0.5), "float64[3]")))
    x = np.arange(3.0)
    for fn in (lambda x, k, shift: x * k + shift, lambda x, *, k, shift: x * k + shift, shifted.__wrapped__, shifted):
        plan = pyop.onnx.load(model, {f"{__name__}.shifted": fn}).compile()
        np.testing.assert_array_equal(plan(x=x)["shifted"], x * 2 + 0.5)
    unclear = pyop.onnx.load(model, {f"{__name__}.shifted": lambda x, y=0, z=0, *, k=1, shift=1: x}).compile()
    with pytest.raises(pyop.InputError, match="is not told"):
        unclear(x=x)


def test_a_name_that_would_be_read_as_more_is_refused():
    graph = pyop.trace(lambda x: shifted(x), "float64[3]")
    with pytest.raises(ValueError, match=r"ends as if it named arguments.*names="):
        pyop.onnx.export(graph, names={shifted.__wrapped__: "f(k=)"})


# --- order

IN_ORDER = {
    "side by side": (lambda x: (tick(x), tick(x)), 2),
    "given out backwards": (lambda x: [tick(x), tick(x), tick(x)][::-1], 3),
    "of other arrays": (lambda x: (tick(x + 1), tick(x[0]), x * x, tick(x[:0]), tick(x)), 4),
    "one after the other": (lambda x: tick(tick(x) + x), 2),
    "read by one": (lambda x: tick(x) * 2 - tick(x)[::-1], 2),
    "read by nobody": (lambda x: (tick(x), tick(x[1:]), x + 1)[-1], 2),
    "of constants": (lambda x: (tick(np.ones(3)), x, tick(np.ones(3))), 2),
}


def results(plan_or_session, x):
    ticks.clear()
    if hasattr(plan_or_session, "get_inputs"):
        return plan_or_session.run(None, {"x": x}), list(ticks)
    found = plan_or_session(x)
    found = list(found.values()) if isinstance(found, dict) else found
    return list(found) if isinstance(found, tuple | list) else [found], list(ticks)


@pytest.mark.parametrize("dialect", ["func_name", "name", "extensions"])
@pytest.mark.parametrize("spec", ["float64[3]", "float64[n]"])
@pytest.mark.parametrize("name", IN_ORDER)
def test_calls_with_effects_keep_their_order(name, spec, dialect):
    fn, count = IN_ORDER[name]
    graph = pyop.trace(fn, spec)
    model = pyop.onnx.export(graph, dialect=dialect)
    onnx.checker.check_model(model)
    known, before = {}, set()  # for each tensor the calls that it depends on
    for node in model.graph.node:
        depends = set().union(*(known.get(name, set()) for name in node.input))
        if node.domain:
            assert before <= depends, "a runtime may run it first"
            depends = before = depends | {node.name}
        known |= dict.fromkeys(node.output, depends)
    assert len(before) == count
    x = np.arange(3.0)
    expected = results(graph.compile(), x)
    if dialect == "extensions":
        made = session(model)
    else:
        functions = {"tick": tick} if dialect == "name" else None
        made = pyop.onnx.load(model, functions).compile()
    for _ in range(2):
        got = results(made, x)
        assert got[1] == expected[1]
        for mine, theirs in zip(got[0], expected[0], strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_call_that_is_added_to_a_model_comes_after_those_it_had():
    model = pyop.onnx.export(pyop.trace(lambda x: (tick(x), tick(x)), "float64[3]"))
    graph = pyop.onnx.load(model)
    with graph:
        graph.output({"all": (*graph.outputs.values(), tick(graph.inputs[0]))})
    made = pyop.onnx.export(graph)
    assert [node.op_type for node in made.graph.node].count("Reshape") == 2
    for found in (graph, pyop.onnx.load(made)):
        ticks.clear()
        got, _ = pyop._tree.flatten(found.compile()(x=np.arange(3.0)))
        assert [result[0] for result in got] == [1.0, 2.0, 3.0]


# --- augmented assignment


def assigned(x):
    y = np.sin(x)
    y += 1.5
    narrow = x.astype(np.float32)
    narrow += y
    whole = x.astype(np.int16)
    whole //= np.array([2, 2, 7])
    whole |= 1
    return y, narrow, whole


def test_augmented_assignments_keep_the_dtype_of_their_target(tmp_path):
    graph = pyop.trace(assigned, "float64[3]")
    x = np.array([1.25, -2.5, 300.125])
    expected = assigned(x)
    graph.save(tmp_path / "g.onnx")
    model = pyop.onnx.export(graph)
    assert {node.domain for node in model.graph.node} == {""}
    for got in (pyop.load(tmp_path / "g.onnx").compile()(x), pyop.onnx.load(model).compile()(x=x).values()):
        for mine, theirs in zip(got, expected, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(session(model).run(None, {"x": x}), expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-7)


def test_an_augmented_assignment_without_an_operator_is_refused(tmp_path):
    def spun(x):
        z = x + 1j
        z *= z
        return z

    graph = pyop.trace(spun, "float64[3]")
    with pytest.raises(ValueError, match=r"augmented assignment \(imul\).* instead of y \+= z"):
        pyop.onnx.export(graph)
    graph.save(tmp_path / "g.onnx")
    np.testing.assert_array_equal(pyop.load(tmp_path / "g.onnx").compile()(np.ones(3)), spun(np.ones(3)))
