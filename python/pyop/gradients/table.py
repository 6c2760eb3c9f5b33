"""Hold the table of gradient rules: how cotangents and tangents pass through a function.

`lookup` finds the rule of a ufunc, a method of a ufunc, a NumPy function, an op, or anything given to `defvjp` or
`defjvp`. Rules are written in terms of NumPy functions. So one rule serves arrays, symbolic Values and any other type
that takes part in NumPy's protocols, and derivatives of derivatives.

A complex cotangent is the gradient of a real number, ``d/d re + 1j * d/d im``, so that ``z - step * grad`` goes
downhill. A rule computes the adjoint of the derivative: ``ct * conj(f'(z))`` where `f` is holomorphic.

The position of an argument is the number of its leaf: see `leaves`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinMethodType
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from .._core import Op, PyopError
from .._tree import flatten
from ..functions import families

__all__ = ["NoRule", "Place", "Rule", "add", "leaves", "lookup", "missing", "missing_of_op", "of_leaves", "places"]
__all__ += ["replaced", "same_rule"]

Pullback = Callable[[Any], tuple[Any, ...]]
R = TypeVar("R", bound="Rule")

_rules: dict[Any, Rule] = {}
_same: dict[Any, Any] = {}  # functions that have the rule of another one
_loaded = False
_special = False
_loading: set[int] = set()  # threads that import rules now
_outer_rule: Callable[[Any], Rule]


class NoRule(PyopError, TypeError):
    """Report a function without a gradient rule between result and argument, or a use that its rule does not cover.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> try:
    ...     pyop.grad(lambda c: np.roots(c)[0].real)(np.array([1.0, 0.0, -4.0]))
    ... except pyop.NoRule as error:
    ...     print(str(error).partition(":")[0])
    np.roots has no gradient rule
    """

    __module__ = "pyop"


class Place(NamedTuple):
    """Locate a leaf: the argument, and the number of the leaf in it."""

    argument: int | str
    offset: int


def leaves(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Return the leaves of a call, in the order in which argnums count them.

    Positional arguments first, then keywords, each flattened if it is a container. Everything counts, arrays or not.

    Examples
    --------
    >>> leaves((["a", "b"], 0), {"axis": None})
    ['a', 'b', 0, None]
    """
    found: list[Any] = []
    for argument in (*args, *kwargs.values()):
        if isinstance(argument, (tuple, list, dict)):
            found += flatten(argument)[0]
        else:
            found.append(argument)
    return found


def places(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Place]:
    """Return the place of each of `leaves`.

    Examples
    --------
    >>> places((["a", "b"], 0), {"axis": None})[1:3]
    [Place(argument=0, offset=1), Place(argument=1, offset=0)]
    """
    found: list[Place] = []
    named: list[tuple[Any, Any]] = [*enumerate(args), *kwargs.items()]
    for name, argument in named:
        count = len(flatten(argument)[0]) if isinstance(argument, (tuple, list, dict)) else 1
        found += [Place(name, k) for k in range(count)]
    return found


