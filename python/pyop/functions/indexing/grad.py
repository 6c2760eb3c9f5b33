"""Indexing and taking."""

from __future__ import annotations

import operator

import numpy as np

from ...gradients.adjoints import movement, put
from ...gradients.rule import linear, nondifferentiable

linear(operator.getitem, lambda ct, ans, x, key: put(ct, x, key), ("x",))
movement(np.take, names=("a",))
movement(np.take_along_axis, names=("arr",))
nondifferentiable(np.nonzero, np.argwhere, np.flatnonzero, np.unravel_index, np.ravel_multi_index)
