"""Transformations of functions: `grad` and its relatives.

A transformed function is a Python function again. Called with Values it adds nodes to their graph, so it can be traced,
compiled and transformed again; called with arrays it runs at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ._core import Value
from ._tree import TreeDef, flatten

__all__ = ["grad", "value_and_grad"]

Argnums = int | tuple[int, ...]


def grad(f: Any, argnums: Argnums = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function that returns a single real number.

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
    both = value_and_grad(f, argnums, has_aux=has_aux)

    @functools.wraps(f, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def value_and_grad(f: Any, argnums: Argnums = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """What a function returns, together with its gradient.

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
    f = as_function(f)

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> Any:
        if not symbolic(args, kwargs):
            return run(both, args, kwargs)
        from .gradients import reverse

        inner, inputs, structure = open_arguments(f, args, argnums)
        result = inner(**kwargs)
        value = result[0] if has_aux else result
        check_scalar(f, value)
        if isinstance(value, Value):
            cts = reverse.backward([value], [reverse.ones_like(value)], inputs)
        else:
            cts = [None] * len(inputs)
        return result, structure(cts)

    return both


def as_function(f: Any) -> Callable[..., Any]:
    """A function, or a Graph as one."""
    if not callable(f):
        raise TypeError(f"expected a function of arrays, got {type(f).__name__} {f!r:.80}")
    return f  # type: ignore[no-any-return]


def symbolic(args: Any, kwargs: Any) -> bool:
    """Whether a Value is among the arguments."""
    return any(isinstance(leaf, Value) for leaf in flatten((args, kwargs))[0])


def run(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Trace a function for arguments of these dtypes and shapes, and run it on them."""
    from .graph import trace

    arrays = [np.asarray(leaf) for leaf in flatten(args)[0]]
    graph = trace(functools.partial(f, **kwargs), *flatten(args)[1].unflatten(arrays))
    return graph.run(feeds=dict(zip(graph.inputs, arrays, strict=True)))


def open_arguments(
    f: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums
) -> tuple[Callable[..., Any], list[Value], Callable[[list[Any]], Any]]:
    """The function with its chosen arguments replaced by Values of their own, and these Values.

    Also returns what puts one cotangent for each of these into the containers that the arguments are.
    """
    from .gradients.marker import open_value

    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    graph = next(leaf for leaf in flatten(args)[0] if isinstance(leaf, Value)).graph
    replaced = list(args)
    inputs: list[Value] = []
    trees: list[TreeDef] = []
    for k in numbers:
        if not -len(args) <= k < len(args):
            raise TypeError(f"argnums={argnums}, but the function was called with {len(args)} positional arguments")
        leaves, tree = flatten(args[k])
        values = [open_value(graph, leaf, f"argument {k}") for leaf in leaves]
        inputs += values
        trees.append(tree)
        replaced[k] = tree.unflatten(values)

    def structure(cts: list[Any]) -> Any:
        found, start = [], 0
        for tree in trees:
            stop = start + tree.num_leaves
            parts = [
                np.zeros_like(value) if ct is None else ct
                for ct, value in zip(cts[start:stop], inputs[start:stop], strict=True)
            ]
            found.append(tree.unflatten(parts))
            start = stop
        return found[0] if isinstance(argnums, int) else tuple(found)

    return functools.partial(f, *replaced), inputs, structure


def check_scalar(f: Callable[..., Any], value: Any) -> None:
    """A gradient is of one real number."""
    shape = value.shape if isinstance(value, Value) else np.shape(value)
    dtype = value.dtype if isinstance(value, Value) else np.asarray(value).dtype
    name = getattr(f, "__name__", "the function")
    if (shape is not None and shape != ()) or (dtype is not None and dtype.kind != "f"):
        what = str(value.spec) if isinstance(value, Value) else f"{dtype}{list(shape or ())}"
        raise TypeError(
            f"grad needs a function that returns one real number, but {name} returns {what}: "
            "sum it, take its real part, or use pyop.jacobian or pyop.vjp"
        )
