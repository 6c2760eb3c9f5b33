"""`pyop.onnx.as_autograd_function`, called as ONNX Runtime's training kernel calls such pairs.

The kernel is in no wheel that installs here: `Kernel` does what is documented of it. It lends writable buffers, keeps
what comes back without a copy, checks the counts and the layout, and uses all buffers again after each call.
"""

from __future__ import annotations

import numpy as np
import pytest

import pyop
from tests.interop.ten_ops import CASES

pytest.importorskip("onnx")
import pyop.onnx
from tests.exchange.models import model, python_op, value

X = np.array([-1.0, 2.0, -3.0], np.float32)
KEPT = np.ones(3, np.float32)


class Kernel:
    """Calls a pair on buffers of its own."""

    def __init__(self, pair):
        self.pair = pair

    def _call(self, function, first, arguments):
        buffers = [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        lent = [b for b in buffers if isinstance(b, np.ndarray)]
        found = function(*first, *buffers)
        assert type(found) is tuple
        kept = [y for y in found if isinstance(y, np.ndarray)]
        for k, y in enumerate(kept):
            assert y.flags.c_contiguous
            assert y.flags.writeable
            assert y.dtype.isnative
            assert not any(np.may_share_memory(y, other) for other in [*lent, *kept[:k]])
            y.__dlpack__()
        taken = [y.copy() if isinstance(y, np.ndarray) else y for y in found]
        for buffer in [*lent, *kept]:
            np.atleast_1d(buffer).view(np.uint8)[...] = 0x55  # used again
        return taken

    def forward(self, *arguments):
        return self._call(self.pair.forward, (), arguments)

    def backward(self, context, *gradients):
        return self._call(self.pair.backward, (context,), gradients)


def kernel(function, *, n_out=1, training=1, n_in=1, constants=None, **more):
    outputs = tuple(f"y{k}" for k in range(n_out))
    inputs = tuple(f"x{k}" for k in range(n_in))
    made = model(
        [python_op(inputs=inputs, outputs=outputs, training_mode=training, **more)],
        [value(x) for x in inputs],
        [value(y) for y in outputs],
    )
    return Kernel(pyop.onnx.as_autograd_function(made, {"m.f": function})["m.f"])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: x[::-1],
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: (x * 2).astype(">f4"),
        lambda x: KEPT,
    ],
)
@pytest.mark.parametrize("training", [0, 1])
def test_results_are_the_kernels(function, training):
    each = kernel((function, lambda ctx, g: g), training=training)
    for _ in range(2):  # what a function keeps is not the kernel's to write into
        context, y = each.forward(X)
        assert (y == function(X)).all()
        assert (context is None) == (not training)


def test_results_that_share_memory_with_each_other():
    each = kernel((lambda x: (y := x + 1, y[:], y), lambda ctx, a, b, c: a + b + c), n_out=3)
    context, *found = each.forward(X)
    assert all((y == X + 1).all() for y in found)
    assert (each.backward(context, X, X, X)[0] == 3 * X).all()


def test_what_is_kept_for_the_gradient_outlives_the_buffers():
    def backward(ctx, g):
        return g * ctx.inputs[0] * ctx.outputs[0] * ctx.saved

    each = kernel((lambda x: pyop.saved(np.exp(x), x), backward))
    context, _ = each.forward(X)
    (d,) = each.backward(context, np.ones(3, np.float32))
    assert (d == X * np.exp(X) * X).all()
    with pytest.raises(pyop.InputError, match="serves once"):
        each.backward(context, X)


def test_absent_gradients_and_constants():
    function = lambda x, k: (x * k, x)
    each = kernel(
        (function, lambda ctx, a, b: (None if b is None else b, None)),
        n_out=2,
        convention="dc",
        input_int_scalars=[3],
        input_int_scalar_positions=[1],
        input_requires_grads=[1, 0],
    )
    context, a, _ = each.forward(X, 3)
    assert (a == X * 3).all()
    assert each.backward(context, X, None) == [None, None]
    with pytest.raises(pyop.InputError, match="constants"):
        each.forward(X, 4)


@pytest.mark.parametrize("case", [c for c in CASES if c.gradient and not c.statics], ids=lambda c: c.name)
def test_the_ten_ops(case):
    from onnx import helper

    arguments = case.made()
    expected = case.op(*arguments)
    leaves = list(expected.values()) if isinstance(expected, dict) else [np.asarray(expected)]
    code = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    names = [f"x{k}" for k in range(len(arguments))], [f"y{k}" for k in range(len(leaves))]
    node = python_op(
        inputs=names[0],
        outputs=names[1],
        training_mode=1,
        types=[code(a) for a in arguments],
        out_types=[code(y) for y in leaves],
        ranks=[a.ndim for a in arguments],
        output_tensor_ranks=[y.ndim for y in leaves],
        input_requires_grads=[int(a.dtype.kind == "f") for a in arguments],
    )
    made = model(
        [node],
        [value(n, code(a), a.ndim) for n, a in zip(names[0], arguments, strict=True)],
        [value(n, code(y), y.ndim) for n, y in zip(names[1], leaves, strict=True)],
    )
    each = Kernel(pyop.onnx.as_autograd_function(made, {"m.f": case.op})["m.f"])
    context, *found = each.forward(*arguments)
    if case.exact:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found, leaves, strict=True))
    cts = [np.random.default_rng(3).normal(size=y.shape).astype(y.dtype) for y in leaves]
    tree = dict(zip(expected, cts, strict=True)) if isinstance(expected, dict) else cts[0]
    for d, wanted in zip(each.backward(context, *cts), case.gradient(tree, *arguments), strict=True):
        if wanted is not None:
            np.testing.assert_allclose(d, wanted, rtol=1e-5)


