"""Define the `op` decorator, with which a Python function declares what it takes and returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from types import GenericAlias, MethodType
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

import numpy as np

from .._core import Op, origin_here
from .._tree import flatten
from ..declare.abstract import AbstractRule
from ..declare.contracts import make_contract, new_contract
from ..declare.parameters import Parameters, check_by_name, check_name, default_name
from ..declare.rebuild import CallOnTrees
from ..declare.references import by_path, own_attributes, path_of_op
from ..declare.signature import Signature
from ..declare.spec import Spec
from ..graph.cells import shown_place

__all__ = ["Op", "op"]

P = ParamSpec("P")
R = TypeVar("R")

_ATTRIBUTES = ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__")


class _Declaration(TypedDict, total=False):
    inputs: Any
    outputs: Any
    like: Any
    dtype: Any
    name: str | None
    stateful: bool
    mutates: str | Iterable[str]
    grad: str | None
    cast: str
    device: str | None


@overload
def op(fn: np.ufunc, text: str | Signature | None = None, /, **declaration: Unpack[_Declaration]) -> Op: ...
@overload
def op(fn: Callable[P, R], text: str | Signature | None = None, /, **declaration: Unpack[_Declaration]) -> Op[P, R]: ...
@overload
def op(
    text: str | Signature | None = None, /, **declaration: Unpack[_Declaration]
) -> Callable[[Callable[P, R]], Op[P, R]]: ...
def op(
    fn: Any = None,
    text: Any = None,
    /,
    *,
    inputs: Any = None,
    outputs: Any = None,
    like: Any = None,
    dtype: Any = None,
    name: str | None = None,
    stateful: bool = False,
    mutates: str | Iterable[str] = (),
    grad: str | None = None,
    cast: str = "no",
    device: str | None = None,
) -> Any:
    """Declare a Python function on arrays as an op.

    Used as a decorator, ``@op("float64[n] -> float64[]")``, or as a call, ``op(f, "float64[n] -> float64[]")``.
    Positional parameters are arrays; keyword-only parameters are static Python values, but for ``out``. So are
    parameters with a default behind the declared inputs: they are given by name.

    Parameters
    ----------
    fn : callable
        Function, method, callable object, partial, builtin or lambda.
    text : str or Signature, optional
        The declaration: ``"float64[n], float64[n] -> float64[]"``, or shapes alone as a gufunc has them,
        ``"(n),(n)->()"``, whose leading dimensions loop.
    inputs : tree, optional
        Specs of the arguments, one tree each.
    outputs : tree, optional
        Specs of the results: a tree of anything `Spec.make` takes.
    like : str or tuple of str, optional
        Output k has dtype and shape of this parameter.
    dtype : optional
        Of a gufunc declaration; see `Signature.parse`.
    name : str, optional
        Of the op's nodes; the function's own by default.
    stateful : bool
        The function has side effects or hidden inputs (a random generator, a file, time): its calls in a graph are
        never merged, folded, dropped or reordered against other stateful ones.
    mutates : str or iterable of str
        Parameters the function writes into. It gets memory that nobody else reads: the caller's array is unchanged.
    grad : "fd" or "cs", optional
        Where no rule is given with `Op.vjp`, `Op.jvp` or `Op.jac`: derivatives by central differences, or by the
        complex step (for an analytic function that computes with complex arrays).
    cast : "no", "safe" or "same_kind"
        Cast arguments to their declared dtypes where `numpy.can_cast` allows it; "no", the default, makes every other
        dtype an error. Results are never cast.
    device : "any", optional
        Hand arrays of other devices (torch or JAX on a GPU) to the function as they are, checked by their ``shape`` and
        ``dtype``. Without it they are an error.

    Returns
    -------
    Op
        Called with arrays it runs at once; called with Values, or inside ``with graph:``, it adds a node.

    Raises
    ------
    ValueError
        Wrong text; the message points at the character.
    TypeError
        The declaration does not fit the parameters of the function.

    See Also
    --------
    Op.abstract : output specs computed by a function.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.op("float64[n], float64[n] -> float64[]")
    ... def dot(x, y):
    ...     return np.dot(x, y)
    >>> dot(np.ones(3), np.arange(3.0))
    array(3.)
    >>> half = pyop.op(lambda x: x / 2, "float64[n] -> float64[n]", name="half", cast="safe")
    >>> half([1, 2]), half(np.arange(2))
    (array([0.5, 1. ]), array([0. , 0.5]))
    >>> dot(np.ones(3), np.arange(4.0))
    Traceback (most recent call last):
        ...
    pyop.InputError: argument 1 ('y') of dot is float64[4], but expects float64[n] (n = 3)
      in op 'dot' (declared at ...)
    """
    specs = {"inputs": inputs, "outputs": outputs, "like": like, "dtype": dtype}
    if text is None and (isinstance(fn, str | Signature) or fn is None):
        return lambda function: _declare(function, fn, specs, name, stateful, mutates, grad, cast, device)
    return _declare(fn, text, specs, name, stateful, mutates, grad, cast, device)


def _declare(
    fn: Any,
    text: Any,
    specs: dict[str, Any],
    name: Any,
    stateful: Any,
    mutates: Any,
    grad: Any,
    cast: Any,
    device: Any,
) -> Op:
    if isinstance(fn, Op):
        raise TypeError(f"{fn!r} is an op already; declare the function itself, {fn.__wrapped__!r}")
    if not callable(fn):
        raise TypeError(f"pyop.op takes a callable, got {type(fn).__name__} {fn!r:.80}")
    parameters = Parameters.of(fn)
    signature = Signature.make(text, **specs, parameters=parameters.arrays)
    if (cast, device) != ("no", None):
        signature = _taking(signature, cast, device, mutates)
    label = check_name(name) if name is not None else default_name(fn)
    _check_arity(signature, parameters, label)
    contract = make_contract(
        signature, mutates=_mutates_mask(mutates, signature, parameters), out_mode=parameters.out_mode
    )
    made = make_op(fn, contract, signature, parameters, name=label, stateful=bool(stateful))
    for attribute in _ATTRIBUTES:
        if (value := getattr(fn, attribute, None)) is not None:
            setattr(made, attribute, value)
    if grad is not None:
        made._declare_fallback(grad)
    return made


def _taking(signature: Signature, cast: Any, device: Any, mutates: Any) -> Signature:
    signature = signature.taking(cast, device)
    if cast != "no" and signature.inputs is None:
        raise TypeError(
            f"cast={cast!r} casts to the dtypes of declared inputs, and this declaration has none: give inputs="
        )
    if device is None:
        return signature
    several = signature.inputs is not None and not all(isinstance(part, Spec) for part in signature.inputs)
    if signature.gufunc or several or mutates:
        what = "a gufunc declaration" if signature.gufunc else "trees of arrays" if several else "mutates="
        raise TypeError(f'device="any" passes arrays to the function unchanged, and cannot be combined with {what}')
    return signature


def make_op(
    fn: Callable[..., Any],
    contract: Any,
    signature: Signature,
    parameters: Parameters,
    *,
    name: str,
    stateful: bool,
    origin: str | None = None,
) -> Op:
    """Return an Op from its function, contract, signature and parameters."""
    if signature.inputs is not None:
        parameters = parameters.declared(len(signature.inputs))
    trees = None
    call_fn = None
    if signature.inputs is not None and not all(isinstance(part, Spec) for part in signature.inputs):
        trees = tuple(flatten(part)[1] for part in signature.inputs)
        call_fn = CallOnTrees(fn, trees)
    return Op(
        fn=fn,
        contract=contract,
        name=name,
        signature=signature,
        origin=origin or _origin(fn),
        parameters=parameters.arrays,
        defaults=parameters.defaults,
        statics=parameters.statics,
        required=parameters.required_statics,
        n_in=_arity(signature, parameters),
        stateful=stateful,
        any_static=parameters.any_static,
        is_method=parameters.is_method,
        arg_trees=trees,
        call_fn=call_fn,
    )


def _origin(fn: Any) -> str:
    code = getattr(fn, "__code__", None)
    return origin_here() if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _arity(signature: Signature, parameters: Parameters) -> int:
    if signature.inputs is not None:
        return len(signature.inputs)
    return -1 if parameters.variadic else len(parameters.arrays)


def _check_arity(signature: Signature, parameters: Parameters, name: str) -> None:
    if signature.inputs is None:
        return
    declared, taken = len(signature.inputs), len(parameters.arrays)
    if declared < parameters.n_required or (declared > taken and not parameters.variadic):
        names = ", ".join(parameters.arrays) or "none"
        raise TypeError(
            f"op {name!r} declares {declared} input{'s' * (declared != 1)} ({signature}), but its function has "
            f"{taken} positional parameter{'s' * (taken != 1)} ({names}); keyword-only parameters are static"
        )


def _mutates_mask(mutates: Any, signature: Signature, parameters: Parameters) -> int:
    names = (mutates,) if isinstance(mutates, str) else tuple(mutates)
    mask = 0
    for name in names:
        if name not in parameters.arrays:
            known = ", ".join(map(repr, parameters.arrays)) or "no named array parameters"
            raise ValueError(f"mutates={name!r} is not a parameter of the function, which has {known}")
        position = parameters.arrays.index(name)
        if signature.inputs is not None:
            first = len(flatten(signature.inputs[:position])[0])
            count = len(flatten(signature.inputs[position])[0])
        else:
            first, count = position, 1
        if first + count > 64:
            raise ValueError(f"mutates={name!r}: only the first 64 arrays can be written to")
        mask |= ((1 << count) - 1) << first
    return mask


def _bound_name(self: Op) -> str | None:
    """Return the name by which an instance or class gives this op, if it is the op of a bound method, else None."""
    method = self.__wrapped__
    name: str | None = getattr(self, "__name__", None)
    if not isinstance(method, MethodType) or name is None:
        return None
    owner = method.__self__ if isinstance(method.__self__, type) else type(method.__self__)
    return name if isinstance(getattr(owner, name, None), Op) else None


def _reduce(self: Op) -> Any:
    """Pickle the op by its import path, as functions and methods are, if one leads back to it.

    Otherwise pickle the arguments of `remade`.
    """
    name = _bound_name(self)
    if name is not None:
        return getattr, (self.__wrapped__.__self__, name)
    if path_of_op(self) is not None and by_path(self) is not None:
        return self.__qualname__
    attributes = {key: value for key in _ATTRIBUTES if (value := getattr(self, key, None)) is not None}
    parts = (self.__wrapped__, self.contract, self.spec, self.name, self.stateful, attributes, shown_place(self.origin))
    return remade, parts, own_attributes(self)


def remade(
    fn: Callable[..., Any],
    contract: Any,
    signature: Signature,
    name: str,
    stateful: bool,
    attributes: dict[str, Any],
    origin: str | None = None,
) -> Op:
    """Return the op that `_reduce` has taken apart."""
    made = make_op(fn, contract, signature, Parameters.of(fn), name=name, stateful=stateful, origin=origin)
    for key, value in attributes.items():
        setattr(made, key, value)
    abstract = contract._parts[4]
    if abstract is not None:
        vars(made)["_abstract_rule"] = abstract
    return made


def _deepcopy(self: Op, memo: dict[int, Any]) -> Op:
    """Return the op itself, as copies of functions do; for a bound method, the op of the copied instance."""
    name = _bound_name(self)
    return self if name is None else getattr(deepcopy(self.__wrapped__.__self__, memo), name)


def _abstract(self: Op, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the output specs by a function, where no declaration can say them.

    Parameters
    ----------
    rule : callable
        Called with one `Spec` for each array (its sizes are ints, or `Dim` while a graph is built) and those static
        arguments it has parameters for; returns a tree of specs. Must depend on nothing else.

    Returns
    -------
    callable
        `rule` itself, so that this can be used as a decorator.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.op
    ... def pairs(x):
    ...     return np.stack([x[:-1], x[1:]], axis=1)
    >>> @pairs.abstract
    ... def _(x):
    ...     return pyop.Spec(x.dtype, (x.shape[0] - 1, 2))
    >>> pairs(np.arange(4)).shape
    (3, 2)
    >>> pyop.trace(pairs, "int64[n]").outputs.shape
    (Dim('n-1'), 2)
    """
    if self.spec.outputs is not None:
        raise TypeError(f"op {self.name!r} declares its outputs ({self.spec}); it can have no abstract rule as well")
    parameters = Parameters.of(self.__wrapped__)
    check_by_name(rule, f"the abstract rule of op {self.name!r}", self.statics)
    abstract = AbstractRule(rule, self.name)
    contract = new_contract(
        self.spec,
        abstract,
        mutates=self.contract.mutates,
        out_mode=parameters.out_mode,
        gradient=self.contract.gradient,
    )
    vars(self)["_abstract_rule"] = abstract
    if self.contract.gradient is not None:
        self.contract.gradient.set_abstract(abstract)
    vars(self).setdefault("_declared", self.contract)  # a call in flight, which gave the rule, may still read it
    self._declare(contract, self.spec)
    return rule


# The type itself comes from the core, without these.
_METHODS = {
    "abstract": _abstract,
    "__reduce__": _reduce,
    "__copy__": lambda self: self,
    "__deepcopy__": _deepcopy,
    "__class_getitem__": classmethod(GenericAlias),
}
for _attribute, _method in _METHODS.items():
    setattr(Op, _attribute, _method)
