"""Functions that are written for the array API standard, by `array_api_compat.array_namespace`, on Values and Tensors.

Their namespace is NumPy, whose functions record what they are given; none drops a gradient in silence.
"""

from __future__ import annotations

import numpy as np
import pytest

import pyop

compat = pytest.importorskip("array_api_compat")
X = np.random.default_rng(0).normal(size=(4, 3))


def standardised(x):
    xp = compat.array_namespace(x)
    y = xp.astype(x, xp.float64)
    spread = xp.std(y, axis=0)
    z = (y - xp.mean(y, axis=0)) / xp.where(spread == 0, 1.0, spread)
    return xp.permute_dims(z, (1, 0))


def joined(x):
    xp = compat.array_namespace(x)
    return xp.expand_dims(xp.concat([x, xp.flip(x, axis=0)], axis=0), axis=1)


def norms(x):
    xp = compat.array_namespace(x)
    return xp.linalg.vector_norm(x, axis=1), xp.matmul(x, xp.matrix_transpose(x))


def softmax(x):
    xp = compat.array_namespace(x)
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def running(x):
    xp = compat.array_namespace(x)
    return xp.cumulative_sum(xp.clip(x, -0.5, 0.5), axis=1)


@pytest.mark.parametrize("function", [standardised, joined, norms, softmax, running])
def test_programs(function):
    wanted = function(X)
    wanted = wanted if type(wanted) is tuple else (wanted,)
    tensor = pyop.Tensor(X, requires_grad=True)
    for found in (function(tensor), pyop.compile(function)(X), pyop.trace(function, "float64[n,3]").compile()(X)):
        for y, each in zip(found if type(found) is tuple else (found,), wanted, strict=True):
            assert not isinstance(y, pyop.Tensor) or y.requires_grad
            array = y.detach().numpy() if isinstance(y, pyop.Tensor) else y
            assert array.tobytes() == each.tobytes()
            assert array.shape == each.shape
            assert array.dtype == each.dtype


def test_gradients_by_the_namespace():
    found = pyop.grad(lambda x: norms(x)[0].sum())(X)
    np.testing.assert_allclose(found, X / np.linalg.norm(X, axis=1, keepdims=True), rtol=1e-12)


def test_no_gradient_is_dropped():
    tensor = pyop.Tensor(X, requires_grad=True)
    xp = compat.array_namespace(tensor)
    assert xp is compat.array_namespace(tensor, X, use_compat=False)
    with pytest.raises(TypeError, match="history would be lost"):
        xp.asarray(tensor)
    with pyop.Graph() as graph:
        value = graph.input("float64[n]", "x")
        assert compat.array_namespace(value) is xp
        with pytest.raises(TypeError):
            float(xp.sum(value))


def test_an_unknown_version_is_refused():
    with pytest.raises(ValueError, match="1999"):
        pyop.Tensor(X).__array_namespace__(api_version="1999.12")