REUSED = {
    "tensor_reuse_map": {"tensor_reuse_map": [-1, 0]},
    "inplace": {"func_name": None, "name": "m.f", "inplace": 1},
}


class AddOne(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        x += 1
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def add_one(x):
    x += 1
    return x


@pytest.mark.parametrize("dialect", REUSED)
@pytest.mark.parametrize("function", [(add_one, lambda ctx, g: g * ctx.outputs[0]), AddOne], ids=["pair", "Function"])
@pytest.mark.parametrize("training", [0, 1])
def test_a_function_that_writes_into_its_argument_reuses_the_memory(function, dialect, training):
    made = model(
        [python_op(training_mode=training, input_requires_grads=[1], **REUSED[dialect])], [value("x")], [value("y")]
    )
    pair = pyop.onnx.as_autograd_function(made, {"m.f": function})["m.f"]
    buffer = X.copy()
    context, y = pair.forward(buffer)
    assert y is buffer
    assert (buffer == X + 1).all()
    buffer[...] = 0  # the kernel goes on with it
    if training:
        assert (pair.backward(context, X)[0] == X * (X + 1)).all()


def test_inplace_promises_nothing_of_results_elsewhere():
    node = python_op(inputs=("a", "b"), outputs=("p", "q", "r"), **REUSED["inplace"])
    made = model([node], [value("a"), value("b")], [value(y) for y in "pqr"])
    pair = pyop.onnx.as_autograd_function(made, {"m.f": lambda a, b: (a * 2, add_one(b), b[::-1])})["m.f"]
    a, b = X.copy(), X.copy()
    _, p, q, r = pair.forward(a, b)
    assert q is b
    assert (a == X).all()
    assert (p == X * 2).all()
    assert (q == X + 1).all()
    assert (r == (X + 1)[::-1]).all()
    assert not any(np.may_share_memory(y, x) for y in (p, r) for x in (a, b))


def test_memory_that_is_declared_shared():
    made = model([python_op(tensor_reuse_map=[-1, 0])], [value("x")], [value("y")])
    pair = pyop.onnx.as_autograd_function(made, {"m.f": add_one})["m.f"]
    buffer = X.copy()
    _, y = pair.forward(buffer)
    assert y is buffer
    assert (buffer == X + 1).all()
    buffer.flags.writeable = False
    with pytest.raises(pyop.OutputError, match="read-only"):
        pair.forward(buffer)


def test_bool_comes_and_goes_as_bytes():
    from onnx import TensorProto as T

    made = model(
        [python_op(types=[T.BOOL], out_types=[T.BOOL])], [value("x", T.BOOL)], [value("y", T.BOOL)]
    )  # fmt: skip
    pair = pyop.onnx.as_autograd_function(made, {"m.f": np.logical_not})["m.f"]
    _, y = pair.forward(np.array([0, 1, 1], np.uint8))
    assert y.dtype == np.uint8
    assert y.tolist() == [1, 0, 0]


def test_errors():
    def fail(ctx, g):
        raise LookupError("no")

    each = kernel((lambda x: x.astype("f8") if x[0] > 0 else x, fail))
    with pytest.raises(pyop.OutputError, match="float64"):
        each.forward(-X)
    with pytest.raises(pyop.InputError, match="float64"):
        each.forward(X.astype("f8"))
    context, _ = each.forward(X)
    with pytest.raises(pyop.InputError, match="gradient 0 is float64"):
        each.backward(context, np.ones(3))
    with pytest.raises(LookupError):
        each.backward(context, X)
    with pytest.raises(pyop.InputError, match="inference"):
        each.backward(None, X)
    wide = kernel((lambda x: x, lambda ctx, g: g.astype("f8")))
    with pytest.raises(pyop.OutputError, match="float64"):
        wide.backward(wide.forward(X)[0], X)
    with pytest.raises(ValueError, match="no PythonOp"):
        pyop.onnx.as_autograd_function(model([], [value("x")], [value("x")]))
    with pytest.raises(ValueError, match="no arrays for"):
        pyop.onnx.as_autograd_function(model([python_op(types=[8])], [value("x", 8)], [value("y")]))


def test_a_function_that_writes_without_saying_so():
    def write(x):
        x[0] = 9
        return x

    with pytest.raises(ValueError, match="read-only"):
        kernel(write, training=0).forward(X)
