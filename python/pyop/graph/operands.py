"""Distinguish an operator from a call of its ufunc: a NumPy scalar on the left does not report which it was."""

from __future__ import annotations

import opcode
import sys

__all__ = ["is_written_as_operator"]


def is_written_as_operator(depth: int = 1) -> bool:
    """Return whether the calling Python code, `depth` frames above, is at an operator, and not at a call.

    ``np.float64(2) ** y`` and ``np.power(np.float64(2), y)`` both arrive as a call of the ufunc, but NumPy computes the
    first with its arithmetic of scalars.
    """
    frame = sys._getframe(depth)
    name = opcode.opname[frame.f_code.co_code[frame.f_lasti]]
    return name.startswith(("BINARY_", "COMPARE_OP", "INPLACE_"))
