"""Define `native_op`, which turns compiled code into an op."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Literal

from .._core import NativeCode, NativeKernel, Op, origin_here
from ..declare.contracts import make_contract
from ..declare.parameters import Parameters, check_name
from ..declare.signature import Signature
from ..ops.op import make_op
from .layout import cores_text, declared, specs_of
from .sources import Kind, Source, find

__all__ = ["native_op"]


def native_op(
    source: Any,
    name: str | None = None,
    declaration: str | Signature | None = None,
    /,
    *,
    signature: str | None = None,
    kind: str | None = None,
    dtype: Any = None,
    cast: Literal["no", "safe", "same_kind"] | None = None,
    gil: bool | None = None,
    stateful: bool | None = None,
    grad: str | None = None,
) -> Op:
    """Make an op of compiled code.

    Called with arrays it runs the code at once, without the GIL where that is allowed; called with Values it adds a
    node, which plans run as they run NumPy's own loops. What it takes is declared, and checked, as of any op.

    Parameters
    ----------
    source : object
        A Cython module, of which `name` is a ``cdef api`` or ``cpdef`` function; a PyCapsule ``"pyop.kernel"``
        (<pyop/kernel.h>); a function of ctypes, with ``argtypes`` and ``restype``; a function pointer of cffi; a numba
        ``cfunc``; or an address. The op keeps it alive, an address excepted.
    name : str, optional
        Of the function in the module, and of the op.
    declaration : str or Signature, optional
        Typed, ``"float64[m,n], float64[n] -> float64[m]"``, or shapes alone, ``"(n),(n)->()"``, whose leading
        dimensions are looped over. A C function of numbers, such as ``double f(double, int)``, is called for each
        element; without a declaration it takes arrays of its types whose shapes broadcast.
    signature : str, optional
        The C signature of what is at an address: ``"double (double, int)"``.
    kind : "scalar", "kernel" or "ufunc_loop", optional
        Which kind of function it is, where its type does not tell.
    dtype : optional
        Of a declaration of shapes alone: one for all arrays, or one for each input and then each output.
    cast : "no", "safe" or "same_kind", optional
        Which arrays of another dtype are converted, as `pyop.op` has it; by default none.
    gil : bool, optional
        Whether it is called with the GIL held. By default it is for functions of Cython, whose module does not tell
        whether they are ``nogil``, for addresses, and for functions of `ctypes.PyDLL`.
    stateful : bool, optional
        The code has side effects or hidden inputs; see `pyop.op`.
    grad : "fd", optional
        Derivatives by differences, where no rule is given with `Op.vjp`, `Op.jvp` or `Op.jac`.

    Returns
    -------
    Op

    Raises
    ------
    TypeError
        The code is not what is declared, or is of types that pyop cannot call; the message shows both.
    ValueError
        Wrong text; the message points at the character.

    See Also
    --------
    Op.ufunc : the same as a ufunc of NumPy.

    Examples
    --------
    >>> import ctypes, ctypes.util, numpy as np, pyop
    >>> f = ctypes.CDLL(ctypes.util.find_library("m")).hypot
    >>> f.argtypes, f.restype = [ctypes.c_double, ctypes.c_double], ctypes.c_double
    >>> hypot = pyop.native_op(f, "hypot")
    >>> hypot
    <pyop.Op 'hypot' (),()->() of float64, float64, float64>
    >>> hypot(np.array([3.0, 6.0]), np.array([4.0, 8.0]))
    array([ 5., 10.])
    >>> hypot(np.array([3.0]), np.array([4]))
    Traceback (most recent call last):
        ...
    pyop.InputError: argument 1 ('x2') of hypot is int64[1], but expects float64[]...
    """
    if declaration is None and isinstance(name, str) and "->" in name:
        name, declaration = None, name
    if name is not None and not isinstance(name, str):
        raise TypeError(f"native_op: the name is a str, got {type(name).__name__} {name!r:.80}")
    code = find(source, name, signature, kind)
    if declaration is None:
        declaration = code.declaration
    label = check_name(name if name is not None else code.name)
    spec = declared(declaration, dtype, code.c, label)
    if cast is not None:
        spec = spec.taking(cast, spec.device)
    needs_gil = code.gil if gil is None else bool(gil)
    recipe: Any = "it was not found by the name of a module that can be imported"
    if code.importable is not None:
        options = {"kind": kind, "dtype": dtype, "gil": gil}
        recipe = (_kernel_again, (*code.importable, spec, options))
    kernel = _kernel(code, spec, label, needs_gil, recipe)
    made = make_op(
        kernel,
        make_contract(spec, out_mode=Parameters.of(kernel).out_mode),
        spec,
        Parameters.of(kernel),
        name=label,
        stateful=code.stateful if stateful is None else bool(stateful),
        origin=origin_here(),
    )
    made.__name__ = made.__qualname__ = label
    made.__module__ = sys._getframe(1).f_globals.get("__name__", "__main__")
    if grad is not None:
        made._declare_fallback(grad)
    return made


def _kernel(found: Source, spec: Signature, name: str, gil: bool, recipe: Any) -> NativeKernel:
    inputs, outputs = specs_of(spec, name)
    cores = "" if found.kind is Kind.SCALAR else cores_text(spec, name)
    parameters = found.parameters
    if parameters is None or len(parameters) != len(inputs):
        parameters = ("x",) if len(inputs) == 1 else tuple(f"x{k + 1}" for k in range(len(inputs)))
    code = NativeCode(
        function=found.address,
        kind=int(found.kind),
        types=tuple(part.dtype for part in (*inputs, *outputs)),
        n_in=len(inputs),
        cores=cores,
        name=name,
        owner=found.owner,
        gil=gil,
        raises=found.raises or gil,
        data=found.data,
        message=found.message,
        zeros=found.zeros,
    )
    return NativeKernel(code=code, source=recipe, parameters=parameters)


def _kernel_again(module: str, name: str, spec: Signature, options: dict[str, Any]) -> Any:
    """Return the kernel of a function that is found by module and name, for pickle."""
    return native_op(importlib.import_module(module), name, spec, **options).__wrapped__
