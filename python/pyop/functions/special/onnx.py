"""Export functions of scipy.special."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ...onnx.standard import Emitter, NotStandard, Operand, standard


def _special(name: str, op_type: str) -> None:
    @standard(getattr(special, name))
    def _rule(e: Emitter, x: Any, /) -> Operand:
        x = e.operand(x)
        if x.dtype not in (np.float32, np.float64):
            raise NotStandard(f"{name} of {x.dtype}")
        return e.add(op_type, x)


_special("erf", "Erf")
_special("expit", "Sigmoid")
