"""Apply NumPy's functions to Tensors: compute on their arrays, and record where a gradient is required.

One recorded call is one node. It keeps the arguments and the result. Its backward asks the table of rules
(`pyop.gradients.table`) for the derivative. While a backward pass is itself recorded the rule computes with Tensors,
so derivatives of any order come from the same rules.
"""

from __future__ import annotations

import operator as _operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from .._core import FunctionClass, Tensor, Value
from .._tree import flatten
from ..containers import check_operands
from ..declare.rebuild import replaced
from ..functions import surface
from ..gradients import table
from ..gradients.listed import pull, push
from ..refusals import noting, refusal
from .arrays import check_no_history, to_arrays
from .kept import give_back, keep
from .writes import changing, into

__all__ = [
    *("array_function", "array_ufunc", "backward", "call", "class_of", "followed", "followed_result", "getitem"),
    *("iterate", "may_vary", "operator", "outer", "power", "put_back", "record_in_place", "spread", "to_arrays"),
]

_classes: dict[Any, FunctionClass] = {}
_numpys: set[FunctionClass] = set()  # of these: new arrays that such a function returns are nobody else's


def array_ufunc(ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a ufunc, or one of its methods, to Tensors."""
    _check_operands(ufunc, inputs, kwargs)
    if any(_is_foreign(x) for x in inputs):
        if any(type(x) is Value for x in inputs):
            return _in_graph(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)
        return NotImplemented
    if method == "__call__":
        return call(ufunc, ufunc, inputs, kwargs)
    if method == "at":
        return changing(ufunc.at, inputs, kwargs)
    return call((ufunc, method), getattr(ufunc, method), inputs, kwargs)


def array_function(
    func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> Any:
    """Apply a function of NumPy, or one of pyop's that takes part in its protocol, to Tensors."""
    kwargs = kwargs or {}
    _check_operands(func, args, kwargs)
    if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types):
        return _in_graph(func, args, kwargs) if Value in types else NotImplemented
    if func in surface.PRINTERS or func in surface.SAVERS:
        for x in table.leaves(args, kwargs):
            if type(x) is Tensor:
                x._give(f"np.{func.__name__}(x)")
    if func in _SHAPE_ONLY:
        return func(*to_arrays(args), **to_arrays(kwargs))
    if func in surface.WRITERS:
        return changing(func, args, kwargs)
    return call(func, func, args, kwargs)


_COMMON = frozenset((np.ndarray, Tensor, Value, float, int, bool, complex, str, slice, type, type(None)))


def _check_operands(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise for containers with rules of their own, which have no place in a record.

    Subclasses of ndarray compute with Tensors that are not recorded as they do with arrays.
    """
    if _COMMON.issuperset(map(type, args)) and _COMMON.issuperset(map(type, kwargs.values())):
        return
    leaves = table.leaves(args, kwargs)
    recorded = any(type(x) is Tensor and x._watched for x in leaves)
    foreign = [x for x in leaves if type(x) not in _COMMON and (recorded or not issubclass(type(x), np.ndarray))]
    check_operands(f"{getattr(function, '__name__', function)} of a Tensor", foreign)


def _in_graph(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function with Values among its arguments too: the Tensors are constants of the graph."""
    check_no_history("", table.leaves(args, kwargs))
    return function(*to_arrays(args), **to_arrays(kwargs))


# Functions whose result says nothing of the numbers.
_SHAPE_ONLY = surface.ASK_MEMORY | {np.shape, np.ndim, np.size, np.result_type, np.can_cast}
_SHAPE_ONLY |= {np.iscomplexobj, np.isrealobj, np.array_equal, np.allclose}


def _is_foreign(x: Any) -> bool:
    """Return whether another library's array should handle the call."""
    kind = type(x)
    if kind is Tensor or kind is np.ndarray or kind is float or kind is int:
        return False
    hook = getattr(kind, "__array_ufunc__", False)
    return hook is None or (hook is not False and not issubclass(kind, (np.ndarray, np.generic, Tensor)))


def _to_operand(x: Any) -> Any:
    """Return the NumPy operand: a scalar behaves differently from an array of no dimension."""
    if type(x) is not Tensor:
        return x
    return x._numbers[()] if x._scalar else x._numbers


def _wrapped(result: Any) -> Any:
    """Return the result with Tensors in place of arrays."""
    kind = type(result)
    if kind is Tensor:
        return result
    if issubclass(type(result), (np.ndarray, np.generic)):
        made = Tensor(result)
        made._scalar = kind is not np.ndarray and isinstance(result, np.generic)
        return made
    if kind is tuple or kind is list:
        return kind(map(_wrapped, result))
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return kind(*map(_wrapped, result))
    return result


def may_vary(x: Any) -> bool:
    """Return whether a result can have a derivative: real or complex numbers, or objects that may be such."""
    if issubclass(type(x), (np.ndarray, np.generic)):
        return x.dtype.kind in "fcO"
    return isinstance(x, (float, complex)) or (isinstance(x, (tuple, list)) and any(map(may_vary, x)))


def _is_of_objects(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_is_of_objects, x))
    return issubclass(type(x), np.ndarray) and x.dtype.kind == "O"


