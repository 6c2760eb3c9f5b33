"""PythonOp and PythonOpGrad in models that others wrote: what loads, what is refused, what runs."""

import gc
import threading
import weakref

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402

from .models import F32, I64, X, model, python_op, python_op_grad, value  # noqa: E402


def run(forward, *, backward=None, node=None, feeds=None, inputs=None, outputs=None):
    given = {"m.f": (forward, backward) if backward else forward}
    made = model([node or python_op()], inputs or [value("x")], outputs or [value("y", F32, None)])
    return pyop.onnx.load(made, given).compile()(**(feeds or {"x": X}))


# --- what is refused

MALFORMED = [
    ("func_name", {"func_name": None}),
    ("func_name", {"func_name": ""}),
    ("name", {"name": "m.f"}),
    ("func_name", {"func_name": 3}),
    ("input_convention", {"input_convention": None}),
    ("input_convention", {"input_convention": "dd"}),
    ("input_convention", {"input_convention": "q"}),
    ("input_convention", {"input_convention": "cd", "input_int_scalars": [1], "input_int_scalar_positions": [1]}),
    ("input_tensor_types", {"input_tensor_types": [F32, F32]}),
    ("input_tensor_types", {"input_tensor_types": [99]}),
    ("input_tensor_types", {"input_tensor_types": [I64]}),
    ("input_tensor_types", {"input_tensor_types": None}),
    ("input_tensor_ranks", {"input_tensor_ranks": []}),
    ("input_tensor_ranks", {"input_tensor_ranks": [-1]}),
    ("output_tensor_types", {"output_tensor_types": [F32, F32]}),
    ("output_tensor_types", {"output_tensor_types": [0]}),
    ("output_tensor_ranks", {"output_tensor_ranks": [2**40]}),
    ("input_requires_grads", {"input_requires_grads": [1, 0]}),
    ("input_requires_grads", {"input_requires_grads": [2]}),
    ("input_int_scalar_positions", {"input_int_scalars": [1]}),
    ("input_int_scalar_positions", {"input_int_scalars": [1], "input_int_scalar_positions": [5]}),
    ("input_int_scalar_positions", {"input_int_scalars": [1], "input_int_scalar_positions": [-1]}),
    ("input_int_scalar_positions", {"input_convention": "dcc", "input_int_scalars": [1, 2],
                                    "input_int_scalar_positions": [1, 1]}),
    ("input_int_tuple_begins", {"input_convention": "dc", "input_int_tuples": [1, 2],
                                "input_int_tuple_positions": [1]}),
    ("input_int_tuple_begins", {"input_convention": "dcc", "input_int_tuples": [1, 2],
                                "input_int_tuple_positions": [1, 2], "input_int_tuple_begins": [0, 3]}),
    ("input_int_tuple_begins", {"input_convention": "dccc", "input_int_tuples": [1, 2],
                                "input_int_tuple_positions": [1, 2, 3], "input_int_tuple_begins": [0, 2, 1]}),
    ("input_float_scalars", {"input_convention": "dc", "input_float_scalars": [1],
                             "input_float_scalar_positions": [1]}),
    ("input_pointer_scalars", {"input_convention": "dc", "input_pointer_scalars": [140000000000000],
                               "input_pointer_scalar_positions": [1]}),
    ("tensor_reuse_map", {"tensor_reuse_map": [-1]}),
    ("tensor_reuse_map", {"tensor_reuse_map": [-1, 1]}),
    ("training_mode", {"training_mode": 7}),
    ("unheard_of", {"unheard_of": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("attribute", "changed"), MALFORMED)
def test_malformed_attributes_are_refused_at_load_with_node_and_attribute(attribute, changed):
    with pytest.raises(ValueError, match=rf"PythonOp node 'n', attribute '{attribute}'"):
        pyop.onnx.load(model([python_op(**changed)], [value("x")], [value("y", F32, None)]))


@pytest.mark.parametrize(
    ("inputs", "outputs"), [((), ("y",)), (("x", ""), ("y",)), (("x",), ())], ids=["no input", "no name", "no result"]
)
def test_wrong_arity_is_refused(inputs, outputs):
    made = python_op(inputs=inputs, outputs=outputs or ("y",))
    if not outputs:
        del made.output[1:]
    with pytest.raises(ValueError, match="PythonOp node 'n' must have"):
        pyop.onnx.load(model([made], [value("x")], []))


def test_letters_that_contradict_positions_are_taken_on_demand():
    node = python_op(convention="dc", input_int_scalars=[7], input_int_scalar_positions=[0])
    made = model([node], [value("x")], [value("y", F32, None)])
    graph = pyop.onnx.load(made, {"m.f": lambda k, x: x * np.float32(k)}, strict=False)
    np.testing.assert_array_equal(graph.compile()(x=X)["y"], X * 7)


def test_pointers_stand_for_what_the_caller_says():
    node = python_op(convention="dc", input_pointer_scalars=[1234], input_pointer_scalar_positions=[1])
    made = model([node], [value("x")], [value("y", F32, None)])
    seen = []
    given = {"m.f": lambda x, thing: (seen.append(thing), x)[1]}
    pyop.onnx.load(made, given, pointers={1234: "a thing"}).compile()(x=X)
    assert seen == ["a thing"]


def test_every_family_of_constants_in_both_dialects():
    seen = []
    families = {
        "input_int_scalars": [2**63 - 1],
        "input_int_scalar_positions": [1],
        "input_float_scalars": [0.1],
        "input_float_scalar_positions": [2],
        "input_int_tuples": [1, 2, 3],
        "input_int_tuple_positions": [5, 3],
        "input_int_tuple_begins": [0, 3],
        "input_float_tuples": [0.5],
        "input_float_tuple_positions": [4],
        "input_float_tuple_begins": [0],
        "input_bool_scalars": [5],
        "input_bool_scalar_positions": [6],
        "input_bool_tuples": [0, 1],
        "input_bool_tuple_positions": [7],
        "input_bool_tuple_begins": [0],
    }
    for changed in ({}, {"func_name": None, "name": "m.f", "inplace": 0}):
        run(
            lambda *args: (seen.append(args[1:]), args[0])[1],
            node=python_op(convention="d" + "c" * 7, **families, **changed),
        )
    expected = (2**63 - 1, 0.10000000149011612, (), (0.5,), (1, 2, 3), True, (False, True))
    assert seen == [expected, expected]
    assert [type(item) for item in seen[0]] == [type(item) for item in expected]


# --- what runs


@pytest.mark.parametrize(
    ("what", "code", "array"),
    [
        ("bool", TensorProto.BOOL, np.array([True, False])),
        ("complex64", TensorProto.COMPLEX64, np.array([1 + 2j, 3j], np.complex64)),
        ("float16", TensorProto.FLOAT16, np.ones(2, np.float16)),
        ("string", TensorProto.STRING, np.array(["a", "bc\0"], object)),
        ("bfloat16", TensorProto.BFLOAT16, None),
    ],
)
def test_dtypes_pass_both_ways_as_they_are(what, code, array):
    if array is None:
        array = np.ones(2, helper.tensor_dtype_to_np_dtype(code))
    seen = []
    got = run(
        lambda x: (seen.append(x.dtype), x[::-1])[1],
        node=python_op(types=[code], out_types=[code]),
        inputs=[value("x", code)],
        outputs=[value("y", code)],
        feeds={"x": array},
    )["y"]
    assert seen == [array.dtype]
    assert got.dtype == array.dtype
    assert got.tolist() == array[::-1].tolist()


@pytest.mark.parametrize(
    ("result", "match"),
    [
        (lambda x: x.astype(np.float64), "is float64 of rank 1, but it declares float32 of rank 1"),
        (lambda x: x[None], "is float32 of rank 2, but it declares float32 of rank 1"),
        (lambda x: (x, x), "Output count mismatch"),
        (lambda x: "text", "but it declares float32"),
    ],
)
def test_declared_dtype_rank_and_count_are_enforced(result, match):
    with pytest.raises(pyop.OutputError, match=match) as error:
        run(result)
    assert "PythonOp node 'n'" in str(error.value)


def test_a_rank_that_the_input_does_not_have_is_an_error_when_it_runs():
    with pytest.raises(pyop.InputError, match="rank 1, but it declares float32 of rank 2"):
        run(lambda x: x, node=python_op(ranks=[2]))


def test_arguments_cannot_be_written_into_unless_the_node_says_so():
    def write(x):
        x += 100
        return x

    with pytest.raises(ValueError, match="read-only"):
        run(write)
    feed = X.copy()
    got = run(write, node=python_op(tensor_reuse_map=[-1, 0]), feeds={"x": feed})["y"]
    np.testing.assert_array_equal(got, X + 100)
    np.testing.assert_array_equal(feed, X)
    with pytest.raises(pyop.OutputError, match="tensor_reuse_map promises"):
        run(lambda x: x + 1, node=python_op(tensor_reuse_map=[-1, 0]))


@pytest.mark.parametrize("error", [ValueError("boom"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_stays_itself_and_the_plan_usable(error):
    raising = [True]

    def f(x):
        if raising[0]:
            raise error
        return x

    plan = pyop.onnx.load(model([python_op()], [value("x")], [value("y", F32, None)]), {"m.f": f}).compile()
    with pytest.raises(type(error)) as caught:
        plan(x=X)
    assert caught.value is error
    raising[0] = False
    np.testing.assert_array_equal(plan(x=X)["y"], X)


def test_a_function_may_run_a_model_itself():
    inner = pyop.onnx.load(
        model([python_op()], [value("x")], [value("y", F32, None)]), {"m.f": lambda x: x + 1}
    ).compile()
    got = []
    thread = threading.Thread(target=lambda: got.append(run(lambda x: inner(x=x)["y"] * 2)), daemon=True)
    thread.start()
    thread.join(10)
    np.testing.assert_array_equal(got[0]["y"], (X + 1) * 2)


# --- contexts


def training(backward, extra=(), **kw):
    nodes = [python_op(training_mode=1, input_requires_grads=[1]), python_op_grad(), *extra]
    outputs = kw.pop("outputs", [value("dx", F32, None)])
    return pyop.onnx.load(
        model(nodes, [value("x"), value("g")], outputs), {"m.f": (kw.pop("forward", lambda x: x * 2), backward)}
    )


def test_backward_gets_what_forward_was_given_returned_and_kept():
    seen = []

    def forward(x):
        return pyop.saved(x * 2, slope=3)

    def backward(ctx, g):
        seen.append((ctx.inputs, ctx.outputs, ctx.needs_input_grad, ctx.saved.slope))
        return g * 2

    got = training(backward, forward=forward).compile()(x=X, g=X)
    np.testing.assert_array_equal(got["dx"], X * 2)
    ((inputs, outputs, needs, slope),) = seen
    np.testing.assert_array_equal(inputs[0], X)
    np.testing.assert_array_equal(outputs[0], X * 2)
    assert (needs, slope) == ((True,), 3)


def test_contexts_die_with_the_run_used_or_not():
    kept = []

    class Thing:
        pass

    def forward(x):
        thing = Thing()
        kept.append(weakref.ref(thing))
        return pyop.saved(x, thing)

    def failing(ctx, g):
        raise ValueError("boom")

    node = python_op(training_mode=1)
    plan = pyop.onnx.load(model([node], [value("x")], [value("y", F32, None)]), {"m.f": forward}).compile()
    for _ in range(5):
        plan(x=X)
    failing_plan = training(failing, forward=forward).compile()
    for _ in range(5):
        with pytest.raises(ValueError, match="boom"):
            failing_plan(x=X, g=X)
    training(lambda ctx, g: g, forward=forward).compile()(x=X, g=X)
    gc.collect()
    assert len(kept) == 11
    assert [ref for ref in kept if ref() is not None] == []


def test_a_context_serves_once():
    again = python_op_grad(outputs=("dy",))
    again.name = "again"
    graph = training(lambda ctx, g: g, extra=[again], outputs=[value("dx", F32, None), value("dy", F32, None)])
    with pytest.raises(pyop.InputError, match=r"No context registered for .*served"):
        graph.compile()(x=X, g=X)


def test_a_number_that_no_call_returned_is_no_context():
    made = model([python_op_grad(context="c")], [value("c", I64, 1), value("g")], [value("dx", F32, None)])
    plan = pyop.onnx.load(made, {"m.f": (lambda x: x, lambda ctx, g: g)}).compile()
    with pytest.raises(pyop.InputError, match="No context registered for 16777217"):
        plan(c=np.array([16777217]), g=X)


def test_inference_keeps_nothing():
    nodes = [python_op(), python_op_grad()]
    made = model(nodes, [value("x"), value("g")], [value("dx", F32, None)])
    plan = pyop.onnx.load(made, {"m.f": (lambda x: x, lambda ctx, g: g)}).compile()
    with pytest.raises(pyop.InputError, match="training_mode=0"):
        plan(x=X, g=X)


def test_missing_results_are_none_and_no_argument_of_others():
    both = python_op(outputs=("y", "z"))
    made = model([both], [value("x")], [value("y", F32, None), value("z", F32, None)])
    got = pyop.onnx.load(made, {"m.f": lambda x: (x, None)}).compile()(x=X)
    assert got["z"] is None
    np.testing.assert_array_equal(got["y"], X)
    reader = helper.make_node("Neg", ["z"], ["w"], name="reader")
    made = model([both, reader], [value("x")], [value("w", F32, None)])
    with pytest.raises(TypeError):
        pyop.onnx.load(made, {"m.f": lambda x: (x, None)}).compile()(x=X)


class Scaled(pyop.Function):
    seen = ()

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        return x * np.float32(k), x + 1

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        Scaled.seen = (*Scaled.seen, (ctx.needs_input_grad, np.shape(h), np.asarray(x).shape))
        return g * 3 + h, None


def test_a_function_class_runs_with_its_own_context_and_zeros_of_the_current_shape():
    constants = {"input_int_scalars": [3], "input_int_scalar_positions": [1]}
    nodes = [
        python_op(outputs=("y", "z"), convention="dc", training_mode=1, input_requires_grads=[1, 0], **constants),
        python_op_grad(inputs=("g", ""), convention="dc", output_tensor_requires_grads=[1]),
    ]
    made = model(nodes, [value("x"), value("g")], [value("y", F32, None), value("dx", F32, None)])
    plan = pyop.onnx.load(made, {"m.f": Scaled}).compile()
    for n in (3, 5):
        x = np.arange(n, dtype=np.float32)
        got = plan(x=x, g=x)
        np.testing.assert_array_equal(got["y"], x * 3)
        np.testing.assert_array_equal(got["dx"], x * 3)
    assert Scaled.seen == (((True, False), (3,), (3,)), ((True, False), (5,), (5,)))


# --- control flow


def test_python_ops_inside_if_loop_and_functions():
    body = helper.make_graph(
        [python_op(inputs=("state_in",), outputs=("state",)), helper.make_node("Identity", ["go"], ["go_out"])],
        "body",
        [value("i", I64, 0), value("go", TensorProto.BOOL, 0), value("state_in")],
        [value("go_out", TensorProto.BOOL, 0), value("state")],
    )
    branches = [
        helper.make_graph(
            [python_op(inputs=("looped",), outputs=(f"{name}_y",), function=function)], name, [], [value(f"{name}_y")]
        )
        for name, function in (("then", "m.f"), ("else", "m.g"))
    ]
    twice = helper.make_function(
        "local", "Twice", ["a"], ["b"], [python_op(inputs=("a",), outputs=("b",))],
        [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Twice", ["x"], ["t"], domain="local"),
        helper.make_node("Loop", ["count", "yes", "t"], ["looped"], body=body),
        helper.make_node("If", ["which"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    inputs = [value("x"), value("count", I64, 0), value("which", TensorProto.BOOL, 0)]
    yes = [helper.make_tensor("yes", TensorProto.BOOL, [], [1])]
    functions = {"m.f": lambda x: x * 2, "m.g": lambda x: x - 1}
    plan = pyop.onnx.load(
        model(nodes, inputs, [value("y", F32, None)], initializers=yes, functions=[twice]), functions
    ).compile()
    for which, expected in ((True, X * 2 * 8 * 2), (False, X * 2 * 8 - 1)):
        np.testing.assert_array_equal(plan(x=X, count=np.array(3), which=np.array(which))["y"], expected)


# --- names


def test_names_are_registered_once():
    pyop.onnx.register("tests.once", lambda x: x)
    try:
        with pytest.raises(ValueError, match="registered already"):
            pyop.onnx.register("tests.once", lambda x: x)
        pyop.onnx.register("tests.once", lambda x: x + 1, replace=True)
        got = pyop.onnx.load(model([python_op("tests.once")], [value("x")], [value("y", F32, None)])).compile()(x=X)
        np.testing.assert_array_equal(got["y"], X + 1)
    finally:
        pyop.onnx.unregister("tests.once")
