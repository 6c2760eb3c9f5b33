"""Load the families of functions that pyop knows: one folder each, which holds all rules of its functions.

========= ========================================================
file      says of each function
========= ========================================================
spec.py   what it returns: dtypes and shapes, from its arguments
grad.py   how derivatives pass through it
onnx.py   which operators of ONNX do the same
========= ========================================================

A kind of rules is imported when the first rule of that kind is asked for.
"""

from __future__ import annotations

import importlib

__all__ = ["FAMILIES", "OF_SCIPY", "load"]

FAMILIES = {
    "adjoints": "grad onnx",
    "axes": "spec grad onnx",
    "creation": "spec grad onnx",
    "diagonals": "spec grad onnx",
    "elementwise": "spec grad onnx",
    "fourier": "spec grad",
    "indexing": "spec grad onnx",
    "inserting": "spec grad onnx",
    "joining": "spec grad onnx",
    "linalg": "spec grad onnx",
    "numerics": "spec grad",
    "polynomials": "spec grad",
    "products": "spec grad onnx",
    "reductions": "spec grad onnx",
    "reshaping": "spec grad onnx",
    "selecting": "spec grad onnx",
    "sets": "spec grad",
    "sorting": "spec grad",
    "splitting": "spec grad onnx",
    "statistics": "spec grad onnx",
    "writing": "grad onnx",
}
# Of scipy.special, which is imported with them.
OF_SCIPY = {"distributions": "grad", "special": "grad onnx"}


def load(kind: str, families: dict[str, str] = FAMILIES) -> None:
    """Import the rules of one kind: "spec", "grad" or "onnx"."""
    for family, kinds in families.items():
        if kind in kinds.split():
            importlib.import_module(f"{__package__}.{family}.{kind}")
