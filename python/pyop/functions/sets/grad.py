"""Differentiate membership, which has no derivative."""

from __future__ import annotations

import numpy as np

from ...gradients.rule import nondifferentiable

nondifferentiable(np.isin)
