"""Define `Function`, an operation with a backward of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from .. import _core
from .._core import FunctionClass, Tensor

__all__ = ["Function", "once_differentiable"]

F = TypeVar("F", bound=Callable[..., Any])


class _Once:
    """Wrap a backward that computes with plain arrays."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function

    def __call__(self, ctx: Any, *gradients: Any) -> Any:
        arrays = [g.numpy() if isinstance(g, Tensor) else g for g in gradients]
        return _core.call_recording(False, self.__wrapped__, (ctx, *arrays), {})


def once_differentiable(backward: F) -> F:
    """Declare that a backward works with plain arrays and cannot be differentiated again.

    It is then given arrays also under ``create_graph=True``, and differentiating its result is an error that names the
    Function.

    Parameters
    ----------
    backward : callable
        Below or above ``@staticmethod``.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> class Square(pyop.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @pyop.autograd.once_differentiable
    ...     def backward(ctx, g):
    ...         return 2 * g * ctx.saved_tensors[0]
    >>> x = pyop.Tensor(np.array(3.0), requires_grad=True)
    >>> (slope,) = pyop.autograd.grad(Square.apply(x), [x], create_graph=True)
    >>> slope.backward()
    Traceback (most recent call last):
    RuntimeError: backward of Square is marked once_differentiable, and its result is being differentiated again
    """
    if isinstance(backward, staticmethod):
        return cast(F, staticmethod(_Once(backward.__func__)))
    return cast(F, _Once(backward))


class Function:
    """Define an operation on arrays with a derivative of its own. Subclass it and call ``Name.apply(...)``.

    All methods are static, and looked up once, when the class is created:

    ``forward(ctx, *args)``
        Computes with plain arrays: the arrays of the Tensors that `apply` was given, and all else as it is. Returns an
        array or a tuple; anything in it that is not an array comes back unchanged.
    ``forward(*args)`` and ``setup_context(ctx, inputs, output)``
        The same in two parts.
    ``backward(ctx, *grads)``
        Takes one gradient for each output and returns one for each argument (None where there is none; surplus None is
        dropped). They are arrays, or, when the backward pass is itself recorded (``create_graph=True``), Tensors. It
        may be called ``vjp`` instead.
    ``jvp(ctx, *tangents)``
        Forward mode: takes one tangent for each argument and returns one for each output. A tangent is None for an
        argument that is not a Tensor of real or complex numbers, or that the call left to its default.
    ``vmap(info, in_dims, *args)``
        A rule for batches: returns the result and its batch dimensions. Arguments that the call left out are their
        defaults. ``generate_vmap_rule = True`` makes one.

    Arguments may be containers of Tensors (list, tuple, dict, namedtuple, dataclass). The gradient of such an argument
    is a container of the same structure, or None. Keyword-only arguments are constants.

    With no Tensor among the arguments, `apply` returns what forward returned: arrays in, arrays out.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> class Exp(pyop.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = np.exp(x)
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    >>> x = pyop.Tensor(np.zeros(2), requires_grad=True)
    >>> y = Exp.apply(x)
    >>> y
    Tensor([1., 1.], grad_fn=<ExpBackward>)
    >>> y.backward(np.array([1.0, 2.0]))
    >>> x.grad
    Tensor([1., 2.])
    """

    apply: ClassVar[FunctionClass]
    generate_vmap_rule: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.apply = _function_class(cls, methods_of(cls))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise TypeError(f"{name} has no instances: call {name}.apply(...)")


def _method(cls: type, name: str) -> Any:
    """Return a static method of a Function, None if it has none."""
    for base in cls.__mro__:
        if base is Function:
            return None
        if name in vars(base):
            method = getattr(cls, name)
            return method if callable(method) else None
    return None


def methods_of(cls: type[Function]) -> dict[str, Any]:
    """Return the static methods that `apply` of a Function calls, None for those it lacks."""
    return {name: _method(cls, name) for name in ("forward", "setup_context", "backward", "vjp", "jvp")}


def complete(function: FunctionClass, methods: dict[str, Any]) -> None:
    """Set the methods of a class made before they were known, as one that is unpickled by value."""
    function._fill(_function_class(function.cls, methods))


def _function_class(cls: type[Function], methods: dict[str, Any]) -> FunctionClass:
    forward, setup = methods["forward"], methods["setup_context"]
    backward, vjp = methods["backward"], methods["vjp"]
    chosen = vjp if backward is None else backward
    once = isinstance(chosen, _Once)
    parameters, defaults = _positional(forward) if setup is not None and forward is not None else (-1, ())
    return FunctionClass(
        cls,
        cls.__name__,
        forward,
        setup,
        chosen.__wrapped__ if once else chosen,
        methods["jvp"],
        defaults,
        functools.partial(_bind, forward, setup is None),
        parameters,
        once,
        False,
        backward is not None and vjp is not None,
        tangents=_tangents(forward, setup is None, _method(cls, "jvp")),
    )


def _tangents(forward: Callable[..., Any] | None, with_ctx: bool, jvp: Callable[..., Any] | None) -> int:
    """Return how many tangents of forward's arguments a jvp takes; 0 where that is not known."""
    if forward is None or jvp is None:
        return 0
    taken, _ = _positional(jvp)
    known = max(_positional(forward)[0] - with_ctx, 0)
    return known if taken < 0 else min(known, taken - 1)


def with_defaults(cls: type[Function], rule: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of forward with defaults for those left out, as far as a rule for batches takes them."""
    forward = _method(cls, "forward")
    count, defaults = _positional(forward)
    taken, _ = _positional(rule)
    most = count if taken < 0 else min(count, taken - 2)
    return (*args, *[defaults[k - count] for k in range(len(args), most)]) if len(args) < most else args


def _positional(forward: Callable[..., Any]) -> tuple[int, tuple[Any, ...]]:
    """Return the number of positional parameters (-1 if any number), and the defaults of the last of them."""
    parameters = inspect.signature(forward).parameters.values()
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return -1, ()
    return len(plain), tuple(p.default for p in plain if p.default is not p.empty)


def _bind(
    forward: Callable[..., Any], with_ctx: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with keywords in their places and defaults filled in; keyword-only ones stay keywords."""
    signature = inspect.signature(forward)
    bound = signature.bind(None, *args, **kwargs) if with_ctx else signature.bind(*args, **kwargs)
    given = bound.arguments.copy()
    bound.apply_defaults()
    # Trailing defaults that the call left out stay out: backward returns a gradient for what was given.
    names = [name for name, p in signature.parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    last = max((k for k, name in enumerate(names) if name in given), default=-1)
    if not any(p.kind == p.VAR_POSITIONAL for p in signature.parameters.values()):
        positional = tuple(bound.arguments[name] for name in names[: last + 1])
    else:
        positional = bound.args
    keywords = {
        name: value
        for name, value in given.items()
        if signature.parameters[name].kind in (inspect.Parameter.KEYWORD_ONLY,)
    }
    for name, p in signature.parameters.items():
        if p.kind == p.VAR_KEYWORD:
            keywords |= given.get(name, {})
    return positional[1:] if with_ctx else positional, keywords
