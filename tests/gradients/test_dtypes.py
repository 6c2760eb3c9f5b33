"""A gradient has the dtype of its argument, whatever numbers cotangents are added to."""

import numpy as np
import pytest

import pyop

WEIGHTS = np.linspace(0.2, 0.9, 6, dtype="f4")
FUNCTIONS = {
    "difference": lambda y: 2.0 - y,
    "negative": lambda y: -y,
    "scaled": lambda y: y * 0.5,
    "product": lambda y: y * WEIGHTS.astype(y.dtype),
    "quotient": lambda y: 1.0 / y,
    "power": lambda y: y**3,
    "square root": np.sqrt,
    "sine": np.sin,
    "running sum": np.cumsum,
    "part": lambda y: y[1:],
    "twice": lambda y: np.concatenate([y, y * 2]),
    "rows": lambda y: np.sum(y.reshape(2, 3), axis=0),
    "chosen": lambda y: np.where(y > 0.5, y, y * 2),
    "itself": lambda y: y,
}
ENDS = {
    "sum": np.sum,
    "mean": np.mean,
    "of both signs": lambda v: np.mean(-v) + np.sum(v),
    "less": lambda v: -np.mean(v) * 0.3,
}


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("beside", [None, "running sum", "part", "sine"])
@pytest.mark.parametrize("end", ENDS)
def test_compiled_gradients_have_the_dtype_of_the_argument(dtype, beside, end):
    x = WEIGHTS.astype(dtype)
    for name, function in FUNCTIONS.items():

        def program(y, function=function):
            found = function(y)  # before the other reads y, so that its cotangent comes behind the other's
            other = 0.0 if beside is None else np.mean(FUNCTIONS[beside](y))
            return other + ENDS[end](found)

        eager, compiled = pyop.grad(program)(x), pyop.compile(pyop.grad(program))(x)
        assert eager.dtype == compiled.dtype == x.dtype, name
        np.testing.assert_allclose(compiled, eager, rtol=2e-2 if dtype == "f2" else 1e-5, atol=1e-3, err_msg=name)
