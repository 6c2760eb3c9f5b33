"""Transform functions: `grad` and its relatives.

A transformed function is a Python function again. Called with Values it adds nodes to their graph, so it can be
traced, compiled and transformed again; called with arrays it runs at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

import numpy as np

from .._core import Op, Value, graph_being_built
from .._tree import flatten, leaf_types
from ..autograd.batch_calls import one_by_one
from ..autograd.batched import EXAMPLES, level_of
from ..autograd.vmap import vmap as batched
from ..containers import plain_array
from ..graph.graph import Graph
from ..tracing.trace import trace
from ..tracing.type_checks import refuse_exact_types
from ..typing import Pullback, Transformed
from .eager import Eager, vjp_of_op
from .inline import Inlined
from .instead import Instead
from .opened import Argnums, Opened, check_scalar
from .symbolic import Symbolic

__all__ = ["grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp", "vmap"]

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
_Untyped = Graph | np.ufunc  # whose parameters no type checker is told


@overload
def grad(f: _Untyped, argnums: Argnums = 0, *, has_aux: bool = False) -> Callable[..., Any]: ...
@overload
def grad(f: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False) -> Transformed[P, Any]: ...
def grad(f: Any, argnums: Argnums = 0, *, has_aux: bool = False) -> Any:
    """Return a function that computes the gradient of a function of one real result.

    Parameters
    ----------
    f : callable or Graph
        Of arrays or trees of arrays; returns a real array of shape ``()``.
    argnums : int or tuple of int
        The positional arguments to differentiate with respect to.
    has_aux : bool
        `f` returns ``(number, aux)``; `aux` is passed on as it is.

    Returns
    -------
    callable
        Takes what `f` takes. Returns the gradient: a tree like the argument, each leaf with dtype and shape of the
        argument's; a tuple of them if `argnums` is one; ``(gradient, aux)`` with `has_aux`.
        Of a complex argument ``z`` it is ``df/d re(z) + 1j * df/d im(z)``, which points uphill.

    Raises
    ------
    TypeError
        The result is not a single real number, an argument has no real or complex dtype, or a function on the way has
        no gradient rule.

    See Also
    --------
    value_and_grad : the value as well, at no extra cost.
    jacobian : for results that are arrays.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.grad(lambda x: np.sum(np.sin(x) * x))(np.zeros(2))
    array([0., 0.])
    """
    f = _as_function(f)

    @_transformation(f)
    def gradient(kind: type[Opened], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call, found = _gradient(kind, f, args, kwargs, argnums, has_aux)
        return (found, call.out(call.result[1])) if has_aux else found

    return gradient


@overload
def value_and_grad(f: _Untyped, argnums: Argnums = 0, *, has_aux: bool = False) -> Callable[..., tuple[Any, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, R], argnums: Argnums = 0, *, has_aux: bool = False
) -> Transformed[P, tuple[R, Any]]: ...
def value_and_grad(f: Any, argnums: Argnums = 0, *, has_aux: bool = False) -> Any:
    """Return a function that computes a function's result together with its gradient.

    Parameters
    ----------
    f, argnums, has_aux
        As for `grad`.

    Returns
    -------
    callable
        Returns ``(value, gradient)``, or ``((value, aux), gradient)``.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> plan = pyop.trace(pyop.value_and_grad(lambda x: np.sum(x * x)), "float64[n]").compile()
    >>> plan(np.ones(3))
    (array(3.), array([2., 2., 2.]))
    """
    f = _as_function(f)

    @_transformation(f)
    def both(kind: type[Opened], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call, found = _gradient(kind, f, args, kwargs, argnums, has_aux)
        return call.out(call.result), found

    return both


@overload
def vjp(f: _Untyped, *primals: Any, has_aux: Literal[False] = False) -> tuple[Any, Pullback[Any]]: ...
@overload
def vjp(f: Callable[..., R], *primals: Any, has_aux: Literal[False] = False) -> tuple[R, Pullback[R]]: ...
@overload
def vjp(f: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]) -> tuple[R, Pullback[R], A]: ...
def vjp(f: Any, *primals: Any, has_aux: bool = False) -> Any:
    """Return a function's result, and the function that maps cotangents of it to cotangents of the arguments.

    Parameters
    ----------
    f : callable or Graph
        Of arrays or trees of arrays.
    *primals : tree of array
        The arguments, all of real or complex numbers.
    has_aux : bool
        `f` returns ``(result, aux)``.

    Returns
    -------
    value : tree of array
    pullback : callable
        Takes a tree like `value`, in which None stands for zero; returns one tree for each of `primals`.
    aux : object
        With `has_aux` only.

    Raises
    ------
    TypeError
        An argument of integers, or a function without a gradient rule on the way.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> value, pullback = pyop.vjp(lambda x, y: x * y, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    >>> value, pullback(np.array([1.0, 10.0]))
    (array([3., 8.]), (array([ 3., 40.]), array([ 1., 20.])))
    """
    if type(f) is Op and not has_aux:
        found = vjp_of_op(f, primals)
        if found is not None:
            return found
    f = _as_function(f)
    kind = _kind(f, primals)
    if kind is None:
        result = f(*primals)

        def pulled(ct: Any, *primals: Any) -> Any:
            return cast(Any, vjp)(f, *primals, has_aux=has_aux)[1](ct)

        def pullback(ct: Any) -> Any:
            return _indirectly(pulled, (ct, *primals), {})

        return (result[0], pullback, result[1]) if has_aux else (result, pullback)
    call = kind(f, primals, {}, tuple(range(len(primals))))
    if has_aux:
        return call.out(call.result[0]), call.pullback(call.result[0]), call.out(call.result[1])
    return call.out(call.result), call.pullback(call.result)


@overload
def jvp(f: _Untyped, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]: ...
@overload
def jvp(f: Callable[..., R], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[R, R]: ...
def jvp(f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Return a function's result, and its change when the arguments change along tangents.

    Parameters
    ----------
    f : callable or Graph
        Of arrays or trees of arrays.
    primals : tuple
        The arguments.
    tangents : tuple
        As `primals`; None for an argument that stays as it is.

    Returns
    -------
    value, tangent : tree of array

    Raises
    ------
    TypeError
        A tangent does not fit its argument, or a function on the way has no rule for forward mode.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.jvp(np.square, (np.array([1.0, 2.0]),), (np.array([1.0, 0.5]),))
    (array([1., 4.]), array([2., 2.]))
    """
    f = _as_function(f)
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or len(primals) != len(tangents):
        raise TypeError("jvp takes a tuple of arguments and a tuple of as many tangents: jvp(f, (x,), (t,))")
    kind = _kind(f, primals, tangents)
    found: tuple[Any, Any] = (
        _indirectly(functools.partial(jvp, f), (primals, tangents), {})
        if kind is None
        else kind.jvp(f, primals, tangents)
    )
    return found


@overload
def jacobian(
    f: _Untyped, argnums: Argnums = 0, *, mode: Literal["reverse", "forward"] = "reverse"
) -> Callable[..., Any]: ...
@overload
def jacobian(
    f: Callable[P, Any], argnums: Argnums = 0, *, mode: Literal["reverse", "forward"] = "reverse"
) -> Transformed[P, Any]: ...
def jacobian(f: Any, argnums: Argnums = 0, *, mode: Literal["reverse", "forward"] = "reverse") -> Any:
    """Return a function that computes all partial derivatives of a function's results by its arguments.

    Parameters
    ----------
    f : callable or Graph
        Of arrays or trees of arrays.
    argnums : int or tuple of int
        The positional arguments to differentiate by.
    mode : {"reverse", "forward"}
        One pass for each element of the results, or one for each element of the arguments: take the smaller number.

    Returns
    -------
    callable
        Takes what `f` takes. For a result of shape ``r`` and an argument of shape ``a`` an array of shape ``r + a``;
        where they are trees, a tree like the result of trees like the argument. For complex numbers, where `f` is
        holomorphic, its derivative.

    Raises
    ------
    TypeError
        As for `vjp`; or, in a graph, a size that is not a number when the graph is built.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.jacobian(lambda x: np.cumprod(x))(np.array([2.0, 3.0]))
    array([[1., 0.],
           [3., 2.]])
    """
    f = _as_function(f)
    if mode not in ("reverse", "forward"):
        raise ValueError(f"mode is 'reverse' or 'forward', got {mode!r}")

    @_transformation(f)
    def derivatives(kind: type[Opened], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if mode == "forward":
            return kind.jacobian_forward(f, args, kwargs, argnums)
        return kind(f, args, kwargs, argnums).jacobian()

    return derivatives


@overload
def hessian(f: _Untyped, argnums: int = 0) -> Callable[..., Any]: ...
@overload
def hessian(f: Callable[P, Any], argnums: int = 0) -> Transformed[P, Any]: ...
def hessian(f: Any, argnums: int = 0) -> Any:
    """Return a function that computes the second derivatives of a function of one real result.

    It is forward over reverse: one pass for each element of the argument.

    Parameters
    ----------
    f : callable or Graph
        As for `grad`.
    argnums : int
        The argument to differentiate by, twice.

    Returns
    -------
    callable
        Takes what `f` takes. For an argument of shape ``a`` an array of shape ``a + a``.

    See Also
    --------
    hvp : products with the Hessian, at the cost of a few gradients.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.hessian(lambda x: np.prod(x))(np.array([2.0, 3.0]))
    array([[0., 1.],
           [1., 0.]])
    """
    first = grad(f, argnums)
    forward = jacobian(first, argnums, mode="forward")
    reverse = jacobian(first, argnums)

    @_transformation(first)
    def second(kind: type[Opened], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # At arrays the function runs once in reverse mode, and for each element of the argument in forward mode.
        return (reverse if kind is Eager else forward)(*args, **kwargs)

    return second


def hvp(f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Return the product of the Hessian of a function with a vector, without computing the Hessian.

    Parameters
    ----------
    f : callable or Graph
        As for `grad`; differentiated by its first argument.
    primals, tangents : tuple
        The arguments, and the vector: as for `jvp`.

    Returns
    -------
    tree of array
        Like the first argument.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    array([ 6., 12.])
    """
    gradient = grad(f)
    kind = _kind(gradient, primals, tangents)
    if kind is None:
        return _indirectly(functools.partial(hvp, f), (primals, tangents), {})
    if kind is not Eager:
        return jvp(gradient, primals, tangents)[1]
    # The Hessian is symmetric, so that its rows will do, and no function on the way needs a rule for forward mode.
    count = sum(t is not None for t in tangents)
    if count != 1 or tangents[0] is None:
        raise TypeError("hvp takes one tangent, that of the first argument; None for all others")
    return vjp(lambda x: gradient(x, *primals[1:]), primals[0])[1](tangents[0])[0]


@overload
def vmap(f: _Untyped, in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]: ...
@overload
def vmap(f: Callable[P, R], in_dims: Any = 0, out_dims: Any = 0) -> Transformed[P, R]: ...
def vmap(f: Any, in_dims: Any = 0, out_dims: Any = 0) -> Any:
    """Return a function of batches, from a function of single examples.

    Elementwise functions, reductions and matrix products run once on the whole batch, a `Function` by its rule for
    batches. Anything else runs for one example after the other.

    Parameters
    ----------
    f : callable or Graph
        Of arrays, Tensors or Values; functions that other transformations have made included.
    in_dims : int, None or tuple
        Which axis of each argument is that of the batch; None for an argument that is the same for all.
    out_dims : int or tuple
        Where that axis goes in the results.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        No argument has a batch, or the batches are of different sizes.
    TypeError
        In a graph: the number of examples is not known, and a function on the way needs it.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.vmap(pyop.grad(lambda x: np.sum(x**2)))(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[2., 4.],
           [6., 8.]])
    """
    return batched(_as_function(f), in_dims, out_dims)


def _as_function(f: Any) -> Callable[..., Any]:
    """Return a function, or a Graph as one; TypeError for anything else."""
    if type(f) in (FunctionType, Op):
        return f  # type: ignore[no-any-return]
    if isinstance(f, Graph):
        return Inlined(f)
    if not callable(f):
        raise TypeError(f"expected a function of arrays or a Graph, got {type(f).__name__} {f!r:.80}")
    return f  # type: ignore[no-any-return]


def _is_graph(f: Any) -> bool:
    """Return whether a function is a Graph, or was made of one, and so differentiates in a graph, even at arrays."""
    return getattr(f, "_pyop_graph", False) is True


# --- where a transformation does its work


def _kind(f: Any, *arguments: Any) -> type[Opened] | None:
    """Return how to differentiate a function for these arguments: on Tensors or on Values.

    It is on Values if one is among the arguments, or if a graph is being built, whose Values the function may hold.
    None means `_indirectly`.
    """
    types = leaf_types(arguments)
    if not types.isdisjoint(EXAMPLES):
        return None
    if Value in types or graph_being_built() is not None:
        return Symbolic
    if type(f) is Op:  # which is called with arrays, whatever it asks of them
        return Eager
    if _is_graph(f):
        return None
    refuse_exact_types(f)
    return Eager


def _indirectly(transformed: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a transformation for one example of a batch after the other.

    Without examples, return it by a graph that is traced for the arguments.
    """
    if not leaf_types((args, kwargs)).isdisjoint(EXAMPLES):
        return one_by_one(transformed, args, kwargs, level_of((args, kwargs)))
    leaves, structure = flatten(args)
    which = [k for k, leaf in enumerate(leaves) if leaf is not None]
    arrays = [plain_array(leaves[k], "an argument") for k in which]
    if not arrays:
        raise TypeError("a derivative needs arguments: the function was called without any")

    def on_arrays(*given: Any) -> Any:
        full = list(leaves)
        for k, value in zip(which, given, strict=True):
            full[k] = value
        return transformed(*structure.unflatten(full), **kwargs)

    graph = trace(on_arrays, *arrays)
    return graph.compile()(*arrays)  # not run, which leaves out what is stateful and nobody reads


def _transformation(f: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that makes a transformed `f` of a function which computes its derivative by `_kind`."""

    instead = Instead(f)

    def mark(made: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f, updated=())
        def transformed(*args: Any, **kwargs: Any) -> Any:
            kind = _kind(f, args, kwargs)
            if kind is None:
                return _indirectly(transformed, args, kwargs)
            if kind is not Eager:
                return made(kind, args, kwargs)
            return instead.call(made, transformed, args, kwargs)

        transformed._pyop_graph = _is_graph(f)  # type: ignore[attr-defined]
        return transformed

    return mark


def _gradient(
    kind: type[Opened], f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums, aux: Any
) -> tuple[Opened, Any]:
    """Return the call, and the gradient of the number that it has returned (with an auxiliary result if `aux`)."""
    call = kind(f, args, kwargs, argnums)
    value = call.result[0] if aux else call.result
    check_scalar(f, value)
    return call, call.run_once(call.like_arguments(call.pull([value], [call.seed(value)])))
