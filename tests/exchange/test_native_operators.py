"""Operators of ONNX that run as NumPy functions, against the reference implementation: the same bits."""

import warnings

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import pyop.onnx  # noqa: E402
from pyop.onnx.reference import ReferenceCall  # noqa: E402

RNG = np.random.default_rng(11)
F = np.float32
SPECIAL = np.array([[0.0, -0.0, np.nan, np.inf], [-np.inf, 1e-40, -2.5, 3e38]], F)
X = RNG.normal(size=(2, 3, 4)).astype(F)
I = RNG.integers(-5, 6, (2, 3)).astype(np.int32)  # noqa: E741
ONE = np.ones((2, 1, 3), F)


def ints(*values):
    return np.array(values, np.int64)


CASES = [
    *((op, 13, [x], {}) for op in ("Acos", "Asinh", "Atanh", "IsNaN", "Sign", "Sigmoid", "Relu") for x in (X, SPECIAL)),
    ("Sign", 13, [I], {}),
    *((op, 18, [I, I[:1]], {}) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min", "Mod")),
    ("BitwiseNot", 18, [I], {}),
    ("Mod", 13, [X, X[:1] + 1], {"fmod": 1}),
    ("Mod", 13, [I, np.abs(I) + 1], {"fmod": 1}),
    *((op, 13, [SPECIAL, SPECIAL[::-1].copy(), SPECIAL[:1]], {}) for op in ("Max", "Min", "Sum")),
    ("Sum", 13, [np.array([-0.0, 1.0], F)], {}),
    ("Clip", 13, [X, np.array(-0.5, F), np.array(0.5, F)], {}),
    ("Clip", 13, [SPECIAL, np.array(2, F), np.array(-2, F)], {}),
    *(("Cast", 19, [x], {"to": to}) for x in (X, I, I > 0) for to in (1, 6, 7, 9, 10, 11, 2)),
    *((op, 13, [X], {"axis": axis}) for op in ("Softmax", "LogSoftmax") for axis in (-1, 0, 1)),
    *((op, 18, [X, ints(*axes)], {"keepdims": keep}) for op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd")
      for axes, keep in (((1,), 1), ((0, -1), 0))),
    *(("ReduceSum", 13, [x, ints(*axes)], {"keepdims": keep}) for x in (X, I)
      for axes, keep in (((1,), 1), ((0, -1), 0))),
    *((op, 13, [X], {"axes": [1], "keepdims": 0}) for op in ("ReduceMax", "ReduceMean", "ReduceProd")),
    *((op, 18, [X], {}) for op in ("ReduceMax", "ReduceMean", "ReduceSum")),
    ("ReduceMean", 18, [X.astype(np.float16), ints(1)], {}),
    ("CumSum", 14, [X, np.array(1)], {}),
    ("CumSum", 14, [I, np.array(-1)], {}),
    ("Squeeze", 13, [ONE, ints(1)], {}),
    ("Squeeze", 13, [ONE, ints(-2)], {}),
    ("Unsqueeze", 13, [X, ints(0, -1)], {}),
    ("Unsqueeze", 11, [X], {"axes": [1]}),
    ("Concat", 13, [X, X[:1]], {"axis": 0}),
    ("Concat", 13, [X, X[:, :, :1], X], {"axis": -1}),
    ("Slice", 13, [X, ints(1, 0), ints(3, 2**62), ints(2, 0)], {}),
    ("Slice", 13, [X, ints(-1, 3), ints(-(2**62), 0), ints(1, -1), ints(-1, -2)], {}),
    ("Slice", 10, [X, ints(1), ints(2)], {}),
    ("Gather", 13, [X, ints(2, -1, 0)], {"axis": 1}),
    ("Gather", 13, [X, np.array(1)], {}),
    ("Flatten", 13, [X], {}),
    ("Gemm", 13, [X[0], X[0].T.copy()], {}),
    ("Gemm", 13, [X[0], X[1], X[0, 0, :3]], {"transB": 1, "alpha": 0.3, "beta": 1.7}),
    ("Gemm", 13, [X[0], X[1]], {"transA": 1, "alpha": 2.0}),
]  # fmt: skip


@pytest.mark.parametrize("sizes", ["numbers", "names"])
@pytest.mark.parametrize(("op", "version", "inputs", "attributes"), CASES, ids=[case[0] for case in CASES])
def test_the_bits_of_the_reference(op, version, inputs, attributes, sizes):
    # What says something about shapes is an initializer, as it is in models.
    fixed = [k > 0 and (x.dtype == np.int64 or op in ("Clip", "CumSum")) for k, x in enumerate(inputs)]
    names = [f"x{k}" for k in range(len(inputs))]
    infos, feeds = [], {}
    for name, x, is_fixed in zip(names, inputs, fixed, strict=True):
        if not is_fixed:
            shape = x.shape if sizes == "numbers" else [f"{name}_{d}" if n > 1 else 1 for d, n in enumerate(x.shape)]
            infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), shape))
            feeds[name] = x
    stored = [numpy_helper.from_array(x, n) for n, x, is_fixed in zip(names, inputs, fixed, strict=True) if is_fixed]
    out = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", infos, [out], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        (want,) = ReferenceEvaluator(model).run(None, feeds)
        loaded = pyop.onnx.load(model)
        got = loaded.compile()(**feeds)["y"]
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.tobytes() == np.asarray(want).tobytes()
    left = [node for node in loaded.nodes if isinstance(getattr(node.function, "call", None), ReferenceCall)]
    # Maxima, and flattening, need to know that there are elements.
    assert not left or (
        sizes == "names" and op in ("ReduceMax", "ReduceMin", "Softmax", "LogSoftmax", "Flatten", "Gemm")
    )
