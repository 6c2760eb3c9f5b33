"""Read a gufunc declaration for libraries that map a function over loop dimensions: core dimensions, dtypes."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import numpy as np

from .._core import InputError, Op
from ..declare.spec import Spec

__all__ = ["CoreDims", "LoopCall"]


class CoreDims:
    """Hold the core dimensions of an op that is declared as a gufunc, and the dtypes of its results.

    Parameters
    ----------
    op : Op
        Declared as ``"(n),(n)->()"``.
    library : str
        Of the errors: what wants to map it.

    Attributes
    ----------
    inputs, outputs : tuple of tuple of str
        Names of the core dimensions of each array; a fixed size is named by its digits.
    sizes : dict of str to int
        The fixed sizes.
    text : str
        The declaration without dtypes.
    single : bool
        It returns one array, no tuple.
    """

    __slots__ = ("inputs", "library", "op", "outputs", "single", "sizes", "text")

    def __init__(self, op: Op, library: str) -> None:
        if not isinstance(op, Op):
            raise TypeError(f"wrap takes an op, got {type(op).__name__} {op!r:.80}; declare it by pyop.op first")
        signature = op.spec
        if not signature.gufunc or signature.inputs is None:
            raise TypeError(
                f"op {op.name!r} declares {signature}, which says nothing of loop dimensions, so {library} cannot "
                'map it; declare it as a gufunc, "(n),(n)->()"'
            )
        if op.contract.mutates:
            raise TypeError(
                f"op {op.name!r} writes into its arguments (mutates=), and arrays of {library} are shared by tasks"
            )
        outputs = signature.outputs
        self.op = op
        self.library = library
        self.single = isinstance(outputs, Spec)
        self.inputs = tuple(_names(spec) for spec in signature.inputs)
        self.outputs = tuple(_names(spec) for spec in ((outputs,) if self.single else outputs))
        self.sizes = {name: int(name) for names in (*self.inputs, *self.outputs) for name in names if name.isdigit()}
        self.text = f"{_text(self.inputs)}->{_text(self.outputs)}"

    def check_count(self, args: tuple[Any, ...]) -> None:
        if len(args) != len(self.inputs):
            raise TypeError(f"op {self.op.name!r} takes {len(self.inputs)} arrays ({self.text}), got {len(args)}")

    def dtypes(self, arguments: list[tuple[np.dtype[Any], tuple[int | None, ...]]]) -> list[np.dtype[Any]]:
        """Return the dtypes of the results for these dtypes and shapes of arguments, from the declaration alone."""
        try:
            made = [spec.dtype for spec in self.op.spec.infer([Spec(dtype, shape) for dtype, shape in arguments])]
        except ValueError as error:
            raise InputError(f"{self.op.name} cannot be mapped by {self.library}: {error}") from None
        if any(dtype is None for dtype in made):
            raise TypeError(
                f"{self.library} must know the dtypes of results before op {self.op.name!r} is called, and the "
                f'declaration {self.op.spec} leaves them open; give dtype=, "T" for that of the arguments'
            )
        return made  # type: ignore[return-value]


def _names(spec: Spec) -> tuple[str, ...]:
    assert spec.shape is not None  # core shapes always have a rank
    return tuple(map(str, spec.shape))


def _text(arrays: tuple[tuple[str, ...], ...]) -> str:
    return ",".join(f"({','.join(names)})" for names in arrays)


class LoopCall:
    """Call the op with its static arguments for a chunk; dask gets a name for the result."""

    __slots__ = ("op", "statics")

    def __init__(self, op: Op, statics: dict[str, Any]) -> None:
        self.op = op
        self.statics = statics

    def __call__(self, *arrays: Any) -> Any:
        return self.op(*arrays, **self.statics)

    def __reduce__(self) -> Any:
        return LoopCall, (self.op, self.statics)

    @property
    def __name__(self) -> str:
        return self.op.name

    def __dask_tokenize__(self) -> Any:
        from dask.tokenize import normalize_token  # what this returns, dask takes as it is

        # Two calls of a stateful op are two, whatever they are given.
        return uuid4().hex if self.op.stateful else normalize_token(("pyop", self.op, self.statics))
