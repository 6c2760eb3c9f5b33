"""Check a declaration against compiled code: dtypes, and which sizes the code is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tree import flatten
from ..declare.dims import Dim
from ..declare.marks import Variadic
from ..declare.signature import Signature
from ..declare.spec import Spec

__all__ = ["cores_text", "declared", "specs_of"]


def declared(text: str | Signature | None, dtype: Any, c: Any, name: str) -> Signature:
    """Return the signature of an op of a C function of numbers of signature `c`, or of a kernel (`c` is None)."""
    dtypes = None if c is None else [*c.inputs, c.output]
    if text is None:
        if c is None:
            raise TypeError(f"native_op({name!r}): a kernel over arrays needs a declaration, '(n),(n)->()' or typed")
        return Signature.parse(",".join("()" for _ in c.inputs) + "->()", dtypes)
    if isinstance(text, Signature):
        signature = text
    else:
        typed = not text.lstrip().startswith("(")
        if not typed and dtype is None:
            dtype = dtypes
            if dtype is None:
                raise TypeError(
                    f"native_op({name!r}, {text!r}): a kernel has dtypes, a gufunc declaration has none: give dtype=, "
                    "one for all arrays or one for each, or write a typed declaration"
                )
        signature = Signature.parse(text, None if typed else dtype)
    inputs, outputs = specs_of(signature, name)
    specs = [*inputs, *outputs]
    for spec in specs:
        if not isinstance(spec.dtype, np.dtype):
            raise TypeError(
                f"native_op({name!r}): '{spec}' in {str(signature)!r} has no dtype, which a kernel needs for each array"
            )
    if c is not None:
        _compare(signature, specs, len(inputs), c, name)
    return signature


def specs_of(signature: Signature, name: str) -> tuple[list[Spec], list[Spec]]:
    """Return the inputs and outputs, which are single arrays; TypeError for trees."""
    if signature.inputs is None or signature.like is not None or signature.outputs is None:
        raise TypeError(f"native_op({name!r}): declare inputs and outputs: 'float64[n], float64[n] -> float64[]'")
    outputs = list(signature.outputs) if isinstance(signature.outputs, tuple) else [signature.outputs]
    parts = [*signature.inputs, *outputs]
    if not all(isinstance(part, Spec) for part in parts) or not signature.inputs or not outputs:
        raise TypeError(f"native_op({name!r}): a kernel takes and returns arrays, not trees ({signature})")
    return list(signature.inputs), outputs


def _compare(signature: Signature, specs: Sequence[Spec], n_in: int, c: Any, name: str) -> None:
    """Raise TypeError if a C function of numbers does not match its declaration."""
    want = [*c.inputs, c.output]
    have = [spec.dtype for spec in specs]
    if len(specs) - n_in != 1 or have != want or any(np.dtype(a) != np.dtype(a).newbyteorder("=") for a in have):
        says = ", ".join(map(str, c.inputs)) + f" -> {c.output}"
        raise TypeError(
            f"native_op({name!r}): the declaration is {str(signature)!r}, but the C function is {c.text!r}, that is "
            f"{says}"
        )
    if signature.gufunc and any(spec.shape for spec in specs):
        raise TypeError(
            f"native_op({name!r}): a C function of numbers, {c.text!r}, is called for each element: declare "
            f"'{','.join('()' for _ in c.inputs)}->()' or typed arrays, not {str(signature)!r}"
        )


def cores_text(signature: Signature, name: str) -> str:
    """Return the core dimensions of a kernel in NumPy's notation, ``"(m,n),(n)->(m)"``; "" if it has none."""
    inputs, outputs = specs_of(signature, name)
    sides = [[_core(signature, spec, name) for spec in side] for side in (inputs, outputs)]
    if all(core == "()" for side in sides for core in side):
        return ""
    return "->".join(",".join(side) for side in sides)


def _core(signature: Signature, spec: Spec, name: str) -> str:
    if spec.shape is None:
        return "()"
    dims = list(spec.shape)
    if dims and (dims[0] is ... or isinstance(dims[0], Variadic)):
        dims = dims[1:]
    sizes = []
    for size in dims:
        if isinstance(size, int) or (isinstance(size, Dim) and str(size).isidentifier()):
            sizes.append(str(size))
            continue
        raise TypeError(
            f"native_op({name!r}): size {str(size)!r} of '{spec}' in {str(signature)!r}: the sizes of a kernel are "
            "names and numbers, behind '...' or '*name' for the dimensions that pyop loops over"
        )
    return f"({','.join(sizes)})"


def n_arrays(signature: Signature) -> int:
    """Return the number of input arrays."""
    return len(flatten(signature.inputs)[0])
