"""The node cases of the onnx package: what its own reference evaluator passes, pyop passes, and with the same bits."""

import warnings

import numpy as np
import pytest

pytest.importorskip("onnx")

import pyop.onnx

pytestmark = pytest.mark.campaign


def same(expected, got, case):
    if isinstance(expected, list | tuple):
        return (
            isinstance(got, list | tuple)
            and len(expected) == len(got)
            and all(map(lambda a, b: same(a, b, case), expected, got))
        )
    if expected is None or isinstance(expected, dict):
        return expected == got
    a, b = np.asarray(expected), np.asarray(got)
    if a.dtype.kind in "OUS" or b.dtype.kind in "OUS":
        return a.shape == b.shape and list(map(str, a.ravel())) == list(map(str, b.ravel()))
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return np.allclose(a.astype(wide), b.astype(wide), rtol=case.rtol, atol=case.atol, equal_nan=True)


def as_feed(x):
    return x if isinstance(x, np.ndarray | np.generic | int | float) else pyop.onnx.box(x)


def test_what_the_reference_evaluator_passes():
    from onnx.backend.test.case.node import collect_testcases
    from onnx.reference import ReferenceEvaluator

    counts = {"cases": 0, "reference": 0, "pyop": 0}
    differ = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in collect_testcases(None):
            names = [info.name for info in case.model.graph.input]
            for inputs, outputs in case.data_sets:
                counts["cases"] += 1
                try:
                    theirs = ReferenceEvaluator(case.model).run(None, dict(zip(names, inputs, strict=False)))
                except Exception:
                    continue
                if not same(list(outputs), list(theirs), case):
                    continue
                counts["reference"] += 1
                try:
                    plan = pyop.onnx.load(case.model).compile()
                    mine = list(plan(**{name: as_feed(x) for name, x in zip(names, inputs, strict=False)}).values())
                    reason = None if same(list(outputs), mine, case) else "another result"
                except Exception as error:
                    reason = f"{type(error).__name__}: {str(error)[:200]}"
                counts["pyop"] += reason is None
                if reason is not None:
                    differ.append(f"{case.name}: {reason}")
    print(counts, *differ, sep="\n")
    assert counts["reference"] > 1000
    assert counts["pyop"] >= 0.99 * counts["reference"], "\n".join(differ)
