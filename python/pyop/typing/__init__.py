"""Provide types for annotations of code that uses pyop: callables and contexts without a class of their own.

`pyop.Op[P, R]` and `pyop.CompiledFunction[P, R]` are generic in the parameters and the result of their function. This
module is for annotations; nothing in it does anything at run time.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from .._core import Tensor, Value

if TYPE_CHECKING:
    from ..profiling import Profile as Profile
    from ..profiling import ProfileRow as ProfileRow

__all__ = ["Context", "Profile", "ProfileRow", "Pullback", "Symbolic", "Transformed"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)

Symbolic: TypeAlias = Value | Tensor | Sequence[Value] | Sequence[Tensor] | Mapping[str, Value] | Mapping[str, Tensor]
"""What stands for an array, or a tree of such: ops, compiled and transformed functions take it in place of arrays."""


class Transformed(Protocol[P, R_co]):
    """Describe the function that `pyop.grad` and its like return: it has the parameters of the original one.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.typing import Transformed
    >>> def loss(w: np.ndarray, scale: float = 1.0) -> np.float64:
    ...     return np.sum(w * w) * scale
    >>> gradient: Transformed[[np.ndarray, float], np.ndarray] = pyop.grad(loss)
    >>> gradient(np.ones(2), 0.5)
    array([1., 1.])
    """

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, first: Symbolic, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, first: Any, second: Symbolic, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, first: Any, second: Any, third: Symbolic, /, *args: Any, **kwargs: Any) -> Any: ...


class Pullback(Protocol[R_contra]):
    """Describe the function that `pyop.vjp` returns beside the value.

    It takes a cotangent like the value, in which None stands for zero, and returns one for each argument.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.typing import Pullback
    >>> def both(pullback: Pullback[np.ndarray], ct: np.ndarray) -> tuple:
    ...     return pullback(ct)
    >>> value, pullback = pyop.vjp(np.square, np.array([1.0, 2.0]))
    >>> both(pullback, np.ones(2))
    (array([2., 4.]),)
    """

    def __call__(self, ct: R_contra | Symbolic | None, /) -> tuple[Any, ...]: ...


class Context(Protocol):
    """Describe the `ctx` of a `pyop.Function`: it takes any attribute in `forward` and gives it in `backward`.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.typing import Context
    >>> class Scale(pyop.Function):
    ...     @staticmethod
    ...     def forward(ctx: Context, x: np.ndarray, factor: float) -> np.ndarray:
    ...         ctx.factor = factor
    ...         return x * factor
    ...     @staticmethod
    ...     def backward(ctx: Context, ct: np.ndarray) -> tuple:
    ...         return ct * ctx.factor, None
    >>> x = pyop.Tensor([1.0, 2.0], requires_grad=True)
    >>> np.sum(Scale.apply(x, 3.0)).backward()
    >>> x.grad
    Tensor([3., 3.])
    """

    @property
    def saved_tensors(self) -> tuple[Any, ...]: ...
    @property
    def needs_input_grad(self) -> tuple[bool, ...]: ...
    def save_for_backward(self, *arrays: Any) -> None: ...
    def save_for_forward(self, *arrays: Any) -> None: ...
    def mark_dirty(self, *arrays: Any) -> None: ...
    def mark_non_differentiable(self, *arrays: Any) -> None: ...
    def set_materialize_grads(self, value: bool, /) -> None: ...

    if TYPE_CHECKING:

        def __getattr__(self, name: str, /) -> Any: ...
        def __setattr__(self, name: str, value: Any, /) -> None: ...


def __getattr__(name: str) -> Any:
    """Load the profiler's classes at their first use."""
    if name in ("Profile", "ProfileRow"):
        return getattr(importlib.import_module("pyop.profiling"), name)
    raise AttributeError(f"module 'pyop.typing' has no attribute {name!r}; it has {', '.join(__all__)}")
