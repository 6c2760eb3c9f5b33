"""Use ops in torch, and torch in ops: declared once, called from both.

`wrap` makes a torch op of a pyop op: schema, kernel, fake implementation, gradient, batches and writes come from the
declaration. `op_of` makes a pyop op of a function of tensors, a Module or an op of torch. Nothing is copied either
way. The parts are `torch_library.py`, which lists what is registered, and `torch_function.py`.

Importing this imports torch, and no other framework.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from .._core import Op
from ..declare.parameters import default_name
from ..declare.signature import Signature
from ..ops.op import op as declare
from .derived import signature_of
from .hooks import Hooks
from .torch_function import TorchFunction
from .torch_library import Definition
from .torch_source import callable_of

__all__ = ["TorchOp", "op_of", "wrap"]

_lock = threading.Lock()
_wrapped: WeakValueDictionary[Any, TorchOp] = WeakValueDictionary()


class TorchOp:
    """Call a pyop op from torch; `wrap` makes them.

    Attributes
    ----------
    op : Op
    overload : torch._ops.OpOverload
        The op of torch, on flat tensors: for `torch.library.opcheck`, and to be registered further.
    name : str
        Of `overload`, ``"pyop::dot"``.

    Examples
    --------
    >>> import pyop, torch
    >>> from pyop.interop.torch import wrap
    >>> wrap(pyop.op(lambda x: x * 2, "float64[n] -> float64[n]"), name="mylib::twice")
    <TorchOp mylib::twice(Tensor x) -> Tensor>
    """

    op: Op
    overload: Any
    name: str
    _options: dict[str, Any]
    _definition: Definition

    def __call__(self, *arguments: Any, **statics: Any) -> Any:
        """Call it with tensors where the op takes arrays."""
        raise TypeError("a TorchOp is made by pyop.interop.torch.wrap")

    def __copy__(self) -> TorchOp:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchOp:
        return self

    def __reduce__(self) -> Any:
        return _rewrapped, (self.op, self._options)

    def __repr__(self) -> str:
        return f"<TorchOp {self.overload._schema}>"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a TorchOp is immutable: cannot set {name!r}")


def wrap(
    op: Op, *, name: str | None = None, in_place: bool | None = None, statics: dict[str, Any] | None = None
) -> TorchOp:
    """Return a torch op that calls an op of pyop.

    It takes tensors of the CPU where the op takes arrays, in the same containers, and returns tensors. `torch.compile`
    calls it without a graph break. It differentiates by the op's rules, forward and backward and to any order that they
    have, and maps by `torch.vmap`.

    Parameters
    ----------
    op : Op
        With a fixed number of arrays. To be compiled it must declare the dtypes of its results.
    name : str, optional
        ``"namespace::name"`` in torch, for models that are saved. By default ``"pyop::"`` and the name of the op,
        with a number where that has been used.
    in_place : bool, optional
        Whether the function writes into the caller's tensors where the op has ``mutates=``: True by default for such an
        op, as torch's users expect (``Tensor(a!)``). False: into copies, as in pyop; then it can have a gradient.
    statics : dict, optional
        Static arguments that are fixed. Others are passed by keyword, and are bool, int, float or str by their defaults
        or annotations.

    Returns
    -------
    TorchOp
        The same object for the same op and options. The op is defined in torch as long as this lives, or a compiled
        graph with it.

    Raises
    ------
    TypeError
        `op` is no op, or torch has no type for something that it takes.

    Examples
    --------
    >>> import numpy as np, pyop, torch
    >>> from pyop.interop.torch import wrap
    >>> @pyop.op("float64[n], float64[n] -> float64[]")
    ... def dot(x, y):
    ...     return np.dot(x, y)
    >>> @dot.vjp
    ... def _(ct, x, y):
    ...     return ct * y, ct * x
    >>> f = wrap(dot)
    >>> x = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
    >>> f(x, x.detach()).backward(); x.grad
    tensor([0., 1., 2.], dtype=torch.float64)
    """
    hooks = Hooks(op)
    bound = dict(statics or {})
    unknown = set(bound) - set(hooks.statics)
    if unknown:
        raise TypeError(
            f"op {op.name!r} has no static parameter {', '.join(sorted(unknown))}; it has {list(hooks.statics)}"
        )
    writes = any(each.written for each in hooks.inputs)
    if in_place and not writes:
        raise TypeError(f"op {op.name!r} declares no writes: in_place=True goes with pyop.op(..., mutates=...)")
    in_place = writes if in_place is None else in_place
    options = {"name": name, "in_place": in_place, "statics": bound}
    try:
        key: Any = (id(op), name, in_place, tuple((k, type(v), v) for k, v in bound.items()), hooks.saves)
        hash(key)
    except TypeError:
        return _make(hooks, options)
    with _lock:
        wrapped = _wrapped.get(key)
        if wrapped is None:
            wrapped = _wrapped[key] = _make(hooks, options)
        return wrapped


def _make(hooks: Hooks, options: dict[str, Any]) -> TorchOp:
    bound = options["statics"]
    definition = Definition(hooks, bound, options["in_place"], options["name"])
    statics = {name: default for name, default in hooks.statics.items() if name not in bound}
    parameters = hooks.op.parameters
    if hooks.op.spec.inputs is not None:
        parameters = (*parameters, *(f"x{k}" for k in range(len(parameters), len(hooks.op.spec.inputs))))
    several = definition.n_results + definition.saves > 1
    call = callable_of(definition.overload, parameters, statics, hooks.in_tree, hooks.out_tree, several)
    made: TorchOp = object.__new__(type("TorchOp", (TorchOp,), {"__call__": call, "__module__": __name__}))
    for key, value in {
        "op": hooks.op,
        "overload": definition.overload,
        "name": definition.name,
        "_options": options,
        "_definition": definition,
        "__name__": hooks.name,
        "__doc__": hooks.op.__doc__,
        "__wrapped__": hooks.op,
    }.items():
        object.__setattr__(made, key, value)
    return made


def _rewrapped(op: Op, options: dict[str, Any]) -> TorchOp:
    return wrap(op, **options)


def op_of(
    function: Callable[..., Any],
    text: str | None = None,
    /,
    *,
    inputs: Any = None,
    outputs: Any = None,
    name: str | None = None,
    stateful: bool = False,
) -> Op:
    """Return an op of pyop that calls a function of torch: of tensors, a Module, or an op of torch.

    Its arguments are tensors over the memory of the arrays, its results arrays over that of the tensors. Its gradient
    is the one that torch computes from its record of the call.

    Parameters
    ----------
    function : callable
        Takes and returns tensors of the CPU. Keyword-only parameters are static. It must not write into its arguments.
        Other tensors that it computes with are constants: if they require a gradient, the call is an error.
    text, inputs, outputs
        The declaration, as of `pyop.op`, with all inputs and outputs.
    name : str, optional
        The function's own by default.
    stateful : bool
        As of `pyop.op`: for dropout, and other things that differ from call to call.

    Returns
    -------
    Op

    Raises
    ------
    TypeError
        The declaration does not say what goes in and what comes out.

    Examples
    --------
    >>> import numpy as np, pyop, torch
    >>> from pyop.interop.torch import op_of
    >>> softplus = op_of(torch.nn.functional.softplus, "float64[n] -> float64[n]")
    >>> pyop.grad(lambda x: np.sum(softplus(x)))(np.zeros(2))
    array([0.5, 0.5])
    """
    if not callable(function):
        raise TypeError(f"op_of takes a callable, got {type(function).__name__} {function!r:.80}")
    signature = Signature.make(text, inputs=inputs, outputs=outputs)
    if signature.inputs is None or signature.outputs is None or signature.gufunc:
        raise TypeError(
            "op_of asks for all inputs and outputs, with their dtypes: op_of(f, 'float64[n] -> float64[n]')"
        )
    label = name or default_name(function)
    called = TorchFunction(function, label)
    if not hasattr(called, "__signature__"):
        called.__signature__ = signature_of([f"x{k}" for k in range(len(signature.inputs))], {})
    made = declare(called, signature, name=label, stateful=stateful)
    made.vjp(called.pull)
    return made
