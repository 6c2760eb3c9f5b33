"""Ufuncs, by what a tangent `t` of each argument becomes."""

from __future__ import annotations

import numpy as np

from .rule import elementwise, zero

# fmt: off
elementwise(np.positive, 1)
elementwise(np.negative, -1)
elementwise(np.add, 1, 1)
elementwise(np.subtract, 1, -1)
elementwise(np.multiply, lambda t, ans, x, y: t * y, lambda t, ans, x, y: t * x)
elementwise(np.divide, lambda t, ans, x, y: t / y, lambda t, ans, x, y: -t * ans / y)
elementwise(np.sin, lambda t, ans, x: t * np.cos(x))
elementwise(np.cos, lambda t, ans, x: -t * np.sin(x))
elementwise(np.exp, lambda t, ans, x: t * ans)
elementwise(np.log, lambda t, ans, x: t / x)
elementwise(np.sqrt, lambda t, ans, x: 0.5 * t / ans)
elementwise(np.tanh, lambda t, ans, x: t * (1 - ans * ans))
elementwise(np.square, lambda t, ans, x: t * (2 * x))

zero(np.floor, np.ceil, np.rint, np.trunc, np.sign, np.equal, np.not_equal, np.less, np.less_equal, np.greater,
     np.greater_equal, np.isfinite, np.isinf, np.isnan, np.logical_and, np.logical_or, np.logical_not, np.logical_xor)
# fmt: on
