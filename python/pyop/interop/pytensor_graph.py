"""Turn a graph of PyTensor into an op of pyop, with its gradient.

`pytensor.function` compiles the graph at its first call, and the gradient at that of the gradient. Functions of
PyTensor keep their results in storage of their own, so calls take turns. Results are arrays of nobody else: what
PyTensor would reuse at the next call is copied.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.type import TensorType

from .._core import Op
from ..declare.spec import Spec
from ..ops.op import op as declare
from .derived import one_or_tuple, signature_of

try:
    from pytensor.graph.traversal import explicit_graph_inputs, graph_inputs
except ImportError:  # PyTensor before 2.33
    from pytensor.graph.basic import explicit_graph_inputs, graph_inputs

__all__ = ["op_of"]


class GraphFunction:
    """Call a graph of PyTensor with arrays."""

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], name: str, mode: Any) -> None:
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.mode = mode
        self.__name__ = name
        names = [x.name if x.name and x.name.isidentifier() else f"x{k}" for k, x in enumerate(inputs)]
        if len(set(names)) < len(names):
            names = [f"x{k}" for k in range(len(names))]
        self.__signature__ = signature_of(names, {})
        self._lock = threading.RLock()
        self._function: Any = None
        self._gradient: Any = None

    def __reduce__(self) -> Any:
        return GraphFunction, (self.inputs, self.outputs, self.__name__, self.mode)  # compiled where it arrives

    def __call__(self, *arrays: Any) -> Any:
        given = [x if x.flags.aligned else x.copy() for x in arrays]
        with self._lock:
            if self._function is None:
                self._function = pytensor.function(
                    [pytensor.In(x, borrow=True) for x in self.inputs],
                    [pytensor.Out(y, borrow=False) for y in self.outputs],
                    mode=self.mode,
                    on_unused_input="ignore",
                )
            results = self._function(*given)
        return one_or_tuple([np.asarray(y) for y in results])

    def gradient(self) -> Op:
        """Return an op of the cotangents and the arguments; it has a gradient in turn."""
        with self._lock:
            if self._gradient is None:
                cts = [y.type(f"ct{k}") for k, y in enumerate(self.outputs)]
                varying = [x for x in self.inputs if _is_float(x)]
                known = {y: ct for y, ct in zip(self.outputs, cts, strict=True) if _is_float(y)}
                gradients = pytensor.grad(
                    None, varying, known_grads=known, disconnected_inputs="ignore", return_disconnected="zero"
                )
                # A gradient has the type of what it is of, which PyTensor's may be wider than.
                gradients = [
                    g if g.type.dtype == x.type.dtype else pt.cast(g, x.type.dtype)
                    for g, x in zip(gradients, varying, strict=True)
                ]
                self._gradient = op_of(
                    [*cts, *self.inputs], gradients, name=f"{self.__name__}_vjp", mode=self.mode, stateful=False
                )
            made: Op = self._gradient
            return made


class _Rule:
    """Differentiate by calls of the compiled gradient."""

    def __init__(self, function: GraphFunction) -> None:
        self.function = function
        names = ["ct", *(f"x{k}" for k in range(len(function.inputs)))]
        self.__signature__ = signature_of(names, {})
        self.__name__ = f"{function.__name__}_rule"

    def __reduce__(self) -> Any:
        return _Rule, (self.function,)

    def __call__(self, ct: Any, *arrays: Any) -> Any:
        function = self.function
        cts = [ct] if len(function.outputs) == 1 else list(ct)
        gradients = function.gradient()(*cts, *arrays)
        parts = iter(gradients if isinstance(gradients, tuple) else (gradients,))
        return one_or_tuple([next(parts) if _is_float(x) else None for x in function.inputs])


def op_of(
    inputs: Any, outputs: Any, *, name: str = "pytensor_graph", mode: Any = None, stateful: bool | None = None
) -> Op:
    """Return an op that computes a graph of PyTensor.

    Parameters
    ----------
    inputs : variable or sequence of variable
        The arguments, in order. Sizes that PyTensor knows are declared.
    outputs : variable or sequence of variable
        One variable is returned as it is, a sequence as a tuple.
    name : str, optional
    mode : optional
        Of `pytensor.function`.
    stateful : bool, optional
        By default, whether the graph reads shared variables, which may have other values at every call, or draws random
        numbers.

    Returns
    -------
    Op
        With the gradient that PyTensor derives, to any order. It is compiled when it is first called.

    Raises
    ------
    TypeError
        A variable is no tensor.
    ValueError
        The graph reads a variable that is not among the inputs.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> import pytensor.tensor as pt
    >>> from pyop.interop.pytensor import op_of
    >>> x = pt.dvector("x")
    >>> energy = op_of(x, (x**2).sum(), mode="FAST_COMPILE")
    >>> energy.spec
    Signature('float64[_] -> float64[]')
    >>> pyop.grad(energy)(np.arange(3.0))
    array([0., 2., 4.])
    """
    given = [inputs] if isinstance(inputs, Variable) else list(inputs)
    wanted = [outputs] if isinstance(outputs, Variable) else list(outputs)
    for each in (*given, *wanted):
        if not isinstance(each, Variable) or not isinstance(each.type, TensorType):
            raise TypeError(f"an op takes and returns arrays, got {each!r:.80} of type {getattr(each, 'type', None)}")
    free = [x for x in explicit_graph_inputs(wanted) if x not in given]
    if free:
        raise ValueError(f"the graph reads {', '.join(map(str, free))}: pass what it reads as inputs=, in order")
    if stateful is None:
        stateful = any(isinstance(x, SharedVariable) for x in graph_inputs(wanted))
    function = GraphFunction(given, wanted, name, mode)
    specs = [Spec(np.dtype(x.type.dtype), x.type.shape) for x in given]
    results = [Spec(np.dtype(y.type.dtype), y.type.shape) for y in wanted]
    made = declare(
        function,
        inputs=specs,
        outputs=results[0] if isinstance(outputs, Variable) or len(results) == 1 else tuple(results),
        stateful=stateful,
        name=name,
    )
    if any(map(_is_float, given)) and any(map(_is_float, wanted)):
        made.vjp(_Rule(function))
    return made


def _is_float(x: Any) -> bool:
    return bool(x.type.dtype.startswith("float")) and not isinstance(x, Constant)