def replaced(args: Sequence[Any], kwargs: dict[str, Any], new: Mapping[int, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a call with some of its `leaves` replaced.

    Examples
    --------
    >>> replaced((["a", "b"], 0), {"axis": None}, {1: "c"})
    ((['a', 'c'], 0), {'axis': None})
    """
    count = 0

    def renew(argument: Any) -> Any:
        nonlocal count
        if isinstance(argument, (tuple, list, dict)):
            found, tree = flatten(argument)
            count += len(found)
            return tree.unflatten([new.get(k, leaf) for k, leaf in enumerate(found, count - len(found))])
        count += 1
        return new.get(count - 1, argument)

    return tuple(map(renew, args)), {key: renew(argument) for key, argument in kwargs.items()}


def of_leaves(
    f: Callable[..., Any], argnums: Sequence[int], args: Sequence[Any], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """Return ``f(*args, **kwargs)`` as a function of some of its `leaves`.

    Examples
    --------
    >>> of_leaves(max, (1,), ([1, 2], [3]), {})(0)
    [3]
    """

    def of_chosen(*new: Any) -> Any:
        new_args, new_kwargs = replaced(args, kwargs, dict(zip(argnums, new, strict=True)))
        return f(*new_args, **new_kwargs)

    return of_chosen


class Rule:
    """Pass derivatives through one function, which is its key in the table."""

    differentiable = True
    """False: the derivative is zero (or there is none) by nature, as of ``np.floor`` and ``np.argmax``."""

    broadcasts = False
    """The function is elementwise: cotangents that broadcast to the result will do."""

    narrows = False
    of_parts = False  # indexing
    writes = False  # a write into part of an array: has `pull_apart` (gradients/store.py)
    pull_onto: Any = None  # of a loop: its pullback, which adds to cotangents that are there already
    sign_symmetric = False  # has `signed` (gradients/rule.py)
    narrow: Rule | None = None
    """The same rule for graphs: takes and returns cotangents that broadcast to what they belong to."""

    def __init__(self, func: Any) -> None:
        self.func = func

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the kind of a parameter, by its position or name: "array", "arrays" (a sequence), or "" for others.

        A list that is given for an array is stacked before the rule sees it; see `listed`.
        """
        return ""

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        """Return the function that takes the cotangent of `ans`, the result of the call, to those of the arguments.

        It takes a tuple if `ans` is one, in which None stands for zero, and returns one cotangent for each of `argnums`
        (see `leaves`): dtype and shape of the argument, or None for zero.
        """
        self.refuse("reverse mode", "defvjp")

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the tangent of `ans`, a tuple if `ans` is one, of a tangent for each of `argnums`; None for zero."""
        self.refuse("forward mode", "defjvp")

    def refuse(self, mode: str, definer: str) -> NoReturn:
        raise NoRule(f"{name_of(self.func)} has no gradient rule for {mode}: give it one with pyop.{definer}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {name_of(self.func)}>"


def add(rule: R) -> R:
    """Put a rule into the table, in the place of one that is there."""
    _rules[_key(rule.func)] = rule
    return rule


def lookup(func: Any) -> Rule | None:
    """Return the gradient rule of a function; None if it has none.

    It is a ufunc, a pair of ufunc and method name (``(np.add, "reduce")``, or the method itself), a NumPy function, an
    op, or anything a rule was defined for.

    >>> import numpy as np
    >>> rule = lookup(np.multiply)
    >>> rule.vjp((0, 1), np.float64(6.0), (2.0, 3.0), {})(1.0)
    (3.0, 2.0)
    """
    key = _key(func)
    if not _loaded:
        _load()
    try:
        key = _same.get(key, key)
    except TypeError:
        return None
    found = _rules.get(key)
    if found is None and _load_special():
        found = _rules.get(key)
    if found is None:
        found = _rule_of_its_own(key)
    like = None if found is not None else getattr(func, "_pyop_like", None)
    if like is not None:
        return lookup(like)
    if found is None and isinstance(key, tuple) and key[1:] == ("outer",):
        found = _rules[key] = _outer_rule(key[0])
    return found


def same_rule(func: Any, like: Any) -> None:
    """Set the gradient rule of a function to that of another one that computes the same.

    It is looked up when it is asked for, as loading the rules takes longer than many traces.
    """
    _same[_key(func)] = _key(like)


def set_outer_rule(make: Callable[[Any], Rule]) -> None:
    """Set the function that makes the rule of ``ufunc.outer`` from the ufunc; an engine provides it."""
    global _outer_rule
    _outer_rule = make


def _rule_of_its_own(func: Any) -> Rule | None:
    """Return the rule of an op, or of what became of the rule of an op in a graph."""
    if isinstance(func, Op):
        gradient = func.contract.gradient
        return None if gradient is None else gradient.rule
    return getattr(func, "_pyop_gradient_rule", None)


def _load_special() -> bool:
    """Load the rules of scipy.special once somebody else has imported it."""
    global _special
    if _special or "scipy.special" not in sys.modules:
        return False
    _special = _load_family("grad", families.OF_SCIPY) or _special
    return _special


# What to write in the place of functions that have no rule.
_INSTEAD = {
    "np.piecewise": "np.where or np.select",
    "np.insert": "np.concatenate",
    "np.nanmedian": "np.median of the elements that are not nan",
    "np.nanquantile": "np.quantile of the elements that are not nan",
    "np.nanpercentile": "np.percentile of the elements that are not nan",
    "np.apply_along_axis": "pyop.vmap",
    "np.apply_over_axes": "the function itself with axis=",
}


def missing(func: Any, place: str = "") -> NoReturn:
    """Raise what a function without a rule gives."""
    name = name_of(func)
    other = _INSTEAD.get(name)
    first = f"use {other}, " if other else ""
    raise NoRule(
        f"{name} has no gradient rule{place}: {first}give it one with pyop.defvjp({name}, ...) (or pyop.defjvp for "
        'forward mode), call it in a pyop.op that has one (@op.vjp, or grad="fd" for differences), or call it on '
        "arrays that need no gradient"
    )


def missing_of_op(name: str, contract: Any, place: str = "") -> NoReturn:
    """Raise what an op without a rule gives; or a function that `pyop.py_func` and its kin call."""
    if contract is not None and contract._parts[3]:
        raise NoRule(
            f"function {name!r}{place}, called by py_func or numpy_function, has no gradient rule: give it one with "
            f'pyop.defvjp({name}, ...), or declare it as an op, f = pyop.op({name}, "float64[n] -> float64[n]"), and '
            'give that one with @f.vjp, or declare it with grad="fd"'
        )
    raise NoRule(
        f"op {name!r}{place} has no gradient rule: give it one with @{name}.vjp or @{name}.jac, or declare it with "
        'grad="fd"'
    )


def name_of(func: Any) -> str:
    """Return the name of a function for messages."""
    if isinstance(func, tuple):
        return f"np.{func[0].__name__}.{func[1]}"
    if isinstance(func, np.ufunc):
        label: str = func.__name__
        if getattr(np, label, None) is func:
            return f"np.{label}"
        special: Any = sys.modules.get("scipy.special")
        known = special is not None and func in (getattr(special, label, None), getattr(special._ufuncs, label, None))
        return f"scipy.special.{label}" if known else label
    module = (getattr(func, "__module__", None) or "").replace("numpy", "np")
    inner = getattr(func, "__name__", None) or repr(func)
    if isinstance(func, Op):
        return f"op {func.name!r}"
    if module.startswith("pyop.scipy"):
        return f"{module}.{func.__qualname__}"
    return f"{module}.{inner}" if module.partition(".")[0] == "np" else str(inner)


def _key(func: Any) -> Any:
    if type(func) is BuiltinMethodType and isinstance(func.__self__, np.ufunc):
        return func.__self__, func.__name__
    return func


def _load() -> None:
    # On first use: most programs that import pyop never ask for a gradient.
    global _loaded
    _loaded = _load_family("grad") or _loaded


def _load_family(kind: str, *of: dict[str, str]) -> bool:
    """Import rules; return whether all of them are there, which a rule that is being loaded itself need not see.

    Threads that come at the same time all import, and wait for each other there: nobody goes on before all are loaded.
    """
    me = threading.get_ident()
    if me in _loading:
        return False
    _loading.add(me)
    try:
        families.load(kind, *of)
    finally:
        _loading.discard(me)
    return True
