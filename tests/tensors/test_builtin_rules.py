"""The derivatives that the tape has built in (csrc/autograd/builtin_rules.cpp) and those of the one table, which serves
everything else, held against each other: every operation, first and second order, arrays, scalars and broadcasting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyop
from pyop.autograd.recording import array_ufunc

SOURCE = (Path(__file__).parents[2] / "csrc/autograd/builtin_rules.cpp").read_text()
TABLE = SOURCE[SOURCE.index("builtin_rules[kBuiltins]") :]
UNARY = [
    *("negative", "absolute", "square", "reciprocal", "sqrt", "exp", "expm1", "log", "log1p"),
    *("sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh"),
]
BINARY = ["add", "subtract", "multiply", "divide", "power", "matmul"]
X, Y = np.array([[0.3, 1.25], [0.75, 2.0]]), np.array([[1.5, 0.5], [2.25, 0.125]])
OPERANDS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(UNARY, (X,)),
    **{f"{name} of scalars": (X[0, 0],) for name in UNARY},
    **{name: (X, Y) for name in BINARY if name != "power"},
    **{f"{name} broadcast": (X, Y[0]) for name in BINARY if name != "power"},
    **{f"{name} broadcast left": (X[0], Y) for name in BINARY if name != "power"},
    **{f"{name} of vectors": (X[0], Y[1]) for name in BINARY if name != "power"},
    **{f"{name} and a number": (X, 1.75) for name in BINARY if name != "matmul"},
    **{f"power to {n}": (X, n) for n in (0, 1, 2, 3, -1, 0.5, -1.5, 2.0)},
}


def table(ufunc: np.ufunc, *inputs: Any) -> Any:
    return array_ufunc(ufunc, "__call__", *inputs)


def derivatives(call: Any, ufunc: np.ufunc, operands: tuple[Any, ...]) -> list[Any]:
    """Result, gradients, and gradients of a number made of these."""
    tensors = [pyop.Tensor(x, requires_grad=True) if isinstance(x, np.ndarray | np.generic) else x for x in operands]
    wanted = [t for t in tensors if isinstance(t, pyop.Tensor)]
    result = call(ufunc, *tensors)
    seed = np.asarray(np.linspace(0.5, 1.5, np.size(result)).reshape(np.shape(result)))
    first = pyop.autograd.grad(result, wanted, seed, create_graph=True, allow_unused=True)
    total: Any = sum((g * g).sum() for g in first if g is not None)
    recorded = isinstance(total, pyop.Tensor) and total.requires_grad
    second = pyop.autograd.grad(total, wanted, allow_unused=True) if recorded else [None] * len(wanted)
    return [
        x if x is None else np.asarray(x) if not isinstance(x, pyop.Tensor) else x.detach().numpy()
        for x in (result, *first, *second)
    ]


def test_every_built_in_ufunc_is_here():
    assert all(f'"{name}"' in TABLE for name in UNARY + BINARY)
    assert len(UNARY + BINARY) == 22


@pytest.mark.parametrize("case", OPERANDS)
def test_built_in_derivatives_are_those_of_the_table(case):
    ufunc = getattr(np, case.split()[0])
    operands = OPERANDS[case]
    ours = derivatives(lambda f, *x: f(*x), ufunc, operands)
    theirs = derivatives(table, ufunc, operands)
    assert ours[0].tobytes() == theirs[0].tobytes()
    for a, b in zip(ours, theirs, strict=True):
        if a is None or b is None:
            assert not np.any(a if b is None else b)
        else:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=0)
