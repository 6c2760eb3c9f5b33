"""The node cases of the onnx package, and what it means that two results are the same."""

import importlib
import warnings
from functools import lru_cache

import numpy as np

import pyop.onnx


@lru_cache(maxsize=1)
def cases():
    """All of them; computing them takes seconds."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return collect_testcases(None)


def cases_of(operators):
    """Those of some operators, given with the modules that have them, without computing the others."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in operators.values():
            importlib.import_module(f"{node.__name__}.{module}")
    found = [case for case in node._NodeTestCases if any(n.op_type in operators for n in case.model.graph.node)]
    assert len(found) > len(operators)
    return found


def data_of(case):
    """The inputs and outputs of a case. Where they are tensors of the model's format, as the arrays they stand for."""
    from onnx import TensorProto, numpy_helper

    def decoded(x):
        return numpy_helper.to_array(x) if isinstance(x, TensorProto) else x

    for inputs, outputs in case.data_sets:
        yield list(map(decoded, inputs)), list(map(decoded, outputs))


def same(expected, got, rtol, atol):
    if isinstance(expected, list | tuple):
        return (
            isinstance(got, list | tuple)
            and len(expected) == len(got)
            and all(same(a, b, rtol, atol) for a, b in zip(expected, got, strict=True))
        )
    if expected is None or isinstance(expected, dict):
        return expected == got
    a, b = np.asarray(expected), np.asarray(got)
    if a.dtype.kind in "OUS" or b.dtype.kind in "OUS":
        return a.shape == b.shape and list(map(str, a.ravel())) == list(map(str, b.ravel()))
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return np.allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol, equal_nan=True)


def same_bits(expected, got):
    if isinstance(expected, list | tuple):
        return type(expected) is type(got) and len(expected) == len(got) and all(map(same_bits, expected, got))
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and list(map(str, expected)) == list(map(str, got))
            and all(map(same_bits, expected.values(), got.values()))
        )
    if expected is None:
        return got is None
    a, b = np.asarray(expected), np.asarray(got)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    return a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


def as_feed(x):
    return x if isinstance(x, np.ndarray | np.generic | int | float) else pyop.onnx.box(x)


def feeds_of(case, inputs):
    names = [info.name for info in case.model.graph.input]
    return {name: as_feed(x) for name, x in zip(names, inputs, strict=False)}
