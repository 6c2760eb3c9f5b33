"""Every NumPy call of tests/numpy_cases.py as a graph: saved, exported, and run by others."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from numpy_cases import cases  # noqa: E402

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402
from pyop._tree import flatten  # noqa: E402

SIZES = {5: pyop.Dim("n"), 7: pyop.Dim("m")}


def build(case):
    """The graph of a call with its arrays symbolic, and the arrays."""
    arrays = []

    def symbolic(x, graph):
        if isinstance(x, np.ndarray):
            arrays.append(x)
            spec = pyop.Spec(x.dtype, tuple(SIZES.get(size, size) for size in x.shape))
            return graph.input(spec, name=f"a{len(arrays) - 1}")
        return type(x)(symbolic(item, graph) for item in x) if isinstance(x, list | tuple) else x

    with pyop.Graph() as graph:
        args = [symbolic(x, graph) for x in case.args]
        graph.output(case.func(*args, **{key: symbolic(x, graph) for key, x in case.kwargs.items()}))
    return graph, arrays


def leaves(tree):
    return [np.asarray(leaf) for leaf in flatten(tree)[0]]


def built():
    for case in cases:
        try:
            graph, arrays = build(case)
            yield case, graph, arrays, leaves(graph.compile()(*arrays))
        except Exception:
            continue  # calls that cannot be symbolic are other tests' subject


def compare(every, tmp_path):
    counts = {"saved": 0, "standard": 0, "python": 0, "onnxruntime": 0}
    ort = pytest.importorskip("onnxruntime") if every == 1 else None
    for k, (case, graph, arrays, expected) in enumerate(built()):
        if k % every:
            continue
        graph.save(tmp_path / "g.onnx")
        for a, b in zip(leaves(pyop.load(tmp_path / "g.onnx").compile()(*arrays)), expected, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), case.id
            assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes(), case.id
        counts["saved"] += 1
        try:
            model = pyop.onnx.export(graph)
        except ValueError:
            continue
        feeds = {f"a{k}": array for k, array in enumerate(arrays)}
        results = [list(pyop.onnx.load(model).compile()(**feeds).values())]
        standard = all(not node.domain for node in model.graph.node)
        counts["standard" if standard else "python"] += 1
        if ort is not None and standard:
            try:
                session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            except Exception as error:
                assert "NOT_IMPLEMENTED" in str(error), case.id  # noqa: PT017
            else:
                results.append(session.run(None, feeds))
                counts["onnxruntime"] += 1
        for got in results:
            for a, b in zip(map(np.asarray, got), expected, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape), case.id
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7, err_msg=case.id)
    return counts


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_some_numpy_calls_travel(tmp_path):
    counts = compare(9, tmp_path)
    assert counts["saved"] > 50
    assert counts["standard"] > 15


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_all_numpy_calls_travel(tmp_path):
    counts = compare(1, tmp_path)
    print(counts)
    assert counts["saved"] > 600
    assert counts["onnxruntime"] > 200
