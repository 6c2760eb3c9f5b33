"""Provide TensorFlow's ``py_func`` and ``numpy_function``, on arrays and Values alike.

The semantics are those of TensorFlow's graphs. The results must have the number and the dtypes that `Tout` says,
nothing is cast, and text is UTF-8 bytes in object arrays. Unlike there, arguments are read-only, the function's
exception is raised as it is, and equal stateless calls are merged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from .._core import Contract, Op
from ..declare.contracts import ResultForm, make_contract
from ..declare.parameters import Parameters, check_name, default_name
from ..declare.signature import Signature
from ..declare.spec import Spec
from .op import make_op

__all__ = ["make_function_op", "numpy_function", "output_spec", "py_func"]

_ANY_INPUTS = Parameters()
_TEXT = frozenset(("string", "str", "bytes"))


def py_func(func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:
    """Call a Python function on arrays, now or as a node of a graph.

    Parameters
    ----------
    func : callable
        Called with one array for each input, or a scalar of NumPy where that has no dimension (``bytes``, if it is
        text); returns one value, or a list or tuple of values, for `Tout`.
    inp : list or tuple
        Arrays, Values, or what NumPy makes arrays of. With a Value among them, or inside ``with graph:``, a node is
        added.
    Tout : dtype, or list or tuple of dtypes
        Of the results; "string" for text; a spec such as ``"float32[n,3]"`` also declares shapes.
    stateful : bool
        The function has side effects or hidden inputs.
    name : str, optional
        Of the node.

    Returns
    -------
    ndarray or Value, or list of them
        One for a single `Tout`, a list for a list or tuple. For an empty list: None, or the Node to run.

    Raises
    ------
    OutputError
        The function returned something else than `Tout` says.
    ValueError
        `func` is not callable, or `name` is not a valid name.
    TypeError
        `inp` is not a list or tuple; `Tout` is no dtype.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> pyop.py_func(np.sinh, [np.zeros(2)], np.float64)
    array([0., 0.])
    >>> pyop.py_func(lambda x: x.sum(), [np.ones(2)], np.float32)
    Traceback (most recent call last):
        ...
    pyop.OutputError: 0-th value returned by lambda is double, but expects float...
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func!r:.200} of type {type(func).__name__}.")
    if not isinstance(inp, list | tuple):
        raise TypeError(
            f"inp must be a list or tuple of arrays and Values, got {type(inp).__name__} {inp!r:.80}; "
            "for one input x write [x]"
        )
    single = not isinstance(Tout, list | tuple)
    parts = (Tout,) if single else tuple(Tout)
    try:
        declared = _declare_sequence(parts)
    except TypeError:  # no dtype, or not even hashable: told without the cache
        declared = _declare_sequence.__wrapped__(parts)
    results = _function_op(func, *declared, stateful, name)(*inp)
    return results[0] if single else results


@overload
def numpy_function(
    func: None = None, inp: None = None, Tout: Any = None, stateful: bool = True, name: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
@overload
def numpy_function(
    func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: str | None = None
) -> Any: ...
def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call `py_func`, or return a decorator that does: ``@numpy_function(Tout=np.float32)``.

    Parameters
    ----------
    func, inp, Tout, stateful, name
        As `py_func` has them. Without `func` the result is a decorator, and the decorated function takes the inputs as
        its positional arguments.

    Returns
    -------
    ndarray, Value, list of them, or callable

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.numpy_function(Tout=np.float64)
    ... def double(x):
    ...     return x * 2.0
    >>> double(np.ones(2))
    array([2., 2.])
    """
    if Tout is None:
        raise TypeError("numpy_function needs Tout: the dtype of the result, or a list of dtypes ([] for no result)")
    if func is None:
        if inp is not None:
            raise TypeError("numpy_function without func is a decorator and takes no inp: give func as well")

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def call(*inputs: Any) -> Any:
                return py_func(function, list(inputs), Tout, stateful=stateful, name=name)

            return call

        return decorate
    if inp is None:
        raise TypeError("numpy_function with func needs inp: the list of its inputs")
    return py_func(func, inp, Tout, stateful=stateful, name=name)


def output_spec(dtype: Any) -> Spec:
    """Return the spec of one entry of `Tout`; TypeError if that is no dtype."""
    if dtype in (str, bytes) or (isinstance(dtype, str) and dtype in _TEXT):
        return Spec(np.dtype(object))
    if dtype is None or isinstance(dtype, dict | list | tuple):
        raise TypeError(f"Cannot convert {dtype!r:.80} to a dtype: Tout is a dtype or a list of dtypes")
    try:
        spec = Spec.make(dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Cannot convert {dtype!r:.80} to a dtype: {error}") from error
    if isinstance(spec.dtype, np.dtype) and spec.dtype.kind in "SUT":
        return Spec(np.dtype(object), spec.shape)
    return spec


def make_function_op(func: Callable[..., Any], outputs: Any, form: ResultForm, stateful: bool, name: str | None) -> Op:
    """Return an op of the py_func family: any number of inputs, text as UTF-8 bytes."""
    return _function_op(func, *_declare(outputs, form), stateful, name)


def _declare(outputs: Any, form: ResultForm) -> tuple[Signature, Contract]:
    signature = Signature.make(outputs=outputs)
    return signature, make_contract(signature, form=form, text_as_utf8=True)


# Called for every py_func, mostly with a few different Tout.
@functools.lru_cache(maxsize=1024)
def _declare_sequence(Tout: tuple[Any, ...]) -> tuple[Signature, Contract]:
    return _declare(tuple(output_spec(part) for part in Tout), ResultForm.SEQUENCE)


def _function_op(
    func: Callable[..., Any], signature: Signature, contract: Contract, stateful: bool, name: str | None
) -> Op:
    label = default_name(func) if name is None else check_name(name)
    return make_op(func, contract, signature, _ANY_INPUTS, name=label, stateful=bool(stateful))
