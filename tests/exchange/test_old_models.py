"""Models of earlier versions of the operators, written for those and for new ones."""

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, numpy_helper, parser  # noqa: E402

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402

from .models import elsewhere, written  # noqa: E402
from .node_cases import same_bits  # noqa: E402

OLD = {
    "ReduceMean": (11, "y = ReduceMean<axes = [1], keepdims = 0>(x)"),
    "Squeeze": (11, "a = Unsqueeze<axes = [0]>(x) y = Squeeze<axes = [0]>(a)"),
    "Softmax": (11, "y = Softmax<axis = 1>(x)"),
    "Clip": (10, "y = Clip<min = -0.5, max = 0.5>(x)"),
    "Pad": (10, "y = Pad<pads = [0, 1, 0, 2]>(x)"),
    "Split": (13, "y, z = Split<axis = 1>(x)"),
    "Slice": (9, "y = Slice<starts = [1], ends = [2], axes = [1]>(x)"),
    "TopK": (9, "y, z = TopK<k = 2>(x)"),
    "Upsample": (9, "s = Constant<value = float[2] {1, 2}>() y = Upsample<mode = \"linear\">(x, s)"),
    "Resize": (10, "s = Constant<value = float[2] {1, 0.7}>() y = Resize<mode = \"nearest\">(x, s)"),
    "Dropout": (9, "y = Dropout<ratio = 0.3>(x)"),
}  # fmt: skip

# Of which the onnx package implements the newest version only.
BY_HAND = {
    "Upsample": lambda x: np.stack([np.interp(np.arange(16) / 2, np.arange(8), row) for row in x]).astype(x.dtype),
    "Resize": lambda x: x[:, np.floor(np.arange(5) / 0.7).astype(int)],
}


@pytest.mark.parametrize("name", OLD)
def test_old_operators_are_converted_beside_new_ones(name):
    opset, body = OLD[name]
    kind = "float[a]" if name == "ReduceMean" else "float[a, b]"
    source = parser.parse_model(
        f'<ir_version: 4, opset_import: ["": {opset}]> g (float[2, 8] x) => ({kind} y) {{ {body} }}'
    )
    x = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    graph = pyop.onnx.load(source)
    with graph:
        graph.output({"y": graph.outputs["y"], "more": np.mean(graph.outputs["y"] * 2, axis=0)})
    made = written(graph)
    assert made.opset_import[0].version >= 18
    got = elsewhere(made, {"x": x})
    if name in BY_HAND:
        expected = [BY_HAND[name](x), np.mean(BY_HAND[name](x) * 2, axis=0)]
    else:
        expected = list(graph.compile()(x=x).values())
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def old_models():
    """Those of the onnx package's backend tests, most of them of opset 6, with what they are fed."""
    for path in sorted((Path(onnx.__file__).parent / "backend/test/data").glob("[ps]*/*/model.onnx")):
        source = onnx.load(path)
        constants = {tensor.name for tensor in source.graph.initializer}
        names = [info.name for info in source.graph.input if info.name not in constants]
        files = sorted((path.parent / "test_data_set_0").glob("input_*.pb"))
        tensors = [TensorProto.FromString(file.read_bytes()) for file in files]
        yield path.parent.name, source, dict(zip(names, map(numpy_helper.to_array, tensors), strict=False))


@pytest.mark.campaign
def test_old_models_are_written_for_their_opset_and_for_a_new_one():
    counts = {"models": 0, "as they were": 0, "for another opset": 0, "refused": 0}
    differ = []
    for name, source, feeds in old_models():
        try:
            expected = elsewhere(source, feeds)
            graph = pyop.onnx.load(source)
        except Exception:
            continue
        if any(not isinstance(array, np.ndarray) or array.dtype.kind != "f" or not array.ndim for array in expected):
            continue
        counts["models"] += 1
        try:
            got = elsewhere(written(graph), feeds)
            counts["as they were"] += same_bits(list(expected), list(got)) or differ.append(name) or 0
            first, *_ = graph.outputs.values()
            with graph:
                graph.output({**graph.outputs, "mean of all": np.mean(np.tanh(first) * 2, axis=0)})
            made = written(graph)
            assert made.opset_import[0].version > source.opset_import[0].version
            for a, b in zip(expected, elsewhere(made, feeds), strict=False):
                np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
            counts["for another opset"] += 1
        except ValueError as error:  # a sequence's elements: no rule for a result whose rank nobody knows
            counts["refused"] += "the rank of" in str(error) or differ.append(f"{name}: {error}") or 0
        except Exception as error:
            differ.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    print(counts, *differ, sep="\n")
    assert counts["models"] > 50
    assert counts["refused"] <= 2
    assert not differ


def test_what_cannot_be_converted_is_an_error():
    """No operator of today has the states of this one."""
    source = parser.parse_model(
        '<ir_version: 4, opset_import: ["": 8]> g (float[b, n] x) => (float[b, n] y) '
        "{ y = Scan<num_scan_inputs = 1, body = b (float i) => (float o) { o = Neg(i) }>(, x) }"
    )
    graph = pyop.onnx.load(source)
    with pytest.raises(ValueError, match="Scan node of output 'y' cannot be exported: it is Scan of opset 8"):
        pyop.onnx.export(graph)
