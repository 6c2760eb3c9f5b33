"""Infer what NumPy functions return: the specs of their results, from the specs of their arguments.

A rule is called with the arguments of the NumPy function itself, in which a `Spec` stands for every array that the
graph computes; concrete arguments stay as they are. It returns a Spec, or the tuple, list or named tuple of Specs that
NumPy would return arrays in. Facts that are unknown before the call stay unknown in the Spec; a rule never guesses.
A call that cannot work raises what NumPy raises.

>>> import numpy as np
>>> from pyop import functions
>>> from pyop.declare.spec import Spec
>>> str(functions.lookup(np.sum)(Spec.parse("int32[n, 3]"), axis=0))
'int64[3]'
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, NoReturn, TypeVar

import numpy as np

from .._core import Value
from ..declare.spec import Spec
from ..refusals import refusal
from . import families

__all__ = ["infer", "lookup", "names", "register", "rule"]

Rule = Callable[..., Any]
R = TypeVar("R", bound=Callable[..., Any])

_rules: dict[Any, tuple[Any, ...]] = {}  # a rule, and the function if the rule is called with that in front
_loaded = False
# Where the commonest functions have their rules: the first call of a process need not load the other families.
_homes = {
    "axes": "transpose moveaxis swapaxes expand_dims squeeze",
    "creation": "zeros_like ones_like empty_like full_like copy linspace meshgrid",
    "diagonals": "diagonal diag tril triu trace",
    "elementwise": "real imag angle round around clip nan_to_num isclose allclose array_equal",
    "indexing": "nonzero take take_along_axis",
    "inserting": "tile repeat pad",
    "joining": "concatenate vstack hstack dstack column_stack stack block append",
    "numerics": "diff gradient trapezoid convolve",
    "products": "dot inner vdot outer tensordot kron cross einsum",
    "reductions": "sum prod max min amax amin std var mean all any argmax argmin ptp count_nonzero cumsum cumprod",
    "reshaping": "reshape ravel resize broadcast_to broadcast_arrays atleast_1d flip roll",
    "selecting": "where select piecewise compress",
    "sorting": "searchsorted sort argsort",
}


def rule(*functions: Any) -> Callable[[R], R]:
    """Register a rule for NumPy functions, given themselves or by their name below ``numpy``.

    A name the installed NumPy does not have is passed over: functions come with its releases. A rule that has a
    parameter ``out`` refuses a call that sets it, whether by keyword or by position.

    >>> from pyop.functions import lookup, rule
    >>> def twice(x):  # of a library of yours, that NumPy's protocols know
    ...     return 2 * x
    >>> @rule(twice)
    ... def _(x):
    ...     return x
    >>> str(lookup(twice)(pyop.Spec("float32", (3,))))
    'float32[3]'
    """

    def of(function: R) -> R:
        register(functions, function)
        return function

    return of


def register(functions: tuple[Any, ...], function: Rule, with_function: bool = False) -> None:
    """Register a rule as `rule` does; see `pyop.functions.forms` for the other forms of rules.

    >>> from pyop.functions import lookup, register
    >>> def half(x):
    ...     return x / 2
    >>> register((half,), lambda x: x)
    >>> str(lookup(half)(pyop.Spec("float64", (3,))))
    'float64[3]'
    """
    for item in functions:
        target = find(item) if isinstance(item, str) else item
        if target is not None:
            _rules[target] = (function, target) if with_function else (function,)


def find(name: str) -> Any:
    """Return the object of this dotted name below ``numpy``, or None."""
    target: Any = np
    for part in name.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            try:
                target = importlib.import_module(f"{target.__name__}.{part}")
            except (ImportError, AttributeError):
                return None
    return target


def lookup(function: Any) -> Rule | None:
    """Return the rule of a NumPy function, or None. Ufuncs have one rule for all, see `pyop.functions.ufuncs`.

    >>> from pyop.functions import lookup
    >>> str(lookup(np.sum)(pyop.Spec.parse("int32[n, 3]"), axis=0))
    'int64[3]'
    """
    try:
        entry = _rules.get(function)
    except TypeError:
        return None
    if entry is None and not _loaded:
        _load_for(function)
        entry = _rules.get(function)
    return None if entry is None else settled(*entry)


def infer(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the specs ``function(*args, **kwargs)`` returns; one unknown Spec if there is no rule for the function.

    >>> from pyop.functions import infer
    >>> str(infer(np.mean, pyop.Spec.parse("float32[n, 3]"), axis=1))
    'float32[n]'
    """
    rule = lookup(function)
    return Spec() if rule is None else rule(*args, **kwargs)


def names() -> list[Any]:
    """Return every function that has a rule.

    >>> from pyop.functions import names
    >>> np.sum in names()
    True
    """
    if not _loaded:
        _load()
    return list(_rules)


def _load_for(function: Any) -> None:
    """Load the family that has the function's rule, all of them if that is not known."""
    name = getattr(function, "__name__", "")
    for family, usual in _homes.items():
        if name in usual.split():
            importlib.import_module(f"{__name__}.{family}.spec")
            if function in _rules:
                return
    _load()


def _load() -> None:
    # On first use, because most programs that import pyop never call a NumPy function on a Value.
    global _loaded
    families.load("spec")
    _loaded = True


@cache
def settled(function: Rule, *first: Any) -> Rule:
    """Return the rule with ``out`` refused and with its results brought to what a node can promise."""
    code: Any = function.__code__  # a rule is a plain function
    positional = code.co_varnames[len(first) : code.co_argcount]
    at = positional.index("out") if "out" in positional else None

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None or (at is not None and len(args) > at and args[at] is not None):
            refuse_out()
        return settle(function(*first, *args, **kwargs))

    return checked


def refuse_out() -> NoReturn:
    raise refusal(
        f"out= cannot be used with a Value, as at {Value._here()}: a Value is immutable and a node owns its result; "
        "leave out= away and use the Value that the call returns"
    )


def settle(tree: Any) -> Any:
    """Loosen what NumPy does not keep: the length of text, and the array around a single object."""
    if isinstance(tree, Spec):
        return settled_spec(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(settle(item) for item in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(settle(item) for item in tree)
    return tree


def settled_spec(spec: Spec) -> Spec:
    """Return one spec as `settle` settles it."""
    dtype = spec.dtype
    if not isinstance(dtype, np.dtype):
        return spec
    if dtype.kind == "O" and not spec.shape:
        # NumPy hands out the object itself, which becomes an array of a dtype and shape of its own.
        return Spec()
    if dtype.kind in "US" and dtype.itemsize:
        return Spec(np.dtype(dtype.kind), spec.shape)
    return spec
