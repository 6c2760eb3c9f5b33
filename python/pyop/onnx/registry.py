"""Find the functions of PythonOp nodes: given at load, registered, or by their import path.

A node looks its function up when it runs, so that a function may be registered after the model was loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np

from .._core import Op
from ..declare.contracts import OutMode
from .embedded import Embedded
from .trust import Trust, import_path

__all__ = ["Implementation", "Table", "as_implementation", "path_of", "register", "unregister"]


@dataclass(frozen=True)
class Implementation:
    """Hold what a name stands for."""

    forward: Callable[..., Any]
    backward: Callable[..., Any] | None = None
    # A pyop.Function: called by apply, with a context of its own.
    function: Any = None
    op: Op | None = None
    plain: bool = False  # a callable and nothing else

    @property
    def given(self) -> Any:
        """Return the object that it was made of, or would be."""
        return self.op or self.function or (self.forward if self.backward is None else (self.forward, self.backward))


_UFUNC_HOMES = ("numpy", "scipy.special", "scipy.special._ufuncs", "numpy.strings", "numpy._core.umath")

_registered: dict[str, Implementation] = {}


def register(
    name: str, forward: Callable[..., Any], backward: Callable[..., Any] | None = None, replace: bool = False
) -> None:
    """Register the function that the PythonOp nodes of a name call.

    Parameters
    ----------
    name : str
        As the nodes have it: ``"package.module.function"``.
    forward : callable, Op or subclass of Function
        Called with the arguments of the node: arrays and constants. Returns an array or a tuple of arrays.
    backward : callable, optional
        Called as ``backward(ctx, *gradients)``, with None for an absent gradient. Returns one entry for each argument
        of `forward`, constants included. ``ctx`` has what forward was given (``ctx.inputs``), returned
        (``ctx.outputs``) and kept with `pyop.saved` (``ctx.saved``), and ``ctx.needs_input_grad``.
    replace : bool
        Another function may have the name already.

    Raises
    ------
    ValueError
        The name is taken, or empty.
    TypeError
        These are not callable.

    Examples
    --------
    >>> import pyop.onnx
    >>> pyop.onnx.register("docs.double", lambda x: x * 2, lambda ctx, g: g * 2)
    >>> pyop.onnx.unregister("docs.double")
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"a name of a function is a str with at least one character, not {name!r:.80}")
    made = as_implementation((forward, backward) if backward is not None else forward)
    if name in _registered and not replace:
        raise ValueError(f"{name!r} is registered already, as {_registered[name].forward!r}: replace=True replaces it")
    _registered[name] = made


def unregister(name: str) -> None:
    """Forget a registered function.

    Parameters
    ----------
    name : str

    Raises
    ------
    KeyError
        There is none of this name.

    Examples
    --------
    >>> import pyop.onnx
    >>> pyop.onnx.register("example.half", lambda x: x / 2)
    >>> pyop.onnx.unregister("example.half")
    """
    del _registered[name]


def as_implementation(given: Any) -> Implementation:
    """Return the implementation of a name; TypeError if it is no function, pair of these, Op or Function."""
    if isinstance(given, Implementation):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        forward, backward = given
        if backward is None:
            return as_implementation(forward)
        if callable(forward) and callable(backward):
            return Implementation(forward.__wrapped__ if isinstance(forward, Op) else forward, backward, plain=True)
    elif isinstance(given, Op):
        # Loops over leading axes, and arrays for results, are the op's and not its function's.
        own = given.spec.gufunc or given.contract._parts[2] == OutMode.REQUIRED
        return Implementation(given if own else given.__wrapped__, op=given)
    elif isinstance(given, type) and _is_function_class(given):
        return Implementation(given.apply, given.backward, function=given)  # type: ignore[attr-defined]
    elif callable(given):
        return Implementation(given, plain=True)
    raise TypeError(
        "a function of a PythonOp is a callable, a pair (forward, backward), an Op or a subclass of pyop.Function, "
        f"got {type(given).__name__} {given!r:.80}"
    )


def _is_function_class(given: type) -> bool:
    from ..autograd import Function

    return issubclass(given, Function)


def path_of(fn: Any) -> str | None:
    """Return the import path of a function, ``module.qualname``; None if it has none, as a method of an object."""
    if isinstance(fn, MethodType) and not isinstance(fn.__self__, type):
        return None
    if getattr(fn, "__module__", None) == "_operator":
        return f"operator.{fn.__name__}"
    if isinstance(fn, np.ufunc):
        name: str = fn.__name__
        homes = (home for home in _UFUNC_HOMES if getattr(sys.modules.get(home), name, None) is fn)
        source = next(homes, None)
        return None if source is None else f"{source}.{name}"
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, np.ufunc):
        home = path_of(owner)
        return None if home is None else f"{home}.{fn.__name__}"
    module: str | None = getattr(fn, "__module__", None)
    qualname: str | None = getattr(fn, "__qualname__", None)
    if qualname is None:
        return None
    if module is None:  # a method descriptor of a builtin type
        owner = getattr(fn, "__objclass__", None)
        module = getattr(owner, "__module__", None)
    return f"{module}.{qualname}" if module and module != "builtins" else qualname


class Table:
    """Hold the functions that one loaded model sees."""

    def __init__(self, functions: Mapping[str, Any] | None, trust: Trust, embedded: Embedded | None = None) -> None:
        self.given = {name: as_implementation(given) for name, given in (functions or {}).items()}
        self.trust = trust
        self.imported: dict[str, Implementation] = {}
        self.embedded = embedded or Embedded()

    def known(self, name: str) -> Implementation | None:
        """Return what is given, registered or found already under a name, or None."""
        return self.given.get(name) or _registered.get(name) or self.imported.get(name)

    def find(self, name: str, label: str) -> Implementation:
        """Return the implementation of a name; LookupError with remedies if there is none."""
        implementation = self.known(name)
        if implementation is None:
            resolved = self.resolve(name)
            if isinstance(resolved, str):
                raise LookupError(
                    f"{label} calls the function {name!r:.200}, which is not known here: {resolved}. Give it with "
                    f"load(..., functions={{{name!r:.80}: f}}) or pyop.onnx.register({name!r:.80}, f)"
                )
            return resolved
        return implementation

    def resolve_now(self, name: str) -> None:
        """Import what may be imported while the model is loaded; what is not found may be registered later."""
        if name not in self.given and name not in _registered:
            self.resolve(name)

    def resolve(self, name: str) -> Implementation | str:
        """Return the implementation at an import path; the reason if there is no function, or it must not be tried."""
        target = self.object_at(name)
        if isinstance(target, str):
            return target
        self.imported[name] = as_implementation(target)
        return self.imported[name]

    def object_at(self, path: str) -> Any:
        """Return what a name leads to, stored by value or by import path; a str with the reason if nothing."""
        return self.embedded.get(path, self.trust) if path in self.embedded else import_path(path, self.trust)
