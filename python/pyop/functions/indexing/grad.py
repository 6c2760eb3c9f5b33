"""Differentiate indexing and taking."""

from __future__ import annotations

import operator

import numpy as np

from ...declare.rebuild import getitem_with_bounds
from ...gradients import table
from ...gradients.adjoints import movement, put, put_between
from ...gradients.rule import Part, linear, nondifferentiable

table.add(Part(operator.getitem, (lambda ct, ans, x, key: put(ct, x, key),), ("same",), ("x",)))
linear(getitem_with_bounds, lambda ct, ans, x, key: put_between(ct, x, key), ("array",))
movement(np.take, names=("a",))
movement(np.take_along_axis, names=("arr",))
nondifferentiable(np.nonzero, np.argwhere, np.flatnonzero, np.unravel_index, np.ravel_multi_index)