def call(key: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function with Tensors among its arguments, which the table of rules knows by `key`.

    Anything in the result that is not an array is returned as it is. NoRule if a gradient would have to pass through a
    function without a rule.
    """
    if kwargs.get("out") is not None:
        return into(function, args, kwargs)
    return _finished(key, function(*replaced(args, _to_operand), **replaced(kwargs, _to_operand)), args, kwargs)


def _finished(key: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a call as Tensors, with their history and their tangents."""
    if not _core.is_recording() and not _core.forward_runs():
        return _wrapped(result)
    leaves = table.leaves(args, kwargs)
    if not followed(leaves) or not may_vary(result):
        return _wrapped(result)
    rule = table.lookup(key)
    if rule is None:
        with noting(table.NoRule):
            table.missing(key)
    if not rule.differentiable:
        return _wrapped(result)
    if _is_of_objects(result):
        name = table.name_of(key)
        raise refusal(
            f"{name} returns an array of objects, and Tensors of objects have no gradients: compute it in a pyop.op "
            "that returns numbers and has a rule, or differentiate the compiled function (pyop.compile(pyop.grad(f)))",
            table.NoRule,
        )
    function = _classes.get(key)
    if function is None:
        function = _classes[key] = _class_of(key)
        if _is_numpys(key):
            _numpys.add(function)
    return followed_result(function, rule, args, kwargs, leaves, result)


def followed(leaves: list[Any]) -> bool:
    """Return whether a call with these leaves among its arguments is recorded, or propagates tangents."""
    if _core.is_recording() and [x for x in leaves if type(x) is Tensor and x.requires_grad]:
        return True
    return bool(_core.forward_runs() and [x for x in leaves if type(x) is Tensor and x._tangent is not None])


def followed_result(
    function: FunctionClass,
    rule: table.Rule,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    leaves: list[Any],
    result: Any,
) -> Any:
    """Return the result of a call as Tensors, with their history and their tangents.

    The history is one node of the class `function`; `leaves` are the `table.leaves` of its arguments.
    """
    positions = [k for k, leaf in enumerate(leaves) if type(leaf) is Tensor]
    tensors = tuple([leaves[k] for k in positions])
    if _core.is_recording() and [x for x in tensors if x.requires_grad]:
        made = _record(function, rule, args, kwargs, leaves, positions, tensors, result)
    else:  # Python's numbers, too, as `2j * np.float64(3)` is one: they may have tangents
        made = _wrapped(np.asarray(result)[()] if isinstance(result, (float, complex)) else result)
    if _core.forward_runs():
        moving = [k for k in positions if leaves[k]._tangent is not None]
        if moving:
            push_forward(rule, moving, leaves, made, args, kwargs)
    return made


def _record(
    function: FunctionClass,
    rule: table.Rule,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    leaves: list[Any],
    positions: list[int],
    tensors: tuple[Any, ...],
    result: Any,
) -> Any:
    # A list of results (np.split) or a named tuple (np.linalg.eigh) is a tuple to the node.
    several = isinstance(result, (tuple, list))
    arrays = tuple([np.asarray(r) if isinstance(r, np.generic) else r for r in result]) if several else result
    given = (*args, *kwargs.values())
    nested = len(leaves) != len(given) or [a for a in given if isinstance(a, (tuple, list, dict))]
    tree = flatten(list(given))[1] if nested else None
    kept = [None if type(leaf) is Tensor else keep(leaf, result) for leaf in leaves]
    call = (rule, kept, positions, tree, len(args), tuple(kwargs), several)
    attributes = {"call": call, "fresh": function in _numpys}
    made = function._record(tensors, arrays if several else np.asarray(result), attributes)
    for one, array in zip(made, result, strict=True) if several else ((made, result),):
        if isinstance(array, np.generic):
            one._scalar = True
    if not several or type(result) is tuple:
        return made
    return list(made) if type(result) is list else type(result)(*made)


def _is_numpys(key: Any) -> bool:
    function = key[0] if isinstance(key, tuple) else key
    module = getattr(function, "__module__", None) or ""
    return isinstance(function, np.ufunc) or module.partition(".")[0] in ("numpy", "_operator")


def _class_of(key: Any) -> FunctionClass:
    name = table.name_of(key).rpartition(".")[2] if not isinstance(key, tuple) else f"{key[0].__name__}_{key[1]}"
    return class_of(name)


def class_of(name: str, back: Callable[..., Any] | None = None) -> FunctionClass:
    """Return the class of nodes for functions of a name."""
    name = name[:1].upper() + name[1:]
    return FunctionClass(None, name, None, None, back or backward, None, (), None, -1, False, True, False)


def backward(ctx: Any, *gradients: Any) -> Any:
    """Return the gradients of the arguments of a recorded call, by its rule."""
    rule, kept, positions, tree, count, names, several = ctx.call
    if not [g for g in gradients if g is not None]:
        return (None,) * len(positions)
    saved = ctx.saved_tensors
    leaves = list(map(give_back, kept))
    for k, value in zip(positions, saved, strict=False):
        leaves[k] = value
    arguments = leaves if tree is None else tree.unflatten(leaves)
    args, kwargs = tuple(arguments[:count]), dict(zip(names, arguments[count:], strict=True))
    needs = ctx.needs_input_grad
    argnums = tuple([k for k, need in zip(positions, needs, strict=True) if need])
    ans = saved[len(positions) :] if several else saved[len(positions)]
    back = rule.vjp(argnums, ans, args, kwargs) if tree is None else pull(rule, argnums, ans, args, kwargs)
    argument_gradients = iter(back(gradients if several else gradients[0]))
    return tuple([_as_gradient(next(argument_gradients)) if need else None for need in needs])


def _as_gradient(g: Any) -> Any:
    return g if g is None or type(g) is Tensor or type(g) is np.ndarray else np.asarray(g)


def push_forward(
    rule: table.Rule, moving: list[int], leaves: list[Any], made: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Set the tangents of a call's results."""
    arguments = tuple([leaves[k] for k in moving])
    tangents = tuple([x._tangent for x in arguments])
    history = _core.is_recording() and any(
        type(x) is Tensor and x.requires_grad for x in (*tangents, *[leaf for leaf in leaves if type(leaf) is Tensor])
    )
    # The rule computes with numbers and tangents apart: nothing in it moves.
    given: tuple[Any, ...] = (tangents, made, args, kwargs)
    if not history:
        given = (tuple([to_arrays(t) for t in tangents]), to_arrays(made), to_arrays(args), to_arrays(kwargs))
    with noting(table.NoRule):
        tangent = _core.call_without_tangents(push, (rule, tuple(moving), *given), {})
    outputs, moved = (made, tangent) if isinstance(made, (tuple, list)) else ((made,), (tangent,))
    fitted = [None] * len(outputs) if moved is None else list(map(_fitted, moved, outputs))
    _core.give_tangents(outputs, fitted, arguments)


def _fitted(t: Any, output: Any) -> Any:
    if t is None or not isinstance(output, Tensor):
        return None
    if np.shape(t) != output.shape:  # A rule may leave the broadcasting to us.
        t = np.broadcast_to(t, output.shape).copy()
    return t if type(t) is Tensor else np.asarray(t, dtype=output.dtype)


# --- what the operators of the C++ type call


def operator(name: str, *operands: Any) -> Any:
    """Apply an operator that has to be recorded: the ufunc of the same meaning."""
    ufunc = getattr(np, name)
    _check_operands(ufunc, operands, {})
    return call(ufunc, _OF_SCALARS.get(ufunc, ufunc) if all(map(_is_scalar, operands)) else ufunc, operands, {})


# NumPy's scalars give other bits than its loops, and other words in warnings.
_OF_SCALARS: dict[np.ufunc, Callable[..., Any]] = {
    **{ufunc: getattr(_operator, f"__{name}__") for name, (_, ufunc) in surface.OPERATORS.items()},
    **{ufunc: getattr(_operator, name) for name, ufunc in surface.SIGNS.items()},
    np.divmod: divmod,
}


def _is_scalar(x: Any) -> bool:
    return x._scalar if type(x) is Tensor else not issubclass(type(x), np.ndarray)


def power(a: Any, b: Any) -> Any:
    """Return ``a ** b``, as NumPy's operator computes it for small exponents."""
    if _is_scalar(a) and _is_scalar(b):
        _check_operands(np.power, (a, b), {})
        return call(np.power, _operator.pow, (a, b), {})
    ufunc, operands = _power(a, b)
    _check_operands(ufunc, operands, {})
    return call(ufunc, ufunc, operands, {})


def _power(a: Any, b: Any) -> tuple[np.ufunc, tuple[Any, ...]]:
    if type(b) is int and b == 2:
        return np.square, (a,)
    if type(b) is float and b == 0.5:
        return np.sqrt, (a,)
    return np.power, (a, b)


def record_in_place(name: str, a: Any, b: Any, numbers: Any) -> Any:
    """Return the result of an operator in place that has changed the numbers of `a`, recorded as the operator."""
    ufunc, operands = _power(a, b) if name == "power" else (getattr(np, name), (a, b))
    if ufunc is np.matmul and np.ndim(b) > max(a.ndim, 2):
        operands = (a, np.squeeze(b, tuple(range(np.ndim(b) - max(a.ndim, 2)))))  # of size 1: NumPy has left them out
    return _finished(ufunc, numbers, operands, {})


def getitem(x: Tensor, key: Any) -> Any:
    """Return ``x[key]``."""
    return call(_operator.getitem, _operator.getitem, (x, key), {})


def iterate(x: Tensor) -> Iterator[Any]:
    """Return an iterator over the Tensors along the first axis."""
    if x.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return (x[i] for i in range(x.shape[0]))


# --- parts of the derivatives in csrc/autograd/builtin_rules.cpp


def outer(a: Any, b: Any) -> Any:
    """Return the outer product of two vectors."""
    return np.outer(a, b)


def spread(g: Any, axis: int | None, shape: tuple[int, ...]) -> Any:
    """Return a reduced array broadcast back along its axis (None: all axes)."""
    return np.broadcast_to(g if axis is None else np.expand_dims(g, axis), shape)


def put_back(g: Any, key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return zeros of a shape with `g` at an index."""
    rule = table.lookup(_operator.getitem)
    assert rule is not None
    return rule.vjp((0,), None, (np.broadcast_to(np.zeros((), dtype), shape), key), {})(g)[0]
