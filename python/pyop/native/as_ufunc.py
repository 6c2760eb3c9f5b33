"""Turn any op into a ufunc of NumPy: `Op.ufunc`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import NativeCode, NativeKernel, Op, python_code
from ..declare.marks import Variadic
from ..declare.signature import Signature
from ..declare.spec import Spec
from .layout import cores_text, specs_of
from .sources import Kind

__all__: list[str] = []


def _ufunc(self: Op, dtype: Any = None) -> np.ufunc:
    """Return the op as a NumPy ufunc or gufunc: with ``reduce``, ``accumulate``, ``outer``, ``at`` and ``where=``.

    A ufunc does what NumPy's do: it broadcasts, loops, and casts to the declared dtypes if the cast is safe or of the
    same kind. Compiled code (`pyop.native_op`) it calls directly. With a Python function it calls the op with copies of
    its arguments: once for each run of the loop where the op takes leading dimensions, ``"(n),(n)->()"`` or
    ``"float64[*s]"``, else once for each core.

    Parameters
    ----------
    dtype : optional
        Of a gufunc declaration without dtypes: one for all arrays, or one for each input and then each output.

    Returns
    -------
    numpy.ufunc
        Of a Python function a new one each time.

    Raises
    ------
    TypeError
        The declaration is of no ufunc: it has arrays without dtypes, trees, static parameters that must be given, or
        sizes that are no names.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.op("float64[*s], float64[*s] -> float64[*s]")
    ... def longer(x, y):
    ...     return np.hypot(x, y)
    >>> longer.ufunc().reduce(np.array([3.0, 4.0, 12.0]))
    np.float64(13.0)
    """
    function = self.__wrapped__
    if isinstance(function, NativeKernel):
        return function.ufunc
    spec = self.spec
    if dtype is not None:
        if not spec.gufunc:
            raise TypeError(f"op {self.name!r}: dtype= goes with a gufunc declaration, and this is {str(spec)!r}")
        spec = Signature.parse(str(spec).split(" of ")[0], dtype)
    inputs, outputs = specs_of(spec, self.name)
    specs = [*inputs, *outputs]
    for part in specs:
        if not isinstance(part.dtype, np.dtype):
            raise TypeError(
                f"op {self.name!r}, {str(spec)!r}, is no ufunc without dtypes: give dtype=, one for all arrays or one "
                "for each"
            )
        if part.shape is None:
            raise TypeError(
                f"op {self.name!r}, {str(spec)!r}, is no ufunc: '{part}' has any number of dimensions; say which "
                f"of them it loops over, '{part}[*s]'"
            )
    if self.contract.mutates:
        raise TypeError(f"op {self.name!r} writes into its arguments (mutates=), which a ufunc does not")
    cores = cores_text(spec, self.name)
    sizes: dict[str, int] = {}
    numbers = tuple(tuple(sizes.setdefault(str(size), len(sizes)) for size in _core(part)) for part in specs)
    whole = spec.gufunc or all(part.shape and _leads(part.shape[0]) for part in specs)
    types = tuple(np.dtype(part.dtype) for part in specs)
    address, data, owner = python_code(self, tuple(d.num for d in types), numbers, len(inputs), whole)
    code = NativeCode(
        function=address,
        kind=int(Kind.KERNEL),
        types=types,
        n_in=len(inputs),
        cores=cores,
        name=self.name,
        owner=(owner, self),
        gil=True,
        raises=True,
        data=data,
    )
    return NativeKernel(code=code, source="it is the ufunc of an op", parameters=self.parameters).ufunc


def _leads(size: Any) -> bool:
    return size is ... or isinstance(size, Variadic)


def _core(spec: Spec) -> list[Any]:
    shape = list(spec.shape or ())
    return shape[1:] if shape and _leads(shape[0]) else shape


Op.ufunc = _ufunc  # type: ignore[method-assign]
